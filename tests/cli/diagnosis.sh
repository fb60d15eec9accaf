#!/bin/bash
# Ten kinds of faults in runs that look after themselves: each gets the right row in events.jsonl, loses no more than one
# interval between good states, and where it could be undone the run ends as if nothing had happened.
# Usage: diagnosis.sh MIXT; DEVICE=cuda: on the GPU
. "$(dirname "$0")/../support/script.sh"
cd "$work" || exit 1
cat >net.yaml <<Y
model: mlp
precision: fp16
threads: 1
device: ${DEVICE:-cpu}
net: {hidden: [48, 32]}
data: {samples: 3000}
train: {epochs: 0, steps: 290, batch: 32, lr: 0.003, log_every: 100, validate_every: 290}
auto: {steer: true, snapshot_every: 50}
Y
field() { sed -n "s/.*\"$1\":\"\\{0,1\\}\\([^,\"}]*\\).*/\\1/p" <<<"$row"; }
# A GPU's update is taken in while the next one begins: what that one meets may be told with the one before.
early=260
[ "${DEVICE:-cpu}" = cuda ] && early=259
# of FAULT FOUND CAUSE LAYER [STATUS]: the fault at update 260 is found, and the run ends like that
of() {
    run=${1%%@*}${1##*[0-9]}
    "$mixt" train net.yaml out="$run" faults="$1" -q >out 2>err
    [ $? = "${5:-0}" ] || fail "$1: $(cat err)"
    row=$(grep '"kind":"diagnosis"' "$run/events.jsonl" | head -1)
    [ "$(field found) $(field cause) $(field layer)" = "$2 $3 $4" ] || fail "$1: $row"
    case $(field began) in $early | 260 | 261) ;; *) fail "$1 began at $(field began)" ;; esac
    [ $((260 - $(field good))) -le 50 ] || fail "$1 goes back to $(field good)"
}
"$mixt" train net.yaml out=plain -q 2>err || fail "plain: $(cat err)"
! grep -q diagnosis plain/events.jsonl || fail "plain: $(cat plain/events.jsonl)"
of nan_data@260 batch data null
field sample | grep -q '^[0-9]' || fail "nan_data names no sample: $row"
grep -q '"action":"skip"' nan_data/events.jsonl || fail "the batch was not left out"
of label@260 batch data null
of lr@260 optimizer optimizer null
of dead_layer@260:fc.1 dead_layer gradient_anomaly fc.1 1
of overflow@260:fc.1 precision precision fc.1
of underflow@260:fc.1 precision precision fc.1
of scale_collapse@260:fc.0 precision precision fc.0
of memory@260 memory memory_warning null
of flip_weight@260:fc.1 hardware hardware fc.1
of flip_activation@260:fc.0 hardware hardware null
for run in flip_weight flip_activation; do
    grep -q '"action":"rollback"' $run/events.jsonl || fail "$run: $(cat $run/events.jsonl)"
    cmp -s $run/model.safetensors plain/model.safetensors || fail "$run does not end as without the fault"
done
of flip_activation@260:fc.1:always hardware hardware null 1
grep -q '"persists":true' flip_activation:always/events.jsonl || fail "a machine that is broken: $row"


# a bit that is stuck is told apart from a learning rate, and the third flip of a bit from one that happened once
"$mixt" train net.yaml out=stuck faults=flip_weight@260:fc.1:stuck -q 2>err && fail "a stuck bit was endured"
[ "$(grep -c '"found":"hardware"' stuck/events.jsonl)" = "$(grep -c '"kind":"diagnosis"' stuck/events.jsonl)" ] ||
    fail "a stuck bit: $(cat stuck/events.jsonl)"
grep -q 'from the same state from which it had.*resume from the last good state on another machine' err || fail "a stuck bit: $(cat err)"
"$mixt" train net.yaml out=often faults=flip_weight@110:fc.1:same,flip_weight@170:fc.1:same,flip_weight@230:fc.1:same -q 2>err &&
    fail "three flips of a bit were endured"
[ "$(grep -c '"action":"rollback"' often/events.jsonl)" = 2 ] || fail "often: $(cat often/events.jsonl)"
grep -q 'fc.1.weight\[[0-9]*\] was wrong 3 times in this run: this machine is broken' err || fail "often: $(cat err)"

[ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
