#!/bin/bash
# mixt debug: updates of a run made again, the op that failed, errors against FP32, values as files. Usage: debug.sh MIXT
. "$(dirname "$0")/../support/script.sh"
root=$PWD
cd "$work" || exit 1

cat >net.yaml <<'Y'
model: mlp
precision: fp16
threads: 1
device: cpu
data: {kind: random, shape: 12, classes: 3, samples: 320}
net: {hidden: 16, dropout: 0.1}
train: {steps: 30, batch: 32, checkpoint_every: 10, keep: 10, log_every: 1}
Y
"$mixt" train net.yaml out=run --quiet 2>err || fail "train: $(cat err)"

# ---- an update of the past, with its bits ----

row_of() { # step key: of metrics.jsonl
    sed -n "s/^{\"step\": *$1,.*\"$2\": *\([^,}]*\).*/\1/p" run/metrics.jsonl | head -1
}
number_of() { # key: the first in out
    sed -n "s/^  \"$1\": \([^,]*\),*$/\1/p" out | head -1
}
same() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && b != "" && (a - b) * (a - b) <= 1e-14 * a * a) }'; }

before=$(find run -type f -exec cksum {} + | sort)
for step in 3 10 11 27; do
    "$mixt" debug run --step $step --json >out 2>err || fail "--step $step: $(cat err)"
    [ "$(number_of step)" = $step ] || fail "--step $step looks at $(number_of step)"
    for key in loss grad_norm; do
        same "$(row_of $step $key)" "$(number_of $key)" ||
            fail "--step $step: $key $(number_of $key), in training $(row_of $step $key)"
    done
done
grep -q '"checkpoint": "run/checkpoints/step-00000020"' out || fail "--step 27 is from $(grep checkpoint out)"
"$mixt" debug run --step 11 >out 2>err || fail "--step 11: $(cat err)"
grep -q 'replayed from run/checkpoints/step-00000010' out || fail "it does not say from where: $(head -3 out)"
[ "$before" = "$(find run -type f -exec cksum {} + | sort)" ] || fail "looking changed the run"

# in the phases of its policy
cat >phases.yaml <<'Y'
version: 1
default: fp16
phases:
  - name: first
    until: 12
    default: fp32
  - name: rest
Y
"$mixt" train net.yaml precision=phases.yaml out=phased train.checkpoint_every=20 --quiet 2>err || fail "phases: $(cat err)"
for step in 5 14 25; do
    "$mixt" debug phased --step $step --json >out 2>err || fail "phases, --step $step: $(cat err)"
    same "$(sed -n "s/^{\"step\": *$step,.*\"grad_norm\": *\([^,}]*\).*/\1/p" phased/metrics.jsonl)" "$(number_of grad_norm)" ||
        fail "phases, --step $step: grad_norm $(number_of grad_norm)"
    grep -q '"format": "fp16"' out; [ $? = $((step <= 12)) ] || fail "phases, --step $step: another phase"
done

# under a controller that raised a layer: its decision is in the checkpoint behind it; with that gone it says so
"$mixt" train net.yaml out=steered faults=overflow@15:fc.0 auto.steer=true --quiet >/dev/null 2>&1 || fail "steered"
grep -q '"kind":"decision"' steered/events.jsonl || fail "no decision in: $(cut -c1-100 steered/events.jsonl)"
"$mixt" debug steered --step 19 --json >out 2>err || fail "steered, --step 19: $(cat err)"
same "$(sed -n 's/^{"step": *19,.*"grad_norm": *\([^,}]*\).*/\1/p' steered/metrics.jsonl)" "$(number_of grad_norm)" ||
    fail "steered, --step 19: grad_norm $(number_of grad_norm)"
rm -r steered/checkpoints/step-0000000* steered/checkpoints/step-0000001*
"$mixt" debug steered --step 19 --json >out 2>err || fail "steered, --step 19 from the beginning: $(cat err)"
grep -q 'of auto.steer cannot be repeated, because older checkpoints' err || fail "it does not say that decisions are missing: $(cat err)"

# a fault of a test is there when its update is made again
"$mixt" debug net.yaml faults=overflow@3:fc.0 --step 3 --json >out 2>err || fail "a fault: $(cat err)"
grep -q '"cause": "op"' out && grep -A4 '"first_nonfinite": {' out | grep -q '"layer": "fc.0"' || fail "a fault: $(head -20 out)"
# the rule that it advises helps, and so does the loss scale
"$mixt" debug net.yaml faults=overflow@1:fc.0 >out 2>err || fail "a fault: $(cat err)"
{ echo 'version: 1'; echo 'default: fp16'; echo 'rules:'; sed -n 's/.*rule: \({layer: .*}\).*/  - \1/p' out | head -1; } >raised.yaml
grep -q 'fc.0' raised.yaml || fail "no rule in: $(head -5 out)"
"$mixt" debug net.yaml faults=overflow@1:fc.0 precision=raised.yaml --json >out 2>err || fail "raised: $(cat err)"
grep -q '"first_nonfinite": null' out || fail "the rule does not help: $(cat raised.yaml; head -12 out)"
"$mixt" debug net.yaml train.loss_scale=1e9 >out 2>err || fail "a large scale: $(cat err)"
scale=$(sed -n 's/.*a loss scale of at most \([^ ]*\) .*/\1/p' out | head -1)
"$mixt" debug net.yaml train.loss_scale="$scale" --json >out 2>err || fail "scale '$scale': $(cat err)"
grep -q '"first_nonfinite": null' out || fail "a loss scale of $scale does not help: $(head -12 out)"
"$mixt" debug net.yaml faults=nan_data@3 --step 3 --json >out 2>err || fail "a NaN: $(cat err)"
grep -q '"cause": "input"' out && grep -q '"sample": [0-9]' out || fail "a NaN: $(head -20 out)"

# ---- what it shows ----

"$mixt" debug run >out 2>err || fail "debug: $(cat err)"
for words in 'format  *ops  *values' '^fp16 ' 'error forward' '^fc.0 '; do
    grep -q "$words" out || fail "no $words in: $(head -20 out)"
done
"$mixt" debug run --layer fc.0 >out 2>err || fail "--layer: $(cat err)"
grep -q '^fc.0.matmul.forward: fp16$' out && grep -q '2^-*[0-9]* .*%.*##' out || fail "no exponents: $(head -20 out)"

"$mixt" debug net.yaml train.loss_scale=1e8 --json >out 2>err || fail "overflow: $(cat err)"
for words in '"first_nonfinite": {' '"pass": "backward"' '"cause": "op"' '"inputs": \[' '"precision_use": \[' \
    '"nonfinite_in_fp32": 0'; do
    grep -q "$words" out || fail "no $words in: $(head -60 out)"
done
"$mixt" debug net.yaml train.loss_scale=1e8 >out 2>err || fail "overflow: $(cat err)"
grep -q 'is the first to give NaN or Inf, in' out && grep -q 'it read' out || fail "it says: $(head -20 out)"

# ---- several inputs, lengths and masks ----

small="device=cpu threads=1 data.samples=32 data.mels=16 data.hop=20 net.channels=[4] train.batch=8"
for precision in fp32 bf16 fp16; do
    "$mixt" debug "$root/configs/speech.yaml" $small precision=$precision data.buckets=1 >out 2>err || fail "recordings in $precision: $(cat err)"
    grep -q 'nothing\|conv.0' out || fail "recordings in $precision: $(cat out)"
done

# ---- values as files ----

"$mixt" debug run --dump 'fc.0*' --out values >out 2>err || fail "--dump: $(cat err)"
for name in fc.0.weight fc.0.weight.grad fc.0.matmul.forward; do
    [ "$(head -c 6 values/$name.npy | tail -c 5)" = NUMPY ] || fail "no values/$name.npy: $(ls values)"
done
grep -q "'descr': '<f2'" values/fc.0.matmul.forward.npy || fail "a value in fp16 is written as another"
sum=$(cat values/* | cksum)
"$mixt" debug run --dump 'fc.0*' --out values >out 2>err && fail "files were replaced"
grep -q 'values/fc.0' err && [ "$sum" = "$(cat values/* | cksum)" ] || fail "replacing: $(cat err)"
"$mixt" debug run --dump 'fc.0*' --out values --overwrite >out 2>err || fail "--overwrite: $(cat err)"
"$mixt" debug run --dump 'nothing*' --out new >out 2>err && fail "a dump of nothing"
grep -q "nothing\*" err && [ ! -e new ] || fail "a dump of nothing: $(cat err)"
"$mixt" debug run --dump 'fc.0*' >out 2>err && fail "a dump without --out"
grep -q -- '--out' err || fail "a dump without --out: $(cat err)"
: >file
"$mixt" debug run --dump 'fc.0*' --out file/values >out 2>err && fail "a dump into a file"
grep -q 'file/values' err || fail "a dump into a file: $(cat err)"

[ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
