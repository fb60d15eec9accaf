#!/bin/bash
# The check of sizes must itself be able to fail.
set -u
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0
mkdir -p "$tree/src" "$tree/cli" "$tree/include"

# expect pass|fail FILE HEAD LINES TAIL: HEAD, so many lines and TAIL
expect() {
    { printf '%b' "$3"; for ((i = 0; i < $4; i++)); do echo "    a();"; done; printf '%b' "$5"; } >"$tree/$2"
    if "$PWD/tools/sizes.sh" "$tree" >"$tree/output" 2>&1; then result=pass; else result=fail; fi
    [ "$result" = fail ] && ! grep -q "^$2:" "$tree/output" && result="fail otherwise"
    rm "$tree/$2"
    [ "$result" = "$1" ] && return
    echo "expected $1, got $result: $2 with $4 lines: $(cat "$tree/output")"
    failures=$((failures + 1))
}
echo >"$tree/cli/other.c"
expect pass src/a.c 'int f(void)\n{\n' 60 '}\n'
expect fail src/a.c 'int f(void)\n{\n' 61 '}\n'
expect fail cli/a.cu 'int f(void)\n{\n' 61 '}\n'
expect fail src/a.c 'int f(void)\n{\n    b();\n}\n\nint g(void)\n{\n' 61 '}\n'
expect pass src/a.c 'int f(void)\n{\n' 40 '}\n\nint g(void)\n{\n    b();\n}\n'
expect pass include/a.h '' 600 ''
expect fail include/a.h '' 601 ''
expect fail src/a.cuh '' 601 ''
exit $((failures != 0))
