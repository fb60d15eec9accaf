#!/bin/bash
# Training in several processes: the same bits as in one, one run directory, ranks that fail. Usage: ranks.sh MIXT
. "$(dirname "$0")/../support/script.sh"
cd "$work" || exit 1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none MIXT_THREADS=1 OMPI_MCA_btl_vader_single_copy_mechanism=none

cat >run.yaml <<'Y'
model: mlp
precision: fp32
device: cpu
net: {hidden: [24]}
data: {kind: digits, samples: 400}
train: {batch: 16, eval_batch: 16, epochs: 0, steps: 6, validate_every: 3, log_every: 1}
Y

# same FOLDER FOLDER: weights, and metrics but for times and memory
figures() { sed 's/,"samples_s".*"time":[^,}]*//; s/,"checkpoint_stall":[^,}]*//; s/,"memory_by_role".*//' "$1/metrics.jsonl"; }
same() {
    cmp -s "$1/model.safetensors" "$2/model.safetensors" || { fail "$1 and $2 have other weights"; return; }
    cmp -s <(figures "$1") <(figures "$2") || fail "$1 and $2 have other metrics: $(diff <(figures "$1") <(figures "$2") | head -4)"
}

# ---- one process ----

"$mixt" train run.yaml out=one -q || fail "one process"
"$mixt" train run.yaml out=parts dist.ranks=2 -q || fail "dist.ranks=2 in one process"
"$mixt" train run.yaml out=accumulated train.batch=8 train.accumulate=2 -q || fail "accumulation"
same parts accumulated
"$mixt" train run.yaml out=uneven dist.ranks=3 -q 2>err && fail "3 ranks and a batch of 16"
grep -q '3 ranks: must divide the batch, 16' err || fail "3 ranks and a batch of 16: $(cat err)"
"$mixt" train run.yaml out=many dist.ranks=32 -q 2>err && fail "32 ranks and a batch of 16"
grep -q '32 ranks are more than a batch has samples, 16' err || fail "32 ranks and a batch of 16: $(cat err)"
[ ! -e uneven ] && [ ! -e many ] || fail "a refused run has left a directory"

if ! command -v mpirun >/dev/null || ! [ -e "$(dirname "$mixt")/libmixt_mpi.so" ]; then
    echo "no mpirun or no libmixt_mpi.so: ranks over MPI are not tested"
    [ $failures = 0 ]
    exit
fi
ranks() { timeout 60 mpirun -n "$@"; }

# ---- the same bits ----

ranks 1 "$mixt" train run.yaml out=alone -q || fail "one rank: $?"
same one alone
ranks 2 "$mixt" train run.yaml out=two >out 2>said || fail "two ranks: $(cat said)"
same parts two
[ "$(grep -c '^ranks    2 over Open MPI' said)" = 1 ] || fail "what is said of ranks: $(cat said)"
[ "$(grep -c '^run  *two$' out)" = 1 ] || fail "one table: $(cat out)"
ls two/checkpoints | grep -q 'step-00000006' || fail "no checkpoint: $(ls two/checkpoints)"

# MODEL SETTINGS...: in one process and over MPI, on $n ranks
bits() {
    local name=$1-$2
    shift 2
    "$mixt" train run.yaml "out=$name-one" "dist.ranks=$n" "$@" -q 2>err || { fail "$name in one process: $(cat err)"; return; }
    ranks "$n" "$mixt" train run.yaml "out=$name-ranks" "$@" -q 2>err || { fail "$name on $n ranks: $(cat err)"; return; }
    same "$name-one" "$name-ranks"
}
seq 20000 >text
tokens='data.kind=text data.path=text data.samples=0 data.limit=200 data.seq=16 data.tokenizer=bytes net.layers=1 net.width=32'
conv='net.hidden=[] net.channels=[4,8] net.norm=batch train.accumulate=2'
n=2
bits convnet bf16 model=convnet precision=bf16 $conv
bits gpt fp16 model=gpt precision=fp16 $tokens net.hidden=[] net.heads=2 net.dropout=0.1 train.clip=0.5 dist.bucket=4K
bits lstm fp32 model=lstm precision=fp32 $tokens net.hidden=[] train.split=2
bits mlp reduce model=mlp dist.reduce=bf16 train.optimizer=lamb
n=4
bits convnet fp32 model=convnet precision=fp32 $conv
bits gpt bf16 model=gpt precision=bf16 $tokens net.hidden=[] net.heads=2
bits mlp fp16 model=mlp precision=fp16

[ $failures = 0 ]
