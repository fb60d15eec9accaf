#!/bin/bash
# Slow loss of precision, which no alert sees: runs that look at what FP32 would do find it, say with which measurement, and end
# like FP32; runs without such a loss are let alone, to the bit. Usage: auto_slow.sh MIXT
. "$(dirname "$0")/../support/script.sh"
cd "$work" || exit 1

cat >net.yaml <<'Y2'
model: convnet
precision: fp16
threads: 1
device: cpu
seed: 5
data: {kind: digits, limit: 512}
net: {channels: [6, 8]}
train: {epochs: 0, steps: 120, batch: 16, lr: 0.003, schedule: cosine}
Y2
loss_of() { sed -n 's/.*"val_loss":\([^,]*\),.*/\1/p' "$1/metrics.jsonl" | tail -1; }
like() { awk -v a="$(loss_of "$1")" -v b="$(loss_of "$2")" 'BEGIN { d = (b - a) / a; exit !(d < 0.05 && d > -0.3) }'; }

# gradients of a fixed loss scale that is far too small are flushed to 0: nothing stands out, and nothing is learned
flushed="train.loss_scale=1e-7"
"$mixt" train net.yaml out=full precision=fp32 -q 2>err || fail "fp32: $(cat err)"
"$mixt" train net.yaml out=plain $flushed -q 2>err || fail "plain: $(cat err)"
like full plain && fail "flushed gradients cost nothing: $(loss_of plain), FP32 $(loss_of full)"
"$mixt" train net.yaml out=scaled $flushed auto.steer=true -q 2>err || fail "scaled: $(cat err)"
like full scaled || fail "scaled: loss $(loss_of scaled), FP32 $(loss_of full)"
grep '"kind":"diagnosis"' scaled/events.jsonl >row
for part in '"found":"precision"' '"symptom":"underflow"' '"judgement":{"claim":"safe","verdict":"no"' '"layer":"conv' "left of FP32's gradient"; do
    grep -qF "$part" row || fail "no $part in $(cat row)"
done
grep -q '"from":"[0-9.e-]*","to":"dynamic","action":"scale"' scaled/events.jsonl || fail "scaled: $(cat scaled/events.jsonl)"
[ "$(grep -c '"kind":"decision"' scaled/events.jsonl)" = 1 ] || fail "scaled: $(cat scaled/events.jsonl)"

# one layer whose product FP16 flushes to 0, from an update on: that layer alone is raised
under="faults=underflow@30:conv2"
"$mixt" train net.yaml out=raised $under auto.steer=true auto.may=precision,rollback -q 2>err || fail "raised: $(cat err)"
like full raised || fail "raised: loss $(loss_of raised), FP32 $(loss_of full)"
grep '"kind":"decision"' raised/events.jsonl >rows
grep -q '"layer":"conv2","from":"fp16","to":"fp32","action":"precision"' rows && [ "$(grep -c . rows)" = 1 ] || fail "raised: $(cat rows)"

# the same decision from its record, and by a run that is stopped before it and goes on
"$mixt" train net.yaml out=again $flushed auto.replay=scaled/events.jsonl -q 2>err || fail "again: $(cat err)"
cmp -s again/model.safetensors scaled/model.safetensors || fail "the record gives other weights"
"$mixt" train net.yaml out=parts $flushed auto.steer=true train.steps=20 train.schedule=constant -q 2>err || fail "parts: $(cat err)"
"$mixt" train --resume parts train.steps=60 -q 2>err || fail "parts: $(cat err)"
"$mixt" train net.yaml out=whole $flushed auto.steer=true train.steps=60 train.schedule=constant -q 2>err || fail "whole: $(cat err)"
cmp -s parts/model.safetensors whole/model.safetensors || fail "a run in two parts decides otherwise"

# runs that lose nothing: no decision, and the bits of a run that does not look
for precision in bf16 fp16; do
    "$mixt" train net.yaml out=blind-$precision precision=$precision -q 2>err || fail "blind: $(cat err)"
    "$mixt" train net.yaml out=calm-$precision precision=$precision auto.steer=true -q 2>err || fail "calm: $(cat err)"
    ! grep -q '"kind":"decision"' calm-$precision/events.jsonl || fail "calm: $(cat calm-$precision/events.jsonl)"
    cmp -s blind-$precision/model.safetensors calm-$precision/model.safetensors || fail "looks change a run in $precision"
done
exit $((failures > 0))
