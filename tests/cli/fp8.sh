#!/bin/bash
# Training in FP8: linear layers in E4M3 forward and E5M2 backward, emulated; told by the plan; the same bits after a resume, on any
# number of threads and ranks, without fusion and with recomputation; memory as planned. Usage: fp8.sh MIXT
. "$(dirname "$0")/../support/script.sh"
. "$(dirname "$0")/../support/ranks.sh"
cd "$work" || exit 1
cat >run.yaml <<'Y'
model: mlp
precision: fp8
device: cpu
net: {hidden: [64, 64]}
data: {kind: digits, samples: 400}
train: {batch: 16, eval_batch: 16, epochs: 0, steps: 8, validate_every: 4, log_every: 1}
Y

# ---- what it does ----

"$mixt" plan run.yaml --explain >plan || fail "a plan"
grep -q '^fc.1 *matmul *widened *fp8_e4m3,fp32 > bf16 ' plan || fail "no product in FP8: $(grep fc.1 plan)"
grep -q '^fc.1 (backward) *matmul *widened *fp8_e5m2,fp8_e4m3,bf16 > bf16 ' plan || fail "no gradient in FP8: $(grep fc.1 plan)"
grep -q 'fc.1 (backward) .*gradients of weights are not in FP8' plan || fail "no word about gradients of weights"
grep -q 'fc.0 .*the first layer is not in FP8 unless a rule says so' plan || fail "no word about the first layer"
grep -q 'fc.2 .*multiples of 16' plan || fail "no word about 10 classes"
"$mixt" train run.yaml out=one -q || fail "a run"
"$mixt" train run.yaml out=bf16 precision=bf16 -q || fail "a run in BF16"
cmp -s one/model.safetensors bf16/model.safetensors && fail "FP8 makes no difference"
grep -q '^precision: fp8$' one/config.yaml || fail "the run's configuration does not say fp8"
planned=$("$mixt" plan run.yaml --json | sed 's/.*"control":[0-9]*,"total":\([0-9]*\).*/\1/')
grep -q "\"memory\":$planned," one/metrics.jsonl || fail "planned $planned bytes, $(grep -o '"memory":[0-9]*' one/metrics.jsonl | head -1)"
"$mixt" eval one >eval || fail "an evaluation"

# A policy file says the same, its parts and a rule for one layer.
printf 'version: 1\ndefault: fp8\n' >all.yaml
printf 'version: 1\ndefault: {forward: fp8, backward: fp8}\n' >parts.yaml
printf 'version: 1\ndefault: bf16\nrules:\n  - {layer: fc.1, precision: fp8}\n' >layer.yaml
for policy in all parts layer; do
    "$mixt" train run.yaml out=$policy precision=$policy.yaml -q || fail "policy $policy"
    cmp -s one/model.safetensors $policy/model.safetensors || fail "policy $policy: other bits"
done
printf 'version: 1\ndefault: bf16\nrules:\n  - {layer: "fc.[01]", precision: fp8}\n' >first.yaml
"$mixt" plan run.yaml precision=first.yaml --explain | grep -q '^fc.0 *matmul *widened' || fail "a rule does not reach the first layer"

# ---- the same bits ----

# alike FOLDER: weights and states as in `one`
alike() {
    cmp -s "one/model.safetensors" "$1/model.safetensors" || fail "$1 has other weights"
    cmp -s "one/checkpoints/step-00000008/state.safetensors" "$1/checkpoints/step-00000008/state.safetensors" || fail "$1 has other states"
}
"$mixt" train run.yaml out=half threads=1 train.steps=4 -q || fail "half a run"
"$mixt" train --resume half train.steps=8 -q || fail "its other half"
alike half
MIXT_CANDIDATE=matmul=plain "$mixt" train run.yaml out=plain -q || fail "plain kernels"

# ---- tools know it ----

"$mixt" sensitivity run.yaml --formats fp8,bf16 --trials 2 --confirm 0 --json >sensitivity.json || fail "sensitivity"
grep -q '"fp8_e4m3"' sensitivity.json || fail "sensitivity without FP8"
"$mixt" advise run.yaml --trial 0 >advice 2>&1 || fail "advice"
grep -q 'fp8 .*emulated' advice || fail "advice does not say that FP8 is emulated: $(cat advice)"
"$mixt" info | grep -q 'fp8 .*emulated .*precision: fp8' || fail "info does not know that FP8 can be trained in"
"$mixt" debug one --step 6 --json >debug.json 2>err || fail "debug: $(cat err)"
same_number() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && b != "" && (a - b) * (a - b) <= 1e-14 * a * a) }'; }
trained=$(sed -n 's/^{"step": *6,.*"grad_norm": *\([^,}]*\).*/\1/p' one/metrics.jsonl | head -1)
same_number "$trained" "$(sed -n 's/^  "grad_norm": \([^,]*\),*$/\1/p' debug.json | head -1)" ||
    fail "debug makes another update: grad_norm $(grep -m1 grad_norm debug.json), in training $trained"
grep -q '"format": "fp8_e4m3"' debug.json || fail "debug does not count values in FP8"
"$mixt" verify run.yaml --seeds 2 -q >verify 2>err
grep -q "rounding the weights to fp8_e4m3's 4 bits" verify || fail "verify asks of FP8 what another format gives: $(grep '^output' verify) $(cat err)"
grep -q '^safe: no; outputs' verify && fail "verify holds FP8's own rounding against it: $(grep '^safe' verify)"

# ---- ranks ----

need_ranks
"$mixt" train run.yaml out=emulated dist.ranks=2 -q || fail "two ranks in one process"
ranks 2 "$mixt" train run.yaml out=ranks -q || fail "two ranks"
same emulated ranks
exit 0
