#!/bin/bash
# Weights out and back through the command: bits, refusals, new heads, frozen layers. Usage: export.sh MIXT
. "$(dirname "$0")/../support/script.sh"
cd "$work" || exit 1

seq 1 2000 >text.txt
cat >gpt.yaml <<'YAML'
model: gpt
precision: fp32
device: cpu
threads: 2
net: {layers: 2, width: 16, heads: 2}
data: {kind: text, path: text.txt, seq: 16}
train: {steps: 2, batch: 4, lr: 0.01, weight_decay: 0}
YAML
sed 's/model: gpt/model: bert_mlm/' gpt.yaml >bert.yaml
sed 's/model: gpt/model: llama/; s/heads: 2/heads: 4, kv_heads: 2/' gpt.yaml >llama.yaml
cat >resnet.yaml <<'YAML'
model: resnet
precision: fp32
device: cpu
threads: 2
net: {depth: 18, width: 4}
data: {kind: digits, limit: 64}
train: {steps: 2, batch: 8, lr: 0.01}
YAML
still="train.steps=1 train.lr=0 train.weight_decay=0"

# train CONFIG RUN SETTING...: must succeed
train() {
    local config=$1 run=$2
    shift 2
    "$mixt" train "$config" out="$run" -q "$@" 2>err || { fail "train $run $*: status $?"; cat err; }
}
# refused TEXT COMMAND...: must fail with status 1 and say TEXT
refused() {
    local text=$1
    shift
    "$@" >out 2>err
    local status=$?
    [ $status = 1 ] || fail "$*: status $status"
    grep -qF -- "$text" err || { fail "$*: says nothing of '$text'"; cat err; }
}
# Behind the headers, which tell of different numbers of updates.
values() { tail -c +$(($(od -An -tu8 -N8 "$1/model.safetensors") + 9)) "$1/model.safetensors"; }
same_weights() { cmp -s <(values "$1") <(values "$2"); }

# ---- out and back: every bit in FP32, twice the same ----
for model in gpt bert llama; do
    train $model.yaml $model
    "$mixt" export $model >out || fail "export $model"
    grep -q '"model_type"' $model/export/config.json || fail "$model: no config.json"
    train $model.yaml $model-back init=$model/export $still
    same_weights $model $model-back || fail "$model: weights changed on the way out and back"
    train $model.yaml $model-own init=$model/model.safetensors $still
    same_weights $model $model-own || fail "$model: weights changed through mixt's own file"
done
train resnet.yaml resnet
"$mixt" export resnet --out resnet-out --json | grep -q '"tensors":122' || fail "resnet18 has not 122 tensors"
grep -q '"architecture": "resnet18"' resnet-out/config.json || fail "resnet: config.json"
"$mixt" export resnet --out resnet-out --overwrite >out 2>err || fail "export resnet"
grep -q "torchvision's resnet18 has a width of 64, this model does not" err || fail "a width that torchvision has not: $(cat err)"
grep -q '"in_channels": 1,' resnet-out/config.json && grep -q '"torchvision": false' resnet-out/config.json || fail "resnet: $(cat resnet-out/config.json)"
train resnet.yaml whole net.width=64 data.kind=random data.path=8x8x3 data.classes=2 data.samples=16 train.steps=1
"$mixt" export whole >out 2>err && [ ! -s err ] && grep -q '"torchvision": true' whole/export/config.json || fail "resnet18 as torchvision has it: $(cat err)"
train resnet.yaml resnet-back init=resnet-out train.freeze='conv1,bn1,layer*' $still
same_weights resnet resnet-back || fail "resnet: weights changed on the way out and back"

train resnet.yaml small net.depth=20 train.steps=1
"$mixt" export small >out 2>err && grep -q 'torchvision has no resnet20: the tensors have its names' err || fail "resnet20: $(cat err)"

# ---- half the size ----
"$mixt" export gpt --dtype bf16 --out half >out || fail "export bf16"
[ $(($(stat -c %s half/model.safetensors) * 2)) -lt $(($(stat -c %s gpt/export/model.safetensors) + 8192)) ] || fail "bf16 is not half"
grep -q '"dtype": "bfloat16"' half/config.json || fail "bf16: config.json"
train gpt.yaml gpt-half init=half $still

# ---- as ONNX ----
"$mixt" export resnet --onnx --out resnet.onnx >out && grep -q 'resnet.onnx: .* nodes, .* opset 20' out || fail "export --onnx: $(cat out)"
"$mixt" plan resnet.onnx >out 2>err || fail "plan resnet.onnx: $(cat err)"
"$mixt" export gpt --onnx --json | grep -q '"file":"gpt/export.onnx","nodes":' || fail "export --onnx --json"
before=$(cksum resnet.onnx)
refused "resnet.onnx: exists already: choose another name, or replace it with --overwrite" "$mixt" export resnet --onnx --out resnet.onnx
MIXT_FAIL_WRITE=1 refused "No space left" "$mixt" export resnet --onnx --out resnet.onnx --overwrite
[ "$before" = "$(cksum resnet.onnx)" ] || fail "a refused export --onnx changed its file"
"$mixt" export resnet --onnx --out resnet.onnx --overwrite >out || fail "export --onnx --overwrite"
[ "$before" = "$(cksum resnet.onnx)" ] || fail "a run gives another ONNX file the second time"
refused "--dtype bf16: weights of an ONNX file are fp32 so far" "$mixt" export resnet --onnx --dtype bf16
refused "--gguf: does not go together with --onnx" "$mixt" export gpt --onnx --gguf
refused "nowhere: no such folder" "$mixt" export nowhere --onnx
# ---- tokens that are real ----
"$mixt" export gpt --vocab 200 --out fewer >out && grep -q '"vocab_size": 200' fewer/config.json || fail "export --vocab 200: $(cat out)"
refused "its table has 256 tokens: 1000 of them cannot be real" "$mixt" export gpt --vocab 1000 --out more
[ -e more ] && fail "a refused export left its folder"

# ---- nothing is overwritten, nothing is loaded by halves ----
refused "gpt/export/model.safetensors: exists already: choose another name, or replace it with --overwrite" "$mixt" export gpt
rm gpt/export/model.safetensors
refused "gpt/export/config.json: exists already: choose another name, or replace it with --overwrite" "$mixt" export gpt
[ -e gpt/export/model.safetensors ] && fail "a refused export wrote half of it"
"$mixt" export gpt --overwrite >out || fail "export --overwrite"
refused "n_head is 2, the model here has 4" "$mixt" train gpt.yaml -q out=bad net.heads=4 init=gpt/export
refused "n_layer is 2, the model here has 3" "$mixt" train gpt.yaml -q out=bad net.layers=3 init=gpt/export
cp gpt/export/model.safetensors bare.safetensors # without config.json beside it
refused "'transformer.h.2.ln_1.weight' ('h.2.ln1.weight' in mixt) is missing: expected [16]" \
    "$mixt" train gpt.yaml -q out=bad net.layers=3 init=bare.safetensors
refused "expected a float tensor [256, 32]" "$mixt" train gpt.yaml -q out=bad net.width=32 init=bare.safetensors
refused "expected a float tensor [256, 32]" "$mixt" train gpt.yaml -q out=bad net.width=32 init=gpt
refused "cannot be opened" "$mixt" train gpt.yaml -q out=bad init=nowhere.safetensors
head -c 3000 gpt/export/model.safetensors >cut.safetensors
refused "cut.safetensors" "$mixt" train gpt.yaml -q out=bad init=cut.safetensors
refused "'h.7' matches no parameter" "$mixt" train gpt.yaml -q out=bad train.freeze=h.7
[ -e bad ] && fail "a refused run left a folder"

cp -r gpt weightless && rm -r weightless/model.safetensors weightless/export
refused "has no final weights" "$mixt" export weightless
rm -r weightless/checkpoints
refused "cannot be opened" "$mixt" export weightless
MIXT_FAIL_WRITE=1 refused "No space left" "$mixt" export gpt --out full
mkdir hers
MIXT_FAIL_WRITE=1 refused "No space left" "$mixt" export gpt --out hers
[ -e weightless/export ] || [ -e full ] || [ ! -d hers ] && fail "a failed export left or took a folder: $(ls)"
before=$(cksum gpt/*.*)
ln -s gpt gpt-link
for folder in gpt ./gpt/ gpt-link; do
    refused "is the run itself" "$mixt" export gpt --out $folder --dtype bf16 --overwrite
done
[ "$(cksum gpt/*.*)" = "$before" ] || fail "an export replaced the weights of its run"

# ---- a new head, frozen layers ----
"$mixt" train resnet.yaml out=tuned net.classes=12 init=resnet-out init_new_head=fc train.freeze='conv1,bn1,layer*' 2>err >out ||
    { fail "fine-tuning"; cat err; }
grep -q "init: random, not loaded: fc.weight, fc.bias" err || fail "fine-tuning says nothing of the new head"
"$mixt" export tuned --out tuned-out >out || fail "export tuned"
refused "expected a float tensor [12," "$mixt" train resnet.yaml -q out=bad net.classes=12 init=resnet-out

# ---- other models keep their names ----
printf 'model: mlp\ndevice: cpu\nnet: {hidden: [4]}\ndata: {kind: digits, limit: 64}\ntrain: {steps: 1}\n' >mlp.yaml
train mlp.yaml mlp
"$mixt" export mlp >out 2>err || fail "export mlp"
grep -q "keep mixt's names" err || fail "export mlp says nothing of its names"
refused "of mlp every row is written" "$mixt" export mlp --vocab 5 --out counted
train mlp.yaml mlp-back init=mlp/export train.lr=0 train.weight_decay=0
same_weights mlp mlp-back || fail "mlp: weights changed on the way out and back"

[ $failures = 0 ] || { echo "$failures failures"; exit 1; }
echo "all well"
