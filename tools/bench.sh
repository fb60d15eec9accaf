#!/bin/bash
# Speed of this machine: conversions against memcpy, kernels, then a training step of each small model. Usage: bench.sh BUILD
set -euo pipefail
build=$1
for bench in convert gemm conv attention pointwise optimizer loaders; do
    [ -x "$build/bench/$bench" ] && { echo "== $bench"; "$build/bench/$bench"; }
done
echo "== training steps"
for model in mlp convnet gpt lstm; do
    for precision in fp32 bf16 fp16; do
        "$build/mixt" bench $model --precision $precision
    done
done
