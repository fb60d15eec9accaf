#!/bin/bash
# One word for one thing: no refused word (refused_words.txt) is in use, the glossary has each word once, and what it
# names is there. Usage: words.sh MIXT
. "$(dirname "$0")/../support/script.sh"
export LC_ALL=C.UTF-8
list=$(dirname "$0")/refused_words.txt
glossary=docs/glossary.md

# refused PATH...: where words of the list stand, and what to say instead
refused() {
    local pattern instead
    while IFS=$'\t' read -r pattern instead; do
        grep -rniE --include='*.'{c,h,cu,cuh,def,md} "(^|[^A-Za-z0-9])($pattern)([^A-Za-z0-9]|$)" "$@" | awk -v say="$instead" '{ print $0 " [say " say "]" }'
    done < <(grep -v '^#' "$list")
}
found=$(refused src cli include docs README.md)
[ -z "$found" ] || fail "words that mixt has given up:"$'\n'"$found"

# The list itself: each line has both fields, and each pattern finds what it is made for.
grep -v '^#' "$list" | grep -vP '^[^\t]+\t[^\t]+$' && fail "$list: a line without a pattern, a tab and a word"
printf '%s\n' 'int mixt__plant_at;' '"there is a doubt"' 'MIXT_LOSS_OWN,' 'double stats_t_below(' >"$work/old.c"
[ "$(refused "$work/old.c" | wc -l)" = 4 ] || fail "refused words are not found: $(refused "$work/old.c")"
printf '%s\n' 'int at_list_below;' 'size_t atlas, transplanted;' >"$work/new.c"
[ -z "$(refused "$work/new.c")" ] || fail "words are refused that only contain one: $(refused "$work/new.c")"

# ---- the glossary ----

twice=$(grep '^| ' $glossary | cut -d'|' -f2 | grep -vxF ' word ' | sort | uniq -d)
[ -z "$twice" ] || fail "$glossary explains twice:$twice"
while read -r pass; do
    [ -e "src/passes/$pass.c" ] || fail "$glossary: there is no pass $pass"
done < <(sed -n 's/^| \([a-z0-9_]*\) (pass) .*/\1/p' $glossary)
while read -r name; do
    grep -rqF -- "$name" src cli include || fail "$glossary: $name is nowhere in the code"
done < <(grep -oE '`[^`]*`' $glossary | tr -d '`' | tr ':' '\n' | sort -u)
[ $failures = 0 ]
