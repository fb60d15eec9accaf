#!/bin/bash
# The suites that take long: every FP32 input of every narrowing conversion; ten trials of each kind of fault and its diagnosis; MNIST to full accuracy where the data is there
# (MIXT_TEST_DATA, or ../shared/data); runs that are killed or stopped by signals and resumed, and resumed at every checkpoint; searches, comparisons and adoptions that are killed. Usage: run.sh BUILD
set -euo pipefail
build=$1
"$build/tests/slow_num_all"
"$build/tests/slow_faults" 10
bash tests/cli/resume.sh "$build/mixt" 5
bash tests/slow/kills.sh "$build/mixt" 50
bash tests/cli/signals.sh "$build/mixt" 200
bash tests/cli/search.sh "$build/mixt" 50
bash tests/cli/compare.sh "$build/mixt" 30
bash tests/slow/adopt_kills.sh "$build/mixt" 10
data=${MIXT_TEST_DATA:-../shared/data}/mnist
if [ ! -d "$data" ]; then
    echo "SKIPPED: no MNIST in $data"
    exit 77
fi
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
failed=0
for precision in fp32 fp16 bf16; do
    for seed in 1 2 3; do
        run=$out/$precision-$seed
        "$build/mixt" train configs/mnist.yaml data.path="$data" precision=$precision seed=$seed out="$run" --quiet
        accuracy=$("$build/mixt" eval "$run" --split test --json | sed 's/.*"accuracy": *\([0-9.e-]*\).*/\1/; s/.*"accuracy":\([0-9.e-]*\).*/\1/')
        echo "MNIST $precision seed $seed: test accuracy $accuracy"
        awk -v a="$accuracy" 'BEGIN { exit !(a >= 0.990) }' || failed=1
    done
done
[ $failed = 0 ] || { echo "a run fell short of 99.0%"; exit 1; }
