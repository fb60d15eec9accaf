#!/bin/bash
# Nothing is wider than the terminal: what commands print on one of 80 columns, and that files and pipes get whole lines.
# Usage: terminal.sh MIXT
. "$(dirname "$0")/../support/script.sh"
configs=$PWD/configs
cd "$work" || exit 1

need script # for a terminal
# shown COLUMNS ARGUMENT...: what a terminal of that width gets, without its control sequences
shown() {
    TERM=xterm script -qec "stty cols $1; '$mixt' ${*:2}" /dev/null </dev/null | sed 's/\x1b\[[0-9;]*[mK]//g; s/\r$//; s/.*\r//'
}
# fits COLUMNS ARGUMENT...: something is shown, and no line of it is wider
fits() {
    shown "$@" >screen
    [ -s screen ] || fail "mixt ${*:2}: shows nothing"
    wide=$(LC_ALL=C sed 's/[\x80-\xbf]//g' screen | LC_ALL=C awk -v columns="$1" 'length($0) > columns') # a character is a column
    [ -z "$wide" ] || { fail "mixt ${*:2}: wider than $1 columns:"; echo "$wide" | head -3; }
}

"$mixt" train "$configs/digits.yaml" train.epochs=2 train.warmup=0 data.limit=256 out=run -q || fail "train"
fits 80 info
fits 80 plan "$configs/digits.yaml"
fits 80 plan "$configs/digits.yaml" --graph
fits 80 plan "$configs/digits.yaml" --explain
fits 80 bench mlp --steps 1 --batch 8
fits 80 bench mlp --steps 1 --batch 8 --profile
fits 80 sensitivity "$configs/digits.yaml" data.limit=256 --trials 1
fits 80 eval run
fits 80 predict run test:0-3 --report
for page in '' config env gpu demo train eval predict plot generate verify sensitivity plan bench info convert export tokenize; do fits 80 help $page; done

# ---- what does not fit is shown otherwise, and only on a terminal ----

shown 80 eval run | grep -q 'Confusion matrix (rows: true, columns: predicted)' || fail "80 columns: no matrix of ten classes"
shown 40 eval run | grep -q 'the most frequent mistakes' || fail "40 columns: no mistakes in place of the matrix"
[ "$("$mixt" help verify | grep -c 'mixt verify .*\\$')" = 0 ] || fail "an example is broken where there is no terminal"
[ "$("$mixt" eval run | sed -n 1p | grep -c 'loss .* targets$')" = 1 ] || fail "eval's line is broken where there is no terminal"

# ---- small losses keep their digits ----

for i in $(seq 64); do echo "$((i % 5)),$((i % 3)),0.0001$((i % 2))"; done >small.csv
printf 'model: mlp\nnet: {hidden: [4]}\ndata: {kind: csv, path: small.csv, normalise: unit}\ntrain: {epochs: 200, batch: 8, lr: 0.01, schedule: cosine}\n' >small.yaml
"$mixt" train small.yaml out=small -q || fail "train on small values"
"$mixt" eval small >said
grep -q 'loss 0\.0000' said && { fail "a small loss is shown without digits"; cat said; }
awk '{ sub(/.*loss /, ""); exit !($1 + 0 > 0 && $1 + 0 < 0.01) }' said || { fail "that loss is not small: the test tells nothing"; cat said; }

[ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
