#!/bin/bash
# A policy with phases: what plan and train say of it, kill -9 around its changes, longer runs, evaluation and export; and
# memory that somebody else takes. Usage: phases.sh MIXT [KILLS]. MIXT_KILL_SEED draws other places.
. "$(dirname "$0")/../support/script.sh"
kills=${2:-4}
seed=${MIXT_KILL_SEED:-7}
cd "$work" || exit 1

cat >run.yaml <<'Y'
model: convnet
precision: phases.yaml
threads: 1
device: cpu
net: {channels: [4, 8]}
data: {kind: digits, limit: 640}
train: {epochs: 0, steps: 60, batch: 32, checkpoint_every: 1, log_every: 1}
Y
cat >phases.yaml <<'Y'
default: bf16
phases:
  - name: warm-up
    until: 25%
    default: fp32
    clip: 1
  - name: careful
    until: 2 epochs
    default: fp16
    scale_init: 1024
  - name: calm
Y

# ---- what is said ----

"$mixt" plan run.yaml >out 2>err || fail "plan: $(cat err)"
grep -q '^warm-up  *1 to 15 .*shown here' out && grep -q '^careful  *16 to 40 ' out && grep -q '^calm  *41 to 60 ' out || fail "plan: $(cat out)"
"$mixt" plan run.yaml --phase calm --graph >out 2>err || fail "plan --phase: $(cat err)"
grep -q '^calm .*shown here' out && grep -q ':bf16' out && ! grep -q ':fp16' out || fail "plan --phase calm: $(head -20 out)"
"$mixt" train run.yaml out=whole >out 2>said || fail "train: $(cat said)"
grep -q '^phases   warm-up: updates 1 to 15, in ' said && grep -q "from step 16 on in phase 'careful'" said || fail "said: $(cat said)"
[ "$(grep -c '"kind":"decision".*"action":"phase"' whole/events.jsonl)" = 2 ] || fail "events: $(cat whole/events.jsonl)"
grep -q '"step":15,.*"from":"warm-up","to":"careful","action":"phase"' whole/events.jsonl || fail "events: $(cat whole/events.jsonl)"
grep -q 'until: 15' whole/policy.yaml && grep -q 'until: 40' whole/policy.yaml || fail "ends in updates: $(cat whole/policy.yaml)"
grep -q '"scale":1024' whole/metrics.jsonl || fail "no loss scale of the second phase"
"$mixt" train run.yaml out=short train.steps=20 -q 2>err || fail "short: $(cat err)"
grep -q "phase 'calm' is never reached: it starts at update 41, the run ends at 20" err || fail "a phase beyond the end: $(cat err)"
"$mixt" train --resume short train.steps=60 -q 2>err || fail "longer: $(cat err)"
grep -q 'until: 5$' short/policy.yaml || fail "a longer run has moved its phases: $(cat short/policy.yaml)"
"$mixt" eval whole >out 2>err || fail "eval: $(cat err)"
"$mixt" export whole --out exported >out 2>err || fail "export: $(cat err)"

# ---- a phase that there is no room for ----

sed 's/limit: 640/limit: 4096/; s/batch: 32/batch: 2048/; s/steps: 60/steps: 8/' run.yaml >large.yaml
printf 'default: bf16\nphases:\n  - {name: small, until: 4}\n  - {name: large, default: fp32}\n' >grow.yaml
bytes() { "$mixt" plan large.yaml precision=grow.yaml --json | sed 's/.*"name":"'"$1"'",[^{]*{"host":\([0-9]*\).*/\1/'; }
small=$(bytes small) large=$(bytes large)
[ "$large" -gt $((small + (32 << 20))) ] || fail "phases of $small and $large bytes"
(ulimit -d $(((large - (16 << 20)) / 1024)) && "$mixt" train large.yaml precision=grow.yaml out=never -q) >out 2>err && fail "a phase without room was begun"
grep -q "phase 'large', from update 5 on, needs .*, and the run could hold .*: train.memory=.*M makes all phases fit" err || fail "no room: $(cat err)"
[ ! -e never ] || fail "a refused run has left a directory"

# ---- kill -9 ----

rows() { sed 's/"time":[^,}]*//; s/"samples_s":[^,}]*//; s/"checkpoint_stall":[^,}]*//; s/"energy":[^,}]*//; s/,,*/,/g; s/,}/}/' "$1"; }
arguments='run.yaml out=killed'
for _ in $(seq "$kills"); do # in the middle of a write, or before a file or checkpoint takes its name
    below 120
    signalled KILL@write:$((drawn + 1)) "$mixt" train $arguments -q 2>err
    status=$?
    [ $status = 0 ] && break # after many kills less is left to write
    [ $status = 137 ] || fail "KILL@write:$((drawn + 1)): $(cat err)"
    [ -e killed/config.yaml ] && arguments='--resume killed' || rm -rf killed
done
"$mixt" train $arguments -q 2>err || fail "killed $kills times: status $?: $(cat err)"
cmp -s whole/model.safetensors killed/model.safetensors || fail "killed: other weights"
[ "$(rows whole/events.jsonl)" = "$(rows killed/events.jsonl)" ] || fail "killed: other events: $(cat killed/events.jsonl)"
[ "$(rows whole/metrics.jsonl)" = "$(rows killed/metrics.jsonl)" ] || fail "killed: other metrics"

# ---- memory that somebody else takes ----

for _ in $(seq 400); do echo "the quick brown fox jumps"; done >words.txt
cat >gpt.yaml <<'Y'
model: gpt
precision: fp32
threads: 1
device: cpu
net: {layers: 2, width: 32, heads: 2}
data: {kind: text, path: words.txt, seq: 32}
train: {epochs: 0, steps: 30, batch: 16, checkpoint_every: 1, keep: 40}
auto: {steer: true}
Y
"$mixt" train gpt.yaml out=squeezed faults=memory@5 2>said >out || fail "squeezed: $(cat said)"
if grep -q '"action":"memory"' squeezed/events.jsonl; then
    grep -q '"cause":"memory_warning".*"action":"memory".*"key":"train.activations".*"bytes_before":' squeezed/events.jsonl || fail "row: $(cat squeezed/events.jsonl)"
    "$mixt" train gpt.yaml out=replayed auto.replay=squeezed/events.jsonl -q 2>err || fail "replay: $(cat err)"
    cmp -s squeezed/model.safetensors replayed/model.safetensors || fail "a replay has other weights"
    # killed before a decision was saved: the run goes on from before it, as it was then
    rm -rf squeezed/model.safetensors squeezed/checkpoints/step-000000[12]? squeezed/checkpoints/step-0000003?
    rm -rf squeezed/checkpoints/step-0000000[789]
    "$mixt" train --resume squeezed -q 2>err || fail "from before a decision: $(cat err)"
    grep -q '^  split: 1$' squeezed/config.yaml && grep -q '^  activations: policy$' squeezed/config.yaml || fail "settings of a decision that was lost"
else # what is free changes while others work: then there is nothing to replay
    echo "note: this machine has too much memory left to be squeezed"
fi
"$mixt" train gpt.yaml out=left auto.memory=false faults=memory@5 -q 2>err || fail "auto.memory=false: $(cat err)"
! grep -q '"action":"memory"' left/events.jsonl || fail "auto.memory=false gave memory back"

[ "$failures" -eq 0 ] || { echo "$failures checks failed"; exit 1; }
