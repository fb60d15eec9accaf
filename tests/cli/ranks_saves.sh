#!/bin/bash
# Checkpoints that ranks write together: the bytes of one process, a rank that cannot write, one that is killed while it
# writes, ranks that do not see the same files. Usage: ranks_saves.sh MIXT
. "$(dirname "$0")/../support/script.sh"
. "$(dirname "$0")/../support/ranks.sh"
cd "$work" || exit 1
need_ranks

cat >run.yaml <<'Y'
model: mlp
precision: fp32
device: cpu
net: {hidden: [24]}
data: {kind: digits, samples: 400}
train: {batch: 24, eval_batch: 24, epochs: 0, steps: 4, validate_every: 100, log_every: 1, checkpoint_every: 2, keep: 9}
Y

# ---- the bytes of one process ----

# same_states FOLDER FOLDER: all checkpoints, and nothing else is left
same_states() {
    for step in 2 4; do
        cmp -s "$1/checkpoints/step-0000000$step/state.safetensors" "$2/checkpoints/step-0000000$step/state.safetensors" ||
            fail "$1 and $2 have other states after update $step"
    done
    [ -z "$(find "$2" -name '.?*')" ] || fail "$2: left behind: $(find "$2" -name '.?*')"
}
conv='model=convnet net.hidden=[] net.channels=[4,8] net.norm=batch'
"$mixt" train run.yaml out=one dist.ranks=3 $conv -q || fail "one process"
for level in 0 1 2 3; do
    ranks 3 "$mixt" train run.yaml out=zero$level dist.zero=$level $conv -q 2>err || fail "dist.zero=$level: $(cat err)"
    same_states one zero$level
done
grep -q '"version": 2' zero0/checkpoints/step-00000004/manifest.json || fail "no parts: $(head -3 zero0/checkpoints/step-00000004/manifest.json)"
MIXT_DISCRETE=1 ranks 2 "$mixt" train run.yaml out=apart dist.zero=1 -q 2>err || fail "as on a GPU: $(cat err)"
"$mixt" train run.yaml out=apart-one dist.ranks=2 -q || fail "one process, two ranks"
same_states apart-one apart
ranks 2 "$mixt" train run.yaml out=few dist.compress=powersgd:2 dist.compress_after=1 -q 2>err || fail "compressed: $(cat err)"
MIXT_DISCRETE=1 ranks 2 "$mixt" train run.yaml out=few-apart dist.compress=powersgd:2 dist.compress_after=1 -q 2>err || fail "compressed, apart: $(cat err)"
same_states few few-apart

# one process reads it, and ranks do; a byte that flips in any rank's part is found
cp -r zero3 back && rm back/model.safetensors
"$mixt" train --resume back train.steps=5 -q 2>err || fail "one process goes on: $(cat err)"
state=apart/checkpoints/step-00000004/state.safetensors
printf 'X' | dd of=$state bs=1 seek=$(($(stat -c %s $state) * 2 / 3)) conv=notrunc 2>/dev/null
ranks 2 "$mixt" train --resume apart train.steps=5 -q device=cpu 2>err || fail "damage is not gone around: $(cat err)"
[ "$(grep -c 'step-00000004/state.safetensors: is damaged: the checksum of tensor .* not used; trying the checkpoint before it' err)" = 1 ] &&
    [ -e apart/checkpoints/damaged-00000004 ] || fail "a byte flipped: $(cat err)"

state=few/checkpoints/step-00000004/state.safetensors # cut, which all ranks see
truncate -s -1 $state
ranks 2 "$mixt" train --resume few train.steps=5 -q 2>err || fail "a cut file: $(cat err)"
[ "$(grep -c 'step-00000004/state.safetensors: is damaged: it has .* not used; trying the checkpoint before it' err)" = 1 ] || fail "a cut file: $(cat err)"

# ---- a rank that cannot write: said once with its number, training goes on ----

for rank in 0 1; do
    envs=(MIXT_FAIL_WRITE= MIXT_FAIL_WRITE=)
    [ $rank = 0 ] && envs[0]+=6 || envs[1]+=2 # of rank 0, after its configuration and the like
    timeout 60 mpirun -n 1 env "${envs[0]}" "$mixt" train run.yaml out=full-$rank -q : \
        -n 1 env "${envs[1]}" "$mixt" train run.yaml out=full-$rank -q 2>err || fail "rank $rank cannot write: $(cat err)"
    [ "$(grep -c "no checkpoint of step 2: rank $rank: .*state.safetensors: .*No space left on device; training continues" err)" = 1 ] ||
        fail "rank $rank cannot write: $(cat err)"
    [ "$(ls -A full-$rank/checkpoints)" = step-00000004 ] || fail "rank $rank cannot write: $(ls -A full-$rank/checkpoints)"
    cmp -s full-$rank/model.safetensors apart-one/model.safetensors || fail "rank $rank cannot write: other weights"
done

# ---- a rank that is killed while a checkpoint is written ----

long='train.steps=150 train.checkpoint_every=1 train.keep=2 train.log_every=100'
ranks 2 "$mixt" train run.yaml out=whole $long -q 2>err || fail "a long run: $(cat err)"
for victim in 0 1; do
    out=killed-$victim
    timeout 60 mpirun -n 2 "$mixt" train run.yaml out=$out $long dist.timeout=3 -q 2>err &
    job=$!
    for _ in $(seq 3000); do [ "$(ls $out/checkpoints 2>/dev/null | wc -l)" -ge 2 ] && break; sleep 0.01; done
    for process in $(pgrep -P "$(pgrep -P $job)"); do # of timeout, of mpirun
        tr '\0' '\n' <"/proc/$process/environ" | grep -q "^OMPI_COMM_WORLD_RANK=$victim" && killed=$process
    done
    for _ in $(seq 3000); do compgen -G "$out/checkpoints/.saving-*/state.safetensors" >/dev/null && break; done
    kill -KILL "$killed" || fail "rank $victim had ended"
    wait $job
    ranks 2 "$mixt" train --resume $out -q 2>err || fail "rank $victim was killed: $(cat err)"
    same whole $out
    [ -z "$(find $out -name '.?*')" ] || fail "rank $victim was killed: left behind: $(find $out -name '.?*')"
done

# ---- ranks that do not see the same files ----

mkdir elsewhere
ranks 1 "$mixt" train run.yaml out=blind dist.zero=3 -q : \
    -n 1 --wdir "$work/elsewhere" "$mixt" train ../run.yaml out=blind dist.zero=3 -q 2>err || fail "other folders: $(cat err)"
[ "$(grep -c 'rank 1 does not see the files of rank 0 in blind' err)" = 1 ] || fail "other folders: $(cat err)"
same_states apart-one blind
[ -z "$(ls -A elsewhere)" ] || fail "rank 1 wrote $(ls -A elsewhere)"

[ $failures = 0 ]
