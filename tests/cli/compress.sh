#!/bin/bash
# Compressed gradients between ranks, after two updates that send them whole: the same bits in one process and over MPI,
# feedback in checkpoints, overflows, bytes and memory as planned, what is refused. Usage: compress.sh MIXT
. "$(dirname "$0")/../support/script.sh"
. "$(dirname "$0")/../support/ranks.sh"
cd "$work" || exit 1

cat >run.yaml <<'Y'
model: mlp
precision: fp32
device: cpu
net: {hidden: [64, 32]}
data: {kind: digits, samples: 400}
train: {batch: 16, eval_batch: 16, epochs: 0, steps: 6, validate_every: 3, log_every: 1}
dist: {compress_after: 2}
Y

# ---- refused: named, nothing written ----

# refused WORDS SETTINGS...
refused() {
    local words=$1
    shift
    "$mixt" train run.yaml out=never "$@" -q 2>err && fail "$* is taken"
    grep -q "^mixt: .*$words" err || fail "$*: $(cat err)"
    [ ! -e never ] || fail "$*: a directory is left"
}
refused "dist.compress 'topk:1': expected none, topk:1%" dist.compress=topk:1
refused "dist.compress 'powersgd:65': expected none" dist.compress=powersgd:65
refused "dist.compress_after '120%': expected a number of updates" dist.compress=topk:1% dist.compress_after=120%
refused 'dist.compress=topk:1% and dist.reduce=bf16' dist.compress=topk:1% dist.reduce=bf16

# ---- one process ----

"$mixt" train run.yaml out=alone -q && "$mixt" train run.yaml out=alone-c dist.compress=topk:1% -q || fail "one rank"
same alone alone-c # there is nobody to send anything to
"$mixt" train run.yaml out=half dist.ranks=2 dist.compress=powersgd:4 train.steps=3 -q || fail "half a run"
"$mixt" train run.yaml out=whole dist.ranks=2 dist.compress=powersgd:4 -q || fail "a whole run"
"$mixt" train --resume half train.steps=6 -q || fail "going on"
same whole half
"$mixt" train run.yaml out=early dist.ranks=2 dist.compress=powersgd:4 train.steps=1 -q || fail "a run that ends before it compresses"
"$mixt" train --resume early train.steps=6 -q || fail "going on from there"
cmp whole/checkpoints/step-00000006/state.safetensors early/checkpoints/step-00000006/state.safetensors || fail "other bits than those of a whole run"
"$mixt" train run.yaml out=plain dist.ranks=2 -q && "$mixt" train run.yaml out=never dist.ranks=2 dist.compress=topk:1% dist.compress_after=100% -q || fail "all updates whole"
same plain never # a compressed run is a plain one until it compresses
cp -r whole other && "$mixt" train --resume other dist.ranks=1 dist.compress=none train.steps=7 -q 2>err || fail "going on without: $(cat err)"

need_ranks

# bits NAME SETTINGS...: in one process and over MPI, on $n ranks, state of checkpoints and memory too
bits() {
    local name=$1 sent planned
    shift
    "$mixt" train run.yaml "out=$name-one" "dist.ranks=$n" "$@" -q 2>err || { fail "$name in one process: $(cat err)"; return; }
    ranks "$n" "$mixt" train run.yaml "out=$name" "$@" 2>said >out || { fail "$name on $n ranks: $(cat said)"; return; }
    same "$name-one" "$name"
    cmp "$name-one/checkpoints/step-00000006/state.safetensors" "$name/checkpoints/step-00000006/state.safetensors" || fail "$name: another state"
    "$mixt" plan run.yaml --ranks "$n" "$@" --json >plan.json
    planned=$(sed 's/.*"control":[0-9]*,"total":\([0-9]*\).*/\1/' plan.json)
    grep -q "\"memory\":$planned," "$name/metrics.jsonl" || fail "$name: planned $planned bytes, $(grep -o '"memory":[0-9]*' "$name/metrics.jsonl" | head -1)"
    sent=$(sed -n 's/^ranks .* and update, \([0-9]*\) bytes instead of.*/\1/p' said)
    "$mixt" plan run.yaml --ranks "$n" "$@" | grep -q "($sent bytes) an update" || fail "$name: $sent bytes an update, planned: $("$mixt" plan run.yaml --ranks "$n" "$@" | tail -1)"
    grep -q '^ranks .* bytes sent a rank; compressed sums took' said || fail "$name: $(cat said)"
}
seq 20000 >text
tokens='data.kind=text data.path=text data.samples=0 data.limit=200 data.seq=16 data.tokenizer=bytes net.layers=1 net.width=32'
printf 'default: bf16\nphases:\n  - {name: first, until: 3, default: fp32}\n  - {name: second}\n' >phases.yaml
n=2
bits topk dist.compress=topk:1% precision=phases.yaml dist.zero=1 # a plan that is replaced keeps the feedback
n=3
bits powersgd model=gpt precision=fp16 $tokens net.hidden=[] net.heads=2 dist.compress=powersgd:4 train.batch=6 dist.bucket=4K

# a device with memory of its own does the same over the host
MIXT_APART=1 ranks 3 -x MIXT_APART "$mixt" train run.yaml out=apart model=gpt precision=fp16 $tokens net.hidden=[] net.heads=2 \
    dist.compress=powersgd:4 train.batch=6 dist.bucket=4K -q 2>err || fail "apart: $(cat err)"
same powersgd apart

# the bytes that were sent are those that were said (folders of equal length: the configuration is sent once too)
ranks 2 "$mixt" train run.yaml out=six6 dist.compress=topk:1% train.validate_every=99 2>said >out
ranks 2 "$mixt" train run.yaml out=nine dist.compress=topk:1% train.validate_every=99 train.steps=9 2>said-nine >out
each=$(sed -n 's/^ranks .* and update, \([0-9]*\) bytes instead of.*/\1/p' said)
six=$(sed -n 's/^ranks *\([0-9]*\) bytes sent a rank.*/\1/p' said)
nine=$(sed -n 's/^ranks *\([0-9]*\) bytes sent a rank.*/\1/p' said-nine)
[ $((nine - six)) = $((3 * each)) ] || fail "3 updates more sent $((nine - six)) bytes more, not 3 times $each"

# so are those of updates that send gradients whole, and the plan's sum over the run
ranks 2 "$mixt" train run.yaml out=full dist.compress=topk:1% dist.compress_after=5 train.validate_every=99 2>said-full >out
full=$(sed -n 's/^ranks *\([0-9]*\) bytes sent a rank.*/\1/p' said-full)
"$mixt" plan run.yaml --ranks 2 dist.compress=topk:1% --json >plan.json
whole=$(sed 's/.*"rank_whole_sent":\([0-9]*\).*/\1/' plan.json)
[ $((full - six)) = $((3 * (whole - each))) ] || fail "3 updates whole sent $((full - six)) bytes more, not 3 times $whole - $each"
grep -q "\"rank_whole\":2,\"rank_whole_sent\":$whole,\"rank_run_sent\":$((2 * whole + 4 * each))[,}]" plan.json || fail "the plan of a run: $(grep -o '"rank_.*' plan.json)"
"$mixt" plan run.yaml --ranks 2 dist.compress=topk:1% | grep -q "^before that 2 updates with gradients whole: .* ($whole bytes) each; .* ($((2 * whole + 4 * each)) bytes) in all" || fail "the plan does not tell of both phases"

# ---- an overflow on one rank: all skip, the feedback stays whole ----

for how in topk:1% powersgd:2; do
    timeout 60 mpirun -n 1 "$mixt" train run.yaml "out=skip-$how" precision=fp16 "dist.compress=$how" -q : \
        -n 1 "$mixt" train run.yaml "out=skip-$how" precision=fp16 "dist.compress=$how" train.inject_overflow=3 -q 2>err || fail "an overflow on one rank: $(cat err)"
    [ "$(grep -c '"skipped":1' "skip-$how/metrics.jsonl")" = 1 ] && ! grep -qi 'nan\|inf' "skip-$how/metrics.jsonl" || fail "$how: one update is skipped: $(cat "skip-$how/metrics.jsonl")"
done

# ---- going on: the same bits on as many ranks; on others nothing is lost ----

ranks 2 "$mixt" train run.yaml out=topk-six dist.compress=topk:1% -q 2>err || fail "a whole run: $(cat err)"
ranks 2 "$mixt" train run.yaml out=part train.steps=3 dist.compress=topk:1% -q 2>err || fail "half a run: $(cat err)"
cp -r part part-three
ranks 2 "$mixt" train --resume part train.steps=6 -q 2>err || fail "going on: $(cat err)"
same topk-six part
ranks 4 "$mixt" train --resume part-three train.steps=6 -q 2>err || fail "going on on 4 ranks: $(cat err)"

[ $failures = 0 ]
