#!/bin/bash
# The messages of docs/faq.md are those of the command: each `$ mixt …` of a block `console` is run, and each line behind it
# must be in what it prints, … standing for anything. A command that is to fail fails. Usage: faq.sh MIXT
. "$(dirname "$0")/../support/script.sh"
page=$PWD/docs/faq.md
configs=$PWD/configs
export MIXT_CACHE=$work/cache MIXT_CUDA_LIBRARY=$work/none.so
mkdir "$work/at" && cd "$work/at" || exit 1
ln -s "$configs" configs

# files that the page names
{ echo 'rooms,city,price'; for i in $(seq 60); do echo "$((i % 7)),city$((i % 3)),$((i * 3))"; done; } >houses.csv
sed '4s/$/,7/' houses.csv >torn.csv
echo 'a line of text' >notes.txt
short="train.steps=2 train.warmup=0 data.limit=64 train.batch=8"
# shellcheck disable=SC2086 # words they are
"$mixt" train configs/digits.yaml $short out=runs/digits -q || fail "a run to begin with"

# fits LINE: whether it is in what was printed
fits() {
    local pattern
    pattern=$(sed 's/[][\.*^$/+?(){}|]/\\&/g; s/…/.*/g' <<<"$1")
    grep -qE -- "$pattern" said
}
commands=0 lines=0
while IFS= read -r line; do
    if [[ $line = '$ '* ]]; then
        command=${line#'$ '}
        commands=$((commands + 1))
        bash -c "$(sed "s,^mixt ,'$mixt' ," <<<"$command")" >said 2>&1 </dev/null && fail "'$command' did not fail"
    else
        lines=$((lines + 1))
        fits "$line" || { fail "'$command' does not say: $line"; sed 's/^/  /' said | head -5; }
    fi
done < <(awk '/^```console$/ { inside = 1; next } /^```/ { inside = 0 } inside' "$page")
[ $commands -ge 10 ] && [ $lines -ge $commands ] || fail "only $commands commands and $lines lines were found"
[ $failures = 0 ]
