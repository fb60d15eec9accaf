#!/bin/bash
# Bits that flip in the memory of one of two ranks while they train: each is found at the next update and named, and all ends with the
# bits of ranks that nobody disturbed. Usage: flips_ranks.sh MIXT [COUNT a model] [SEED] [key=value …]
. "$(dirname "$0")/../support/script.sh"
. "$(dirname "$0")/../support/ranks.sh"
need_ranks
flips=$(dirname "$mixt")/tests/slow_flips count=${2:-6} seed=${3:-1}
shift $(($# < 3 ? $# : 3))
export LD_LIBRARY_PATH=$(dirname "$mixt")
cd "$work" || exit 1
# Where ranks share state out (dist.zero), what a rank only receives from others is not summed.
number=0
for model in mlp convnet lstm gpt lamb; do
    number=$((number + 1))
    rank=$((number % 2))
    timeout 300 mpirun -n 2 "$flips" 0 1 "plain-$model" --rank 0 $model train.steps=$((90 + 6 * count)) train.validate_every=$((90 + 6 * count)) "$@" >log 2>&1 || fail "$model, undisturbed: $(tail -2 log)"
    timeout 300 mpirun -n 2 "$flips" "$count" $((seed + number)) "flips-$model" --rank $rank $model "$@" >log 2>&1 || fail "$model, rank $rank: $(head -4 log)"
    echo "rank $rank: $(grep flips: log)"
    cmp -s "plain-$model/model.safetensors" "flips-$model/model.safetensors" || fail "$model: other bits"
done
