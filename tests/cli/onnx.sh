#!/bin/bash
# Models from ONNX files through the command: planned, explained, trained, resumed without the file, evaluated, refused.
# Usage: onnx.sh MIXT
. "$(dirname "$0")/../support/script.sh"
need python3
make() { python3 tests/support/onnx_file.py "$1" "$work/$2" || fail "$2 was not made"; }
files=$PWD
for kind in mlp convnet external unsupported escape cycle; do make $kind $kind.onnx; done
cd "$work" || exit 1
export MIXT_CACHE=$work/cache

# refused WORDS COMMAND...: status 1, and a message with these words
refused() {
    local words=$1
    shift
    "$mixt" "$@" >out 2>err
    local status=$?
    [ $status = 1 ] && grep -qF -- "$words" err || { fail "$*: status $status, no '$words' in:"; cat err; }
}

# ---- what is in it ----

"$mixt" plan mlp.onnx --explain >out || fail "plan mlp.onnx --explain: status $?"
grep -q '^fc1  *matmul' out && grep -q '^fc2' out || fail "layers do not have the file's names: $(cat out)"
refused 'not supported' plan unsupported.onnx --explain
grep -q "node '/first' (Frobnicate)" out && grep -q "node '/second' (Whirl).*my.domain" out && [ "$(wc -l <out)" = 2 ] ||
    fail "not all that is unsupported is listed: $(cat out)"
refused 'must lie in the model' plan escape.onnx
refused 'without cycles' plan cycle.onnx
refused 'cannot be opened' plan none.onnx
head -c 3000 mlp.onnx >cut.onnx
refused 'damaged' plan cut.onnx

# ---- trained ----

digits=(data.kind=digits data.samples=320 train.epochs=2 train.batch=32 precision=fp32 threads=1)
printf 'model: mlp.onnx\n' >mlp.yaml
train() { "$mixt" train mlp.yaml "${digits[@]}" "$@" >out 2>&1; }
train out=whole || { fail "train: status $?"; cat out; }
train out=external model=external.onnx || fail "train with external data: status $?"
cmp -s whole/model.safetensors external/model.safetensors || fail "external data gave other weights"
"$mixt" eval whole >out || fail "eval: status $?"
train out=stopped train.steps=12 train.checkpoint_every=12 || fail "train of 12 updates: status $?"
mv mlp.onnx elsewhere.onnx && mv stopped moved
"$mixt" train --resume moved train.steps=0 >out 2>&1 || { fail "resume without the file: status $?"; cat out; }
cmp -s whole/model.safetensors moved/model.safetensors || fail "the resumed run has other weights"
[ "$(stat -c %s moved/model.onnx)" -lt 2000 ] || fail "the run keeps the weights of the file twice"
"$mixt" eval moved >out || fail "eval without the file: status $?"
mv elsewhere.onnx mlp.onnx
train out=frozen train.freeze=fc1 model.head=12 || fail "freeze by name, new head: status $?"
grep -q '"fc2.weight".*\[12,32\]' <(head -c 2000 frozen/model.safetensors) || fail "the new head does not have 12 outputs"
refused "'layer9' matches no parameter" train mlp.yaml "${digits[@]}" train.freeze=layer9 out=none
refused '10 classes: model.head=10' train mlp.yaml "${digits[@]}" model.head=4 out=none
refused 'no output' train mlp.yaml "${digits[@]}" model.output=z out=none
refused 'model.head, model.output and model.loss' train "$files/configs/digits.yaml" model.head=4 out=none
refused 'is (?, 3, 16, 16), and a batch of the data is' train mlp.yaml "${digits[@]}" model=convnet.onnx out=none
[ ! -e none ] || fail "a refused training made a folder"

# a new last layer makes fine-tuning: softmax behind it is the loss's, batch norm moves
for i in 1 2 3 4 5 6 7 8; do for class in cat dog; do
    mkdir -p pictures/$class && { printf 'P6 16 16 255\n'; seq $i 99999 | head -c 768; } >pictures/$class/$i.ppm; done; done
"$mixt" train model=convnet.onnx data.path=pictures model.head=2 data.crop=16 data.resize=16 train.epochs=2 train.batch=4 out=tuned >out 2>&1 || { fail "train on pictures: status $?"; cat out; }
"$mixt" predict tuned pictures/cat/1.ppm >out || fail "predict: status $?"
[ $failures = 0 ]
