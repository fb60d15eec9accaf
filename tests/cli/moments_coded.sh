#!/bin/bash
# Moments kept in 8 bits with a scale a block: a quarter of their memory, planned to the byte; small parameters and tables stay
# FP32; the same bits after kill and resume, on any number of threads and ranks, whatever ranks share out; a checkpoint of
# other moments is refused, or converted where that is allowed. Usage: moments_coded.sh MIXT
. "$(dirname "$0")/../support/script.sh"
. "$(dirname "$0")/../support/ranks.sh"
cd "$work" || exit 1
cat >run.yaml <<'Y'
model: mlp
precision: bf16
device: cpu
net: {hidden: [100, 64]}
data: {kind: digits, samples: 400}
train: {batch: 16, eval_batch: 16, epochs: 0, steps: 8, validate_every: 4, log_every: 1, moments: int8}
Y

# ---- memory ----

# role SETTINGS...: planned bytes of moments
role() { "$mixt" plan run.yaml "$@" --json | grep -o '"moments":[0-9]*' | head -1 | sed 's/.*://'; }
"$mixt" train run.yaml out=one -q || fail "a run"
planned=$("$mixt" plan run.yaml --json | sed 's/.*"control":[0-9]*,"total":\([0-9]*\).*/\1/')
grep -q "\"memory\":$planned," one/metrics.jsonl || fail "planned $planned bytes, $(grep -o '"memory":[0-9]*' one/metrics.jsonl | head -1)"
# two moments of (784 · 100 + 100 · 64) codes, whose rooms are whole lines, their scales, and 100, 64, 640 and 10 numbers in FP32
wanted=$((2 * (78400 + 6400 + 4 * (320 + 32) + 4 * (128 + 64 + 640 + 64))))
[ "$(role)" = $wanted ] || fail "moments take $(role) bytes, not $wanted"
[ "$(role train.moments=fp8)" = $wanted ] || fail "moments in fp8 take $(role train.moments=fp8) bytes"
[ "$(role train.optimizer=momentum)" = $((wanted / 2)) ] || fail "momentum keeps $(role train.optimizer=momentum) bytes"
[ "$(role train.optimizer=sgd)" = 0 ] || fail "sgd keeps moments"
state=one/checkpoints/step-00000008/state.safetensors
for entry in '"moment1/fc.0.weight":{"dtype":"I8"' '"moment2/fc.0.weight":{"dtype":"U8"' '"moment2.scale/fc.0.weight":{"dtype":"F32","shape":\[307\]' \
    '"moment1/fc.0.bias":{"dtype":"F32"'; do
    grep -aq "$entry" $state || fail "a checkpoint has no $entry"
done
"$mixt" train model=gpt net.width=64 net.layers=1 net.heads=2 data.kind=text data.seq=32 train.steps=8 train.epochs=0 train.batch=4 \
    train.moments=int8 out=gpt -q 2>err || fail "gpt: $(cat err)"
tensors=gpt/checkpoints/step-00000008/state.safetensors
grep -aq '"moment1/wte.weight":{"dtype":"I8"' $tensors || fail "a table that is also a head has no codes"

# ---- the same bits ----

# alike FOLDER FOLDER: weights and states
alike() {
    cmp -s "$1/model.safetensors" "$2/model.safetensors" || fail "$1 and $2 have other weights"
    cmp -s "$1/checkpoints/step-00000008/state.safetensors" "$2/checkpoints/step-00000008/state.safetensors" || fail "$1 and $2 have other states"
}
for kind in "int8 adamw" "int8 lamb" "int8 momentum" "fp8 adam"; do
    read -r format optimizer <<<"$kind"
    name=$format-$optimizer settings=(train.moments=$format train.optimizer=$optimizer)
    "$mixt" train run.yaml out=$name "${settings[@]}" threads=1 -q || fail "$kind"
    "$mixt" train run.yaml out=$name-half "${settings[@]}" threads=2 train.steps=4 -q || fail "half of $kind"
    "$mixt" train --resume $name-half train.steps=8 -q 2>err || fail "the other half of $kind: $(cat err)"
    alike $name $name-half
done

# ---- other moments than the checkpoint's ----

"$mixt" train run.yaml out=other train.steps=4 -q || fail "half a run"
"$mixt" train --resume other train.steps=8 train.moments=fp32 -q 2>err && fail "other moments unasked"
grep -q 'train.moments: int8 -> fp32.*--allow train.moments' err || fail "other moments unasked: $(cat err)"
at=4
for format in fp32 fp8 bf16 int8; do
    at=$((at + 2))
    "$mixt" train --resume other train.steps=$at train.moments=$format --allow train.moments -q 2>err || fail "to $format: $(cat err)"
done
grep -aq '"moment1.scale/fc.0.weight"' other/checkpoints/step-00000012/state.safetensors || fail "moments were not converted back"
"$mixt" train run.yaml out=fp32 train.moments=fp32 train.steps=4 -q || fail "a run in fp32"
"$mixt" train --resume fp32 train.steps=8 train.moments=int8 --allow train.moments -q 2>err || fail "from fp32 to int8: $(cat err)"

# ---- ranks ----

need_ranks
"$mixt" train run.yaml out=parts dist.ranks=2 -q || fail "two ranks in one process"
for level in 0 1 2 3; do
    ranks 2 "$mixt" train run.yaml out=zero-$level dist.zero=$level -q 2>err || fail "dist.zero=$level: $(cat err)"
    alike parts zero-$level
done
for level in 1 3; do
    MIXT_DISCRETE=1 ranks 2 "$mixt" train run.yaml out=apart-$level dist.zero=$level -q 2>err || fail "dist.zero=$level as on a GPU: $(cat err)"
    alike parts apart-$level
done
ranks 3 "$mixt" train run.yaml out=half dist.zero=2 train.batch=18 train.steps=4 -q 2>err || fail "half on three ranks: $(cat err)"
"$mixt" train run.yaml out=whole dist.ranks=3 train.batch=18 -q || fail "three ranks in one process"
ranks 3 "$mixt" train --resume half train.steps=8 -q 2>err || fail "the other half on three ranks: $(cat err)"
alike whole half
"$mixt" train run.yaml out=lamb-parts dist.ranks=2 train.optimizer=lamb -q || fail "lamb on two ranks in one process"
ranks 2 "$mixt" train run.yaml out=lamb-zero dist.zero=2 train.optimizer=lamb -q 2>err || fail "lamb with dist.zero=2: $(cat err)"
alike lamb-parts lamb-zero
ranks 2 "$mixt" train run.yaml out=x dist.compress=topk:1% -q 2>err && fail "compressed exchanges"
grep -q 'moments in int8 cannot be combined with dist.compress' err || fail "compressed exchanges: $(cat err)"

[ $failures = 0 ]
