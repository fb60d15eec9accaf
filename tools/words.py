#!/usr/bin/env python3
"""Fails where messages, help or pages use a phrase of tools/words.txt. Usage: tools/words.py [ROOT]"""

import pathlib
import re
import sys

TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|\s+|.', re.S)


def literals(text):
    """Line and text of each string of a C file; neighbours are one, as the compiler joins them."""
    line, begun, joined = 1, 0, None
    for token in TOKEN.findall(text):
        if token[0] == '"':
            begun = line if joined is None else begun
            joined = (joined or "") + token[1:-1]
        elif joined is not None and not token.isspace():
            yield begun, joined.replace("\\n", " ")
            joined = None
        line += token.count("\n")
    if joined is not None:
        yield begun, joined


def prose(text):
    """Line and text of each paragraph, list item and table row of a page; code blocks and `code` are left out."""
    line, begun, part, inside = 0, 0, "", False
    for row in text.split("\n"):
        line += 1
        if row.startswith("```"):
            inside = not inside
        new = inside or not row.strip() or row.startswith(("#", "- ", "| ", "```")) or re.match(r"\d+\. ", row)
        if new and part:
            yield begun, part
            part = ""
        if not inside and not row.startswith("```") and row.strip():
            begun = begun if part else line
            part += " " + re.sub(r"`[^`]*`", "`", row.strip())
    if part:
        yield begun, part


def comments(text):
    """Line and text of each comment of a YAML file."""
    for line, row in enumerate(text.split("\n"), 1):
        if "#" in row:
            yield line, row[row.index("#") :]


def refused(root, rows):
    found = []
    readers = [("src", ("*.c", "*.h", "*.def"), literals), ("cli", ("*.c", "*.h"), literals), ("docs", ("*.md",), prose)]
    readers += [(".", ("README.md",), prose), ("configs", ("*.yaml",), comments)]
    for folder, names, reader in readers:
        for name in names:
            search = (root / folder).glob if folder == "." else (root / folder).rglob
            for path in sorted(search(name)):
                for line, text in reader(path.read_text(encoding="utf-8")):
                    for pattern, instead in rows:
                        hit = pattern.search(text)
                        if hit:
                            near = text[max(0, hit.start() - 30) : hit.end() + 30]
                            found.append(f"{path.relative_to(root)}:{line}: …{near}… [say: {instead}]")
    return found


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    rows = []
    for row in (root / "tools/words.txt").read_text(encoding="utf-8").split("\n"):
        if row and not row.startswith("#"):
            pattern, instead = row.split("\t")
            rows.append((re.compile(pattern), instead))
    found = refused(root, rows)
    print("\n".join(found))
    return 1 if found else 0


sys.exit(main())
