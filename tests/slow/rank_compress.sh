#!/bin/bash
# Compressed training on tiny Shakespeare: a small GPT on 2 ranks, 1,000 updates with all gradients, and with top-k 1%
# and PowerSGD of rank 4, which begin with dist.compress_after of the run uncompressed. Prints bytes sent over the whole
# run and losses. Fails where validation ends more than 1% above the uncompressed run, and where other bytes were
# sent than planned.
# Usage: rank_compress.sh MIXT [STEPS [SETTINGS...]], as in rank_compress.sh build/mixt 1000 dist.compress_after=25%
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
watch: {every: 0}
train: {epochs: 0, steps: $steps, batch: 16, lr: 0.002, beta2: 0.99, weight_decay: 0.1, clip: 1.0, schedule: cosine, min_lr: 0.0002, warmup: 50, log_every: 50, validate_every: $steps, eval_batch: 64}
E
base=
# planned NAME: a number of the plan of $how
planned() {
    "$mixt" plan run.yaml --ranks 2 "dist.compress=$how" "${settings[@]}" --json | sed "s/.*\"$1\":\([0-9]*\).*/\1/"
}
settings=("$@")
printf '%-12s %13s %13s %13s %8s %10s %9s %8s\n' dist.compress "bytes/update" "updates whole" "bytes in all" "of all" "train loss" "val loss" above
for how in none powersgd:4 topk:1%; do
    timeout 3000 mpirun -n 2 "$mixt" train run.yaml "out=$how" "dist.compress=$how" "$@" --json --profile >result 2>err || { fail "$how: $(cat err)"; continue; }
    sent=$(planned rank_run_sent)
    loss=$(sed 's/.*"val_loss":\([0-9.]*\).*/\1/' result)
    [ -n "$base" ] || { base=$loss && all=$sent; }
    trained=$(tail -20 "$how/metrics.jsonl" | sed -n 's/.*"loss":\([0-9.]*\).*/\1/p' | awk '{s += $1} END {print s / NR}')
    awk -v h="$how" -v u="$(planned rank_sent)" -v w="$(planned rank_whole)" -v s="$sent" -v a="$all" -v t="$trained" -v l="$loss" -v b="$base" \
        'BEGIN {printf "%-12s %13d %13d %13d %7.2f%% %10.4f %9.4f %7.2f%%\n", h, u, w, s, 100 * s / a, t, l, 100 * (l / b - 1)}'
    awk -v l="$loss" -v b="$base" 'BEGIN {exit !(l <= 1.01 * b)}' || fail "$how: validation loss $loss, more than 1% above $base"
    moved=$(sed 's/.*"communication":{"sent":\([0-9]*\).*/\1/' result)
    # beside updates: the configuration and figures of validation, less than one update
    [ "$moved" -ge "$sent" ] && [ $((moved - sent)) -lt "$(planned rank_sent)" ] || fail "$how: $moved bytes sent, planned $sent"
done
[ $failures = 0 ]
