#!/bin/bash
# An overflow on one rank only, at random ranks and updates: all skip that update and no other, and go on with the same
# loss scale, since weights and metrics are those of one process, or of ranks that all overflow there: a rank with
# another scale would add other gradients. Nothing hangs. Usage: rank_overflows.sh MIXT [OVERFLOWS]
. "$(dirname "$0")/../support/script.sh"
. "$(dirname "$0")/../support/ranks.sh"
overflows=${2:-100}
seed=${MIXT_KILL_SEED:-20241116}
support=$(realpath "$(dirname "$0")/../support")
cd "$work" || exit 1
. "$support/rank_runs.sh"
need_ranks

done=0
for i in $(seq "$overflows"); do
    variant "$i"
    below 9
    update=$((drawn + 1))
    below $n
    rank=$drawn
    one=one-$((i % 4))-$update out=ranks-$i
    alone="dist.ranks=$n" launch=
    [[ $settings != *dist.compress* ]] || alone='' launch="mpirun -n $n" # ranks with weights of their own: all overflow
    [ -e $one ] || $launch "$mixt" train run.yaml out=$one $settings $alone train.inject_overflow=$update -q 2>err || fail "$one: $(cat err)"
    before=$rank after=$((n - rank - 1))
    words=()
    [ $before = 0 ] || words+=(-n $before "$mixt" train run.yaml out=$out $settings dist.timeout=20 -q :)
    words+=(-n 1 "$mixt" train run.yaml out=$out $settings dist.timeout=20 train.inject_overflow=$update -q)
    [ $after = 0 ] || words+=(: -n $after "$mixt" train run.yaml out=$out $settings dist.timeout=20 -q)
    timeout 120 mpirun "${words[@]}" 2>err || { fail "overflow $i, update $update of rank $rank of $n: $(cat err)"; continue; }
    was=$failures
    same $one $out
    [ "$(grep -c '"skipped":1' $out/metrics.jsonl)" = 1 ] || fail "overflow $i: skipped are $(grep -c '"skipped":1' $out/metrics.jsonl)"
    done=$((done + (failures == was)))
    rm -rf "$out"
done
echo "$done of $overflows overflows on one rank: all ranks skipped that update, and ended witha second replay gave the same bits as the first: it happenedone process"
[ $failures = 0 ]
