#!/bin/bash
# Runs that are killed again and again, at random instants and inside saves, and resumed each time, end with the bits of an
# undisturbed run: conv net with batch norm and GPT with dropout, in FP16 and BF16.
# Usage: kills.sh MIXT [KILLS [DEVICE [MODEL-PRECISION...]]], as in kills.sh build/mixt 50 cuda conv-fp16
set -u
mixt=$(realpath "$1")
kills=${2:-50}
device=${3:-cpu}
runs=${*:4}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

cat >conv.yaml <<'YAML'
model: convnet
net: {channels: [8, 16], norm: batch, dropout: 0.1}
data: {kind: digits, limit: 4096}
train: {epochs: 0, batch: 32, accumulate: 2, lr: 0.01, clip: 1, scale_interval: 50, inject_overflow: 9, validate_every: 100}
YAML
for i in $(seq 4000); do echo "line $i says that $((i * i % 97)) is the square of $i, modulo ninety-seven"; done >text.txt
cat >gpt.yaml <<'YAML'
model: gpt
net: {layers: 2, width: 64, heads: 2, dropout: 0.1}
data: {kind: text, path: text.txt, seq: 64}
train: {epochs: 0, batch: 8, lr: 0.003, schedule: cosine, warmup: 20, validate_every: 100, log_every: 7}
YAML

now() { date +%s%N; }
rows() { sed 's/"samples_s":[^,]*,//; s/"time":[^,}]*,\?//; s/"energy":[^,}]*,\?//; s/"checkpoint_stall":[^,}]*,\?//; s/,}/}/' "$1/metrics.jsonl"; }
# newest RUN: the update of the newest checkpoint
newest() { ls killed-$1/checkpoints 2>/dev/null | sed -n 's/^step-0*//p' | tail -1 | grep . || echo 0; }
failed=0
seed=${MIXT_KILL_SEED:-20240607}
# below LIMIT: the next random number, in `drawn`
below() {
    seed=$(((seed * 1103515245 + 12345) % 2147483648))
    drawn=$((seed / 16 % $1))
}

# begin RUN SETTINGS...: a session of the killed run, in the background: a new one until there is something to resume
begin() {
    if [ -e killed-$1/config.yaml ]; then
        "$mixt" train --resume killed-$1 -q 2>>err-$1 &
    else
        rm -rf killed-$1
        "$mixt" train "${1%-*}.yaml" out=killed-$1 -q "${@:2}" 2>>err-$1 &
    fi
    process=$!
}

for run in ${runs:-conv-fp16 conv-bf16 gpt-fp16 gpt-bf16}; do
    model=${run%-*}
    common=(device=$device threads=2 precision=${run#*-})
    before=$failed
    "$mixt" train $model.yaml out=first-$run -q "${common[@]}" train.steps=1 || exit 1 # leaves a GPU's timed choices in the cache
    # A session gets up to twice what starting takes and a second of training, or its share of the updates, if that comes first:
    # then the run is long enough for all of them, however fast the machine turns out to be.
    start=$(now)
    "$mixt" train $model.yaml out=probe-$run -q "${common[@]}" train.steps=1 || exit 1
    startup=$((($(now) - start) / 1000000))
    start=$(now)
    "$mixt" train $model.yaml out=pace-$run -q "${common[@]}" train.steps=200 train.checkpoint_every=1 || exit 1
    pace=$(((($(now) - start) / 1000000 - startup) * 1000 / 200 + 1)) # microseconds a step that is saved
    [ $pace -lt 500 ] && pace=500 # a start that was slow by chance must not make the run endless
    steps=$((kills * 1200 * 1000 / pace + 50))
    settings=("${common[@]}" train.steps=$steps)
    "$mixt" train $model.yaml out=whole-$run -q "${settings[@]}" || exit 1
    saves=0
    died=0
    begin $run "${settings[@]}" train.checkpoint_every=1
    while [ $died -lt "$kills" ]; do
        below $((2 * startup + 1000))
        until=$(($(now) + drawn * 1000000))
        while left=$(($(now) - until)) && [ $left -lt 0 ] && [ "$(newest $run)" -lt $((steps * (died + 1) / (kills + 1))) ]; do
            [ $left -lt -50000000 ] && left=-50000000
            sleep "0.$(printf '%03d' $((-left / 1000000)))"
        done
        kill -KILL $process 2>/dev/null || { echo "$run: the run was over after $died kills"; break; }
        wait $process 2>/dev/null
        died=$((died + 1))
        ls -A killed-$run/checkpoints 2>/dev/null | grep -q '^\.saving' && saves=$((saves + 1))
        begin $run "${settings[@]}" train.checkpoint_every=1
    done
    wait $process || { echo "FAILED: $run: the last session ended with status $?"; failed=$((failed + 1)); cat err-$run; }
    cmp -s whole-$run/model.safetensors killed-$run/model.safetensors || { echo "FAILED: $run: other weights"; failed=$((failed + 1)); }
    cmp -s <(rows whole-$run) <(rows killed-$run) || { echo "FAILED: $run: other metrics"; failed=$((failed + 1)); }
    [ -s err-$run ] && { echo "$run said:"; sort err-$run | uniq -c | head; }
    echo "$run on $device: $steps updates, $died kills, $saves of them inside a save: $([ $failed = $before ] && echo the same bits || echo FAILED)"
done
exit $((failed > 0))
