#!/bin/bash
# Frozen weights as INT8 numbers with scales: half of BF16's bytes, planned to the byte; the same bits after a stop or a kill, within
# a budget, and on ranks whatever they share; weights go out as they were computed with, and come in from a folder of another program;
# bad wishes are named. Usage: frozen_int8.sh MIXT
. "$(dirname "$0")/../support/script.sh"
. "$(dirname "$0")/../support/ranks.sh"
cd "$work" || exit 1
for i in $(seq 300); do echo "line $i says that $((i * i % 97)) is the square of $i, modulo ninety-seven"; done >text.txt
cat >run.yaml <<'Y'
model: mlp
precision: bf16
device: cpu
net: {hidden: [64, 64]}
data: {kind: digits, samples: 400}
train: {batch: 16, eval_batch: 16, epochs: 0, steps: 8, validate_every: 4, log_every: 1, checkpoint_every: 4, freeze: "fc.0,fc.1.weight", frozen: int8}
Y
cat >gpt.yaml <<'Y'
model: gpt
precision: bf16
device: cpu
net: {layers: 2, width: 32, heads: 2}
data: {kind: text, path: text.txt, seq: 32}
train: {batch: 4, eval_batch: 16, epochs: 0, steps: 6, validate_every: 6, log_every: 1, checkpoint_every: 3, freeze: "wte*,wpe*,h.0.*", frozen: int8}
Y

# ---- memory ----

# role NAME FILE SETTINGS...: planned bytes
role() { local name=$1; shift; "$mixt" plan "$@" --json | grep -o "\"$name\":[0-9]*" | head -1 | sed 's/.*://'; }
numbers=$((784 * 64 + 64 * 64)) bias=$((64 * 4))
for precision in fp32 bf16 fp16; do
    [ "$(role state run.yaml precision=$precision)" = $((numbers + 128 * 4 + bias)) ] || fail "$precision: frozen parameters take $(role state run.yaml precision=$precision) bytes"
done
[ "$(role state run.yaml train.frozen=auto)" = $((numbers * 2 + bias)) ] || fail "frozen parameters in bf16 take $(role state run.yaml train.frozen=auto) bytes"
"$mixt" plan run.yaml >plan || fail "a plan"
grep -q "^int8 .* 2 .* $numbers .* $((numbers + 512)) .*weights of linear layers and embeddings, with 128 scales" plan || fail "the plan's table: $(cat plan)"
grep -q "^fp32 .* 1 .* 64 .* 256 .*in the format that kernels read" plan || fail "the bias in the plan's table: $(cat plan)"
"$mixt" plan run.yaml --json | grep -q "\"frozen\":\[{\"format\":\"fp32\",.*{\"format\":\"int8\",\"parameters\":2,\"numbers\":$numbers,\"scales\":128,\"bytes\":$((numbers + 512))}\]" || fail "the plan as JSON"
"$mixt" plan gpt.yaml >plan || fail "a plan of gpt"
grep -q '^int8 .* 5 ' plan || fail "the embedding and four layers: $(cat plan)"
grep -q '^bf16 .* 1 ' plan || fail "the table of places, which is sliced: $(cat plan)"

# ---- a run, its file, its bits ----

"$mixt" train run.yaml out=one -q || fail "a run"
planned=$("$mixt" plan run.yaml --json | sed 's/.*"control":[0-9]*,"total":\([0-9]*\).*/\1/')
grep -q "\"memory\":$planned," one/metrics.jsonl || fail "planned $planned bytes, $(grep -o '"memory":[0-9]*' one/metrics.jsonl | head -1)"
first=one/checkpoints/step-00000004 last=one/checkpoints/step-00000008
[ $first/frozen.safetensors -ef $last/frozen.safetensors ] || fail "it was written twice: $(ls -li $first $last)"
for part in '"fc.0.weight":{"dtype":"I8"' '"scale/fc.0.weight":{"dtype":"F32"' '"fc.0.bias":{"dtype":"F32"'; do
    grep -aq "$part" $last/frozen.safetensors || fail "no $part in the file of frozen parameters"
done
"$mixt" train run.yaml out=half train.steps=4 -q || fail "half a run"
"$mixt" train --resume half train.steps=8 -q 2>err || fail "the other half: $(cat err)"
cmp one/model.safetensors half/model.safetensors || fail "other bits after a resume"
cmp $last/frozen.safetensors half/checkpoints/step-00000008/frozen.safetensors || fail "frozen parameters changed"

"$mixt" train gpt.yaml out=gpt -q 2>err || fail "gpt: $(cat err)"
{ MIXT_SIGNAL=KILL@update:8 "$mixt" train gpt.yaml out=killed train.steps=12 train.validate_every=0 -q; } 2>err
[ $? = 137 ] && [ -e killed/checkpoints/step-00000003/manifest.json ] || fail "it was to be killed at update 8: $(ls killed/checkpoints)"
steps=12
"$mixt" train --resume killed train.steps=$steps -q 2>err || fail "after a kill: $(cat err)"
"$mixt" train gpt.yaml out=whole train.steps=$steps train.validate_every=0 -q || fail "without a kill"
cmp killed/model.safetensors whole/model.safetensors || fail "other bits after a kill at update $steps"
least=$("$mixt" plan gpt.yaml train.recompute=1 2>&1 | sed "s/.*budget is \([0-9]*\) bytes.*/\1/")
"$mixt" train gpt.yaml out=again train.recompute="$least" -q 2>err || fail "recomputation within $least: $(cat err)"
cmp gpt/model.safetensors again/model.safetensors || fail "other bits where activations are computed again"

# ---- what is done with the weights ----

for run in one gpt; do
    for which in final last; do
        "$mixt" eval $run --checkpoint $which --json >$which.json 2>err || fail "eval of $run, $which: $(cat err)"
    done
    cmp <(grep -o '"loss":[0-9.e-]*' final.json) <(grep -o '"loss":[0-9.e-]*' last.json) || fail "$run: the last checkpoint and the final weights have other losses"
done
grep -q "\"val_loss\":$(sed 's/.*"loss":\([0-9.]\{6\}\).*/\1/' final.json)" gpt/metrics.jsonl || fail "eval: $(cat final.json), the run: $(tail -1 gpt/metrics.jsonl)"
for which in final last; do
    "$mixt" generate gpt --checkpoint $which --prompt to --tokens 12 --seed 3 -q >$which.txt 2>err || fail "generate, $which: $(cat err)"
    "$mixt" export gpt --checkpoint $which --out out-$which >/dev/null 2>err || fail "export, $which: $(cat err)"
done
cmp final.txt last.txt || fail "the last checkpoint and the final weights write other texts"
# payload FILE NAME: the bytes of a tensor
payload() {
    local header=$(($(od -An -tu8 -N8 "$1"))) at
    at=$(tail -c +9 "$1" | head -c $header | grep -o "\"$2\":{[^}]*}" | sed 's/.*"data_offsets":\[\([0-9]*\),\([0-9]*\).*/\1 \2/')
    tail -c +$((9 + header + ${at% *})) "$1" | head -c $((${at#* } - ${at% *}))
}
name=$(tail -c +9 out-final/model.safetensors | grep -ao '"[a-z0-9.]*wte[a-z0-9.]*"' | head -1 | tr -d '"')
[ "$(payload out-final/model.safetensors "$name" | wc -c)" = $((256 * 32 * 4)) ] || fail "the embedding goes out in FP32: $name"
cmp <(payload out-final/model.safetensors "$name") <(payload out-last/model.safetensors "$name") || fail "a checkpoint's weights go out otherwise than the run's"
for use in debug sensitivity; do
    "$mixt" $use gpt >$use.txt 2>err || fail "$use: $(cat err)"
done
"$mixt" verify run.yaml train.steps=4 train.checkpoint_every=0 --json >verify.json 2>err
grep -q '"output_difference","value":0\.00[0-9]*,' verify.json || fail "verify: $(cat err) $(grep -o '"output_difference".*' verify.json)"
grep -q "int8's" verify.json && fail "verify rounds once more what is rounded: $(grep -o '"output_difference".*' verify.json)"
cat >pairs.yaml <<'Y'
model: seq2seq
device: cpu
net: {layers: 1, width: 16, heads: 2}
data: {kind: parallel, seq: 12, samples: 300}
train: {batch: 4, eval_batch: 16, epochs: 0, steps: 4, freeze: "*weight", frozen: int8}
Y
"$mixt" train pairs.yaml out=pairs -q 2>err || fail "a translator: $(cat err)"
"$mixt" eval pairs --json >pairs.json 2>err || fail "translations: $(cat err)"
grep -q '"bleu":' pairs.json || fail "translations: $(cat pairs.json)"
"$mixt" train gpt.yaml out=tuned init=out-final net.layers=2 -q 2>err || fail "fine-tuning a folder of another program: $(cat err)"
cmp gpt/checkpoints/frozen.safetensors tuned/checkpoints/frozen.safetensors || fail "weights that were rounded are not rounded to themselves"

# ---- other wishes ----

refused() {
    local words=$1; shift
    "$mixt" train "$@" out=bad -q 2>err && fail "$*: it was done"
    grep -q -- "$words" err || fail "$*: $(cat err)"
    [ -e bad ] && fail "$*: something was written"
}
refused 'train.frozen: expected one of auto, fp8, int8, nf4, found .int4.' run.yaml train.frozen=int4
refused 'freeze names none' run.yaml train.freeze=
refused 'freeze names none of them' run.yaml 'train.freeze=*.bias'
"$mixt" train --resume half train.steps=10 train.frozen=auto -q 2>err && fail "another format unasked"
grep -q 'train.frozen: int8 -> auto' err || fail "another format unasked: $(cat err)"
"$mixt" train --resume half train.steps=10 train.frozen=auto --allow train.frozen -q 2>err || fail "back to bf16: $(cat err)"
grep -aq '"fc.0.weight":{"dtype":"BF16"' half/checkpoints/step-00000010/frozen.safetensors || fail "it stayed in int8"
"$mixt" train --resume half train.steps=12 train.frozen=int8 --allow train.frozen -q 2>err || fail "to int8: $(cat err)"
grep -aq '"fc.0.weight":{"dtype":"I8"' half/checkpoints/step-00000012/frozen.safetensors || fail "it stayed in bf16"
"$mixt" train --resume one train.steps=10 precision=fp32 --allow precision -q 2>err || fail "another precision: $(cat err)"
cmp $last/frozen.safetensors one/checkpoints/step-00000010/frozen.safetensors || fail "another precision changed what is frozen"

# ---- ranks ----

need_ranks
"$mixt" train run.yaml out=parts dist.ranks=2 -q || fail "two ranks in one process"
for zero in 0 1 2 3; do
    ranks 2 "$mixt" train run.yaml out=zero-$zero dist.zero=$zero train.steps=4 -q 2>err || fail "dist.zero=$zero: $(cat err)"
    ranks 2 "$mixt" train --resume zero-$zero train.steps=8 -q 2>err || fail "dist.zero=$zero resumed: $(cat err)"
    cmp parts/model.safetensors zero-$zero/model.safetensors || fail "dist.zero=$zero: other bits"
done
MIXT_DISCRETE=1 ranks 2 "$mixt" train run.yaml out=discrete dist.zero=3 -q 2>err || fail "as on a GPU: $(cat err)"
cmp parts/model.safetensors discrete/model.safetensors || fail "as on a GPU: other bits"

[ $failures = 0 ]
