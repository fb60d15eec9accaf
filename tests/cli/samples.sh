#!/bin/bash
# Bad data in runs that look after themselves: a sample that is named is left out, told and recorded by its number, and the
# format stays; wrong labels in a row do not stop a run. Resumed and replayed to the same bits. Usage: samples.sh MIXT
. "$(dirname "$0")/../support/script.sh"
cd "$work" || exit 1

# clusters ROWS BAD: 16 numbers around one of four centres, and which; row BAD is a million times as large
clusters() {
    awk -v rows="$1" -v bad="$2" 'BEGIN { srand(5); for (i = 0; i < 64; i++) c[i] = 2 * rand() - 1; for (i = 0; i < rows; i++) {
        k = int(4 * rand()); for (j = 0; j < 16; j++) printf "%.5g,", (2 * c[16 * k + j] + 3 * (rand() - 0.5)) * (i == bad ? 1e6 : 1); print k } }'
}
clusters 1600 700 >bad.csv
cat >bad.yaml <<'Y'
model: mlp
precision: fp16
threads: 1
device: cpu
net: {hidden: [32, 32]}
data: {kind: csv, path: bad.csv, normalise: none, val_fraction: 0.1}
train: {epochs: 0, steps: 200, batch: 32, lr: 0.003, checkpoint_every: 20, keep: 100}
auto: {steer: true, snapshot_every: 50}
Y
"$mixt" train bad.yaml out=bad 2>err >out || fail "bad: $(cat err)"
grep -q 'sample [0-9]* of bad.csv, .* has inputs up to .* times the largest of another batch' err && grep -q 'back to step 0, sample [0-9]* left out' err || fail "bad says: $(cat err)"
! grep -q '"action":"precision"' bad/events.jsonl || fail "bad raises layers: $(cat bad/events.jsonl)"
sample=$(sed -n 's/.*"to":"\([0-9]*\)","action":"skip".*"key":"sample".*/\1/p' bad/events.jsonl)
[ "$(wc -w <<<"$sample")" = 1 ] || fail "bad: $(cat bad/events.jsonl)"
grep -q "\"event\":\"sample skipped\",\"sample\":$sample," bad/history.jsonl || fail "history: $(cat bad/history.jsonl)"
cp -r bad cut
for later in cut/checkpoints/step-*; do [ "${later##*-}" -le 120 ] || rm -r "$later"; done
"$mixt" train --resume cut -q 2>err || fail "cut: $(cat err)"
cmp -s bad/model.safetensors cut/model.safetensors || fail "cut: a resumed run reads the sample again"
"$mixt" train bad.yaml out=again auto.replay=bad/events.jsonl -q 2>err || fail "again: $(cat err)"
cmp -s bad/model.safetensors again/model.safetensors || fail "again: other weights"

cat >labels.yaml <<'Y'
model: mlp
precision: fp16
threads: 1
device: cpu
net: {hidden: [48, 32]}
data: {samples: 3000}
train: {epochs: 0, steps: 300, batch: 32, lr: 0.003}
auto: {steer: true, snapshot_every: 50}
Y
block=$(for i in $(seq 200 215); do printf 'label@%d,' "$i"; done)
"$mixt" train labels.yaml out=labels faults="${block%,}" -q 2>err || fail "512 wrong labels in a row stop it: $(cat err)"
! grep -qE '"action":"(precision|lr|clip|stop)"' labels/events.jsonl || fail "labels: $(cat labels/events.jsonl)"
"$mixt" train labels.yaml out=plain precision=fp32 auto.steer=false faults="${block%,}" -q 2>err || fail "plain: $(cat err)"
loss_of() { sed -n 's/.*"val_loss":\([^,]*\),.*/\1/p' "$1/metrics.jsonl" | tail -1; }
awk -v a="$(loss_of plain)" -v b="$(loss_of labels)" 'BEGIN { exit !(b < a * 1.02) }' || fail "labels: $(loss_of labels), plain $(loss_of plain)"

[ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
