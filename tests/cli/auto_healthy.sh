#!/bin/bash
# Healthy runs that look after themselves and that nothing may be decided about: regressions in raw units, whose first
# gradient norms are far above any fixed limit; runs that go on under other settings, whose earlier updates would give
# other bits now. Usage: auto_healthy.sh MIXT
. "$(dirname "$0")/../support/script.sh"
cd "$work" || exit 1

# raw_data SEED MEAN DEVIATION: 800 rows of eight normal inputs and a target that follows from them, with some noise
raw_data() {
    awk -v seed="$1" -v mean="$2" -v deviation="$3" 'BEGIN { srand(seed); for (i = 0; i < 800; i++) { sum = 0
        for (j = 0; j < 8; j++) {
            x = sqrt(-2 * log(1 - rand())) * cos(6.2831853 * rand()); sum += x * (j % 3 - 0.7); printf "%.5f,", x }
        printf "%.4f\n", mean + deviation * (sum / 2.3 + 0.3 * (rand() - 0.5)) } }'
}
cat >raw.yaml <<'Y'
model: mlp
threads: 1
device: cpu
data: {kind: csv, task: values, normalise: unit}
net: {hidden: [32, 32]}
train: {epochs: 0, steps: 150, batch: 32}
auto: {steer: true}
Y
decisions() { grep -c '"kind":"decision"' "$1/events.jsonl"; }
for seed in 1 2 3; do
    for target in "50 25" "152 77"; do
        raw_data $seed $target >rows.csv
        for how in "bf16 train.optimizer=adam train.lr=0.01" "fp16 train.optimizer=sgd train.lr=0.0005"; do
            run="raw-$seed-${target% *}-${how%% *}"
            "$mixt" train raw.yaml data.path=rows.csv out=$run seed=$seed precision=$how 2>err >/dev/null || fail "$run: $(cat err)"
            [ "$(decisions $run)" = 0 ] || fail "$run decides: $(cat $run/events.jsonl)"
            ! grep -q '"kind":"diagnosis"' $run/events.jsonl || fail "$run is looked into: $(cat $run/events.jsonl)"
            [ "$(grep -c 'above watch.grad_norm_max' err)" = 1 ] || fail "$run tells of the limit other than once: $(cat err)"
        done
    done
done

# ---- a resume with other settings is no fault of the machine ----

cat >net.yaml <<'Y'
model: mlp
precision: fp16
threads: 1
device: cpu
net: {hidden: [48, 32]}
data: {samples: 3000}
train: {epochs: 0, steps: 290, batch: 32, lr: 0.003, schedule: cosine, checkpoint_every: 240, keep: 100}
auto: {steer: true, snapshot_every: 50}
faults: label@247
Y
"$mixt" train net.yaml out=begun -q 2>err || fail "begun: $(cat err)"
for later in begun/checkpoints/step-*; do [ "${later##*-}" -le 240 ] || rm -r "$later"; done
# on NAME SETTINGS...: the run goes on at update 240 with other settings, and its bad batch at 247 is found
on() {
    cp -r begun "on-$1"
    "$mixt" train --resume "on-$1" -q "${@:2}" 2>err || fail "$*: $(cat err)"
    row=$(grep '"kind":"diagnosis"' "on-$1/events.jsonl" | head -1)
    case $row in *'"found":"batch"'*) ;; *) fail "$1: $row" ;; esac
    ! grep -q '"found":"hardware"' "on-$1/events.jsonl" || fail "$1 blames the machine"
    case $row in *"\"good\":$good,"*) ;; *) fail "$1 does not go back to $good: $row" ;; esac
}
good=240
on lr train.lr=0.002 --allow train.lr
on threads threads=2
on decay train.weight_decay=0.02 --allow train.weight_decay
on precision precision=bf16 --allow precision
on steps train.steps=300
good=200
on same train.log_every=7

# ---- a phase begins with a good state ----

cat >phases.yaml <<'Y'
default: fp16
phases:
  - {name: first, until: 235}
  - {name: second, default: bf16}
Y
"$mixt" train net.yaml out=phase precision=phases.yaml faults=label@242,label@255 train.checkpoint_every=10 -q 2>err || fail "phase: $(cat err)"
row=$(grep '"kind":"diagnosis"' phase/events.jsonl | head -1)
case $row in *'"found":"batch"'*'"good":235,'*) ;; *) fail "phase: $(cat phase/events.jsonl)" ;; esac
# a bit that flips soon after one is found, and no layer raised for the phases that follow
"$mixt" train net.yaml out=flip precision=phases.yaml faults=flip_weight@255:fc.1 train.checkpoint_every=10 -q 2>err || fail "flip: $(cat err)"
row=$(grep '"kind":"diagnosis"' flip/events.jsonl | head -1)
case $row in *'"found":"hardware"'*'"good":2'*) ;; *) fail "flip: $(cat flip/events.jsonl)" ;; esac
! grep -q '"action":"precision"' flip/events.jsonl || fail "flip raises layers: $(cat flip/events.jsonl)"
# killed right after it went back to where the phases meet, and a little later
for at in 235 250; do
    cp -r phase cut
    for later in cut/checkpoints/step-*; do [ "${later##*-}" -le $at ] || rm -r "$later"; done
    [ -e "cut/checkpoints/step-00000$at" ] || fail "no checkpoint of $at"
    "$mixt" train --resume cut -q 2>err || fail "cut at $at: $(cat err)"
    cmp -s phase/model.safetensors cut/model.safetensors || fail "cut at $at: other weights"
    rm -r cut
done

[ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
