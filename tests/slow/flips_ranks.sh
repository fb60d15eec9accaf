#!/bin/bash
# Bits that flip in the memory of one of two ranks while they train: each is found at the next update and named, and all ends with the
# bits of ranks that nobody disturbed. Usage: flips_ranks.sh MIXT [COUNT a model] [SEED] [key=value …]
. "$(dirname "$0")/../support/script.sh"
. "$(dirname "$0")/../support/ranks.sh"
need_ranks
flips=$(dirname "$mixt")/tests/slow_flips count=${2:-6} seed=${3:-1}
shift; shift; shift
export LD_LIBRARY_PATH=$(dirname "$mixt")
cd "$work" || exit 1
number=0
for zero in 0 1 2; do # 3 has no controller
    for model in mlp convnet gpt lamb; do
        number=$((number + 1))
        rank=$((number % 2))
        timeout 300 mpirun -n 2 "$flips" 0 1 "plain$zero-$model" --rank 0 $model dist.zero=$zero train.steps=$((90 + 6 * count)) train.validate_every=$((90 + 6 * count)) "$@" >log 2>&1 || fail "$model, dist.zero=$zero, undisturbed: $(tail -2 log)"
        timeout 300 mpirun -n 2 "$flips" "$count" $((seed + number)) "flips$zero-$model" --rank $rank $model dist.zero=$zero "$@" >log 2>&1 || fail "$model, dist.zero=$zero, rank $rank: $(tail -4 log)"
        echo "dist.zero=$zero rank $rank: $(grep flips: log)"
        cmp -s "plain$zero-$model/model.safetensors" "flips$zero-$model/model.safetensors" || fail "$model, dist.zero=$zero: other bits"
    done
done
