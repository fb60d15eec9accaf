#!/bin/bash
# A learning rate that explodes is named, and lowered to one that is calm; what it may not lower ends with the rate that would
# have worked; one that is merely high is let alone. All models: tests/slow/rates.sh. Usage: rates.sh MIXT
. "$(dirname "$0")/../support/script.sh"
slow=$PWD/tests/slow
bash "$slow/rates.sh" "$mixt" 9 mlp gpt mf >"$work/out" 2>&1 || fail "rates: $(cat "$work/out")"
grep -q '^gpt  *x1000 .* optimizer; lr 3>' "$work/out" || fail "gpt: $(cat "$work/out")"
cd "$work" || exit 1

cat >mf.yaml <<'Y'
model: mf
net: {width: 8, penalty: 0.05}
precision: fp32
threads: 1
device: cpu
data: {kind: ratings, val_fraction: 0.1}
train: {epochs: 0, steps: 100, batch: 256, optimizer: sgd, lr: 1000}
auto: {steer: true, may: [rollback, skip]}
Y
"$mixt" train mf.yaml out=bound -q 2>err && fail "bound: endured"
grep -q 'optimizer: .* with train.lr=[0-9.]* in place of 1e+03 the same updates from update 0 have no problem.*: auto.may and auto.retries allow nothing more after' err || fail "bound: $(cat err)"
calm=$(sed -n 's/.*with train.lr=\([0-9.]*\) .*/\1/p' err | head -1)
"$mixt" train mf.yaml out=calm train.lr="$calm" -q 2>err || fail "train.lr=$calm: $(cat err)"
! grep -q '"kind":"decision"' calm/events.jsonl || fail "train.lr=$calm is not calm: $(cat calm/events.jsonl)"

[ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
