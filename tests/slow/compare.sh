#!/bin/bash
# Verdicts on real data: the conv net on MNIST and a small GPT on tiny Shakespeare, on the CPU.
#   A/A   FP32 against FP32 with each batch in two parts: the same update, other dropout masks. Never inferior
#   A/B   BF16 against FP32: non-inferior
#   A/B   FP16 without the loss scaling that it needs against FP32: inferior. Gradients are those of a batch 16384 (MNIST) or 4096 times
#         (a batch of 4 million characters) as large as the one trained, by a fixed scale below 1: small ones are flushed to 0.
# Usage: compare.sh MIXT [EXPERIMENTS [MODEL...]], as in compare.sh build/mixt 10 mnist shakespeare, or 3-10 for A/A experiments 3 to 10
# alone. Data: MIXT_TEST_DATA, or ../shared/data
. "$(dirname "$0")/../support/script.sh"
experiments=${2:-10}
models=${*:3}
data=$(realpath "${MIXT_TEST_DATA:-../shared/data}")
cd "$work" || exit 1

cat >mnist.yaml <<YAML
model: convnet
precision: fp32
threads: 1
net: {channels: [8, 16], dropout: 0.1}
data: {kind: idx, path: $data/mnist, limit: 10000}
train: {epochs: 0, steps: 200, batch: 64, lr: 0.002, schedule: cosine, warmup: 20}
YAML
cat >shakespeare.yaml <<YAML
model: gpt
precision: fp32
threads: 1
net: {layers: 2, width: 64, heads: 2, dropout: 0.1}
data: {kind: text, path: $data/tinyshakespeare/input.txt, seq: 64}
train: {epochs: 0, steps: 200, batch: 16, lr: 0.003, schedule: cosine, warmup: 20, clip: 1.0}
YAML
declare -A scales=([mnist]=0.00006103515625 [shakespeare]=0.000244140625)

field() { sed 's/,"a":{.*//' out | sed -n "s/.*[{,]\"$1\":\(\"[^\"]*\"\|\[[^]]*\]\|[^,}]*\).*/\1/p"; }
# compare WHAT B MARGIN SETTING...: the status in $status, a line for people
compare() {
    local what=$1 b=$2 margin=$3
    shift 3
    "$mixt" compare "$model.yaml" "$b" --margin "$margin" --name "$model-$what" --json "$@" >out 2>err
    status=$?
    echo "$model $what: $(field verdict), difference $(field difference) $(field interval), $(field pairs) pairs of $(field pairs_needed) needed, p $(field p)"
    [ $status = 1 ] && { fail "$model $what"; cat err; }
}

for model in ${models:-mnist shakespeare}; do
    [ -d "$data/${model/shakespeare/tinyshakespeare}" ] || { echo "skipped: no $model in $data"; continue; }
    sed 's/train: {/train: {split: 2, /' "$model.yaml" >"$model-2.yaml"
    sed 's/^precision: fp32/precision: bf16/' "$model.yaml" >"$model-bf16.yaml"
    sed "s/^precision: fp32/precision: fp16/; s/train: {/train: {loss_scale: ${scales[$model]}, /" "$model.yaml" >"$model-fp16.yaml"
    alike=0 made=0
    for i in $(seq ${experiments/-/ }); do # "10", or "3 10"
        compare "aa-$i" "$model-2.yaml" 3% seed=$((1000 * i))
        [ $status = 3 ] && fail "$model: FP32 was called inferior to itself: $(cat out)"
        [ $status = 0 ] && alike=$((alike + 1))
        made=$((made + 1))
        rm -r "runs/compare-$model-aa-$i"
    done
    echo "$model A/A: non-inferior in $alike of $made"
    [ "$experiments" = "${experiments/-/}" ] || continue
    compare bf16 "$model-bf16.yaml" 1%
    [ $status = 0 ] || fail "$model: BF16 is not non-inferior: $(cat out)"
    compare fp16 "$model-fp16.yaml" 1%
    [ $status = 3 ] || fail "$model: FP16 without loss scaling is not inferior: $(cat out)"
done
[ $failures = 0 ] && echo "compare: all good"
exit $((failures > 0))
