#!/bin/bash
# Configurations for data that is shown: mixt new, and training without a file. Usage: new.sh MIXT
. "$(dirname "$0")/../support/script.sh"
cd "$work" || exit 1
be32() { printf "\\x$(printf %02x $(($1 >> 24 & 255)))\\x$(printf %02x $(($1 >> 16 & 255)))\\x$(printf %02x $(($1 >> 8 & 255)))\\x$(printf %02x $(($1 & 255)))"; }
awk 'BEGIN { print "area,town,price"; for (i = 1; i <= 120; i++) print i % 17 + 0.5 ",town" i % 4 "," 1000 * (i % 17) + 50 * (i % 4) }' >homes.csv
awk 'BEGIN { print "review\tsentiment"; for (i = 1; i <= 60; i++) print "this is a rather " (i % 2 ? "good" : "bad") " film number " i "\t" (i % 2 ? "good" : "bad") }' >films.tsv
yes 'the quick brown fox jumps over the lazy dog' | head -c 6000 >book.txt
for class in dark light; do
    mkdir -p photos/$class
    for i in 1 2 3 4 5 6 7 8 9 10; do { printf 'P6\n20 16\n255\n'; head -c 960 /dev/zero | tr '\0' "$([ $class = dark ] && echo '\1' || echo '\310')"; } >photos/$class/$i.ppm; done
done
mkdir mnist
{ printf '\0\0\10\3'; be32 60; be32 8; be32 8; head -c 3840 /dev/urandom; } >mnist/train-images-idx3-ubyte
{ printf '\0\0\10\1'; be32 60; for i in $(seq 30); do printf '\0\1'; done; } >mnist/train-labels-idx1-ubyte

# new DATA SETTING...: writes DATA's configuration to made.yaml; the line that it prints is in ./said
new() {
    rm -f made.yaml
    "$mixt" new "$1" made.yaml "${@:2}" >said 2>err || { fail "new $*: $(cat err)"; return; }
}
# holds TEXT...: a line of made.yaml each
holds() { local line; for line; do grep -qE -- "^ *$line( |$)" made.yaml || { fail "no '$line' in:"; cat made.yaml; }; done; }
# trains: what was written can be trained as it is
trains() { rm -rf run; timeout 60 "$mixt" train made.yaml out=run threads=1 train.epochs=0 train.steps=2 train.warmup=0 --json >out 2>err || fail "$1: $(tail -2 err)"; }

new homes.csv
grep -q '^homes.csv (csv): 96 samples to train on of \[.*\], a number to predict. Model: mlp, 100 epochs, batch 16' said || fail "said: $(cat said)"
grep -q 'made.yaml is written; train it with: mixt train made.yaml' said || fail "said: $(cat said)"
holds 'model: mlp' 'precision: fp32' 'kind: csv' 'path: homes.csv' 'hidden: \[32\]' 'schedule: cosine'
holds 'val_fraction: 0.2' 'early_stop: 50'
trains homes
new homes.csv data.val_fraction=0
grep -q early_stop made.yaml && { fail "train.early_stop without a validation part"; cat made.yaml; }
trains "homes without a validation part"
new films.tsv
holds 'model: bert_classify' 'kind: labelled'
trains films
new book.txt
holds 'model: gpt' 'kind: text' 'layers: 2' 'width: 64' 'seq: 64' 'epochs: 0'
trains book
new book.txt model=llama net.width=32 train.lr=0.5
holds 'model: llama' 'width: 32' 'lr: 0.5' 'layers: 2'
grep -q 'heads:' made.yaml && fail "heads are chosen for a width that is not ours"
new photos/
holds 'model: convnet' 'kind: images' 'crop: 16' 'flip: true' 'channels: \[32, 64, 128\]'
grep -q 'pad:' made.yaml && fail "pictures that are resized have a border"
trains photos
new photos model=resnet
holds 'model: resnet' 'depth: 20'
grep -q 'channels:' made.yaml && fail "channels for a resnet"
new mnist
holds 'model: convnet' 'kind: idx' 'channels: \[32, 64\]'
grep -q 'flip' made.yaml && fail "grey digits are mirrored"
trains mnist

# series.npy: 20 series of 24 steps of 3 values, which are no pictures
{ printf '\x93NUMPY\1\0\x76\0%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (20, 24, 3), }"; head -c 5760 /dev/zero; } >series.npy
{ printf '\x93NUMPY\1\0\x76\0%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': (20,), }"; printf '%b' '\0\1\0\1\0\1\0\1\0\1\0\1\0\1\0\1\0\1\0\1'; } >series-labels.npy
new series.npy data.labels=series-labels.npy
holds 'model: mlp' 'kind: npy'
trains series

# By itself the file is called as the data; nothing is replaced; - is standard output.
(cd photos && "$mixt" new ../homes.csv >/dev/null) || fail "new without a name"
[ -s photos/homes.yaml ] || fail "no homes.yaml"
cp made.yaml before
"$mixt" new homes.csv made.yaml >out 2>err && fail "made.yaml was replaced"
grep -q 'made.yaml: exists already' err || fail "replaced: $(cat err)"
cmp -s before made.yaml || fail "made.yaml was changed"
"$mixt" new homes.csv - | grep -q '^model: mlp' || fail "new on standard output"
"$mixt" new nowhere x.yaml >out 2>err && fail "data that is not there"
grep -q "no such file or folder" err || fail "nowhere: $(cat err)"
[ -e x.yaml ] && fail "x.yaml of no data"

# Training without a file makes the same choices: the same bits as with it.
new homes.csv train.epochs=3
"$mixt" train made.yaml out=with threads=1 --json >with.json 2>err || fail "train made.yaml: $(cat err)"
"$mixt" train data.path=homes.csv out=without threads=1 train.epochs=3 >text 2>err || fail "train without a file: $(cat err)"
grep -q '^chosen   homes.csv (csv): 96 samples' err || fail "what was chosen is not told: $(head -3 err)"
cmp -s with/model.safetensors without/model.safetensors || fail "train without a file has other weights"
grep -q '^  hidden: \[32\]' without/config.yaml || fail "the choices are not in config.yaml"
"$mixt" eval without >/dev/null 2>err || fail "eval of a run without a file: $(cat err)"
"$mixt" train data.path=homes.csv model=lstm out=bad >out 2>err && fail "a model that does not take rows"
[ -e bad ] && fail "a folder of a run that failed"
"$mixt" train >out 2>err; [ $? = 2 ] || fail "train of nothing: status"
grep -q 'data.path=DATA' err || fail "train of nothing: $(cat err)"
"$mixt" train train.lr=0.1 >out 2>err && fail "train of no data"
grep -q 'no data is named: data.path=FILE' err || fail "train of no data: $(cat err)"
[ $failures = 0 ]
