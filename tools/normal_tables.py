#!/usr/bin/env python3
"""Writes src/base/normal_tables.inc: what the canonical composition of Unicode (NFC) needs.

    tools/normal_tables.py > src/base/normal_tables.inc

Install the package unicodedata2 16.0 where Python's own tables are older. Hangul is left to arithmetic. `order` has the
combining classes that are not 0, as runs; `parts` the canonical decompositions, one step each; `pairs` what two code points
become, those apart that are excluded from composition; `followers` those second ones that have no combining class.
"""
import sys

from unicode_tables import HANGUL, SURROGATES, ucd, write


def codes():
    return (code for code in range(0x110000) if code not in SURROGATES and code not in HANGUL)


def runs():
    made = []
    for code in codes():
        order = ucd.combining(chr(code))
        if order and made and made[-1][2] == order and made[-1][1] == code - 1:
            made[-1][1] = code
        elif order:
            made.append([code, code, order])
    return made


def parts():
    for code in codes():
        fields = ucd.decomposition(chr(code)).split()
        if fields and not fields[0].startswith("<"):
            yield code, [int(field, 16) for field in fields]


def main():
    print(f"/* Made by tools/normal_tables.py from Unicode {ucd.unidata_version}. Not for editing. clang-format off */")
    write("code_order order[]", (f"{{0x{a:x}, 0x{b:x}, {c}}}" for a, b, c in runs()))
    table = list(parts())
    write("code_parts parts[]", ("{0x%x, {0x%x, 0x%x}}" % (code, *(to + [0])[:2]) for code, to in table))
    pairs = [(*to, code) for code, to in table if len(to) == 2 and ucd.normalize("NFC", chr(code)) == chr(code)]
    write("code_pair pairs[]", ("{0x%x, 0x%x, 0x%x}" % pair for pair in sorted(pairs)))
    write("uint32_t followers[]", ("0x%x" % code for code in sorted({b for _, b, _ in pairs if not ucd.combining(chr(b))})))


if __name__ == "__main__":
    sys.exit(main())
