#!/bin/bash
# Runs that look after themselves: a net that FP16 cannot hold trains like in FP32; decisions are rows, survive kill -9 and
# can be replayed; what is not allowed is not done; misuse. Usage: auto.sh MIXT
. "$(dirname "$0")/../support/script.sh"
. "$(dirname "$0")/../support/loud.sh"
slow=$PWD/tests/slow
cd "$work" || exit 1

loud_data 1600 >loud.csv
cat >loud.yaml <<'Y'
model: convnet
precision: fp16
threads: 1
device: cpu
seed: 3
data: {kind: csv, path: loud.csv, shape: 8x8x1, normalise: none}
net: {channels: [8, 8], norm: batch}
train: {epochs: 0, steps: 400, batch: 32, optimizer: adam, weight_decay: 0, lr: 0.02, schedule: cosine}
auto: {snapshot_every: 20}
Y
loss_of() { sed -n 's/.*"val_loss":\([^,]*\),.*/\1/p' "$1/metrics.jsonl" | tail -1; }

"$mixt" train loud.yaml out=plain -q 2>err && fail "FP16 alone did not diverge"
grep -q diverged err || fail "FP16 alone: $(cat err)"
"$mixt" train loud.yaml out=full precision=fp32 -q 2>err || fail "fp32: $(cat err)"
"$mixt" train loud.yaml out=steered auto.steer=true 2>err >out || fail "steered: $(cat err)"
awk -v a="$(loss_of full)" -v b="$(loss_of steered)" 'BEGIN { d = (b - a) / a; exit !(d < 0.005) }' ||
    fail "steered: loss $(loss_of steered), FP32 $(loss_of full)"
grep -q 'back to step .* conv1 from fp16 to fp32: conv2d of conv1 made it' err || fail "said: $(cat err)"
row=$(grep '"kind":"decision"' steered/events.jsonl)
for part in '"step":' '"time":' '"severity":"warning"' '"cause":"precision"' '"layer":"conv1"' '"from":"fp16"' '"to":"fp32"' \
    '"action":"precision"' '"evidence":{"text":"' '"back":'; do
    case $row in *"$part"*) ;; *) fail "no $part in $row" ;; esac
done
grep -q 'layer: conv1' steered/policy.yaml && grep -q 'conv2d of conv1 made it' steered/policy.yaml || fail "policy: $(cat steered/policy.yaml)"
"$mixt" train loud.yaml out=with precision=steered/policy.yaml -q 2>err || fail "under the policy found: $(cat err)"
! grep -q decision with/events.jsonl || fail "decisions without auto.steer"

# a healthy run is let alone, to the bit
"$mixt" train loud.yaml out=calm precision=fp32 auto.steer=true -q 2>err || fail "calm: $(cat err)"
cmp -s calm/model.safetensors full/model.safetensors || fail "auto.steer changes a healthy run"
! grep -q decision calm/events.jsonl || fail "calm: $(cat calm/events.jsonl)"

# what is not allowed is not done; the end has a reason, and the last good state stays
"$mixt" train loud.yaml out=bound auto.steer=true auto.may=rollback,skip -q 2>err && fail "nothing helped, and it went on"
grep -q 'auto.may and auto.retries allow nothing more after' err && grep -q 'the last good state is saved' err || fail "bound: $(cat err)"
[ "$(grep -c '"action":"skip"' bound/events.jsonl)" = 2 ] || fail "bound: $(cat bound/events.jsonl)"
tail -1 bound/events.jsonl | grep -q '"severity":"critical".*"action":"stop"' || fail "bound ends with $(tail -1 bound/events.jsonl)"
good=$(tail -1 bound/events.jsonl | sed 's/.*"back":\([0-9]*\).*/\1/')
[ "$(ls bound/checkpoints | tail -1)" = "$(printf 'step-%08d' "$good")" ] || fail "bound keeps $(ls bound/checkpoints)"
"$mixt" train --resume bound auto.may=precision,rollback -q 2>err || fail "bound resumed: $(cat err)"

# a batch that is to blame is left out, by its number; a bit that flipped is computed again, to the bits of a run without;
# updates that are too large get a lower learning rate, and nothing that Adam ignores
quiet="auto.steer=true precision=fp32 train.steps=150"
"$mixt" train loud.yaml out=nan $quiet faults=nan_data@90 -q 2>err || fail "nan: $(cat err)"
grep -q '"cause":"data".*"to":"[0-9]*","action":"skip".*"key":"sample"' nan/events.jsonl || fail "nan: $(cat nan/events.jsonl)"
"$mixt" train loud.yaml out=flip $quiet faults=flip_weight@90:conv2 -q 2>err || fail "flip: $(cat err)"
grep -q '"cause":"hardware".*"action":"rollback"' flip/events.jsonl || fail "flip: $(cat flip/events.jsonl)"
"$mixt" train loud.yaml out=sound precision=fp32 train.steps=150 -q 2>err || fail "sound: $(cat err)"
cmp -s flip/model.safetensors sound/model.safetensors || fail "flip: other bits than without"
"$mixt" train loud.yaml out=fast $quiet faults=lr@90 -q 2>err || fail "fast: $(cat err)"
grep -q '"kind":"decision".*"cause":"optimizer".*"action":"lr"' fast/events.jsonl || fail "fast: $(cat err fast/events.jsonl)"
! grep -q '"action":"clip"' fast/events.jsonl || fail "fast clips under Adam: $(cat fast/events.jsonl)"

# alert, diagnosis, decision and end say each sentence once
"$mixt" train loud.yaml out=said $quiet faults=lr@90 auto.may=precision,rollback,skip 2>err >out && fail "said: endured"
looks=$(grep -c '"kind":"diagnosis"' said/events.jsonl)
[ "$(grep -o 'optimizer: the learning rate is too high' err | wc -l)" = "$looks" ] && [ "$looks" -ge 1 ] || fail "said: $looks diagnoses in $(cat err)"
grep -q 'with train.lr=.* have no problem' err || fail "the end names no rate that is calm: $(cat err)"
[ "$(grep -o 'step [0-9]*: [a-z ]*[0-9.e+]* is [0-9.e+]* times the usual' err | wc -l)" = "$(grep -c '"kind":"alert".*times the usual' said/events.jsonl)" ] ||
    fail "said: alerts in $(cat err said/events.jsonl)"

# killed and replayed
bash "$slow/decisions.sh" "$mixt" 3 600 >out 2>&1 || fail "decisions: $(cat out)"

# every model has a line in calm.sh, and a healthy run none
bash "$slow/calm.sh" "$mixt" 400 0 mlp convnet >out 2>&1 || fail "calm: $(cat out)"
grep -q '^mlp .* 0 ' out || fail "calm says: $(cat out)"

# ---- precision=auto ----

small="train.steps=3 data.kind=digits data.path= data.limit=64 data.shape= data.normalise=standard"
MIXT_ISA=avx2 "$mixt" train loud.yaml out=chosen precision=auto $small 2>err >out || fail "auto: $(cat err)"
grep -q '^auto  *fp32: .* no units' err || fail "auto says: $(cat err)"
grep -q '^default: fp32' chosen/policy.yaml && grep -q 'why: ' chosen/policy.yaml || fail "auto: $(cat chosen/policy.yaml)"
grep -q 'steer: true' chosen/config.yaml || fail "auto does not steer"
head -1 chosen/events.jsonl | grep -q '"step":0,.*"kind":"decision".*"from":"auto","to":"fp32"' || fail "auto: $(cat chosen/events.jsonl)"
"$mixt" train --resume chosen precision=auto train.steps=5 -q 2>err || fail "auto resumed: $(cat err)" # as chosen, here too
grep -q '^default: fp32' chosen/policy.yaml || fail "chosen anew: $(cat chosen/policy.yaml)"
# where there are units for BF16, it is held against FP32 in time too: a line says how fast it is, or a decision of update 0
"$mixt" train loud.yaml out=timed precision=auto $small 2>err >out || fail "auto, timed: $(cat err)"
if head -1 timed/events.jsonl | grep -q '"to":"bf16"'; then
    slower=$(grep -c '"step":0,.*"cause":null,.*"from":"bf16","to":"fp32","action":"precision".*times as fast as FP32' timed/events.jsonl)
    [ $((slower + $(grep -c '^auto .*keeps FP32.s gradients.*passes are [0-9.]* times as fast ([0-9.]* to [0-9.]*)' err))) = 1 ] || fail "auto, timed, says: $(cat err timed/events.jsonl)"
    [ "$slower" = 0 ] || grep -q '^default: fp32' timed/policy.yaml || fail "auto, timed: $(cat timed/policy.yaml)"
fi
MIXT_ISA=avx2 "$mixt" plan loud.yaml precision=auto $small >out 2>err || fail "plan: $(cat err)"
grep -q snapshots out || fail "plan does not count the good state: $(cat out)"

# misuse
"$mixt" train loud.yaml out=bad auto.may=dance 2>err && fail "auto.may=dance was taken"
grep -q "auto.may" err && [ ! -e bad ] || fail "auto.may=dance: $(cat err)"
for bad in auto.retries=0 auto.snapshot_every=0 auto.calm=-1 auto.steer=maybe auto.cooldown=0 auto.replay=nowhere.jsonl; do
    "$mixt" train loud.yaml out=bad $bad 2>err && fail "$bad was taken"
    grep -q "${bad%%=*}" err && [ ! -e bad ] || fail "$bad: $(cat err)"
done
echo '{"step":3,"kind":"decision","action":"dance"}' >dance.jsonl
echo 'no row' >none.jsonl
for file in dance none; do
    "$mixt" train loud.yaml out=bad auto.replay=$file.jsonl 2>err && fail "$file.jsonl was taken"
    grep -q "$file.jsonl:1" err && [ ! -e bad ] || fail "$file.jsonl: $(cat err)"
done

[ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
