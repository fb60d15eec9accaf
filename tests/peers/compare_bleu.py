#!/usr/bin/env python3
"""BLEU of mixt/tasks/translate.h next to sacrebleu's, on random corpora of words, numbers, signs and white space of all kinds.

    compare_bleu.py BLEU_PROGRAM [CORPORA] [TEXT…]

BLEU_PROGRAM is build/tests/bleu. TEXT are files of sentences, plain or gzip, which become corpora too, each line against one that was
changed a little. Every figure must be within 1e-9 of sacrebleu's. Status 77 where sacrebleu is missing.
"""
import gzip, random, subprocess, sys

try:
    import sacrebleu
except ImportError:
    print("compare_bleu: sacrebleu is missing: nothing is compared")
    sys.exit(77)

PIECES = ["the", "The", "cat", "Männer", "straße", "a", "1,000", "3.14", "2019-20", "1.", ",5", "...", "e.g.", "don't", "well-known", "<skipped>", "&quot;", "&amp;lt;", "&",
          "<b>", "A/B", "(x)", "[y]", "{z}", "~", "`q`", "\"w\"", "#1", "$5", "50%", "a@b.de", "x=y", "—", "…", "日本", "。", "\u00a0", "\u2003", "\x1c", "-", "--", "5-", "-5", "'s",
          "*", "+", ":", ";", "?", "!", "\\", "^", "_", "|", "Œuvre", ".a", "a.", "a,b", "1,b", "b,1", "9.,", "\u200b", "\ufeff"]


def sentence(rng):
    count = rng.choice([0, 1, 2, 3, 4, 5, 8, 12, 30])
    return "".join(rng.choice(PIECES) + rng.choice(["", " ", " ", " ", "  ", "\t"]) for _ in range(count))


def changed(rng, text):
    words = text.split(" ")
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(words))
        what = rng.randrange(4)
        if what == 0:
            del words[at:at + 1]
        elif what == 1:
            words.insert(at, rng.choice(PIECES))
        elif what == 2:
            words[at] = words[at].upper()
        words = words or [""]
    return " ".join(words)


def corpora(rng, count, texts):
    for i in range(count):
        references = [sentence(rng) for _ in range(rng.choice([1, 1, 2, 10]))]
        yield [changed(rng, r) if i % 3 else sentence(rng) for r in references], references
    for path in texts:
        lines = (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8").read().split("\n")[:2000]
        yield [changed(rng, line) for line in lines], lines


def main():
    program, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    all_corpora = list(corpora(random.Random(20261116), count, sys.argv[3:]))
    text = "".join(f"{len(t)}\n" + "".join(line + "\n" for line in t + r) for t, r in all_corpora)
    lines = subprocess.run([program], input=text.encode(), check=True, capture_output=True).stdout.decode().splitlines()
    assert len(lines) == len(all_corpora)
    worst = 0
    for line, (texts, references) in zip(lines, all_corpora):
        b = sacrebleu.corpus_bleu(texts, [references])
        want = [b.score, b.bp, *b.precisions, b.sys_len, b.ref_len]
        error = max(abs(float(a) - w) for a, w in zip(line.split(), want))
        if error > 1e-9:
            print(f"compare_bleu: off by {error:g}\n  texts {texts!r}\n  references {references!r}\n  sacrebleu {want}\n  mixt {line}")
            sys.exit(1)
        worst = max(worst, error)
    print(f"compare_bleu: {len(lines)} corpora, sacrebleu {sacrebleu.__version__}, off by {worst:.2g} at most")


main()
