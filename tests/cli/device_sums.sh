#!/bin/bash
# Gradients summed over ranks in the device's own memory (dist.transport=nccl), with sums over shared memory in NCCL's place and the
# CPU in a GPU's: the bits of one process, memory as planned, what does not go together. Usage: device_sums.sh MIXT
. "$(dirname "$0")/../support/script.sh"
. "$(dirname "$0")/../support/ranks.sh"
cd "$work" || exit 1
cat >run.yaml <<'Y'
model: mlp
device: cpu
net: {hidden: [24]}
data: {kind: digits, samples: 400}
train: {batch: 16, eval_batch: 16, epochs: 0, steps: 6, validate_every: 3, log_every: 1}
dist: {bucket: 4K}
Y
seq 20000 >text
tokens='data.kind=text data.path=text data.samples=0 data.limit=200 data.seq=16 data.tokenizer=bytes net.layers=1 net.width=32'

# ---- what cannot be ----

# refused WORDS SETTINGS...: status 1 or 2, these words, nothing left
refused() {
    local words=$1
    shift
    "$mixt" train run.yaml out=never dist.transport=nccl "$@" -q 2>err && fail "'$words' is not refused"
    grep -q "^mixt: .*$words" err && [ "$(wc -l <err)" = 1 ] && [ ! -e never ] || fail "'$words': $(cat err)"
}
refused 'sums in the memory of GPUs, but this run is on the cpu: use dist.transport=mpi'
refused 'leave out dist.reduce and dist.compress' dist.reduce=bf16
refused 'leave out dist.reduce and dist.compress' dist.compress=topk:1%
export MIXT_DISCRETE=1
MIXT_NCCL_LIBRARY=$work/none.so refused 'the transport nccl is not here: .*none.so'
"$mixt" info | grep -q '^         nccl: ' && "$mixt" info --json | grep -q '"nccl"' || fail "info does not name the transport"

library=$(dirname "$mixt")/tests/libtest_sums.so
if ! [ -e "$library" ]; then
    echo "no $library: sums are not tested"
    [ $failures = 0 ]
    exit
fi
export MIXT_NCCL_LIBRARY=$library
"$mixt" info | grep -q '^         nccl: memory' || fail "info: $("$mixt" info | grep -A1 '^ranks')"

# ---- one rank: nothing changes ----

"$mixt" train run.yaml out=plain precision=fp16 train.accumulate=2 -q && "$mixt" train run.yaml out=one precision=fp16 train.accumulate=2 dist.transport=nccl -q 2>err ||
    fail "one rank: $(cat err)"
same plain one

# ---- several: the bits of one process ----

need_ranks
# bits N NAME SETTINGS...
bits() {
    local n=$1 name=$2
    shift 2
    "$mixt" train run.yaml out=$name-one dist.ranks=$n "$@" -q 2>err || { fail "$name in one process: $(cat err)"; return; }
    ranks $n "$mixt" train run.yaml out=$name-sums dist.transport=nccl "$@" -q 2>err || { fail "$name: $(cat err)"; return; }
    same $name-one $name-sums
    cmp $name-one/checkpoints/step-00000006/state.safetensors $name-sums/checkpoints/step-00000006/state.safetensors || fail "$name: another state"
    planned=$("$mixt" plan run.yaml --ranks $n dist.transport=nccl "$@" --json | sed 's/.*"control":[0-9]*,"total":\([0-9]*\).*/\1/')
    grep -q "\"memory\":$planned," $name-sums/metrics.jsonl || fail "$name: planned $planned, $(grep -o '"memory":[0-9]*' $name-sums/metrics.jsonl | sort -u)"
}
bits 2 convnet model=convnet precision=bf16 net.hidden=[] net.channels=[4,8] net.norm=batch train.accumulate=2 dist.zero=1
bits 4 gpt model=gpt precision=fp16 $tokens net.hidden=[] net.heads=2 net.dropout=0.1 train.clip=0.5 train.inject_overflow=3 watch.every=2 dist.check=2

# ---- gradients and weights that are sharded: sums and weights come as late as they may ----

deep="model=gpt $tokens net.hidden=[] net.layers=6 net.heads=2 dist.bucket=16K"
bits 4 gradients $deep precision=fp32 dist.zero=2 train.clip=0.5
bits 2 weights $deep precision=fp16 dist.zero=3 train.inject_overflow=3 watch.every=2
bits 2 passes $deep net.layers=2 precision=bf16 dist.zero=3 train.accumulate=2 train.optimizer=lamb

[ $failures = 0 ]
