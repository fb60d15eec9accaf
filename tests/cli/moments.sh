#!/bin/bash
# Moments kept in BF16: half their memory, planned to the byte; the same bits after kill and resume, on any number of threads and
# ranks, whatever ranks share out; a checkpoint of other moments is refused, or converted where that is allowed. Usage: moments.sh MIXT
. "$(dirname "$0")/../support/script.sh"
. "$(dirname "$0")/../support/ranks.sh"
cd "$work" || exit 1
cat >run.yaml <<'Y'
model: mlp
precision: bf16
device: cpu
net: {hidden: [64, 64]}
data: {kind: digits, samples: 400}
train: {batch: 16, eval_batch: 16, epochs: 0, steps: 8, validate_every: 4, log_every: 1, moments: bf16}
Y

# ---- memory ----

# role NAME SETTINGS...: planned bytes
role() { local name=$1; shift; "$mixt" plan run.yaml "$@" --json | grep -o "\"$name\":[0-9]*" | head -1 | sed 's/.*://'; }
[ $(($(role moments) * 2)) = "$(role moments train.moments=fp32)" ] || fail "moments take $(role moments) bytes, in fp32 $(role moments train.moments=fp32)"
[ "$(role moments train.optimizer=sgd)" = 0 ] || fail "sgd keeps moments"
"$mixt" train run.yaml out=one -q || fail "a run"
planned=$("$mixt" plan run.yaml --json | sed 's/.*"control":[0-9]*,"total":\([0-9]*\).*/\1/')
grep -q "\"memory\":$planned," one/metrics.jsonl || fail "planned $planned bytes, $(grep -o '"memory":[0-9]*' one/metrics.jsonl | head -1)"
grep -aq '"moment2/fc.0.weight":{"dtype":"BF16"' one/checkpoints/step-00000008/state.safetensors || fail "a checkpoint has other moments"
"$mixt" train run.yaml out=fp32 train.moments=fp32 -q || fail "moments in fp32"
cmp -s one/model.safetensors fp32/model.safetensors && fail "moments in bf16 make no difference"
"$mixt" train run.yaml out=x train.moments=fp16 -q 2>err && fail "moments in fp16"
grep -q 'train.moments' err || fail "moments in fp16: $(cat err)"

"$mixt" train run.yaml out=wide model=convnet net.hidden=[] net.channels=[4,8] net.norm=batch -q || fail "fp32 statistics beside moments in bf16"
"$mixt" train --resume wide train.steps=10 -q 2>err || fail "going on with fp32 statistics: $(cat err)"
"$mixt" train run.yaml out=unbroken model=convnet net.hidden=[] net.channels=[4,8] net.norm=batch train.steps=10 -q || fail "without a break"
cmp wide/model.safetensors unbroken/model.safetensors || fail "fp32 statistics beside moments in bf16: other bits after a resume"

# ---- the same bits ----

# alike FOLDER FOLDER: weights and states
alike() {
    cmp -s "$1/model.safetensors" "$2/model.safetensors" || fail "$1 and $2 have other weights"
    cmp -s "$1/checkpoints/step-00000008/state.safetensors" "$2/checkpoints/step-00000008/state.safetensors" || fail "$1 and $2 have other states"
}
for optimizer in momentum nesterov adam adamw lamb; do
    "$mixt" train run.yaml out=$optimizer train.optimizer=$optimizer threads=1 -q || fail "$optimizer"
    "$mixt" train run.yaml out=$optimizer-half train.optimizer=$optimizer threads=2 train.steps=4 -q || fail "half of $optimizer"
    "$mixt" train --resume $optimizer-half train.steps=8 -q 2>err || fail "the other half of $optimizer: $(cat err)"
    alike $optimizer $optimizer-half
done

# ---- other moments than the checkpoint's ----

"$mixt" train run.yaml out=other train.steps=4 -q || fail "half a run"
"$mixt" train --resume other train.steps=8 train.moments=fp32 -q 2>err && fail "other moments unasked"
grep -q 'train.moments: bf16 -> fp32.*--allow train.moments' err || fail "other moments unasked: $(cat err)"
"$mixt" train --resume other train.steps=8 train.moments=fp32 --allow train.moments -q 2>err || fail "other moments: $(cat err)"
grep -aq '"moment1/fc.0.weight":{"dtype":"F32"' other/checkpoints/step-00000008/state.safetensors || fail "moments were not converted"
"$mixt" train --resume other train.steps=10 train.moments=bf16 --allow train.moments -q 2>err || fail "back to bf16: $(cat err)"
grep -q '"train.moments":{"from":"fp32","to":"bf16"}' other/history.jsonl || fail "the history: $(cat other/history.jsonl)"

# ---- ranks ----

need_ranks
"$mixt" train run.yaml out=parts dist.ranks=2 -q || fail "two ranks in one process"
for level in 0 1 2 3; do
    ranks 2 "$mixt" train run.yaml out=zero-$level dist.zero=$level -q 2>err || fail "dist.zero=$level: $(cat err)"
    alike parts zero-$level
    MIXT_DISCRETE=1 ranks 2 "$mixt" train run.yaml out=apart-$level dist.zero=$level -q 2>err || fail "dist.zero=$level as on a GPU: $(cat err)"
    alike parts apart-$level
done
"$mixt" train run.yaml out=lamb-parts dist.ranks=2 train.optimizer=lamb -q || fail "lamb on two ranks in one process"
ranks 2 "$mixt" train run.yaml out=lamb-zero dist.zero=2 train.optimizer=lamb -q 2>err || fail "lamb with dist.zero=2: $(cat err)"
alike lamb-parts lamb-zero
ranks 2 "$mixt" train run.yaml out=x dist.compress=topk:1% -q 2>err && fail "compressed exchanges"
grep -q 'moments in bf16 cannot be combined with dist.compress, which sends moments in' err || fail "compressed exchanges: $(cat err)"

[ $failures = 0 ]
