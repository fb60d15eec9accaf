#!/usr/bin/env python3
"""Makes the expected tokens of tests/unit/test_tokenizer.c with other implementations: tiktoken and transformers.

    tests/peers/golden_tokens.py [GPT2_FOLDER]      writes tests/data/tokens/*

First a small byte-pair vocabulary and a small WordPiece vocabulary are learnt from the sentences below; then a line
"HEX-OF-TEXT id id ..." a text is written for each tokenizer. With the folder of GPT-2's own files, its too.
"""
import collections
import json
import os
import random
import sys

import regex
import tiktoken
from transformers import BertTokenizer

OUT = os.path.join(os.path.dirname(__file__), "..", "data", "tokens")
RULE = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
MERGES = 220

SENTENCES = [
    "The mill stood where the two rivers met, and the miller's daughter kept the keys.",
    "We'll see what they've done; it isn't what I'd have done, but he's sure they're right, and I'm not.",
    "for (int i = 0; i < count; i++)\n\t\tsum += values[i] * 2.5e-3;  // tabs,  and   runs of blanks\n\n\n",
    "今天天气很好，我们去河边散步吧。明天也许会下雨。",
    "Ein Mädchen lief über die Straße; l'été dernier, à Genève, il a plu. ΟΔΥΣΣΕΥΣ, Ὀδυσσεύς. Привет!",
    "😀 👩‍👩‍👧‍👦 flags 🇩🇪🇫🇷 and é as e\u0301, \u00a0no-break\u2003em\u3000wide\u2028line\u0085next\x1cfs",
    "١٢٣ ½ ² ⅷ 1234567890 0x1F 3,141.59 $100 +5% <b>&amp;</b> `code` ~tilde^",
    "한국어 문장입니다. ภาษาไทย हिन्दी में नमस्ते עברית العربية",
    "'s 'S 'll'LL ''' don't''ve 've've",
    "   leading and trailing   ",
    "a", " ", "\n", "\r\n\r\n x", "  \n  y", "\t\tz\t",
    "Supercalifragilisticexpialidocious" * 4,
    "word" * 30,
    "[MASK] and [CLS]x[SEP] but [mask] and [UNK",
    "naïve façade ﬁne Ⅳ İstanbul ǅ \u037e \ufeffbom \u200bzero\ufffdwidth\x00nul",
    "",
]
BYTES = [b"\xff", b"caf\xe9 au lait", b"ok \xc3", b"\xe4\xb8", b"two  \n \xff\xfe the end", b"\xed\xa0\x80\xf4\x90\x80\x80",
         b"\xc0\xaf then", b"the \t\n\x80 the", random.Random(7).randbytes(120)]


def alphabet():
    codes = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in codes]
    return {**{b: chr(b) for b in codes}, **{b: chr(256 + i) for i, b in enumerate(rest)}}


def learn_merges():
    """Plain byte-pair learning over the sentences' pieces."""
    words = collections.Counter(w for s in SENTENCES for w in regex.findall(RULE, s))
    parts = {w: [bytes([b]) for b in w.encode()] for w in words}
    ranks, merges = {bytes([i]): i for i in range(256)}, []
    while len(merges) < MERGES:
        pairs = collections.Counter()
        for w, n in words.items():
            for pair in zip(parts[w], parts[w][1:]):
                pairs[pair] += n
        left, right = min(pairs, key=lambda p: (-pairs[p], p))
        if left + right in ranks:
            break
        ranks[left + right] = len(ranks)
        merges.append((left, right))
        for w, p in parts.items():
            i = 0
            while i + 1 < len(p):
                if (p[i], p[i + 1]) == (left, right):
                    p[i:i + 2] = [left + right]
                i += 1
    return ranks, merges


def write_bpe(ranks, merges):
    shown = alphabet()
    def show(token):
        return "".join(shown[b] for b in token)
    with open(f"{OUT}/encoder.json", "w") as f:
        json.dump({**{show(t): i for t, i in ranks.items()}, "<|endoftext|>": len(ranks)}, f)
        f.write("\n")
    with open(f"{OUT}/vocab.bpe", "w", encoding="utf-8") as f:
        f.write("#version: 0.2\n" + "".join(f"{show(a)} {show(b)}\n" for a, b in merges))


def write_wordpiece():
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    words = "the The mill stood where two rivers met and daughter kept key we see what they done have sure right not for " \
            "int count sum values tab of blank word super fragil istanbul naive facade naïve it is isn as but flags e é".split()
    pieces = "##s ##er ##ing ##cali ##list ##docious ##word ##stanbul ##ave ##cade ##ss".split()
    other = list("今天气很好我们去河边吧，。!'\"#$%&()*+,-./:;<=>?@[]^_`{|}~😀½") + list("привет") + ["한", "ᄒ", "##ᅡ", "##ᆫ", "##국"]
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *("##" + c for c in letters), *words, *pieces, *other]
    tokens = list(dict.fromkeys(tokens))
    with open(f"{OUT}/vocab.txt", "w", encoding="utf-8") as f:
        f.write("".join(t + "\n" for t in tokens))


def golden(name, texts, encode):
    with open(f"{OUT}/{name}.golden", "w") as f:
        for text in texts:
            f.write(" ".join([text.hex() or "-", *map(str, encode(text))]) + "\n")


def read_gpt2(folder):
    hidden = {c: b for b, c in alphabet().items()}
    table = json.load(open(f"{folder}/encoder.json"))
    return {bytes(hidden[c] for c in k): i for k, i in table.items() if k != "<|endoftext|>"}


def main():
    texts = [s.encode() for s in SENTENCES]
    ranks, merges = learn_merges()
    write_bpe(ranks, merges)
    write_wordpiece()
    small = tiktoken.Encoding("small", pat_str=RULE, mergeable_ranks=ranks, special_tokens={})
    golden("small", texts + BYTES, small._encode_bytes)
    for name, lower in (("wordpiece", True), ("wordpiece-cased", False)):
        bert = BertTokenizer(f"{OUT}/vocab.txt", do_lower_case=lower)
        golden(name, texts, lambda t: bert(t.decode(), add_special_tokens=False)["input_ids"])
    if len(sys.argv) > 1:
        gpt2 = tiktoken.Encoding("gpt2", pat_str=RULE, mergeable_ranks=read_gpt2(sys.argv[1]), special_tokens={})
        golden("gpt2", texts + BYTES, gpt2._encode_bytes)


if __name__ == "__main__":
    main()
