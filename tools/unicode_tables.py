#!/usr/bin/env python3
"""Writes src/base/unicode_tables.inc: classes of code points and the folding of BERT's uncased vocabularies.

    tools/unicode_tables.py > src/base/unicode_tables.inc

The tokenizers that mixt is compared with follow Unicode 16: install the package unicodedata2 16.0 where Python's own
tables are older. The classes are what regular expressions call \\p{L}, \\p{N}, \\s, \\p{P}, \\p{Mn} and the controls
(Cc, Cf, Co). Folding is: canonical decomposition, non-spacing marks dropped, lower case; Hangul is left to arithmetic.
"""
import sys

try:
    import unicodedata2 as ucd
except ImportError:
    import unicodedata as ucd

# White_Space of the standard; str.isspace would add the separators U+001C to U+001F.
SPACES = {*range(0x9, 0xE), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}
SURROGATES = range(0xD800, 0xE000)
HANGUL = range(0xAC00, 0xD7A4)


def class_of(code):
    category = ucd.category(chr(code))
    if code in SPACES:
        return "S"
    if category[0] in "LNP":
        return category[0]
    if category == "Mn":
        return "M"
    return "C" if category in ("Cc", "Cf", "Co") else None


def ranges():
    """(first, last, class) of every run of one class."""
    runs = []
    for code in range(0x110000):
        kind = None if code in SURROGATES else class_of(code)
        if runs and runs[-1][2] == kind and runs[-1][1] == code - 1:
            runs[-1][1] = code
        else:
            runs.append([code, code, kind])
    return [run for run in runs if run[2]]


def fold(code):
    kept = [c for c in ucd.normalize("NFD", chr(code)) if ucd.category(c) != "Mn"]
    return "".join(kept).lower()


def folds():
    for code in range(0x80, 0x110000):
        if code in SURROGATES or code in HANGUL or ucd.category(chr(code)) == "Mn":
            continue
        folded = fold(code)
        if folded and folded != chr(code):
            yield code, [ord(c) for c in folded]


def write(name, entries):
    print(f"static const {name} = {{")
    line = "   "
    for entry in entries:
        if len(line) + len(entry) + 2 > 120:
            print(line)
            line = "   "
        line += f" {entry},"
    print(line + "\n};")


def main():
    print(f"/* Made by tools/unicode_tables.py from Unicode {ucd.unidata_version}. Not for editing. clang-format off */")
    write("code_range ranges[]", (f"{{0x{a:x}, 0x{b:x}, {kind}}}" for a, b, kind in ranges()))
    table = list(folds())
    longest = max(len(to) for _, to in table)
    assert longest <= 4, longest
    write("code_fold folds[]", ("{0x%x, {%s}}" % (code, ", ".join("0x%x" % c for c in to)) for code, to in table))


if __name__ == "__main__":
    sys.exit(main())
