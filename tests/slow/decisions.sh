#!/bin/bash
# A run that decides (auto.steer), killed again and again at random instants and resumed each time, ends with the bits of
# one that was never killed; so does a replay of its events. The net overflows in FP16 whatever the loss scale, a bit of a
# weight flips, and a batch has a NaN: each is found by computing updates again.
# With RANKS all of it on several: their processes are killed at once, and one process replays their decisions too.
# Usage: decisions.sh MIXT [KILLS [STEPS [DEVICE [RANKS [SETTINGS...]]]]], as in decisions.sh build/mixt 20
. "$(dirname "$0")/../support/script.sh"
. "$(dirname "$0")/../support/loud.sh"
. "$(dirname "$0")/../support/ranks.sh"
kills=${2:-20}
steps=${3:-4000}
device=${4:-cpu}
n=${5:-1}
settings=("${@:6}")
cd "$work" || exit 1
[ "$n" = 1 ] || need_ranks
# train WORDS...: in place of this shell, so that its number is that of what runs
train() {
    if [ "$n" = 1 ]; then exec "$mixt" train "$@"; fi
    exec mpirun -n "$n" "$mixt" train "$@"
}
# end PROCESS: kills it, or of mpirun its ranks; fails where there is none any more
end() {
    [ "$n" = 1 ] && { kill -KILL "$1" 2>/dev/null; return; }
    local ranks
    ranks=$(pgrep -P "$1") && kill -KILL $ranks 2>/dev/null
}

loud_data 2560 >loud.csv
cat >loud.yaml <<Y
model: convnet
precision: fp16
threads: 1
device: $device
seed: 3
data: {kind: csv, path: $work/loud.csv, shape: 8x8x1, normalise: none}
net: {channels: [8, 8], norm: batch}
train: {epochs: 0, steps: $steps, batch: 32, optimizer: adam, weight_decay: 0, lr: 0.02, log_every: 10, validate_every: 100, inject_overflow: $((steps / 2))}
faults: flip_weight@$((steps / 4)):conv2, nan_data@$((steps * 5 / 8))
auto: {steer: true, snapshot_every: 20, calm: $((steps / 8)), cooldown: 50}
Y
# without times, and what is said about them
rows() { grep -v '"cause":"stall"' "$1" | sed 's/"samples_s":[^,]*,//; s/"time":[^,}]*,\?//; s/"energy":[^,}]*,\?//; s/"checkpoint_stall":[^,}]*,\?//; s/,}/}/'; }
seed=${MIXT_KILL_SEED:-20240607}

(train loud.yaml out=whole "${settings[@]}" -q) 2>err || fail "whole: $(cat err)"
decisions=$(grep -c '"kind":"decision"' whole/events.jsonl)
[ "$decisions" -ge 3 ] || fail "only $decisions decisions: $(cat whole/events.jsonl)"

# a session gets what starting takes, and on average less than its share of the whole: the run lasts for all kills
now() { date +%s%N; }
start=$(now)
(train loud.yaml out=first train.steps=1 faults= "${settings[@]}" -q) || fail "first"
startup=$((($(now) - start) / 1000000))
start=$(now)
(train loud.yaml out=paced train.checkpoint_every=7 "${settings[@]}" -q) 2>err || fail "paced: $(cat err)"
share=$(((($(now) - start) / 1000000 - startup) * 3 / 2 / (kills + 1) + 1))
died=0
while [ $died -lt "$kills" ]; do
    if [ -e killed/config.yaml ]; then
        train --resume killed -q 2>>err-killed &
    else
        rm -rf killed
        train loud.yaml out=killed train.checkpoint_every=7 "${settings[@]}" -q 2>>err-killed &
    fi
    process=$!
    below $share
    drawn=$((drawn + startup))
    sleep "$(printf '%d.%03d' $((drawn / 1000)) $((drawn % 1000)))"
    end $process || break
    wait $process 2>/dev/null
    died=$((died + 1))
done
[ -e killed/config.yaml ] || (train loud.yaml out=killed train.checkpoint_every=7 "${settings[@]}" -q) 2>>err-killed
(train --resume killed -q) 2>>err-killed || fail "the last session: $(tail -5 err-killed)"
cmp -s whole/model.safetensors paced/model.safetensors || fail "checkpoints change bits"
cmp -s whole/model.safetensors killed/model.safetensors || fail "killed: other weights"
[ "$(rows whole/metrics.jsonl)" = "$(rows killed/metrics.jsonl)" ] || fail "killed: other metrics"
[ "$(rows whole/events.jsonl)" = "$(rows killed/events.jsonl)" ] || fail "killed: other events"

(train loud.yaml out=again auto.replay=whole/events.jsonl faults= "${settings[@]}" -q) 2>err || fail "replay: $(cat err)"
cmp -s whole/model.safetensors again/model.safetensors || fail "replay: other weights"
[ "$(rows whole/metrics.jsonl)" = "$(rows again/metrics.jsonl)" ] || fail "replay: other metrics"
if [ "$n" -gt 1 ]; then
    "$mixt" train loud.yaml out=one dist.ranks=$n auto.replay=whole/events.jsonl faults= "${settings[@]}" -q 2>err || fail "one process: $(cat err)"
    cmp -s whole/model.safetensors one/model.safetensors || fail "one process: other weights"
fi

echo "$steps updates on $device${5:+, $n ranks}, $decisions decisions, $died kills: $([ "$failures" = 0 ] && echo the same bits || echo FAILED)"
exit $((failures > 0))
