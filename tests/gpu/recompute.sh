#!/bin/bash
# What recomputation costs on a GPU: GPT-2 124M, 32 x 1024 tokens, BF16, in less and less memory. Fails where the step within
# 9 GiB takes more than 1.12 times its own without a limit, where more is taken than allowed, or where predicted and measured
# times are more than 5% apart. Minutes; run by hand. Usage: recompute.sh MIXT
set -u
mixt=$(realpath "$1") failed=""
fail() { echo "FAILED: $*"; failed=1; }
number() { grep -o "\"$1\": *[-+.0-9e]*" <<<"$line" | sed 's/.*: *//'; }
bench() { line=$("$mixt" bench gpt2 --precision bf16 --device cuda --steps 60 --json "$@") || { fail "bench $*"; exit 1; }; }

bench
plain=$(number ms)
echo "no limit: $plain ms, $(number peak_gib) GiB"
last=0
for limit in 12 11 10 9 8 7 6; do
    bench --memory ${limit}G
    again=$(number recompute_ms)
    awk -v limit=$limit -v ms="$(number ms)" -v plain="$plain" -v again="${again:-0}" -v taken="$(number peak_gib)" -v nodes="$(number recomputed)" -v last="$last" 'BEGIN {
        predicted = plain + again
        printf "%d GiB: %.2f ms (%.3f of no limit), predicted %.2f (%+.1f%%), %.3f GiB taken, %d nodes again\n", limit, ms, ms / plain, predicted, 100 * (predicted / ms - 1), taken, nodes
        exit !(taken <= limit && predicted / ms > 0.95 && predicted / ms < 1.05 && again >= last && (limit != 9 || ms <= 1.12 * plain))
    }' || fail "within $limit GiB"
    last=${again:-0}
done
[ -z "$failed" ]
