#!/bin/bash
# What a C program can ask of a data set, a configuration can too, and each key does what it says. Usage: data_keys.sh MIXT
set -uo pipefail
mixt=$(realpath "$1")
header=$PWD/include/mixt/data.h
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0
fail() { echo "FAIL: $*"; failed=1; }

# Every field of mixt_data_options has a key of its name, or of the one that follows it here.
declare -A other=([struct_size]=- [split]=- [seed]=seed [like]=- [progress]=- [user]=- [val]=data.val_fraction [test]=data.test_fraction
    [target]=data.task [means]=data.mean [stds]=data.std [by_time]=data.split_by [user_numbers]=data.numbers [item_numbers]=data.numbers
    [source_name]=data.source [target_name]=data.target [chat_template]=data.template [unpacked]=data.pack [no_check]=data.check)
"$mixt" help config --all >keys || fail "help config"
fields=$(sed -n '/^typedef struct mixt_data_options {/,/^} mixt_data_options;/p' "$header" | sed 's|/\*.*||' |
    grep -oE '^    [a-z][a-z_0-9 ]*[ *][a-z_*, ]+;' | sed -E 's/^ *(const )?[a-z_0-9]+ //; s/[*; ]//g' | tr , '\n')
[ "$(echo "$fields" | wc -l)" -ge 20 ] || fail "only these fields were found: $fields"
for field in $fields; do
    key=${other[$field]:-data.$field}
    [ "$key" = - ] || grep -Eq "^ *$key\b" keys || fail "mixt_data_options.$field has no key $key"
done

# 40 rows of 4 numbers, classes 0 to 2.
for i in $(seq 40); do echo "$((i % 7)),$((i % 5)),$((i % 3)),$((i % 11)),$((i % 3))"; done >rows.csv
cat >net.yaml <<'END'
model: mlp
net: {hidden: [8]}
data: {kind: csv, path: rows.csv}
train: {batch: 4, steps: 3, lr: 0.01}
device: cpu
END
go() { rm -rf run; "$mixt" train net.yaml out=run "$@" >text 2>&1; }
go data.classes=2 && fail "data.classes=2 takes class 2"
grep -q "class 2 is out of range" text || fail "data.classes=2 says: $(cat text)"
go data.classes=5 || fail "data.classes=5: $(cat text)"
go data.shape=2x2x1 model=convnet net.channels=[4] net.hidden=[] || fail "data.shape: $(cat text)"
go data.shape=5 && fail "data.shape=5 takes rows of 4"
go data.test_fraction=0.25 && "$mixt" eval run --split test >text 2>&1 || fail "data.test_fraction: $(cat text)"
go && "$mixt" eval run --split test >text 2>&1 && fail "a test part without data.test_fraction"
go data.kind=digits data.path= data.samples=24 train.batch=16 || fail "data.samples: $(cat text)"
go data.kind=digits data.path= data.samples=24 train.batch=32 && fail "a batch of 32 from 24 samples"
loss() { go "$@" && tail -1 run/metrics.jsonl | grep -oE '"loss": ?[0-9.e+-]+'; }
first=$(loss)
[ -n "$first" ] || fail "no loss: $(cat text)"
[ "$first" != "$(loss data.normalise=none)" ] || fail "data.normalise=none changes nothing"
[ "$first" != "$(loss data.in_order=true)" ] || fail "data.in_order changes nothing"

# A target to regress on: learned as stored or with mean 0 and deviation 1, apart from the inputs; a run keeps to what it began with.
for i in $(seq 60); do echo "$((i % 7)),$((i % 5)),$((300 + 40 * (i % 7) - 25 * (i % 5)))"; done >values.csv
values="data.path=values.csv data.task=values train.batch=8 train.lr=0.02"
go $values data.normalise_target=none train.steps=12 || fail "data.normalise_target=none: $(cat text)"
grep -q 'target: mean .*, std .*, learned as stored' text || fail "a raw target is not told: $(cat text)"
cp run/model.safetensors raw.safetensors
"$mixt" eval run --json >plain.json && "$mixt" eval run data.normalise_target=standard --json >asked.json && cmp -s plain.json asked.json ||
    fail "eval takes another scale than the run's: $(cat plain.json asked.json)"
go $values data.normalise_target=none train.steps=6 && "$mixt" train --resume run train.steps=12 -q >text 2>&1 || fail "resume: $(cat text)"
cmp -s run/model.safetensors raw.safetensors || fail "a resumed run with a raw target has other bits"
"$mixt" train --resume run train.steps=14 data.normalise_target=auto >text 2>&1 && fail "a resume takes another scale of the target"
grep -q 'data.normalise_target: none -> auto' text || fail "a resume with another scale says: $(cat text)"
mae() { "$mixt" predict run values.csv | awk -F, 'NR > 1 { e = $4 - $3; s += e < 0 ? -e : e } END { printf "%d", s / (NR - 1) }'; }
raw=$(mae) # 12 updates of 0.02 come nowhere near 300 where it is as stored
go $values data.normalise=none data.normalise_target=standard train.steps=12 || fail "data.normalise_target=standard: $(cat text)"
grep -q 'not normalised' text || fail "inputs are normalised: $(cat text)"
[ "$raw" -gt 200 ] && [ "$(mae)" -lt 100 ] || fail "mean errors of predictions: $raw as stored, $(mae) with deviation 1"
go data.normalise_target=standard && fail "classes are scaled"
grep -q 'targets are classes' text || fail "a scale for classes: $(cat text)"
go data.kind=digits data.path= data.samples=24 train.batch=16 data.normalise_target=none && fail "digits take data.normalise_target"

# Cells without a value: the mean of the training part takes their place, also in a file that the run sees later on.
sed '4s/^[^,]*/NA/; 9s/,[^,]*/,/' rows.csv >holes.csv
go data.path=holes.csv data.missing=error && fail "a cell without a value is taken unasked"
grep -q 'data.missing' text || fail "a cell without a value: the message names no key"
for how in zero drop mean; do
    go data.path=holes.csv data.missing=$how || fail "data.missing=$how: $(cat text)"
    grep -q "warning: .*holes.csv: 2 of .*(data.missing=$how)" text || fail "data.missing=$how is not told: $(cat text)"
done
mean=$(tr -d ' \n' <run/inputs.json | sed -n 's/.*"fill":\[\([^],]*\),.*/\1/p')
[ -n "$mean" ] || fail "inputs.json has no means: $(cat run/inputs.json)"
for i in $(seq 8); do echo "100,$((i % 5)),$((i % 3)),$i,$((i % 3))"; done >later.csv # another mean
sed "3s/^100/$mean/" later.csv >filled.csv
sed '3s/^100//' later.csv >holes.csv
for file in filled holes; do "$mixt" eval run --split train data.path=$file.csv data.val_fraction=0 --json >$file.json 2>text || fail "eval: $(cat text)"; done
[ -s holes.json ] && [ "$(grep loss holes.json)" = "$(grep loss filled.json)" ] || fail "a cell is filled otherwise after training: $(cat holes.json filled.json)"
exit $failed
