#!/bin/bash
# Alerts in events.jsonl and on the screen; the same rows after a stop; a step looked into. Usage: events.sh MIXT
. "$(dirname "$0")/../support/script.sh"
cd "$work" || exit 1

cat >net.yaml <<'Y'
model: mlp
precision: fp16
threads: 1
device: cpu
data: {kind: random, shape: 12, classes: 3, samples: 320}
net: {hidden: 16}
train: {epochs: 0, steps: 120, batch: 16, lr: 0.01, inject_overflow: 70, scale_init: 1024, checkpoint_every: 60}
Y

# a skipped update is worth a row, with the layer, and no line on the screen
"$mixt" train net.yaml out=whole 2>err -q || fail "train: $(cat err)"
[ "$(wc -l <whole/events.jsonl)" = 1 ] || fail "events: $(cat whole/events.jsonl)"
for part in '"step":70,' '"kind":"alert"' '"severity":"info"' '"cause":"overflow"' '"layer":"' '"from":null' '"to":null' \
    '"action":"none"' '"evidence":{' '"time":'; do
    grep -qF "$part" whole/events.jsonl || fail "no $part in $(cat whole/events.jsonl)"
done
[ ! -s err ] || fail "said on the screen: $(cat err)"

# a run that was stopped before it and goes on has the same
"$mixt" train net.yaml out=half train.steps=65 -q 2>err || fail "half: $(cat err)"
[ ! -s half/events.jsonl ] || fail "too early: $(cat half/events.jsonl)"
"$mixt" train --resume half train.steps=120 -q 2>err || fail "resume: $(cat err)"
strip() { sed 's/"time":[0-9.e+-]*/"time":0/' "$1"; }
[ "$(strip half/events.jsonl)" = "$(strip whole/events.jsonl)" ] || fail "resumed: $(cat half/events.jsonl)"
cmp -s half/model.safetensors whole/model.safetensors || fail "other weights"

# rows past the checkpoint that it goes on from are taken back: alerts of a limit that every norm is below
low="watch.grad_norm_min=1e6 watch.cooldown=1"
"$mixt" train net.yaml out=many train.steps=110 $low >/dev/null 2>err || fail "many"
grep -q "below watch.grad_norm_min" err || fail "no line on the screen: $(cat err)"
rm -r many/checkpoints/*110*
"$mixt" train --resume many -q 2>err || fail "many resumed: $(cat err)"
"$mixt" train net.yaml out=once train.steps=110 $low -q 2>err || fail "once"
[ "$(strip many/events.jsonl)" = "$(strip once/events.jsonl)" ] || fail "other events after a resume"
[ "$(wc -l <once/events.jsonl)" -gt 5 ] || fail "few events: $(cat once/events.jsonl)"

# a norm above the fixed limit is told once
"$mixt" train net.yaml out=above watch.grad_norm_max=1e-6 watch.cooldown=1 >/dev/null 2>err || fail "above"
[ "$(grep -c "above watch.grad_norm_max" above/events.jsonl)" = 1 ] && grep -q "above watch.grad_norm_max" err || fail "above: $(cat above/events.jsonl)"

# turned off
"$mixt" train net.yaml out=off watch.monitor=false watch.grad_norm_max=1e-6 -q 2>err || fail "off"
[ ! -s off/events.jsonl ] && [ ! -s err ] || fail "off: $(cat off/events.jsonl err)"
cmp -s off/model.safetensors whole/model.safetensors || fail "watching changes bits"

# wrong settings name themselves
for bad in watch.window=5 watch.loss_sigma=-1 watch.memory_warn=2 watch.cooldown=0; do
    "$mixt" train net.yaml out=bad $bad 2>err && fail "$bad was taken"
    grep -q "${bad%%=*}" err || fail "$bad: $(cat err)"
    [ ! -e bad ] || fail "$bad left a directory"
done

# ---- mixt debug: one update looked into ----

"$mixt" debug net.yaml train.inject_overflow=0 >out 2>err || fail "debug: $(cat err)"
grep -q '^step 1: loss' out && grep -q 'nothing is wrong' out && grep -q 'fc.0.weight' out || fail "debug says: $(cat out)"
"$mixt" debug net.yaml train.inject_overflow=3 --step 3 --json >out 2>err || fail "debug --step 3: $(cat err)"
grep -q '"step": 3' out && grep -q '"pass": "backward"' out && grep -q '"recommendations": \[$' out || fail "debug of an overflow: $(head -40 out)"
before=$(find whole -type f -exec cksum {} + | sort)
"$mixt" debug whole --layer 'fc.0*' >out 2>err || fail "debug of a run: $(cat err)"
grep -q '^step 121:' out && ! grep -q 'fc\.1' out || fail "debug of a run says: $(cat out)"
[ "$before" = "$(find whole -type f -exec cksum {} + | sort)" ] || fail "debug changed the run"
"$mixt" debug net.yaml --layer nolayer >out 2>err && fail "debug of no layer"
grep -q "nolayer" err && [ ! -s out ] || fail "debug --layer nolayer: $(cat out err)"
"$mixt" debug nowhere.yaml 2>err && fail "debug of nothing"
grep -q nowhere.yaml err || fail "debug of nothing: $(cat err)"

[ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
