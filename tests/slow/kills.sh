#!/bin/bash
# Runs that are killed again and again, at random instants and inside saves, and resumed each time, end with the bits of an
# undisturbed run: conv net with batch norm in FP16, GPT with dropout in BF16. Usage: kills.sh MIXT [KILLS [DEVICE]]
set -u
mixt=$(realpath "$1")
kills=${2:-50}
device=${3:-cpu}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

cat >conv.yaml <<'YAML'
model: convnet
precision: fp16
net: {channels: [8, 16], norm: batch, dropout: 0.1}
data: {kind: digits, limit: 4096}
train: {epochs: 0, batch: 32, accumulate: 2, lr: 0.01, clip: 1, scale_interval: 50, inject_overflow: 9, validate_every: 100}
YAML
for i in $(seq 4000); do echo "line $i says that $((i * i % 97)) is the square of $i, modulo ninety-seven"; done >text.txt
cat >gpt.yaml <<'YAML'
model: gpt
precision: bf16
net: {layers: 2, width: 64, heads: 2, dropout: 0.1}
data: {kind: text, path: text.txt, seq: 64}
train: {epochs: 0, batch: 8, lr: 0.003, schedule: cosine, warmup: 20, validate_every: 100, log_every: 7}
YAML

now() { date +%s%N; }
rows() { sed 's/"samples_s":[^,]*,//; s/"energy":[^,}]*,\?//; s/"checkpoint_stall":[^,}]*,\?//; s/,}/}/' "$1/metrics.jsonl"; }
failed=0
seed=${MIXT_KILL_SEED:-20240607}
# below LIMIT: the next random number, in `drawn`
below() {
    seed=$(((seed * 1103515245 + 12345) % 2147483648))
    drawn=$((seed / 16 % $1))
}

# begin MODEL SETTINGS...: a session of the killed run, in the background: a new one until there is something to resume
begin() {
    if [ -e killed-$1/config.yaml ]; then
        "$mixt" train --resume killed-$1 -q 2>>err-$1 &
    else
        rm -rf killed-$1
        "$mixt" train "$1.yaml" out=killed-$1 -q "${@:2}" 2>>err-$1 &
    fi
    process=$!
}

for model in conv gpt; do
    # A session gets up to twice what starting takes and a second of training; the run is long enough for all of them.
    start=$(now)
    "$mixt" train $model.yaml out=probe-$model -q device=$device threads=2 train.steps=1 || exit 1
    startup=$((($(now) - start) / 1000000))
    start=$(now)
    "$mixt" train $model.yaml out=pace-$model -q device=$device threads=2 train.steps=200 train.checkpoint_every=1 || exit 1
    pace=$(((($(now) - start) / 1000000 - startup) * 1000 / 200 + 1)) # microseconds a step that is saved
    steps=$((kills * 1500 * 1000 / pace + 50))
    settings=(device=$device threads=2 train.steps=$steps)
    "$mixt" train $model.yaml out=whole-$model -q "${settings[@]}" || exit 1
    saves=0
    died=0
    begin $model "${settings[@]}" train.checkpoint_every=1
    while [ $died -lt "$kills" ]; do
        below $((2 * startup + 1000))
        sleep "$(printf '%d.%03d' $((drawn / 1000)) $((drawn % 1000)))"
        kill -KILL $process 2>/dev/null || { echo "$model: the run was over after $died kills"; break; }
        wait $process 2>/dev/null
        died=$((died + 1))
        ls -A killed-$model/checkpoints 2>/dev/null | grep -q '^\.saving' && saves=$((saves + 1))
        begin $model "${settings[@]}" train.checkpoint_every=1
    done
    wait $process || { echo "FAILED: $model: the last session ended with status $?"; failed=1; cat err-$model; }
    cmp -s whole-$model/model.safetensors killed-$model/model.safetensors || { echo "FAILED: $model: other weights"; failed=1; }
    cmp -s <(rows whole-$model) <(rows killed-$model) || { echo "FAILED: $model: other metrics"; failed=1; }
    [ -s err-$model ] && { echo "$model said:"; sort err-$model | uniq -c | head; }
    echo "$model on $device: $steps updates, $died kills, $saves of them inside a save: $([ $failed = 0 ] && echo the same bits || echo FAILED)"
done
exit $failed
