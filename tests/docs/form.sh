#!/bin/bash
# The documents themselves: README is short, lines are narrow, C blocks compile, and what is named (pages, files, headers, functions,
# keys, variables) is there. Usage: form.sh MIXT
. "$(dirname "$0")/../support/script.sh"
export LC_ALL=C.UTF-8 # a column is a character
pages="README.md examples/README.md $(echo docs/*.md)"

lines=$(wc -l <README.md)
[ "$lines" -le 170 ] || fail "README.md has $lines lines: 170 at most, the rest belongs into docs/"

# prose PAGE: without code blocks and tables, whose lines are left empty
prose() { sed '/^```/,/^```/s/.*//; s/^|.*//' "$1"; }
for page in $pages; do
    prose "$page" | sed 's/](\([^)]*\))/]/g' | grep -nE '^.{101,}' >"$work/wide" # where a link leads does not count
    [ -s "$work/wide" ] && { fail "$page has lines wider than 100 columns:"; cat "$work/wide"; }
done

# ---- C: each block stands alone ----

blocks=0
for page in $pages; do
    awk -v base="$work/block-" '/^```c$/ { file = base (++n) ".c"; printf "#line %d \"%s\"\n", FNR + 1, FILENAME >file; next }
        /^```/ { if (file) close(file); file = "" } file { print >file }' "$page"
    for block in "$work"/block-*.c; do
        [ -e "$block" ] || continue
        blocks=$((blocks + 1))
        ${CC:-cc} -fsyntax-only -std=gnu11 -Wall -Wextra -Werror -Iinclude "$block" || fail "$page: a block of C does not compile"
        rm "$block"
    done
done
[ $blocks -ge 20 ] || fail "only $blocks blocks of C were found"

# ---- what is named is there ----

# named PATTERN: "PAGE WORD" of each different word that fits, code blocks included; what is built is left out
named() { for page in $pages; do sed 's,\<build/[^ `]*,,g' "$page" | grep -oE "$1" | sort -u | sed "s,^,$page ,"; done; }

while read -r page link; do
    target=${link#*](} && target=${target%%[)#]*}
    [ -z "$target" ] || [ -e "$(dirname "$page")/$target" ] || fail "$page: $target is not there"
done < <(named '\]\([^):]*\)')
while read -r page file; do
    [ -e "$file" ] || compgen -G "$file" >/dev/null || fail "$page: $file is not there"
done < <(named '\b(src|tests|examples|configs|tools|bench|cmake|cli|include)/[a-zA-Z0-9_./*-]*[a-zA-Z0-9*]' | grep -v '/$')
while read -r page name; do
    grep -rqw -- "$name" include/mixt || fail "$page: $name is in no public header"
done < <(named '\bmixt_[a-z0-9]+(_[a-z0-9]+)*\b' | grep -vE ' mixt_cuda$')
while read -r page key; do
    grep -qF "\"$key\"," src/config/keys.def src/policy/settings.def || fail "$page: $key is no key of a configuration"
done < <(named '\b(net|data|train|verify)\.[a-z_0-9]+\b' | grep -vE '\.(h|c|md|csv|tsv|txt|tokens|bin|json|jsonl|en|de|onnx)$|_$')
while read -r page variable; do
    grep -qE "MIXT_ENV\(${variable#MIXT_}," src/base/env.def || grep -rqwE "(MIXT_)?${variable#MIXT_}" include/mixt ||
        fail "$page: $variable is no variable"
done < <(named '\bMIXT_[A-Z0-9_]*[A-Z0-9]\b')
for header in include/mixt/*.h include/mixt/*/*.h; do
    name=${header#include/mixt/}
    [ "$name" = mixt.h ] || grep -qx "## $name" docs/c-api.md || fail "docs/c-api.md says nothing about $name"
done
for folder in src/*/; do
    [ -s "$folder/README.md" ] || fail "$folder has no README.md"
    grep -qF "| \`${folder%/}\` |" docs/architecture.md || fail "docs/architecture.md: the map lacks ${folder%/}"
done
for example in examples/*.c; do grep -q "\`$(basename "$example")\`" examples/README.md || fail "examples/README.md: $example is missing"; done
for page in docs/*.md; do grep -qF "($page)" README.md || fail "README.md has no link to $page"; done
[ $failures = 0 ]
