#!/bin/bash
# Frozen parameters: kept once, in the format that is read, planned to the byte; in one file that all checkpoints name;
# the same bits after a stop; damage is named; weights go out, and to other formats. Usage: frozen.sh MIXT
. "$(dirname "$0")/../support/script.sh"
. "$(dirname "$0")/../support/ranks.sh"
cd "$work" || exit 1
cat >run.yaml <<'Y'
model: mlp
precision: bf16
device: cpu
net: {hidden: [64, 64]}
data: {kind: digits, samples: 400}
train: {batch: 16, eval_batch: 16, epochs: 0, steps: 8, validate_every: 4, log_every: 1, checkpoint_every: 4, freeze: "fc.0.weight,fc.1.weight"}
Y

# ---- memory ----

role() { local name=$1; shift; "$mixt" plan run.yaml "$@" --json | grep -o "\"$name\":[0-9]*" | head -1 | sed 's/.*://'; }
[ "$(role state)" = $(((784 * 64 + 64 * 64) * 2)) ] || fail "frozen parameters take $(role state) bytes"
[ "$(role state precision=fp32)" = $(((784 * 64 + 64 * 64) * 4)) ] || fail "frozen parameters in fp32 take $(role state precision=fp32) bytes"
"$mixt" train run.yaml out=one -q || fail "a run"
planned=$("$mixt" plan run.yaml --json | sed 's/.*"control":[0-9]*,"total":\([0-9]*\).*/\1/')
grep -q "\"memory\":$planned," one/metrics.jsonl || fail "planned $planned bytes, $(grep -o '"memory":[0-9]*' one/metrics.jsonl | head -1)"

# ---- one file ----

first=one/checkpoints/step-00000004 last=one/checkpoints/step-00000008
[ $first/frozen.safetensors -ef $last/frozen.safetensors ] || fail "it was written twice: $(ls -li $first $last)"
grep -aq '"fc.0.weight":{"dtype":"BF16"' $last/frozen.safetensors || fail "it is kept in another format"
grep -aq 'state/fc.0.weight\|master/fc.0.weight' $last/state.safetensors && fail "the state has frozen parameters again"
grep -q '"frozen.safetensors"' $last/manifest.json || fail "the manifest does not name it"

# ---- the same bits ----

"$mixt" train run.yaml out=half train.steps=4 -q || fail "half a run"
"$mixt" train --resume half train.steps=8 -q 2>err || fail "the other half: $(cat err)"
cmp one/model.safetensors half/model.safetensors || fail "other bits after a resume"
cmp $last/frozen.safetensors half/checkpoints/step-00000008/frozen.safetensors || fail "frozen parameters changed"
"$mixt" export one --out out >out.txt 2>err || fail "export: $(cat err)"
for which in final last; do
    "$mixt" eval one --checkpoint $which --json >$which.json 2>err || fail "eval of $which: $(cat err)"
done
grep -o '"loss":[0-9.e-]*' final.json >a; grep -o '"loss":[0-9.e-]*' last.json >b
cmp a b || fail "the last checkpoint and the final weights have other losses"
cp -r half other
"$mixt" train --resume other train.steps=10 precision=fp32 --allow precision -q 2>err || fail "going on in fp32: $(cat err)"
grep -aq '"fc.0.weight":{"dtype":"F32"' other/checkpoints/step-00000010/frozen.safetensors || fail "fp32 reads them in another format"

# ---- read by others ----

"$mixt" verify run.yaml train.steps=4 train.checkpoint_every=0 --json >verify.json 2>err
grep -q '"output_difference","value":0\.00[0-9]*,' verify.json || fail "verify reads what is frozen in another format: $(cat err) $(grep -o '"output_difference".*' verify.json)"

# ---- damage ----

# damaged WORDS COMMAND...: of all checkpoints
damaged() {
    local words=$1; shift
    rm -rf bad && cp -r one bad
    for file in bad/checkpoints/step-*/frozen.safetensors; do "$@" $file; done
    "$mixt" train --resume bad train.steps=10 -q 2>err && fail "$words: it went on"
    grep -q "frozen.safetensors: is damaged: $words" err || fail "$words: $(cat err)"
}
flip() { cp "$1" "$1.new"; printf 'x%.0s' 1 2 3 4 5 6 7 8 | dd of="$1.new" bs=1 seek=9000 conv=notrunc status=none; mv "$1.new" "$1"; }
damaged 'its checksum is wrong' flip
damaged 'it is missing' rm
damaged 'it has' truncate -s 9000

# ---- ranks ----

need_ranks
for zero in 0 3; do
    ranks 2 "$mixt" train run.yaml out=zero-$zero dist.zero=$zero train.steps=4 -q 2>err || fail "dist.zero=$zero: $(cat err)"
    ranks 2 "$mixt" train --resume zero-$zero train.steps=8 -q 2>err || fail "dist.zero=$zero resumed: $(cat err)"
done
cmp zero-0/model.safetensors zero-3/model.safetensors || fail "dist.zero=3: other bits"
cmp $last/frozen.safetensors zero-3/checkpoints/step-00000008/frozen.safetensors || fail "dist.zero=3: other frozen parameters"

[ $failures = 0 ]
