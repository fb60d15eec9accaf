#!/bin/bash
# Adapters over a base in 4 and 8 bits, and merged into it: the same bits after a stop, the same losses of checkpoints and final weights,
# logits merged as with adapters, GGUF of both as one; planned as it should be. Usage: lora_base.sh MIXT
. "$(dirname "$0")/../support/script.sh"
cd "$work" || exit 1
for i in $(seq 300); do echo "line $i says that $((i * i % 97)) is the square of $i, modulo ninety-seven"; done >text.txt
cat >base.yaml <<'Y'
model: llama
device: cpu
net: {layers: 2, width: 64, heads: 4, kv_heads: 2, inner: 128}
data: {kind: text, path: text.txt, seq: 32}
train: {batch: 4, eval_batch: 16, epochs: 0, steps: 4, validate_every: 4}
Y
"$mixt" train base.yaml out=base -q 2>err || fail "a model to begin with: $(cat err)"
"$mixt" export base --dtype bf16 --out folder >/dev/null 2>err || fail "its folder: $(cat err)"
cat >run.yaml <<'Y'
model: llama
init: folder
device: cpu
precision: bf16
data: {kind: text, path: text.txt, seq: 32}
train: {batch: 4, eval_batch: 16, epochs: 0, steps: 8, lr: 0.01, validate_every: 4, log_every: 1, checkpoint_every: 4}
lora: {rank: 2, dropout: 0.1}
Y
"$mixt" train run.yaml out=one -q 2>err || fail "a run: $(cat err)"
"$mixt" eval one --json >one.json 2>err || fail "eval: $(cat err)"

# ---- merged, and by themselves ----

"$mixt" export one 2>err && fail "neither merged nor by themselves"
grep -q 'has adapters beside a frozen model: ask for both as one (merge)' err || fail "neither merged nor by themselves: $(cat err)"
"$mixt" export one --merge --out merged --json >merged.json 2>err || fail "merged: $(cat err)"
# below RATIO: the difference of logits against the largest
near() { awk -v limit="$1" -F'[:,}]' '{ for (i = 1; i < NF; i++) { if ($i == "\"difference\"") d = $(i + 1); if ($i == "\"largest\"") l = $(i + 1) } exit !(l > 0 && d <= limit * l) }' "$2"; }
near 0.02 merged.json || fail "merged, the logits in BF16: $(cat merged.json)"
sed 's/^init.*/init: merged/; /^lora/d; s/^precision.*/precision: fp32/' run.yaml >merged.yaml
"$mixt" train merged.yaml out=from train.steps=1 train.lr=0 train.validate_every=1 -q 2>err || fail "merged weights to begin with: $(cat err)"
"$mixt" eval from --json >from.json 2>err || fail "merged weights: $(cat err)"
awk -v a="$(grep -o '"loss":[0-9.]*' from.json | cut -d: -f2)" -v b="$(grep -o '"loss":[0-9.]*' one.json | cut -d: -f2)" 'BEGIN { exit !((a - b)^2 < 1e-4) }' ||
    fail "merged weights have another loss: $(cat from.json one.json)"
"$mixt" export one --adapter --checkpoint last --out alone >/dev/null 2>err || fail "adapters by themselves: $(cat err)"
cmp alone/adapter_model.safetensors one/adapter/adapter_model.safetensors || fail "adapters by themselves are others"
"$mixt" export base --merge --out none 2>err && fail "merged without adapters"
grep -q 'has no adapters' err || fail "merged without adapters: $(cat err)"

# ---- over 4 bits, and 8 ----

for format in nf4 fp8; do
    "$mixt" train run.yaml out=$format train.frozen=$format -q 2>err || fail "over $format: $(cat err)"
    "$mixt" train run.yaml out=half-$format train.frozen=$format train.steps=4 -q || fail "half over $format"
    "$mixt" train --resume half-$format train.steps=8 -q 2>err || fail "the other half over $format: $(cat err)"
    cmp $format/model.safetensors half-$format/model.safetensors || fail "other bits after a resume over $format"
    [ $format = fp8 ] && continue # what follows asks the same way about either
    for which in final last; do "$mixt" eval $format --checkpoint $which --json >$which.json || fail "eval over $format, $which"; done
    cmp <(grep -o '"loss":[0-9.e-]*' final.json) <(grep -o '"loss":[0-9.e-]*' last.json) || fail "$format: the last checkpoint and the final weights have other losses"
    "$mixt" generate $format --prompt to --tokens 4 --seed 3 -q >/dev/null 2>err || fail "generate over $format: $(cat err)"
done
"$mixt" export nf4 --merge --out merged4 --json >merged.json 2>err || fail "merged over nf4: $(cat err)"
near 0.02 merged.json || fail "merged over nf4: $(cat merged.json)"
"$mixt" plan run.yaml train.frozen=fp8 --json >plan.json
grep -q '"format":"fp8_e4m3","parameters":12,' plan.json || fail "the plan over fp8: $(grep -o '"frozen":.*' plan.json)"
"$mixt" plan run.yaml train.frozen=nf4 --json >plan.json
numbers=$((2 * (128 * 64 + 64 * 64 + 3 * 128 * 64)))
grep -q "\"format\":\"nf4\",\"parameters\":10,\"numbers\":$numbers," plan.json || fail "the plan over nf4: $(grep -o '"frozen":.*' plan.json)"
"$mixt" train run.yaml out=bad train.frozen=nf4 lora.rank=0 lora.dropout=0 -q 2>err && fail "4 bits without adapters"
grep -q 'frozen=nf4 is for what stands below adapters' err || fail "4 bits without adapters: $(cat err)"
[ -e bad ] && fail "4 bits without adapters: something was written"
cmp nf4/model.safetensors fp8/model.safetensors >/dev/null && fail "fp8 is nf4"
"$mixt" generate fp8 --prompt to --tokens 4 --seed 3 -q >/dev/null 2>err || fail "generate over fp8: $(cat err)"
"$mixt" sensitivity nf4 --trials 1 >sensitivity.txt 2>err || fail "sensitivity over nf4: $(cat err)"

[ $failures = 0 ]
