#!/bin/bash
# Runs that look after themselves on two ranks: what goes wrong on one of them is found and undone on both, with the rank named;
# one process with the same decisions ends with the same bits. Usage: auto_ranks.sh MIXT; DEVICE=cuda: ranks that share a GPU,
# MIXT_DISCRETE=1: as on one
. "$(dirname "$0")/../support/script.sh"
. "$(dirname "$0")/../support/ranks.sh"
cd "$work" || exit 1
need_ranks

export MIXT_CACHE=$work/cache # of choices by the clock, for all of them
most=3 # dist.zero
[ "${DEVICE:-cpu}${MIXT_DISCRETE:-}" = cpu ] || most=1
cat >net.yaml <<Y
model: mlp
precision: fp16
device: ${DEVICE:-cpu}
net: {hidden: [24, 16]}
data: {kind: digits, samples: 2400}
train: {epochs: 0, steps: 60, batch: 32, lr: 0.003, schedule: constant, log_every: 10, validate_every: 60}
auto: {steer: true, snapshot_every: 20}
Y
field() { sed -n "s/.*\"$1\":\"\\{0,1\\}\\([^,\"}]*\\).*/\\1/p" <<<"$row"; }
rows() { sed 's/"time":[^,]*,//' "$1/events.jsonl"; }
# on_one NAME FAULT WANTED STATUS SETTINGS...: the fault on rank 1 alone; found, cause, layer and rank of the first diagnosis
on_one() {
    local run=$1 fault=$2 wanted=$3 status=$4
    shift 4
    ranks 1 "$mixt" train net.yaml out="$run" "$@" -q : -n 1 "$mixt" train net.yaml out="$run" faults="$fault" "$@" -q 2>err
    [ $? = "$status" ] || { fail "$run: $(cat err)"; return; }
    row=$(grep '"kind":"diagnosis"' "$run/events.jsonl" | head -1)
    [ "$(field found) $(field cause) $(field layer) $(field rank)" = "$wanted" ] || fail "$run: $row"
}

# a healthy run is let alone
"$mixt" train net.yaml out=plain dist.ranks=2 auto.steer=false -q 2>err || fail "plain: $(cat err)"
ranks 2 "$mixt" train net.yaml out=calm watch.every=20 -q 2>err || fail "calm: $(cat err)"
same plain calm
! grep -q decision calm/events.jsonl || fail "calm: $(cat calm/events.jsonl)"
"$mixt" train net.yaml out=calm-one watch.every=20 dist.ranks=2 -q 2>err || fail "calm-one: $(cat err)"
cmp -s calm/layers.jsonl calm-one/layers.jsonl || fail "layers are not those of all ranks: $(diff calm/layers.jsonl calm-one/layers.jsonl | cut -c1-400)"

# each kind of trouble of one rank
on_one flip flip_weight@45:fc.1 'hardware hardware fc.1 1' 0
cmp -s flip/model.safetensors plain/model.safetensors || fail "flip does not end as without the fault"
[ "$(grep -c '"action":"rollback"' flip/events.jsonl)" = 1 ] || fail "flip: $(cat flip/events.jsonl)"
on_one flip-shared flip_weight@45:fc.1 'hardware hardware fc.1 1' 0 dist.zero=1
cmp -s flip-shared/model.safetensors plain/model.safetensors || fail "flip-shared does not end as without the fault"
ranks 2 "$mixt" train net.yaml out=own dist.compress=topk:5% -q 2>err || fail "own: $(cat err)"
on_one flip-own flip_weight@45:fc.1 'hardware hardware fc.1 1' 0 dist.compress=topk:5% # with what each rank has of its own
cmp -s flip-own/model.safetensors own/model.safetensors || fail "flip-own does not end as without the fault"
on_one broken flip_activation@45:fc.1:always 'hardware hardware null 1' 1
[ "$(grep -c '^mixt: step 45: the loss is not finite; hardware' err)" = 1 ] || fail "broken: $(cat err)"
on_one nan nan_data@41 'batch data null 1' 0
field sample | grep -q '^[0-9]' && [ "$(field place)" -ge 16 ] || fail "nan: $row"
grep -q '"action":"skip".*"key":"sample"' nan/events.jsonl || fail "nan: $(cat nan/events.jsonl)"
on_one fast lr@45 'optimizer optimizer null ' 1
on_one overflow overflow@45:fc.1 'precision precision fc.1 1' 0
[ "$(grep -c '"kind":"decision"' overflow/events.jsonl)" = 1 ] || fail "overflow: $(cat overflow/events.jsonl)"

# one process, and both ways again from the record
"$mixt" train net.yaml out=overflow-one dist.ranks=2 faults=overflow@45:fc.1 -q 2>err || fail "overflow-one: $(cat err)"
cmp -s overflow/model.safetensors overflow-one/model.safetensors || fail "overflow-one: other weights than on two ranks"
ranks 2 "$mixt" train net.yaml out=again auto.replay=overflow/events.jsonl dist.zero=$most -q 2>err || fail "replay: $(cat err)"
same overflow again
"$mixt" train net.yaml out=again-one dist.ranks=2 auto.replay=overflow/events.jsonl -q 2>err || fail "replay: $(cat err)"
same overflow again-one

# stopped after a decision, with the good states of then beside the checkpoint
faults=faults=scale_collapse@25:fc.0,nan_data@48
ranks 2 "$mixt" train net.yaml out=whole dist.zero=1 $faults -q 2>err || fail "whole: $(cat err)"
ranks 2 "$mixt" train net.yaml out=part dist.zero=1 train.steps=50 train.checkpoint_every=7 $faults -q 2>err || fail "part: $(cat err)"
ranks 2 "$mixt" train --resume part train.steps=60 -q 2>err || fail "part resumed: $(cat err)"
! grep -q gone err || fail "part resumed: $(cat err)"
cmp -s whole/model.safetensors part/model.safetensors || fail "resumed: other weights"
[ "$(grep -c '"kind":"decision"' whole/events.jsonl)" = 2 ] || fail "whole: $(cat whole/events.jsonl)"
[ "$(rows whole)" = "$(rows part)" ] || fail "resumed: $(diff <(rows whole) <(rows part))"

# whoever writes good states, and from wherever: checkpoints are those of one process
often='train.steps=12 auto.snapshot_every=4 train.checkpoint_every=5 train.keep=9'
mkdir apart
for kind in dist.zero=1 dist.compress=powersgd:2; do
    alone=(env)
    [ $kind = dist.zero=1 ] || alone=(ranks 2) # of which one process does not do the same
    "${alone[@]}" "$mixt" train net.yaml out=all-$kind $often ${kind/#dist.zero=?/dist.ranks=2} -q 2>err || fail "$kind, to compare with: $(cat err)"
    ranks 2 "$mixt" train net.yaml out=all-parts-$kind $often $kind -q 2>err || fail "$kind, by parts: $(cat err)"
    ranks 1 "$mixt" train net.yaml out=all-first-$kind $often $kind -q : \
        -n 1 --wdir "$work/apart" "$mixt" train ../net.yaml out=all-first-$kind $often $kind -q 2>err || fail "$kind, by rank 0: $(cat err)"
    grep -q 'rank 1 does not see the files of rank 0' err || fail "$kind, by rank 0: $(cat err)"
    for run in all-parts-$kind all-first-$kind; do
        [ "$(cd all-$kind/checkpoints && sha256sum ./*/state.safetensors)" = "$(cd $run/checkpoints && sha256sum ./*/state.safetensors)" ] ||
            fail "$run: other states than of one process"
        [ "$(ls $run/checkpoints | tr -d '\n')" = step-00000000step-00000004step-00000005step-00000008step-00000010step-00000012 ] ||
            fail "$run: $(ls $run/checkpoints)"
    done
done

# what is chosen, what cannot be
ranks 2 "$mixt" train net.yaml out=chosen precision=auto train.steps=2 2>err >out || fail "auto: $(cat err)"
[ "$(grep -c '^auto  *[bfpt0-9]*: ' err)" = 1 ] && head -1 chosen/events.jsonl | grep -q '"from":"auto"' || fail "auto: $(cat err chosen/events.jsonl)"
ranks 2 "$mixt" train net.yaml out=never dist.zero=3 -q 2>err && fail "dist.zero=3 was taken"
[ "$(grep -c '^mixt: .*auto.steer (set by precision=auto) needs the weights on every' err)" = 1 ] && [ ! -e never ] || fail "dist.zero=3: $(cat err)"
cp overflow/events.jsonl record.jsonl && mkdir elsewhere && sed 's/"to":"fp32"/"to":"bf16"/' record.jsonl >elsewhere/record.jsonl
ranks 1 "$mixt" train net.yaml out=torn auto.replay=record.jsonl -q : -n 1 --wdir "$work/elsewhere" "$mixt" train ../net.yaml out=torn auto.replay=record.jsonl -q 2>err &&
    fail "ranks that decide differently went on"
[ "$(grep -c '^mixt: ranks differ in their decision: rank 0 has precision after update 40, .* to fp32 .*, rank 1 has .* to bf16 ' err)" = 1 ] ||
    fail "other decisions: $(cat err)"

[ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
