#!/bin/bash
# Compressed gradients on tiny Shakespeare: a small GPT on 2 ranks, 1,000 updates with all of the gradient, with top-k 1%
# and with PowerSGD of rank 4. Prints bytes sent and losses, and how far validation is above that of the uncompressed
# run: a measurement. What is tested is that the bytes that were sent are those that were planned.
# Usage: rank_compress.sh MIXT [STEPS [SETTINGS...]], as in rank_compress.sh build/mixt 1000 net.width=64
. "$(dirname "$0")/../support/script.sh"
. "$(dirname "$0")/../support/ranks.sh"
steps=${2:-1000}
text=$(realpath ../shared/data/tinyshakespeare/input.txt 2>/dev/null)
shift $(($# < 2 ? $# : 2))
cd "$work" || exit 1
[ -e "$text" ] || { echo "no ../shared/data/tinyshakespeare: compression is not measured"; exit; }
need_ranks
cat >run.yaml <<E
model: gpt
precision: bf16
device: cpu
net: {layers: 2, width: 64, heads: 2}
data: {kind: text, path: $text, tokenizer: bytes, seq: 64}
train: {epochs: 0, steps: $steps, batch: 16, lr: 0.002, beta2: 0.99, weight_decay: 0.1, clip: 1.0, schedule: cosine, min_lr: 0.0002, warmup: 50, log_every: 50, validate_every: $steps, eval_batch: 64}
E
base=
printf '%-12s %14s %12s %10s %10s %9s\n' dist.compress "bytes/update" "of all" "train loss" "val loss" above
for how in none powersgd:4 topk:1%; do
    timeout 3000 mpirun -n 2 "$mixt" train run.yaml "out=$how" "dist.compress=$how" "$@" --json --profile >result 2>err || { fail "$how: $(cat err)"; continue; }
    sent=$("$mixt" plan run.yaml --ranks 2 "dist.compress=$how" "$@" | sed -n 's/^one of 2 ranks.*(\([0-9]*\) bytes) an update.*/\1/p')
    loss=$(sed 's/.*"val_loss":\([0-9.]*\).*/\1/' result)
    [ -n "$base" ] || { base=$loss && all=$sent; }
    trained=$(tail -20 "$how/metrics.jsonl" | sed -n 's/.*"loss":\([0-9.]*\).*/\1/p' | awk '{s += $1} END {print s / NR}')
    awk -v h="$how" -v s="$sent" -v a="$all" -v t="$trained" -v l="$loss" -v b="$base" \
        'BEGIN {printf "%-12s %14d %11.2f%% %10.4f %10.4f %8.2f%%\n", h, s, 100 * s / a, t, l, 100 * (l / b - 1)}'
    moved=$(sed 's/.*"communication":{"sent":\([0-9]*\).*/\1/' result)
    [ $((moved / sent)) = "$steps" ] || fail "$how: $moved bytes sent in $steps updates of $sent"
done
[ $failures = 0 ]
