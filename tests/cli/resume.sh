#!/bin/bash
# Checkpoints and --resume: a run that was stopped, killed or whose files were damaged ends with the bits of one that was not.
# Usage: resume.sh MIXT [KILLS]; with KILLS, as tests/slow does, it also resumes at every checkpoint.
. "$(dirname "$0")/../support/script.sh"
kills=${2:-3}
cd "$work" || exit 1

cat >mlp.yaml <<'YAML'
model: mlp
precision: fp32
threads: 2
net: {hidden: [16], dropout: 0.1}
data: {kind: digits, limit: 512}
train: {epochs: 5, batch: 64, lr: 0.01, log_every: 3, optimizer: nesterov}
YAML
cat >conv.yaml <<'YAML'
model: convnet
precision: fp16
threads: 2
net: {channels: [4, 8], norm: batch, dropout: 0.1}
data: {kind: digits, limit: 512}
train: {epochs: 3, batch: 16, accumulate: 2, lr: 0.01, clip: 1, scale_interval: 7, inject_overflow: 9, schedule: cosine, warmup: 5}
YAML
cat >gpt.yaml <<'YAML'
model: gpt
precision: bf16
threads: 2
net: {layers: 2, width: 32, heads: 2, dropout: 0.1}
data: {kind: text, path: text.txt, seq: 32}
train: {epochs: 0, steps: 60, batch: 4, lr: 0.003, validate_every: 25, log_every: 4}
YAML
for i in $(seq 600); do echo "line $i says that $((i * i % 97)) is the square of $i, modulo ninety-seven"; done >text.txt

# train RUN ARGUMENT...: must succeed and say nothing
train() {
    "$mixt" train "$@" -q 2>err || { fail "train $*: status $?"; cat err; }
    [ -s err ] && { fail "train -q $*: wrote to standard error"; cat err; }
}
# rows RUN: its metrics without what the clock and the saving decide
rows() { sed 's/"samples_s":[^,]*,//; s/"time":[^,}]*,\?//; s/"checkpoint_stall":[^,}]*,\?//; s/,}/}/' "$1/metrics.jsonl"; }
# same RUN OTHER WHAT: bits and rows agree
same() {
    cmp -s "$1/model.safetensors" "$2/model.safetensors" || fail "$3: the weights differ"
    cmp -s <(rows "$1") <(rows "$2") || { fail "$3: the metrics differ"; diff <(rows "$1") <(rows "$2") | head -6; }
}
steps() { ls "$1/checkpoints" | tr '\n' ' '; }

# ---- stopped by a signal in the middle, then resumed; with other intervals of saving ----

for model in mlp conv gpt; do
    train $model.yaml out=$model-whole
    end=$(tail -1 $model-whole/metrics.jsonl | sed 's/{"step":\([0-9]*\).*/\1/')
    [ -d "$model-whole/checkpoints/step-$(printf %08d "$end")" ] || fail "$model: a run that asked for no checkpoint ended with $(steps $model-whole)"
    train $model.yaml out=$model-all train.checkpoint_every=13 train.keep=100
    same $model-whole $model-all "$model, saving all along"
    # Cut back to a checkpoint, as if the run had been killed there.
    for step in $([ $# -gt 1 ] && steps $model-all | tr -d ' ' | sed 's/step-/ /g' || echo 00000026); do
        cp -r $model-all $model-cut
        rm $model-cut/model.safetensors
        for other in $(steps $model-all | tr -d ' ' | sed 's/step-/ /g'); do
            [ "$other" -gt "$step" ] && rm -r "$model-cut/checkpoints/step-$other"
        done
        train --resume $model-cut
        same $model-whole $model-cut "$model, resumed at step $step"
        rm -r $model-cut
    done
done

"$mixt" train mlp.yaml out=signal -q train.epochs=400 2>err &
process=$!
await [ -s signal/metrics.jsonl ]
kill -TERM $process
wait $process
status=$?
[ $status = 143 ] || { fail "SIGTERM: status $status"; cat err; }
stopped=$(steps signal | tr ' ' '\n' | sed -n 's/^step-0*//p' | tail -1) # beside it perhaps the best
[ -n "$stopped" ] && [ "$stopped" -lt 100000 ] || fail "SIGTERM left the checkpoints $(steps signal)"
goal=$((stopped + 50))
train mlp.yaml out=signal-whole train.epochs=0 train.steps=$goal
train --resume signal train.epochs=0 train.steps=$goal
same signal-whole signal "stopped by SIGTERM at step $stopped"

# ---- rows that are thinned beyond update 10000: each tenth and the spikes, the same after a resume ----

mkdir outlier
echo "1,2,3.5" >outlier/val.csv
{ for i in $(seq 399); do echo "$((i % 7)),$((i % 5)),$((i % 7 - i % 5)).5"; done; echo "3,3,1000.5"; } >outlier/train.csv
cat >thin.yaml <<'YAML'
model: mlp
precision: fp32
threads: 1
net: {hidden: [4]}
data: {kind: csv, path: outlier, normalise: unit}
train: {epochs: 0, steps: 11000, validate_every: 100000, batch: 4, lr: 0.00001, checkpoint_every: 10555, keep: 100}
YAML
train thin.yaml out=thin
cp -r thin thin-cut
for other in $(steps thin); do [ "$other" = step-00010555 ] || rm -r "thin-cut/checkpoints/$other"; done
rm thin-cut/model.safetensors
train --resume thin-cut
same thin thin-cut "thinned rows"
[ "$(sed 10000q thin/metrics.jsonl | tail -1 | grep -o '^{"step":[0-9]*')" = '{"step":10000' ] || fail "not a row each up to update 10000"
sed 1,10000d thin/metrics.jsonl | sed 's/{"step":\([0-9]*\),.*"loss":\([^,]*\),.*/\1 \2/' >thinned
awk '{ tenth += $1 % 10 == 0; high += $2 > 200000 } END { exit !(NR < 130 && tenth == 100 && high == 10) }' thinned ||
    { fail "beyond update 10000: not each tenth and ten spikes"; wc -l thinned; awk '$2 > 10000' thinned; }
train thin.yaml out=each train.log_every=1 train.steps=10020
[ "$(wc -l <each/metrics.jsonl)" = 10020 ] || fail "train.log_every=1 is not exact"

# ---- a signal while the final weights are saved: they are, and the run is done ----

"$mixt" train mlp.yaml out=saving -q net.hidden=16000 train.epochs=0 train.steps=1 2>err &
process=$!
await compgen -G 'saving/model.safetensors*' >/dev/null
kill -TERM $process 2>/dev/null
wait $process || { fail "SIGTERM in the last save: status $?"; cat err; }
[ "$(ls saving)" = $'checkpoints\nconfig.yaml\nevents.jsonl\ninputs.json\nmetrics.jsonl\nmodel.safetensors\npredictions.json' ] || fail "SIGTERM in the last save left $(ls saving)"
rm -r saving

# ---- stopped in each validation, which then is the first thing that the resumed run does ----

settings="train.validate_every=1 train.epochs=0 train.steps=6 train.eval_batch=256" # a validation in two parts
train conv.yaml out=validating-whole $settings
arguments="conv.yaml out=validating $settings"
place=2 # a resumed run makes up for the validation that it was stopped in, then comes to the next one
for turn in $(seq 6); do
    signalled TERM@validation:$place "$mixt" train $arguments -q 2>err
    status=$?
    [ $status = 143 ] || { fail "SIGTERM in validation $turn: status $status"; cat err; break; }
    grep -q '"pending": *1' "validating/checkpoints/step-0000000$turn/manifest.json" || fail "no validation of step $turn is pending: $(steps validating)"
    [ "$(grep -c val_loss validating/metrics.jsonl)" = $((turn - 1)) ] || fail "validations before the one of step $turn: $(cat validating/metrics.jsonl)"
    arguments="--resume validating" place=4
done
train --resume validating
same validating-whole validating "stopped in each of its validations"

# ---- killed in writes: in the middle of one, or before a file or checkpoint takes its name ----

seed=20240607 # of the places
for model in conv gpt; do
    arguments="$model.yaml out=killed-$model train.checkpoint_every=1"
    for kill in $(seq "$kills"); do
        below 240
        signalled KILL@write:$((drawn + 1)) "$mixt" train $arguments -q 2>err
        status=$?
        [ $status = 0 ] && break # after many kills less is left to write
        [ $status = 137 ] || { fail "$model, killed at write $((drawn + 1)): status $status"; cat err; }
        [ -e killed-$model/config.yaml ] && arguments="--resume killed-$model" || rm -rf killed-$model
    done
    [ "$kill" -gt 1 ] || [ $status = 137 ] || fail "$model: no kill hit it"
    train $arguments
    same $model-whole killed-$model "$model, killed $kills times"
    [ -e "$(echo killed-$model/checkpoints/.saving-*)" ] && fail "$model: the remains of a save stay: $(ls -A killed-$model/checkpoints)"
done

# The remains of a process that had the number of the one that goes on, as in a container.
train mlp.yaml out=number train.epochs=0 train.steps=20 train.checkpoint_every=10
bash -c 'for i in 1 2 3; do mkdir number/checkpoints/.saving-$$-$i; touch number/checkpoints/.saving-$$-$i/state.safetensors; done
    exec "$@"' bash "$mixt" train --resume number train.steps=30 -q 2>err || fail "remains of the same number: status $?"
[ -s err ] && fail "remains of the same number: $(cat err)"
[ -d number/checkpoints/step-00000030 ] && ! ls -A number/checkpoints | grep -q saving || fail "remains of the same number: $(ls -A number/checkpoints)"

# ---- what is kept ----

train mlp.yaml out=kept train.checkpoint_every=5 train.keep=3 train.validate_every=7 train.lr=0.3
best=$(sed -n 's/.*"step":\([0-9]*\),.*"val_loss":\([^,}]*\).*/\2 \1/p' kept/metrics.jsonl | sort -g | head -1 | cut -d' ' -f2)
expected=$(for step in $best 35 40; do printf 'step-%08d\n' "$step"; done)
for step in $expected; do [ -d "kept/checkpoints/$step" ] || fail "$step is not kept: $(steps kept)"; done
[ "$(steps kept | wc -w)" -le 4 ] || fail "more than 3 and the best are kept: $(steps kept)"

# ---- the weights of checkpoints ----

loss_of() { "$mixt" eval "$@" --json 2>err | grep -o '"loss":[^,]*'; }
train conv.yaml out=chosen train.checkpoint_every=20 train.keep=100 train.validate_every=10 train.epochs=0 train.steps=60 train.lr=0.1
read -r value step <<<"$(sed -n 's/.*"step":\([0-9]*\),.*"val_loss":\([^,}]*\).*/\2 \1/p' chosen/metrics.jsonl | sort -g | head -1)"
[ "$(loss_of chosen --checkpoint best)" = "\"loss\":$value" ] || fail "eval --checkpoint best: $(loss_of chosen --checkpoint best), validation said $value; $(cat err)"
[ "$(loss_of chosen --checkpoint "$step")" = "$(loss_of chosen --checkpoint best)" ] || fail "eval --checkpoint $step is not the best"
[ "$(loss_of chosen --checkpoint last)" = "$(loss_of chosen)" ] || fail "eval --checkpoint last is not the end"
"$mixt" export chosen --checkpoint best --out chosen-best >/dev/null 2>err || { fail "export --checkpoint best"; cat err; }
train conv.yaml init=chosen/checkpoints/step-00000060 out=begun train.epochs=0 train.steps=1 train.warmup=0 train.checkpoint_every=1
"$mixt" train --resume begun init=./chosen/checkpoints/step-00000060 train.steps=2 -q 2>err || { fail "the same weights under another name"; cat err; }
grep -q "^init: *\"\?$PWD/chosen/checkpoints/step-00000060" begun/config.yaml || { fail "the run's name of its first weights"; grep init begun/config.yaml; }
"$mixt" train --resume begun init=chosen train.steps=3 -q 2>err && fail "other weights than the run began with were taken"
for which in 17 next -1; do
    "$mixt" eval chosen --checkpoint=$which >out 2>err && fail "eval --checkpoint $which succeeded"
    grep -q -- "$which" err || { fail "eval --checkpoint $which does not name it"; cat err; }
done
"$mixt" eval chosen --checkpoint=17 >out 2>err
grep -q "chosen: has no checkpoint '17': there are those of steps .*20, .*40, .*60$" err || { fail "eval --checkpoint 17 does not say which there are"; cat err; }
"$mixt" eval chosen --checkpoint=nonsense >out 2>err
[ $? = 2 ] && grep -q 'final, best, last or a number' err || { fail "eval --checkpoint nonsense"; cat err; }
rm chosen/model.safetensors
"$mixt" eval chosen >out 2>err && fail "eval without final weights succeeded"
grep -q -- '--checkpoint last' err || { fail "eval without final weights does not say what to do"; cat err; }

# ---- a finished run goes on: its weights are no longer the final ones, while that lasts and where it was killed ----

train mlp.yaml out=onward train.checkpoint_every=10 train.epochs=0 train.steps=20
"$mixt" eval onward >/dev/null 2>err || { fail "eval of a finished run"; cat err; }
"$mixt" train --resume onward -q train.steps=1000000 train.log_every=1 train.checkpoint_every=100000 train.validate_every=200000 2>err &
process=$!
await grep -q '"step":30,' onward/metrics.jsonl
"$mixt" eval onward >out 2>during && fail "eval took the old weights of a run that is going on"
kill -KILL $process
wait $process 2>/dev/null
for command in 'eval onward' 'export onward --out never' 'train mlp.yaml init=onward out=never' 'plan mlp.yaml init=onward'; do
    "$mixt" $command >out 2>err && fail "$command took the old weights of a run that was killed later on"
    grep -q 'onward: has no final weights, because its training is not finished (model.safetensors is of step 20, ' err || { fail "$command: message"; cat err; }
done
grep -q 'has no final weights, because its training is not finished' during || { fail "a run that is going on: message"; cat during; }
[ -d onward/checkpoints/step-00000020 ] || fail "a killed resume left $(steps onward)"
"$mixt" eval onward --checkpoint last >/dev/null 2>err || { fail "eval of the checkpoint of a killed resume"; cat err; }
train --resume onward train.steps=25 train.checkpoint_every=5
"$mixt" eval onward >/dev/null 2>err || { fail "eval after the end of what was killed"; cat err; }
tail -1 onward/history.jsonl | grep -q '"event":"finished","step":25' || fail "the history does not say that the run is over"
cp onward/history.jsonl history
echo '{"event":"resumed","step":25}' >>onward/history.jsonl # killed before its first row
"$mixt" eval onward >out 2>err && fail "eval took the old weights of a run that was resumed and killed at once"
grep -q 'is of step 25, it was resumed from step 25 since' err || { fail "resumed and killed at once: message"; cat err; }
mv history onward/history.jsonl
cp mlp-whole/model.safetensors onward/ # of step 40: here it is the checkpoints that say more
cp -r onward/checkpoints/step-00000025 onward/checkpoints/step-00000050
"$mixt" eval onward >out 2>err && fail "eval took weights older than the newest checkpoint"

# ---- damage ----

# damaged FILE COMMAND...: with that done to the newest checkpoint, the one before is used, and the end is the same
damaged() {
    local file=$1
    shift
    rm -rf hurt
    cp -r conv-all hurt
    rm hurt/model.safetensors
    (cd hurt/checkpoints/step-00000070 && "$@") || fail "$*"
    "$mixt" train --resume hurt -q 2>err || { fail "$*: status $?"; cat err; }
    grep -q "step-00000070/$file.*not used; trying the checkpoint before it" err || { fail "$* is not named"; cat err; }
    same conv-whole hurt "$*"
    [ -d hurt/checkpoints/damaged-00000070 ] || fail "$*: the damaged one is not kept aside: $(steps hurt)"
}
rm -r conv-all
train conv.yaml out=conv-all train.checkpoint_every=20 train.keep=100 train.epochs=0 train.steps=70 train.schedule=constant
train conv.yaml out=conv-whole2 train.epochs=0 train.steps=70 train.schedule=constant
rm -r conv-whole && mv conv-whole2 conv-whole
flip() { printf "$(printf '\\x%02x' $((0x$(od -An -tx1 -j "$2" -N 1 "$1" | tr -d ' ') ^ 1)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none; }
damaged state.safetensors flip state.safetensors 5000
damaged state.safetensors truncate -s -1 state.safetensors
damaged manifest.json rm manifest.json
damaged config.yaml rm config.yaml
cp -r conv-all hopeless
for file in hopeless/checkpoints/*/manifest.json; do echo '{}' >"$file"; done
before=$(find hopeless -type f -exec cksum {} + | sort)
"$mixt" train --resume hopeless -q 2>err && fail "resumed from nothing"
grep -q 'none of its .* checkpoints is complete: there is nothing to resume from; start' err || { fail "no whole checkpoint: message"; cat err; }
[ "$before" = "$(find hopeless -type f -exec cksum {} + | sort)" ] || fail "a refused resume changed files"

# ---- a full disk ----

MIXT_FAIL_WRITE=30 "$mixt" train conv.yaml out=full -q train.checkpoint_every=1 train.keep=2 train.epochs=1 2>err ||
    { fail "one full disk: status $?"; cat err; }
[ "$(grep -c 'No space left on device; training continues\|checkpoints can be saved again, from step' err)" = 2 ] || { fail "a full disk is not said once"; cat err; }
MIXT_FAIL_WRITE=200+ "$mixt" train conv.yaml out=full-on -q train.checkpoint_every=1 train.epochs=1 2>err
grep -q 'No space left on device; training continues, earlier checkpoints are kept' err || { fail "a disk that stays full"; cat err; }
"$mixt" train --resume full-on -q 2>err || { fail "resume after a full disk: status $?"; cat err; }
same full full-on "a full disk"
(ulimit -f 28; "$mixt" train conv.yaml out=limited -q train.checkpoint_every=4 train.epochs=1 2>err)
grep -q 'File too large; training continues' err || { fail "a limit on file sizes"; cat err; }
grep -q '^mixt: 4 checkpoints could not be saved; there is none$' err || { fail "the number of lost checkpoints"; cat err; }
train mlp.yaml out=fuller train.checkpoint_every=10 train.epochs=0 train.steps=20
MIXT_FAIL_WRITE=3+ "$mixt" train --resume fuller -q train.steps=60 train.validate_every=1000 >out 2>err # not its configuration
grep -q '^mixt: 4 checkpoints could not be saved; the newest is of step 20$' err || { fail "the checkpoints that a full disk cost"; cat err; }
MIXT_FAIL_WRITE=30 "$mixt" train conv.yaml out=fullest --json train.checkpoint_every=1 train.keep=2 train.epochs=1 >out 2>err
grep -q '"checkpoints_lost":1[,}]' out && grep -q '^mixt: 1 checkpoint could not be saved; the newest is of step 16$' err || { fail "one lost checkpoint"; cat out err; }

# ---- refusals ----

# refused PATTERN ARGUMENT...: status 1 or 2, a message, nothing changed
refused() {
    local pattern=$1 before
    shift
    before=$(find mlp-all -type f -exec cksum {} + | sort)
    "$mixt" train "$@" -q 2>err && fail "not refused: $*"
    grep -q -- "$pattern" err || { fail "refusal of $*"; cat err; }
    [ "$before" = "$(find mlp-all -type f -exec cksum {} + | sort)" ] || fail "a refused resume changed files: $*"
}
refused 'model: mlp -> convnet' --resume mlp-all model=convnet
refused 'train.lr: 0.01 -> 0.02' --resume mlp-all seed=1 train.lr=0.02 train.steps=99
refused 'seed: 1 -> 2' --resume mlp-all seed=2
refused 'precision: fp32 -> bf16' --resume mlp-all precision=bf16
refused 'data.limit: 512 -> 100' --resume mlp-all data.limit=100
refused 'unknown key' --resume mlp-all train.nonsense=1
refused 'leave mlp.yaml out' mlp.yaml --resume mlp-all
refused 'no such folder' --resume nowhere
refused 'missing argument CONFIG'
refused 'mlp-all has done 40 updates' --resume mlp-all train.epochs=2
cp text.txt kept.txt
for change in 's/line 100 /line 10O /' '1s/^l/L/' '$s/modulo/Modulo/'; do # in the middle, at the start, in what is held out
    sed "$change" kept.txt >text.txt
    cmp -s text.txt kept.txt && fail "$change changes nothing"
    "$mixt" train --resume gpt-all -q train.steps=70 2>err && fail "other data is not refused: $change"
done
cp kept.txt text.txt
sed -i "s/line 100 /line 10O /" text.txt
"$mixt" train --resume gpt-all -q train.steps=70 2>err && fail "other data is not refused"
grep -q 'cannot resume with other data' err || { fail "other data: message"; cat err; }

# ---- in another directory; for longer; from a run that has no checkpoint yet; twice at once ----

train --resume mlp-all out=branch train.epochs=6
train mlp.yaml out=longer train.epochs=6
cmp -s longer/model.safetensors branch/model.safetensors || fail "a resumed run in another directory"
train --resume mlp-all out=finished # nothing left to do, but it can go on
train --resume finished train.epochs=6
cmp -s longer/model.safetensors finished/model.safetensors || fail "a finished run in another directory, for longer"
"$mixt" eval branch --checkpoint best >/dev/null 2>err || { fail "the best checkpoint did not go along"; cat err; }
[ "$(steps branch)" != "" ] && [ -d mlp-all/checkpoints/step-00000040 ] || fail "another directory: $(ls branch mlp-all)"
train --resume mlp-all train.epochs=6
cmp -s longer/model.safetensors mlp-all/model.safetensors || fail "a finished run, for longer"
train --resume mlp-all # complete: nothing to do
cmp -s longer/model.safetensors mlp-all/model.safetensors || fail "resuming a complete run"
mv mlp-whole/model.safetensors whole.safetensors # as if it had been killed
rm -r mlp-whole/checkpoints                      # before its first one
train --resume mlp-whole
cmp -s mlp-whole/model.safetensors whole.safetensors || fail "a run without a checkpoint, begun anew"
"$mixt" train mlp.yaml out=busy -q train.epochs=100000 train.checkpoint_every=1000 2>err &
process=$!
await [ -s busy/metrics.jsonl ]
"$mixt" train --resume busy -q 2>second && fail "a run that is going on is resumed"
grep -q 'still training' second || { fail "a run that is going on: message"; cat second; }
kill -TERM $process
wait $process

# ---- another order of samples: from the next epoch on, and over every resume after that ----

for model in mlp gpt; do # an epoch of 8 updates, one of 300
    train $model.yaml out=$model-plain train.log_every=1 train.epochs=0 train.steps=30 data.order_seed=1
    train $model.yaml out=$model-cut train.log_every=1 train.epochs=0 train.steps=12
    cp -r $model-cut $model-steps
    "$mixt" train --resume $model-cut train.steps=30 data.order_seed=7 2>err && fail "$model: another order is taken unasked"
    grep -q 'data.order_seed: 0 -> 7.*--allow data.order_seed' err || { fail "$model: another order: message"; cat err; }
    "$mixt" train --resume $model-cut train.steps=30 data.order_seed=7 --allow data.order_seed 2>err || { fail "$model: another order: status $?"; cat err; }
    mv err $model-told
    grep -q '"data.order_seed":{"from":"0","to":"7"}' $model-cut/history.jsonl || { fail "$model: the history"; cat $model-cut/history.jsonl; }
    train --resume $model-steps train.steps=14 data.order_seed=7 --allow data.order_seed
    train --resume $model-steps train.steps=20
    train --resume $model-steps train.steps=30
    cmp -s $model-cut/model.safetensors $model-steps/model.safetensors || fail "$model: the new order, resumed again"
done
losses() { grep -o '^{"step":[0-9]*,"epoch":[0-9]*,"loss":[^,]*' "$1/metrics.jsonl"; }
grep -q 'data.order_seed from epoch 2 on' gpt-told || { fail "gpt: the new order is not told"; cat gpt-told; }
grep -q 'data.order_seed from epoch 3 on' mlp-told || { fail "mlp: the new order is not told"; cat mlp-told; }
cmp -s <(losses gpt-plain) <(losses gpt-cut) || fail "gpt: the order changed within its epoch"
cmp -s <(losses mlp-plain | head -16) <(losses mlp-cut | head -16) || fail "mlp: the order changed within its epoch"
[ "$(losses mlp-plain | sed -n 17p)" != "$(losses mlp-cut | sed -n 17p)" ] || fail "mlp: the next epoch has the old order"
train --resume mlp-cut train.steps=32 # the end of an epoch: the one that begins has the order asked for
train --resume mlp-cut train.steps=40 data.order_seed=1 --allow data.order_seed
train mlp.yaml out=mlp-seven train.log_every=1 train.epochs=0 train.steps=32 data.order_seed=7
train --resume mlp-seven train.steps=40 data.order_seed=1 --allow data.order_seed
order() { tr -d ' \n' <"$1"/checkpoints/step-00000040/manifest.json | grep -o '"order":{[^}]*}'; }
[ "$(order mlp-cut)" = "$(order mlp-seven)" ] && [ "$(order mlp-cut)" = '"order":{"seed":1,"before":7,"from":4}' ] || fail "the order kept: $(order mlp-cut), $(order mlp-seven)"

# A directory that a process did not finish making gives way; one that is being made, and anything else, does not.
train mlp.yaml out=source train.steps=8 train.epochs=0 train.checkpoint_every=4
mkdir -p never/checkpoints/step-00000004 && cp source/config.yaml never && : >never/.beginning
"$mixt" train --resume never -q 2>told && fail "a run that was never begun was resumed"
grep -q 'never: was never started: the process that created it ended too early;' told || fail "a run that was never begun: $(cat told)"
(exec 9>never/.beginning && flock 9 && exec "$mixt" train --resume source out=never train.steps=12 -q 2>told) && fail "a directory that is being made was taken"
[ -d never/checkpoints ] || fail "a directory that is being made was removed"
train --resume source out=never train.steps=12
[ -s never/model.safetensors ] && [ ! -e never/.beginning ] || fail "a directory that was never begun did not give way"
mkdir -p mine && : >mine/.beginning && echo mine >mine/notes
"$mixt" train --resume source out=mine train.steps=12 -q 2>told && fail "a folder with notes was taken"
[ -s mine/notes ] || fail "notes were removed"

[ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
