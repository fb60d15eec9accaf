#!/bin/bash
# A random rank is killed (SIGKILL) or stopped (SIGSTOP) at a random instant of training: the others end within
# dist.timeout and name it, and the run, resumed, ends with the bits of one that was left alone.
# Before the run's directory is there ranks wait for each other inside MPI, whose launcher answers for them.
# Usage: rank_kills.sh MIXT [KILLS]
. "$(dirname "$0")/../support/script.sh"
. "$(dirname "$0")/../support/ranks.sh"
kills=${2:-50}
seed=${MIXT_KILL_SEED:-20241117}
seconds=5 # dist.timeout
support=$(realpath "$(dirname "$0")/../support")
cd "$work" || exit 1
. "$support/rank_runs.sh"
need_ranks
long='train.steps=120 train.checkpoint_every=7 train.keep=2'

now() { echo $(($(date +%s%N) / 1000000)); }
alive() { [ -e "/proc/$1" ] && ! grep -q '^State:.*Z' "/proc/$1/status" 2>/dev/null; }
# begin FOLDER: starts ranks; waits for the folder
begin() {
    timeout 300 mpirun --mca odls_base_sigkill_timeout 3 -n $n "$mixt" train run.yaml "out=$1" $settings $long dist.timeout=$seconds -q 2>err &
    job=$!
    until [ -e "$1/config.yaml" ] || ! alive $job; do sleep 0.01; done
}
# find_ranks: their processes in processes[RANK]
find_ranks() {
    processes=()
    for process in $(pgrep -P "$(pgrep -P $job)" 2>/dev/null); do # of timeout, of mpirun
        rank=$(tr '\0' '\n' 2>/dev/null <"/proc/$process/environ" | sed -n 's/^OMPI_COMM_WORLD_RANK=//p')
        [ -z "$rank" ] || processes[rank]=$process
    done
}

for v in 0 1 2 3; do
    variant $v
    begin whole-$v
    start=$(now)
    wait $job || fail "whole-$v: $(cat err)"
    lasts[v]=$(($(now) - start))
done

killed=0 stopped=0 named=0 early=0 longest=0 tries=0
while [ $((killed + stopped)) -lt "$kills" ] && [ $tries -lt $((kills * 3)) ]; do
    tries=$((tries + 1))
    v=$((tries % 4)) out=broken-$tries
    variant $v
    begin $out
    below ${lasts[v]}
    sleep "$(printf '%d.%03d' $((drawn / 1000)) $((drawn % 1000)))"
    find_ranks
    below $n
    victim=$drawn
    signal=KILL
    [ $(((killed + stopped) % 2)) = 0 ] || signal=STOP
    if [ ${#processes[@]} -lt $n ] || ! kill -$signal ${processes[victim]} 2>/dev/null; then # it was faster
        wait $job
        continue
    fi
    start=$(now)
    for rank in "${!processes[@]}"; do
        [ "$rank" = $victim ] || while alive ${processes[rank]}; do sleep 0.02; done
    done
    took=$(($(now) - start))
    [ $signal = KILL ] || kill -KILL ${processes[victim]} 2>/dev/null
    wait $job
    status=$?
    if [ -e $out/model.safetensors ]; then # a rank that had nothing left to do
        early=$((early + 1))
        rm -rf $out
        continue
    fi
    [ $took -gt $longest ] && longest=$took
    [ $took -lt $((seconds * 1000 + 5000)) ] || fail "$out: $signal of rank $victim: the others ended after $took ms"
    [ $status != 0 ] || fail "$out: $signal of rank $victim: status 0"
    grep -q "rank $victim (process ${processes[victim]} on " err && named=$((named + 1)) || fail "$out: $signal of rank $victim: $(cat err)"
    if [ -e $out/config.yaml ]; then
        timeout 120 mpirun -n $n "$mixt" train --resume $out -q 2>err || fail "$out does not go on: $(cat err)"
    fi
    same whole-$v $out
    rm -rf $out
    [ $signal = KILL ] && killed=$((killed + 1)) || stopped=$((stopped + 1))
done
echo "$killed ranks killed, $stopped stopped: $named named by the others, which ended within $longest ms (dist.timeout $seconds s); $early had ended before"
[ $((killed + stopped)) = "$kills" ] || fail "only $((killed + stopped)) of $kills"
[ $failures = 0 ]
