#!/bin/bash
# Files as others write them: JSON lines, names of classes, IDX and CIFAR records under other names, and what is refused with the
# line that converts it. Usage: files.sh MIXT
. "$(dirname "$0")/../support/script.sh"
cd "$work" || exit 1
be32() { printf "\\x$(printf %02x $(($1 >> 24 & 255)))\\x$(printf %02x $(($1 >> 16 & 255)))\\x$(printf %02x $(($1 >> 8 & 255)))\\x$(printf %02x $(($1 & 255)))"; }
run() { "$mixt" "$@" >out 2>err; }
says() { grep -qF -- "$1" err || { fail "no '$1' in:"; head -5 err; }; }
printf 'model: mlp\nthreads: 1\nprecision: fp32\nnet: {hidden: [8]}\ntrain: {epochs: 3, batch: 10, lr: 0.01}\n' >rows.yaml
trains() { rm -rf run; run train rows.yaml out=run "$@" || { fail "train $*: $(cat err)"; return 1; }; }
refused() { rm -rf x; run train rows.yaml out=x data.path="$1" "${@:3}" && fail "not refused: $1"; says "$2"; [ ! -e x ] || fail "a folder of a run that failed"; }

# The same table as CSV and as JSON lines gives the same weights.
awk 'BEGIN { print "age,town,note,kind"; for (i = 1; i <= 60; i++) print i % 9 ",t" i % 3 "," (i % 5 ? "\"a, \"\"b\"\"\"" : "") "," (i % 2 ? "yes" : "no") }' >rows.csv
awk 'BEGIN { for (i = 1; i <= 60; i++) { if (i == 30) print ""; print "{\"age\": " i % 9 ", \"town\": \"t" i % 3 "\"" (i % 5 ? ", \"note\": \"a, \\\"b\\\"\"" : i % 2 ? ", \"note\": null" : "") ", \"kind\": \"" (i % 2 ? "yes" : "no") "\"}" } }' >rows.jsonl
trains data.path=rows.csv data.labels=kind && cp run/model.safetensors csv.safetensors
trains data.path=rows.jsonl data.labels=kind
cmp -s run/model.safetensors csv.safetensors || fail "JSON lines give other weights than CSV"
run eval run data.path=rows.csv || fail "eval on CSV of a run on JSON lines: $(cat err)"
run predict run rows.jsonl || fail "predict of JSON lines: $(cat err)"
[ "$(wc -l <out)" = 61 ] || fail "predict of JSON lines: $(head -3 out)"
gzip -k rows.jsonl && trains data.path=rows.jsonl.gz data.labels=kind
sed '7s/: "t/: oops"t/' rows.jsonl >broken.jsonl
refused broken.jsonl "broken.jsonl: line 7, column"
sed '7s/"town": "t[0-9]"/"town": ["a"]/' rows.jsonl >nested.jsonl
refused nested.jsonl 'nested.jsonl: line 7: "town" is a list'
sed '7s/.*/[1, 2]/' rows.jsonl >list.jsonl
refused list.jsonl "list.jsonl: line 7: expected an object"
sed '40s/"age": [0-9]/"age": "1e999"/' rows.jsonl >far.jsonl
refused far.jsonl "far.jsonl: line 40"
printf '\n\n' >none.jsonl
refused none.jsonl "none.jsonl: no line with data in it"
for i in $(seq 40); do echo "{\"text\": \"this is a really $([ $((i % 2)) = 0 ] && echo good || echo bad) thing, $i\", \"label\": \"$([ $((i % 2)) = 0 ] && echo up || echo down)\"}"; done >said.jsonl
"$mixt" new said.jsonl - 2>err | grep -q 'kind: labelled' || fail "texts as JSON lines: $(cat err)"
run train data.path=said.jsonl out=said threads=1 train.epochs=1 || fail "train on texts as JSON lines: $(cat err)"

# IDX under other names, the parts by words; names of classes in eval, predict and the run.
mkdir idx
idx() { { printf '\0\0\10\3'; be32 "$2"; be32 4; be32 4; seq 1 9999 | head -c $((16 * $2)); } >"idx/$1"; }
labels() { { printf '\0\0\10\1'; be32 "$2"; for i in $(seq "$2"); do printf "\\x0$((i % 3))"; done; } >"idx/$1"; }
idx letters-train-imgs.idx 40; labels letters-train-lbls.idx 40; idx letters-test-imgs.idx 10; labels letters-test-lbls.idx 10
trains data.path=idx data.names=ant,bee,cow
says 'data     idx idx: 36 samples to train on, 4 to validate on; 3 classes'
run eval run --split test && grep -q 'bee' out || fail "names of classes in eval: $(cat out err)"
run predict run val:0-2 && grep -qE 'ant|bee|cow' out || fail "names of classes in predict: $(cat out)"
printf 'ant\r\n\nbee\ncow\n' >names.txt
trains data.path=idx data.names=names.txt
rm names.txt
run eval run --split test && grep -q 'cow' out || fail "names of a file that is gone: $(cat err)"
refused idx "data.names: 2 names, but idx has 3 classes" data.names=ant,bee
refused idx "data.names=nothing: no such file" data.names=nothing
refused rows.csv "data.names are for classes" data.labels=age data.task=values data.names=a,b

# Records as CIFAR has them under other names.
mkdir records
record() { for i in $(seq "$2"); do printf "\\x0$((i % 4))"; seq 1 9999 | head -c 3072; done >"records/$1"; }
record part_a.bin 20; record part_b.bin 20; record my_test.bin 8
trains data.path=records
says 'data     cifar records: 36 samples to train on, 4 to validate on; 4 classes'
run eval run --split test --json && grep -q '"count":8' out || fail "test part of records: $(cat out err)"
trains data.path=records/part_a.bin
printf x >>records/part_a.bin
refused records/part_a.bin "part_a.bin"

# What is not read is named, with what converts it.
printf 'PAR1xxxxxxxxPAR1' >table.parquet
refused table.parquet "table.parquet: is a Parquet file, which is not read here: convert it with python3 -c \"import pandas as pd; pd.read_parquet('table.parquet').to_csv"
printf 'ARROW1\0\0xxxx' >table.feather
refused table.feather "read_feather('table.feather')"
printf 'PK\3\4xxxxxxxxxxxx' >table.xlsx
refused table.xlsx "table.xlsx: is an Excel file"
printf 'PK\3\4xxxxxxxxxxxx' >photos.zip
refused photos.zip "photos.zip: is a ZIP archive: unpack it"
printf '\200\4\225xxxx' >data_batch_1
refused data_batch_1 "data_batch_1: is a pickle, which may run any program when it is opened"
printf '\211HDF\r\n\32\nxxxx' >set.h5
refused set.h5 "h5py.File('set.h5')"
printf 'PAR1' >"it's.parquet"
refused "it's.parquet" "read_parquet('FILE')"
run train rows.yaml data.kind=digits data.path=rows.csv out=x && fail "digits with a path"
says "digits are generated and have no path: leave out data.path"
[ $failures = 0 ]
