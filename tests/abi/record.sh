#!/bin/bash
# What programs that were compiled against mixt depend on, as text: symbols of the shared library, sizes of public structs and
# places of their fields, values of public enums. Compared with the record beside this script; `--renew` writes the record anew.
# Usage: record.sh LIBRARY [--renew]
set -euo pipefail
library=$1 renew=${2:-}
cd "$(dirname "$0")/../.."
for tool in nm awk; do
    command -v $tool >/dev/null || { echo "SKIPPED: $tool is not installed"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

nm -D --defined-only "$library" | awk '{ sub(/@.*/, "", $3); print $3 }' | LC_ALL=C sort >"$work/symbols.txt"

# A C program out of the preprocessed headers: one line for each struct, field and enumerator.
headers=$(cd include && echo mixt/*.h mixt/*/*.h | tr ' ' '\n' | grep -v '\*')
for header in $headers; do echo "#include \"$header\""; done >"$work/all.h"
${CC:-cc} -std=c11 -Iinclude -E "$work/all.h" | awk '
    /^# [0-9]+ "/ { ours = $3 ~ /include\/mixt\// || $3 ~ /^"mixt\//; next }
    ours { print }' | tr '\n' ' ' >"$work/ours.c"
awk -v work="$work" '
    # the name that a declarator declares: of "(*watch)(…)" watch, of "dims[6]" dims
    function name_of(text) {
        if (match(text, /\(\*[ a-z_0-9]+\)/)) { text = substr(text, RSTART + 2, RLENGTH - 3) }
        else { gsub(/\[[^]]*\]/, "", text) }
        match(text, /[a-z_0-9]+ *$/)
        text = substr(text, RSTART, RLENGTH)
        gsub(/ /, "", text)
        return text
    }
    # parts of a text between commas that stand outside of brackets
    function parts_of(text, parts,    i, c, depth, count, part) {
        count = 0; part = ""; depth = 0
        for (i = 1; i <= length(text); i++) {
            c = substr(text, i, 1)
            if (c == "(" || c == "[") depth++
            if (c == ")" || c == "]") depth--
            if (c == "," && !depth) { parts[++count] = part; part = "" } else part = part c
        }
        parts[++count] = part
        return count
    }
    function fields(type, body,    count, i, j, n, declared, declarators) {
        count = split(body, declared, ";")
        for (i = 1; i < count; i++) {
            n = parts_of(declared[i], declarators)
            for (j = 1; j <= n; j++)
                printf "FIELD(%s, %s)\n", type, name_of(declarators[j])
        }
    }
    {
        text = $0
        while (match(text, /typedef (struct|enum) [a-z_0-9]+ *\{[^}]*\} *[a-z_0-9]+ *;/)) {
            one = substr(text, RSTART, RLENGTH)
            text = substr(text, RSTART + RLENGTH)
            body = one; sub(/^[^{]*\{/, "", body); sub(/\}.*$/, "", body)
            type = one; sub(/^.*\}/, "", type); gsub(/[ ;]/, "", type)
            if (one ~ /^typedef struct/) { printf "TYPE(%s)\n", type; fields(type, body) }
            else {
                n = parts_of(body, values)
                for (j = 1; j <= n; j++) {
                    sub(/=.*/, "", values[j]); gsub(/ /, "", values[j])
                    if (values[j] != "") printf "VALUE(%s)\n", values[j]
                }
            }
        }
    }' "$work/ours.c" >"$work/rows.inc"
cat >"$work/layouts.c" <<'C'
#include "all.h"
#include <stdio.h>
#define TYPE(type) printf("%s %zu\n", #type, sizeof(type));
#define FIELD(type, field) printf("%s.%s %zu %zu\n", #type, #field, offsetof(type, field), sizeof(((type *)0)->field));
#define VALUE(value) printf("%s = %lld\n", #value, (long long)value);
int main(void)
{
#include "rows.inc"
    return 0;
}
C
${CC:-cc} -std=c11 -Iinclude -I"$work" "$work/layouts.c" -o "$work/layouts"
# by type, so that what only moves to another header is no change
"$work/layouts" | awk '{ type = $1; sub(/\..*/, "", type); printf "%s\t%06d\t%s\n", type, NR, $0 }' | LC_ALL=C sort | cut -f3- >"$work/layouts.txt"
[ "$(wc -l <"$work/layouts.txt")" -gt 500 ] || { echo "the headers were not understood"; exit 1; }

status=0
for file in symbols layouts; do
    if [ "$renew" = --renew ]; then
        cp "$work/$file.txt" tests/abi/$file.txt
    elif ! diff -U0 tests/abi/$file.txt "$work/$file.txt"; then
        status=1
    fi
done
[ $status = 0 ] || echo "the binary interface changed: if that is meant, say so in the commit and run 'make abi'"
exit $status
