#!/bin/bash
# Runs that end worse than they began have status 1 and say so, keep their weights, and can go on; healthy ones, however
# short, do not. Usage: diverged.sh MIXT
. "$(dirname "$0")/../support/script.sh"
cd "$work" || exit 1

for i in $(seq 800); do echo "line $i says that $((i * i % 97)) is the square of $i, modulo ninety-seven"; done >text.txt
cat >gpt.yaml <<'Y'
model: gpt
precision: bf16
threads: 1
device: cpu
net: {layers: 2, width: 32, heads: 2}
data: {kind: text, path: text.txt, seq: 32}
train: {epochs: 0, steps: 200, batch: 16, lr: 3}
Y
"$mixt" train gpt.yaml out=lost -q 2>err
[ $? = 1 ] || fail "a run that ended worse than it began: $(tail -1 lost/metrics.jsonl)"
[ "$(grep -c 'diverged: the run ends worse than it started: the loss is' err)" = 1 ] || fail "said: $(cat err)"
tail -1 lost/events.jsonl | grep -q '"severity":"critical","cause":"loss_anomaly".*diverged' || fail "events: $(tail -1 lost/events.jsonl)"
[ -s lost/model.safetensors ] || fail "the weights are gone"
"$mixt" train gpt.yaml out=lost-json --json >out 2>err && fail "--json: status 0"
grep -q '"diverged":true' out || fail "--json: $(cat out)"
"$mixt" train --resume lost train.steps=210 -q 2>err
[ $? = 1 ] || fail "resumed: $(cat err)"
[ "$(wc -l <lost/metrics.jsonl)" = 210 ] || fail "resumed: $(wc -l <lost/metrics.jsonl) rows"

# runs that learn nothing, or are too short for that
for how in "train.lr=0 train.steps=100" "train.lr=1e-9 train.steps=70 seed=5" "train.steps=3" "train.lr=0.003 train.steps=70"; do
    "$mixt" train gpt.yaml out=healthy $how -q 2>err || fail "$how: $(cat err)"
    rm -r healthy
done

[ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
