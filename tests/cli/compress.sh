#!/bin/bash
# Ranks that update by themselves and exchange a part of their weights' differences, after two updates together: the same
# bits each time and as on a device with memory of its own, what ranks have of their own in checkpoints, overflows, bytes
# and memory as planned, what is refused. Usage: compress.sh MIXT
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
refused 'dist.compress=topk:1%: every rank has moments of its own, which dist.zero=1' dist.compress=topk:1% dist.zero=1
refused 'dist.compress=topk:1%: each of the 2 ranks has weights .*mpirun -n 2' dist.compress=topk:1% dist.ranks=2

"$mixt" train run.yaml out=alone -q && "$mixt" train run.yaml out=alone-c dist.compress=topk:1% -q || fail "one rank"
same alone alone-c # there is nobody to send anything to

need_ranks

# states FOLDER FOLDER: of the last update, each rank's own too
states() { cmp "$1/checkpoints/step-00000006/state.safetensors" "$2/checkpoints/step-00000006/state.safetensors" || fail "$1 and $2: another state"; }

# bits NAME SETTINGS...: on $n ranks, and with memory apart; bytes and memory as planned
bits() {
    local name=$1 sent planned
    shift
    ranks "$n" "$mixt" train run.yaml "out=$name" "$@" 2>said >out || { fail "$name on $n ranks: $(cat said)"; return; }
    MIXT_DISCRETE=1 ranks "$n" -x MIXT_DISCRETE "$mixt" train run.yaml "out=$name-apart" "$@" -q 2>err || fail "$name apart: $(cat err)"
    same "$name" "$name-apart"
    states "$name" "$name-apart"
    "$mixt" plan run.yaml --ranks "$n" "$@" --json >plan.json
    planned=$(sed 's/.*"control":[0-9]*,"total":\([0-9]*\).*/\1/' plan.json)
    grep -q "\"memory\":$planned," "$name/metrics.jsonl" || fail "$name: planned $planned bytes, $(grep -o '"memory":[0-9]*' "$name/metrics.jsonl" | head -1)"
    sent=$(sed -n 's/^ranks .* and update, \([0-9]*\) bytes instead of.*/\1/p' said)
    "$mixt" plan run.yaml --ranks "$n" "$@" | grep -q "($sent bytes) per update; each writes its part of checkpoints" || fail "$name: $sent bytes an update, planned: $("$mixt" plan run.yaml --ranks "$n" "$@" | tail -1)"
    grep -q '^ranks .* bytes sent per rank; compressed exchanges took' said || fail "$name: $(cat said)"
}
seq 20000 >text
tokens='data.kind=text data.path=text data.samples=0 data.limit=200 data.seq=16 data.tokenizer=bytes net.layers=1 net.width=32'
printf 'default: bf16\nphases:\n  - {name: first, until: 3, default: fp32}\n  - {name: second}\n' >phases.yaml
n=2
bits topk dist.compress=topk:1% precision=phases.yaml # a plan that is replaced keeps what was not sent
n=3
bits powersgd model=gpt precision=fp16 $tokens net.hidden=[] net.heads=2 dist.compress=powersgd:4 train.batch=6 dist.bucket=4K

ranks 2 "$mixt" train run.yaml out=plain -q && ranks 2 "$mixt" train run.yaml out=never dist.compress=topk:1% dist.compress_after=100% -q || fail "all updates together"
same plain never # a compressed run is a plain one until it compresses

# the bytes that were sent are those that were said (folders of equal length: the configuration is sent once too)
ranks 2 "$mixt" train run.yaml out=six6 dist.compress=topk:1% train.validate_every=99 2>said >out
ranks 2 "$mixt" train run.yaml out=nine dist.compress=topk:1% train.validate_every=99 train.steps=9 2>said-nine >out
each=$(sed -n 's/^ranks .* and update, \([0-9]*\) bytes instead of.*/\1/p' said)
six=$(sed -n 's/^ranks *\([0-9]*\) bytes sent per rank; compressed exchanges took.*/\1/p' said)
nine=$(sed -n 's/^ranks *\([0-9]*\) bytes sent per rank; compressed exchanges took.*/\1/p' said-nine)
[ $((nine - six)) = $((3 * each)) ] || fail "3 updates more sent $((nine - six)) bytes more, not 3 times $each"

# so are those of updates that send all gradients, and the plan's sum over the run, with all that is left in the last
ranks 2 "$mixt" train run.yaml out=full dist.compress=topk:1% dist.compress_after=5 train.validate_every=99 2>said-full >out
full=$(sed -n 's/^ranks *\([0-9]*\) bytes sent per rank; compressed exchanges took.*/\1/p' said-full)
"$mixt" plan run.yaml --ranks 2 dist.compress=topk:1% --json >plan.json
whole=$(sed 's/.*"rank_whole_sent":\([0-9]*\).*/\1/' plan.json)
[ $((full - six)) = $((3 * (whole - each))) ] || fail "3 updates whole sent $((full - six)) bytes more, not 3 times $whole - $each"
run=$(sed 's/.*"rank_run_sent":\([0-9]*\).*/\1/' plan.json)
all=$((run - 2 * whole - 3 * each))
[ $((all - whole)) -gt 0 ] && [ $((all - whole)) -lt 64 ] && [ $((six - run)) = $((full - 5 * whole - all)) ] || fail "the plan of a run: $(grep -o '"rank_.*' plan.json), sent $six and $full"
"$mixt" plan run.yaml --ranks 2 dist.compress=topk:1% | grep -q "^before that 2 updates with all gradients: .* ($whole bytes) each; with the last one, which sends the rest, .* ($run bytes) in all" || fail "the plan does not tell of both phases"

# ---- an overflow on one rank: all skip, as if all had overflowed ----

for how in topk:1% powersgd:2; do
    fp16="precision=fp16 dist.compress=$how train.loss_scale=256" # so that no other overflows
    timeout 60 mpirun -n 1 "$mixt" train run.yaml "out=skip-$how" $fp16 -q : \
        -n 1 "$mixt" train run.yaml "out=skip-$how" $fp16 train.inject_overflow=4 -q 2>err || fail "an overflow on one rank: $(cat err)"
    ranks 2 "$mixt" train run.yaml "out=skip-all-$how" $fp16 train.inject_overflow=4 -q 2>err || fail "an overflow on all: $(cat err)"
    [ "$(grep -c '"skipped":1' "skip-$how/metrics.jsonl")" = 1 ] && ! grep -qi 'nan\|inf' "skip-$how/metrics.jsonl" || fail "$how: one update is skipped: $(cat "skip-$how/metrics.jsonl")"
    cmp "skip-$how/model.safetensors" "skip-all-$how/model.safetensors" || fail "$how: another update than if all had skipped"
done

# ---- going on: the same bits on as many ranks; on others, and without, all begin with the mean ----

# back FROM TO: a run that ended after 3 updates
back() { cp -r "$1" "$2" && rm -r "$2/checkpoints/step-00000006"; }
for how in topk:1% powersgd:4; do
    ranks 2 "$mixt" train run.yaml "out=six-$how" "dist.compress=$how" train.checkpoint_every=3 train.keep=9 -q 2>err || fail "a whole run: $(cat err)"
    back "six-$how" "part-$how"
    ranks 2 "$mixt" train --resume "part-$how" -q 2>err || fail "going on: $(cat err)"
    same "six-$how" "part-$how"
    states "six-$how" "part-$how"
done
back six-topk:1% four && ranks 4 "$mixt" train --resume four -q 2>err || fail "going on on 4 ranks: $(cat err)"
back six-topk:1% other && "$mixt" train --resume other dist.compress=none -q 2>err || fail "going on without: $(cat err)"

[ $failures = 0 ]
