#!/bin/bash
# Runs that signals stop at places that are drawn: the documented status, a checkpoint of the last step, and in the end the bits of
# a run that was left alone. Then what may change at a resume, and the weights that an early stop leaves.
# Usage: signals.sh MIXT [MOMENTS]; tests/slow asks for 200. MIXT_SIGNAL_SEED draws others.
. "$(dirname "$0")/../support/script.sh"
moments=${2:-10}
cd "$work" || exit 1

cat >mlp.yaml <<'YAML'
model: mlp
precision: fp32
threads: 1
net: {hidden: [16], dropout: 0.1}
data: {kind: digits, limit: 512}
train: {epochs: 0, steps: 600, batch: 32, lr: 0.01, log_every: 5, validate_every: 50, keep: 1}
YAML
cat >conv.yaml <<'YAML'
model: convnet
precision: fp16
threads: 1
net: {channels: [4, 8], norm: batch, dropout: 0.1}
data: {kind: digits, limit: 512}
train: {epochs: 0, steps: 90, batch: 16, accumulate: 2, lr: 0.01, clip: 1, scale_interval: 7, inject_overflow: 9, schedule: cosine, warmup: 5, validate_every: 3}
YAML

mixt() { "$mixt" "$@"; } # for the command that a stopped run prints
rows() { sed 's/"samples_s":[^,]*,//; s/"checkpoint_stall":[^,}]*,\?//; s/"time":[^,}]*,\?//; s/,}/}/' "$1/metrics.jsonl"; }
last_row() { tail -1 "$1/metrics.jsonl" 2>/dev/null | sed -n 's/^{"step":\([0-9]*\),.*}$/\1/p' | grep . || echo 0; }
newest() { ls "$1/checkpoints" 2>/dev/null | sed -n 's/^step-0*//p' | tail -1 | grep . || echo 0; }
number() { kill -l "$1"; }
seed=${MIXT_SIGNAL_SEED:-20261116}
# A shell's background jobs ignore SIGINT, and mixt leaves ignored what was.
begin() {
    env --default-signal=INT "$mixt" train "$@" >out 2>err &
    process=$!
}
# under_way RUN: waits until training has begun
under_way() { await [ -s "$1/metrics.jsonl" ]; }
# expect STATUS WHAT: how the process ended
expect() {
    wait $process
    local found=$?
    [ $found = "$1" ] || { fail "$2: status $found, not $1"; cat err; }
}

# ---- at drawn places: writes, from the first one of the configuration on, updates, validations ----

signals=(HUP INT TERM USR1 USR2)
stops=0 # that met a step
# stopped RUN SIGNAL BEFORE: one session ended with the signal's status; BEFORE is the step that it began with
stopped() {
    step=$(sed -n "s/^mixt: stopped by SIG$2 after step \([0-9]*\); continue with: mixt train --resume $1\$/\1/p" err)
    if [ -z "$step" ]; then # before training began: what was there stays
        [ -s err ] && { fail "$1, $2: said something else"; cat err; }
        [ "$(newest "$1")" = "$3" ] || fail "$1, $2: before training, and step $3 became $(newest "$1")"
        return
    fi
    [ "$step" = "$3" ] || stops=$((stops + 1)) # it may come between the handlers and the first update: none is made then
    [ "$(newest "$1")" = "$step" ] || fail "$1, $2: stopped after step $step, the newest checkpoint is of $(newest "$1")"
    [ "$step" -ge "$3" ] || fail "$1, $2: step $3 was done, $step is saved"
    [ -s "$1/model.safetensors" ] || fail "$1, $2: no weights"
}
for model in mlp conv; do
    "$mixt" train $model.yaml out=$model-whole -q || fail "$model"
    [ $model = mlp ] && share=$((moments / 2)) || share=$((moments - moments / 2))
    round=1
    arguments="$model.yaml out=$model-1"
    for turn in $(seq 0 $((share - 1))); do
        signal=${signals[$((turn % 5))]}
        case $((turn % 3)) in
        0) below 60 && place=write ;;
        1) below 90 && place=update ;;
        2) below 8 && place=validation ;;
        esac
        before=$(newest $model-$round)
        signalled $signal@$place:$((drawn + 1)) "$mixt" train $arguments -q >out 2>err
        status=$?
        if [ $status = $((128 + $(number $signal))) ]; then
            stopped $model-$round $signal "$before"
            [ $place != update ] || [ "$step" = $((before + drawn + 1)) ] || fail "$model: SIG$signal in update $((before + drawn + 1)) stopped it after step $step"
        elif [ $status != 0 ]; then
            fail "$model: SIG$signal at $place $((drawn + 1)): status $status"
            cat err
        else # it was done before
            cmp -s $model-whole/model.safetensors $model-$round/model.safetensors || fail "$model, round $round: other bits"
            round=$((round + 1))
        fi
        if [ -e $model-$round/config.yaml ]; then
            arguments="--resume $model-$round"
        else
            rm -rf $model-$round
            arguments="$model.yaml out=$model-$round"
        fi
    done
    "$mixt" train $arguments -q 2>err || { fail "$model, the last session: status $?"; cat err; }
    cmp -s $model-whole/model.safetensors $model-$round/model.safetensors || fail "$model: stopped $turn times: other weights"
    cmp -s <(rows $model-whole) <(rows $model-$round) || { fail "$model: stopped $turn times: other metrics"; diff <(rows $model-whole) <(rows $model-$round) | head -6; }
done
[ $stops -ge $((moments / 4)) ] || fail "only $stops of $moments signals met a step"
echo "$moments signals, $stops of them met a step"

# ---- each signal once more, at a step: its status, what is said, what the result holds ----

for signal in "${signals[@]}"; do
    begin mlp.yaml out="on $signal" train.steps=100000000
    under_way "on $signal"
    kill -$signal $process
    expect $((128 + $(number $signal))) "SIG$signal"
    grep -q "^updates .*, stopped by SIG$signal\$" out || { fail "SIG$signal: the table"; cat out; }
    step=$(newest "on $signal")
    grep -q "^mixt: stopped by SIG$signal after step $step; continue with: mixt train --resume 'on $signal'\$" err || { fail "SIG$signal: how to go on"; cat err; }
done
command=$(sed -n 's/.*continue with: //p' err)
eval "$command -q train.steps=$((step + 1))" || fail "$command"
[ "$(newest 'on USR2')" = $((step + 1)) ] || fail "$command did not go on"

begin mlp.yaml out=json --json train.steps=100000000
past() { [ "$(last_row "$1")" -gt "$2" ]; }
await past json 60
kill -USR1 $process
expect 138 "--json"
said=$(grep -o '"val_step":[0-9]*' out | tr -dc 0-9)
[ "$said" = "$(grep '"val_loss"' json/metrics.jsonl | tail -1 | sed 's/{"step":\([0-9]*\).*/\1/')" ] && grep -q '"signal":10,' out ||
    { fail "the step of the validation"; cat out; }

# ---- ignored at the start, twice, and in the last save ----

(trap '' HUP USR1; exec "$mixt" train mlp.yaml out=nohup -q train.steps=100000000 2>err) &
process=$!
under_way nohup
kill -HUP $process && kill -USR1 $process
before=$(last_row nohup)
await past nohup $((before + 20)) || fail "a signal that was ignored at the start stopped the run"
kill -TERM $process
expect 143 "SIGTERM after ignored ones"
begin conv.yaml -q out=twice train.steps=100000000
under_way twice
for _ in 1 2 3 4; do kill -HUP $process 2>/dev/null; done
expect 129 "SIGHUP four times"
stopped twice HUP 1

# ---- the best and the last state of a run that asks for nothing; the weights of an early stop ----

loss_of() { "$mixt" eval "$@" --json 2>err | grep -o '"loss":[^,]*' | cut -d: -f2; }
"$mixt" train mlp.yaml out=plain -q train.steps=100 || fail "plain"
[ "$(newest plain)" = 100 ] || fail "a run that asked for no checkpoint ended with $(ls plain)"
"$mixt" train mlp.yaml out=early --json train.validate_every=5 train.early_stop=4 train.lr=0.5 net.dropout=0 >out 2>err || { fail "early"; cat err; }
read -r best step <<<"$(sed -n 's/.*"step":\([0-9]*\),.*"val_loss":\([^,}]*\).*/\2 \1/p' early/metrics.jsonl | sort -g | head -1)"
end=$(last_row early)
grep -q '"stopped_early":true' out && [ "$end" -gt "$step" ] || { fail "no early stop after the best"; cat out; }
grep -q "\"weights_step\":$step," out || { fail "the step of the weights"; cat out; }
[ "$(loss_of early)" = "$best" ] || fail "an early stop left $(loss_of early), the best was $best"
[ "$(loss_of early --checkpoint best)" = "$best" ] || fail "the best checkpoint has $(loss_of early --checkpoint best), not $best"
[ "$(loss_of early --checkpoint last)" != "$best" ] || fail "the last checkpoint is the best"
"$mixt" train mlp.yaml out=enough --json train.validate_every=5 train.early_stop=1000 train.lr=0.5 net.dropout=0 train.steps=$end >out 2>err || { fail "enough patience"; cat err; }
grep -q '"stopped_early":false' out && grep -q "\"weights_step\":$step," out && [ "$(loss_of enough)" = "$best" ] || { fail "train.early_stop at the end of the run: weights"; cat out; }
"$mixt" train --resume early >out 2>err || { fail "resuming what stopped early"; cat err; }
grep -q "^weights  *the best, of step $step\$" out && [ "$(loss_of early)" = "$best" ] || { fail "resumed with nothing to do"; cat out; }
"$mixt" train --resume early -q train.early_stop=0 train.steps=$((end + 5)) 2>err || { fail "more patience"; cat err; }
"$mixt" train mlp.yaml out=patient -q train.validate_every=5 train.lr=0.5 net.dropout=0 train.steps=$((end + 5)) || fail "patient"
cmp -s early/model.safetensors patient/model.safetensors || fail "after an early stop a run does not go on from its last state"

# ---- changes that are asked for by name ----

"$mixt" train mlp.yaml out=base -q train.steps=60 || fail "base"
"$mixt" train --resume base -q out=not train.steps=90 train.lr=0.002 train.clip=1 2>err && fail "another train.lr was not refused"
grep -q 'train.lr: 0.01 -> 0.002, train.clip: 0 -> 1\..*--allow train.lr,train.clip would' err || { fail "refusal of train.lr"; cat err; }
"$mixt" train --resume base -q out=not train.steps=90 train.lr=0.002 train.clip=1 --allow train.clip 2>err && fail "train.lr was not named"
"$mixt" train --resume base -q out=not --allow train.batch 2>err && fail "train.batch was allowed"
grep -q "'train.batch' cannot change at a resume: precision, the learning rate and" err || { fail "train.batch allowed: message"; cat err; }
[ -e not ] && fail "a refused resume left a directory"
"$mixt" train --resume base -q out=changed train.steps=90 train.lr=0.002 train.clip=1 train.beta2=0.99 train.weight_decay=0.1 train.schedule=linear \
    --allow train.lr,train.clip,train.beta2,train.weight_decay,train.schedule 2>err || { fail "allowed changes"; cat err; }
grep -q '"train.lr":{"from":"0.01","to":"0.002"}' changed/history.jsonl && grep -q '"train.beta2"' changed/history.jsonl || { fail "the history"; cat changed/history.jsonl; }
lr=$(sed -n 's/{"step":65,.*"lr":\([^,]*\),.*/\1/p' changed/metrics.jsonl)
awk -v lr="$lr" 'BEGIN { exit !(lr > 0 && lr < 0.001) }' || fail "the learning rate after the change is '$lr'"
cmp -s <(head -12 base/metrics.jsonl) <(head -12 changed/metrics.jsonl) || fail "rows before the change"
"$mixt" train --resume changed -q train.steps=95 2>err || { fail "going on after a change"; cat err; }
"$mixt" train --resume base -q out=same train.steps=90 train.lr=0.01 --allow train.lr 2>err || { fail "allowed, not changed"; cat err; }
"$mixt" train mlp.yaml out=straight -q train.steps=90 || fail "straight"
cmp -s same/model.safetensors straight/model.safetensors || fail "an allowance that is not used changes bits"

# ---- limits are named; no scale where there is none ----

"$mixt" train mlp.yaml out=epochs -q train.epochs=2 train.steps=0 || fail "epochs"
did=$(newest epochs)
"$mixt" train --resume epochs -q train.steps=400 2>err || { fail "limited"; cat err; }
grep -q "^mixt: warning: train.epochs=2 ends the run after update $did, before train.steps=400: set train.epochs=0" err || { fail "what limits a run"; cat err; }
"$mixt" train --resume epochs train.epochs=2 >out 2>err && grep -q "^epochs has done all of its $did updates: " err || { fail "nothing left to do"; cat err; }
"$mixt" train --resume base -q out=limited train.epochs=50 2>err || { fail "limited by steps"; cat err; }
grep -q "^mixt: warning: train.steps=60 ends the run after update 60, before train.epochs=50: set train.steps=0" err || { fail "what limits epochs"; cat err; }
"$mixt" train --resume epochs -q train.steps=40 train.epochs=0 2>err && [ ! -s err ] && [ "$(newest epochs)" = 40 ] || { fail "without the limit"; cat err; }
"$mixt" train mlp.yaml out=skip train.steps=5 train.inject_overflow=3 >out 2>err || fail "skip"
grep -q 'step 3 skipped: the gradient of .* is NaN or Inf$' err || { fail "a skipped update without loss scaling"; cat err; }

[ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
