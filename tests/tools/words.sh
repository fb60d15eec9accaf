#!/bin/bash
# The check of words must itself be able to fail: in messages, in joined literals, on pages; and not in code or comments.
set -u
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0
mkdir -p "$tree"/{src,cli,docs,configs,tools}
cp "$PWD/tools/words.txt" "$tree/tools/"
echo '# mixt' >"$tree/README.md"

# expect pass|fail FILE TEXT
expect() {
    printf '%b' "$3" >"$tree/$2"
    if python3 "$PWD/tools/words.py" "$tree" >"$tree/output" 2>&1; then result=pass; else result=fail; fi
    [ "$result" = fail ] && ! grep -q "^$2:" "$tree/output" && result="fail otherwise"
    rm "$tree/$2"
    [ "$result" = "$1" ] && return
    echo "expected $1, got $result: $2: $3: $(cat "$tree/output")"
    failures=$((failures + 1))
}
expect fail src/a.c 'fail("layers that cannot bear it");\n'
expect fail src/a.c 'fail("x is "\n     "no table");\n'
expect fail cli/a.c 'say("a update");\n'
expect fail docs/a.md 'What both\nparts are parted\nby: a tab.\n'
expect fail configs/a.yaml 'a: 1 # learns it by heart\n'
expect pass src/a.c '// layers that cannot bear it\nint bear;\nfail("there is no table");\n'
expect pass docs/a.md 'A word: `parted by`.\n\n```\nparted by\n```\n'
expect pass cli/a.c 'say("no longer"); say("is no longer there");\n'
[ "$(grep -c -v '^#' "$tree/tools/words.txt")" -ge 40 ] || { echo "the list is short"; failures=$((failures + 1)); }
grep -v '^#' "$tree/tools/words.txt" | grep -vP '^[^\t]+\t[^\t]+$' && failures=$((failures + 1))
exit $((failures != 0))
