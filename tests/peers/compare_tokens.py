#!/usr/bin/env python3
"""GPT-2 tokens of `mixt tokenize` against tiktoken's, and WordPiece against transformers'. Exit status 77: not installed.

    tests/peers/compare_tokens.py MIXT DATA_FOLDER

DATA_FOLDER has gpt2_bpe and tinyshakespeare. Texts: all of tiny Shakespeare, this repository's C, code points,
Chinese and emoji at random, random bytes, words of half a million letters; each also back to its bytes.
"""
import glob
import json
import os
import random
import subprocess
import sys
import tempfile

try:
    import tiktoken
except ImportError:
    sys.exit(77)
try:
    from transformers import BertTokenizer
except ImportError:
    BertTokenizer = None

ROOT = os.path.join(os.path.dirname(__file__), "..", "..")
RULE = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
PARTS = ["的", "是", "不", "了", "在", "人", "，", "。", " ", "\n", "😀", "👩‍👩‍👧", "e\u0301", "\u00a0", "\u3000", "\u2028",
         "'s", "'LL", "'ve", "12", "٣", "x", "The ", "  ", "\t", "\r\n", "\u0085", "\x1c", "\x0b", "Ü", "ß", "한국", "[SEP]"]


def read_gpt2(folder):
    codes = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in codes]
    hidden = {**{chr(b): b for b in codes}, **{chr(256 + i): b for i, b in enumerate(rest)}}
    table = json.load(open(f"{folder}/encoder.json"))
    return {bytes(hidden[c] for c in k): i for k, i in table.items() if k != "<|endoftext|>"}


def texts(data):
    r = random.Random(3)
    yield "tiny Shakespeare", open(f"{data}/tinyshakespeare/input.txt", "rb").read()
    yield "code", b"".join(open(p, "rb").read() for p in sorted(glob.glob(f"{ROOT}/src/*/*.[ch]")))
    codes = [chr(c) for c in range(0x20000) if not 0xD800 <= c < 0xE000]
    yield "code points to U+1FFFF", "".join(codes).encode()
    mixed = "".join(r.choice(PARTS) for _ in range(100000)).encode()
    yield "Chinese, emoji, blanks", mixed
    yield "random bytes", r.randbytes(200000)
    yield "a bad byte", mixed[:5000] + b"\xff" + mixed[5000:30000]
    yield "one word", "".join(r.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(300000)).encode()
    yield "blanks", b" " * 5000 + b"\n" * 3000 + b"a" * 70000 + b" " * 100


def main():
    mixt, data = sys.argv[1:3]
    gpt2 = tiktoken.Encoding("gpt2", pat_str=RULE, mergeable_ranks=read_gpt2(f"{data}/gpt2_bpe"), special_tokens={})
    small = os.path.join(ROOT, "tests", "data", "tokens")
    bert = BertTokenizer(f"{small}/vocab.txt", do_lower_case=True) if BertTokenizer else None
    wrong = 0
    with tempfile.TemporaryDirectory() as work:
        path, out = f"{work}/text", f"{work}/tokens"
        for name, text in texts(data):
            open(path, "wb").write(text)
            vocab = ["--vocab", f"{data}/gpt2_bpe"]
            subprocess.run([mixt, "tokenize", path, "--out", out, "--overwrite", *vocab], check=True, stdout=subprocess.DEVNULL)
            ids = memoryview(open(out, "rb").read()[128:]).cast("H").tolist()
            back = subprocess.run([mixt, "tokenize", out, "--decode", *vocab], check=True, stdout=subprocess.PIPE).stdout
            same = ids == gpt2._encode_bytes(text) and back == text
            print(f"{'same' if same else 'DIFFERENT'}: {name}, {len(text)} bytes, {len(ids)} tokens")
            wrong += not same
            if bert and name in ("code", "Chinese, emoji, blanks"):
                found = json.loads(subprocess.run([mixt, "tokenize", path, "-t", "wordpiece", "--vocab", small, "--json"],
                                                  check=True, stdout=subprocess.PIPE).stdout)["tokens"]
                same = found == bert(text.decode(), add_special_tokens=False)["input_ids"]
                print(f"{'same' if same else 'DIFFERENT'}: WordPiece of {name}, {len(found)} tokens")
                wrong += not same
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
