#!/bin/bash
# A short run from end to end: its files, its metrics, its bits, and every way to end it. Usage: train.sh MIXT
. "$(dirname "$0")/../support/script.sh"
need python3
cd "$work" || exit 1

cat >tiny.yaml <<'YAML'
model: mlp
precision: fp32
threads: 2
net: {hidden: [16]}
data: {kind: digits, limit: 512}
train: {epochs: 2, batch: 64, lr: 0.01}
YAML

# train RUN SETTING...: quietly, must succeed
train() {
    local run=$1
    shift
    "$mixt" train tiny.yaml out="$run" -q "$@" 2>err || { fail "train $run $*: status $?"; cat err; }
    [ -s err ] && { fail "train -q $run: wrote to standard error"; cat err; }
}
# value RUN STEP KEY: a figure of metrics.jsonl; rows RUN: how many there are
value() { sed -n "s/^{\"step\":$2,.*\"$3\":\([^,}]*\).*/\1/p" "$1/metrics.jsonl"; }
rows() { wc -l <"$1/metrics.jsonl"; }
# settled RUN: config.yaml, whole rows and weights that eval accepts
settled() {
    [ -s "$1/config.yaml" ] && [ -s "$1/model.safetensors" ] && [ -s "$1/metrics.jsonl" ] || fail "$1 holds only $(ls "$1")"
    [ "$(ls "$1" | grep -vc '^checkpoints$\|^config.yaml$\|^model.safetensors$\|^metrics.jsonl$\|^events.jsonl$\|^policy.yaml$\|^inputs.json$\|^predictions.json$')" = 0 ] || fail "$1 holds $(ls "$1")"
    grep -vq '^{"step":.*}$' "$1/metrics.jsonl" && fail "$1: a row of metrics is not whole"
    "$mixt" eval "$1" >/dev/null 2>err || { fail "eval $1: status $?"; cat err; }
}

# ---- files and metrics ----

train run
settled run
[ "$(rows run)" = 16 ] || fail "16 updates, $(rows run) rows"
for key in step epoch loss accuracy lr scale skipped grad_norm samples_s memory time; do
    [ "$(grep -c "\"$key\":[-0-9]" run/metrics.jsonl)" = 16 ] || fail "not every row has a number for $key"
done
[ "$(grep -c '"val_loss":.*"val_accuracy":' run/metrics.jsonl)" = 2 ] || fail "not one validation an epoch"
[ "$(value run 8 epoch)$(value run 9 epoch)" = 12 ] || fail "the second epoch does not begin at update 9"
# a run of a version that counted epochs from 0 goes on in that count
cp -r run old
sed -i 's/"epoch":1,/"epoch":0,/; s/"epoch":2,/"epoch":1,/' old/metrics.jsonl
"$mixt" train --resume old train.epochs=3 >out 2>err || { fail "the older run cannot go on: status $?"; cat err; }
[ "$(value old 8 epoch)$(value old 9 epoch)$(value old 17 epoch)" = 012 ] || fail "epochs of an older run"
"$mixt" train --resume run train.epochs=3 out=longer >out 2>err || { fail "the run cannot go on: status $?"; cat err; }
[ "$(value longer 16 epoch)$(value longer 17 epoch)" = 23 ] || fail "epochs of a run that goes on"
grep -q 'epoch 3/3' err || { fail "the third epoch is not shown as that"; cat err; }
"$mixt" eval run --json | grep -q "\"loss\":$(value run 16 val_loss)," || fail "eval differs from the last val_loss"
for split in train test; do
    "$mixt" eval run --split $split | grep -q "on $split: loss .*accuracy" || fail "eval --split $split"
done
"$mixt" train run/config.yaml out=again -q && cmp -s run/model.safetensors again/model.safetensors ||
    fail "config.yaml of a run does not give the same run"
{ printf '\xef\xbb\xbf'; cat tiny.yaml; } >marked.yaml # as some editors begin a file
printf '\xef\xbb\xbfdefault: bf16\n' >marked_policy.yaml
"$mixt" plan marked.yaml precision=marked_policy.yaml >/dev/null 2>err || fail "files with a byte-order mark: $(cat err)"
"$mixt" train tiny.yaml out=json --json | python3 -c '
import json, sys
r = json.load(sys.stdin)
rows = [json.loads(line) for line in open("json/metrics.jsonl")]
assert r["run"] == "json" and r["steps"] == len(rows) == 16 and r["skipped"] == 0 and not r["interrupted"]
assert r["memory_planned"] == r["memory_allocated"] == rows[0]["memory"] > 0
assert r["val_loss"] == rows[-1]["val_loss"] < rows[0]["loss"]' || fail "train --json is not as promised"

# ---- bits ----

for precision in fp32 fp16 bf16; do
    train a-$precision precision=$precision train.steps=4 net.dropout=0.1
    train b-$precision precision=$precision train.steps=4 net.dropout=0.1
    cmp -s a-$precision/model.safetensors b-$precision/model.safetensors || fail "$precision: same seed, other bits"
done
train c precision=fp32 train.steps=4 net.dropout=0.1 seed=2
cmp -s a-fp32/model.safetensors c/model.safetensors && fail "another seed, the same bits"

# ---- settings of the loop ----

train zero train.lr=0 train.steps=3
[ "$(value zero 3 lr)" = 0.0 ] || fail "train.lr=0 is $(value zero 3 lr)"
train smooth train.lr=0 train.label_smoothing=0.3 train.epochs=1
train rough train.lr=0 train.epochs=1
[ "$(value smooth 8 val_loss)" = "$(value rough 8 val_loss)" ] || fail "label smoothing changes what validation measures"
[ "$(value smooth 8 loss)" = "$(value rough 8 loss)" ] && fail "label smoothing changes nothing in training"
train sparse train.log_every=5 train.validate_every=4
[ "$(grep -o '"step":[0-9]*' sparse/metrics.jsonl | tr '\n' ' ')" = '"step":4 "step":5 "step":8 "step":10 "step":12 "step":15 "step":16 ' ] ||
    fail "rows with log_every=5 and validate_every=4: $(grep -o '"step":[0-9]*' sparse/metrics.jsonl | tr '\n' ' ')"
train summed train.accumulate=3 train.epochs=3
[ "$(rows summed)" = 8 ] || fail "24 batches by 3: $(rows summed) updates"
train early train.epochs=1000 train.early_stop=2 train.lr=0.05
[ "$(rows early)" -lt 4000 ] || fail "early stop after $(rows early) updates"
train endless train.epochs=9223372036854775807 train.steps=2
[ "$(rows endless)" = 2 ] || fail "endless epochs: $(rows endless) updates"

# ---- overflow ----

train overflow precision=fp16 train.inject_overflow=3
[ "$(grep -c '"skipped":1' overflow/metrics.jsonl)$(value overflow 3 skipped)" = 11 ] || fail "not exactly update 3 is skipped"
[ "$(value overflow 3 scale) $(value overflow 4 scale)" = '65536.0 32768.0' ] ||
    fail "scale $(value overflow 3 scale), then $(value overflow 4 scale)"
grep -q '"step":3,.*"overflow_layer":"fc' overflow/metrics.jsonl || fail "the layer that overflowed is not named"
for precision in fp32 bf16; do
    train overflow-$precision precision=$precision train.inject_overflow=3
    [ "$(value overflow-$precision 3 skipped) $(value overflow-$precision 4 scale)" = '1 1.0' ] || fail "overflow in $precision"
done
"$mixt" train tiny.yaml out=diverged -q train.lr=1e30 train.epochs=20 2>err
[ $? = 1 ] && grep -q 'training has diverged; lower train.lr' err || { fail "a run that diverged"; cat err; }
[ -e diverged/model.safetensors ] && fail "weights that are not finite were saved"
grep -q '"loss":null' diverged/metrics.jsonl || fail "the metrics do not show how it diverged"
"$mixt" train tiny.yaml out=skipped -q precision=fp16 train.loss_scale=8e37 train.steps=3 2>err
[ $? = 1 ] && grep -q 'no update was applied (3 skipped' err || { fail "a run whose updates were all skipped"; cat err; }
settled skipped

# ---- from another folder, with data and a policy named relative to this one ----

{ echo 'x,y,class'; for i in $(seq 90); do echo "$((i % 7)),$((i % 5)),$((i % 3))"; done; } >rows.csv
printf 'default: bf16\nrules:\n  - {layer: "fc.1", precision: fp32}\n' >policy.yaml
train moved precision=policy.yaml data.kind=csv data.path=rows.csv data.limit=0 train.batch=16
loss=$("$mixt" eval moved --json | grep -o '"loss":[^,]*')
mkdir elsewhere && mv moved policy.yaml elsewhere
[ "$(cd elsewhere/moved && "$mixt" eval . --json | grep -o '"loss":[^,]*')" = "$loss" ] || fail "eval from another folder"

# ---- signals ----

# stop SIGNAL RUN: sends it once the run is under way; its status
stop() {
    # A shell's background jobs ignore SIGINT, and mixt leaves ignored what was.
    env --default-signal=INT "$mixt" train tiny.yaml out="$2" -q train.epochs=1000000 train.log_every=1 2>err &
    local process=$!
    await [ -s "$2/metrics.jsonl" ]
    kill -"$1" $process
    wait $process 2>/dev/null
}
for signal in INT TERM; do
    stop $signal $signal
    status=$?
    [ $status = $((128 + $(kill -l $signal))) ] || { fail "SIG$signal: status $status"; cat err; }
    settled $signal
done
stop KILL KILL
head -n $(($(rows KILL))) KILL/metrics.jsonl | grep -vq '^{"step":.*}$' && fail "after SIGKILL a row is not whole"
"$mixt" eval KILL 2>&1 | grep -q 'KILL/model.safetensors: cannot be opened\|KILL: has no final weights' || fail "eval of a killed run" # the latter after its first validation

# ---- two at once ----

"$mixt" train tiny.yaml out=shared -q 2>first & "$mixt" train tiny.yaml out=shared -q 2>second
two=$?; wait $!; one=$?
[ $((one + two)) = 1 ] && cat first second | grep -q 'shared exists already' || fail "two runs in one directory: status $one and $two"
settled shared
(cd "$work" && for _ in 1 2 3; do "$mixt" train tiny.yaml -q train.steps=1 & done; wait)
[ "$(ls runs | tr '\n' ' ')" = 'mlp-fp32-1 mlp-fp32-2 mlp-fp32-3 ' ] || fail "default names: $(ls runs)"

# ---- the demo: to its end, from given weights, and stopped ----

rm -r runs
small="model=mlp net.hidden=16 threads=2 data.limit=512"
# shellcheck disable=SC2086 # settings are words
"$mixt" demo $small train.epochs=1 train.lr=0 init=run >out 2>err || { fail "demo: status $?"; cat err; }
grep -q 'test accuracy' out && [ "$(grep -c '^init: ' err)" = 1 ] || { fail "demo from given weights"; cat out err; }
cmp -s <(tail -c 4000 run/model.safetensors) <(tail -c 4000 runs/demo-1/fp32/model.safetensors) || fail "the demo began with other weights"
number=2
for signal in INT TERM HUP; do
    # shellcheck disable=SC2086
    env --default-signal=INT "$mixt" demo $small train.epochs=1000000 >out 2>err &
    process=$!
    await [ -s runs/demo-$number/fp32/metrics.jsonl ]
    kill -$signal $process
    wait $process
    status=$?
    [ $status = $((128 + $(kill -l $signal))) ] && [ ! -s out ] && grep -q 'stopped by a signal before both runs were done' err || { fail "demo, SIG$signal: status $status"; cat out err; }
    [ -e runs/demo-$number/bf16 ] && fail "demo, SIG$signal: went on with the second run"
    settled runs/demo-$number/fp32
    number=$((number + 1))
done

[ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
