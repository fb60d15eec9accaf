#!/bin/bash
# One rank through NCCL inside the replayed step: the same bits as without, and what it costs. GPT-2 124M's update is
# timed, the best of ROUNDS (3) runs each way in turn, and must not take more than 1% longer. Then two ranks, with every dist.zero.
# Usage: nccl.sh MIXT; TIMED=0 leaves the timing out; MODELS, PRECISIONS and ZEROS narrow the rest.
. "$(dirname "$0")/../support/script.sh"
cd "$work" || exit 1
export MIXT_CACHE=${MIXT_CACHE:-$work/cache}
unset MIXT_DEVICE MIXT_REPLAY MIXT_FUSION
if ! "$mixt" info | grep -q '^         nccl: NCCL'; then
    echo "NCCL cannot be loaded: $("$mixt" info | sed -n 's/^         nccl: //p')"
    exit 1
fi
yes 'the quick brown fox jumps over the lazy dog' | head -c 40000 >words.txt
cat >run.yaml <<'Y'
device: cuda
data: {kind: digits, samples: 400}
train: {batch: 16, eval_batch: 16, epochs: 0, steps: 8, validate_every: 4, log_every: 1}
threads: 2
Y
mlp="model=mlp net.hidden=64,32 net.dropout=0.1"
convnet="model=convnet net.channels=8,16 net.norm=batch train.accumulate=2"
words="data.kind=text data.path=words.txt data.samples=0 data.seq=32 data.limit=400"
gpt="model=gpt net.layers=6 net.width=64 net.heads=2 train.clip=0.5 $words"
lstm="model=lstm net.layers=2 net.width=64 $words"

losses() { sed 's/.*"loss":\([^,]*\),.*/\1/' "$1/metrics.jsonl"; }
cells=0
for model in ${MODELS:-mlp convnet gpt lstm}; do
    for precision in ${PRECISIONS:-fp32 bf16 fp16}; do
        name=$model-$precision
        "$mixt" train run.yaml ${!model} precision=$precision out=$name-plain -q 2>err || { fail "$name: $(tail -2 err)"; continue; }
        "$mixt" train run.yaml ${!model} precision=$precision out=$name-nccl dist.transport=nccl dist.bucket=64K -q 2>err ||
            { fail "$name over NCCL: $(tail -2 err)"; continue; }
        cmp -s $name-plain/model.safetensors $name-nccl/model.safetensors && [ "$(losses $name-plain)" = "$(losses $name-nccl)" ] ||
            fail "$name: NCCL changes the bits"
        cells=$((cells + 1))
    done
done
echo "$cells models and formats over NCCL, $failures failures"

# Two ranks on one GPU: NCCL takes none, and all end with a message that says so. Told that they are on two machines it joins them, over
# sockets; a sum of two has one order, so the bits are those of one process. Then without MPI, whose messages go over NCCL too.
# apart SETTINGS...: two ranks that NCCL takes for two machines
apart() {
    timeout 120 mpirun -n 2 bash -c 'NCCL_HOSTID=machine$OMPI_COMM_WORLD_RANK exec "$@"' - "$mixt" train run.yaml "$@" dist.transport=nccl dist.bucket=64K -q 2>err
}
# alone SETTINGS...: the same, started as Slurm does, without MPI
alone() {
    local rank
    for rank in 1 0; do
        timeout 120 env NCCL_COMM_ID=127.0.0.1:29417 NCCL_HOSTID=machine$rank SLURM_PROCID=$rank SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=0 SLURM_STEP_TASKS_PER_NODE='1(x2)' \
            "$mixt" train run.yaml "$@" dist.transport=nccl dist.bucket=64K -q 2>err$rank &
    done
    wait %1 && wait %2
}
if command -v mpirun >/dev/null && [ -e "$(dirname "$mixt")/libmixt_mpi.so" ] && [ "$(ls /dev/nvidia[0-9]* 2>/dev/null | wc -l)" -lt 2 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    timeout 60 mpirun -n 2 "$mixt" train run.yaml $mlp out=never dist.transport=nccl -q 2>err
    status=$?
    [ $status = 1 ] && grep -q 'NCCL' err && [ ! -e never ] || fail "two ranks on one GPU: status $status, $(tail -3 err)"
    echo "two ranks on one GPU: $(grep '^mixt: ' err | head -1)"
    export NCCL_SOCKET_IFNAME=lo
    cells=0
    # two NAME ZERO SETTINGS...: the bits of NAME-parts, the memory that was planned
    two() {
        local name=$1-two-$2 zero=$2 parts=$1-parts
        shift 2
        apart "$@" dist.zero=$zero out=$name || { fail "$name: $(tail -3 err)"; return; }
        cmp -s $parts/model.safetensors $name/model.safetensors && [ "$(losses $parts)" = "$(losses $name)" ] || fail "$name: other bits than one process"
        planned=$("$mixt" plan run.yaml "$@" --device cuda --ranks 2 dist.transport=nccl dist.bucket=64K dist.zero=$zero --json | sed 's/.*"control":[0-9]*,"total":\([0-9]*\).*/\1/')
        grep -q "\"memory\":$planned," $name/metrics.jsonl || fail "$name: planned $planned, $(grep -o '"memory":[0-9]*' $name/metrics.jsonl | sort -u)"
        cells=$((cells + 1))
    }
    for model in ${MODELS:-mlp convnet gpt lstm}; do
        "$mixt" train run.yaml ${!model} precision=bf16 out=$model-parts dist.ranks=2 -q 2>err || { fail "$model in two parts: $(tail -2 err)"; continue; }
        for zero in ${ZEROS:-0 1 2 3}; do
            two $model $zero ${!model} precision=bf16
        done
    done
    # in other formats, looked into, with an update that is skipped, with norms of parameters that are cut
    looked="$gpt precision=fp16 watch.every=2 train.inject_overflow=3"
    norms="$gpt net.layers=2 net.width=512 precision=fp32 train.optimizer=lamb train.accumulate=2"
    for name in looked norms; do
        "$mixt" train run.yaml ${!name} out=$name-parts dist.ranks=2 -q 2>err || { fail "$name in two parts: $(tail -2 err)"; continue; }
        for zero in ${ZEROS:-2 3}; do
            two $name $zero ${!name}
        done
    done
    for pair in 'mlp 0' 'gpt 3'; do
        read -r model zero <<<"$pair"
        alone ${!model} precision=bf16 dist.zero=$zero out=$model-alone || fail "two ranks of $model without MPI: $(tail -n 3 err0 err1)"
        "$mixt" train run.yaml ${!model} precision=bf16 out=$model-whole dist.ranks=2 -q 2>err
        cmp -s $model-whole/model.safetensors $model-alone/model.safetensors || fail "two ranks of $model without MPI: other bits than one process"
    done
    echo "$cells runs of two ranks over NCCL, and two without MPI, $failures failures"
    # Rows and columns of four ranks, their messages and the sums of their GPU's memory: parts of NCCL's communicator.
    grid=$(dirname "$mixt")/tests/ranks_grid pids=""
    for rank in 3 2 1 0; do
        timeout 120 env NCCL_COMM_ID=127.0.0.1:29418 NCCL_HOSTID=machine$rank SLURM_PROCID=$rank SLURM_STEP_NUM_TASKS=4 SLURM_LOCALID=0 SLURM_STEP_TASKS_PER_NODE='1(x4)' \
            MIXT_NCCL_LIBRARY=$(dirname "$mixt")/libmixt_nccl.so MIXT_CUDA_LIBRARY=$(dirname "$mixt")/libmixt_cuda.so "$grid" nccl >grid$rank 2>&1 &
        pids="$pids $!"
    done
    for pid in $pids; do
        wait $pid || fail "a grid of 4 ranks over NCCL: $(cat grid[0-3])"
    done
    echo "a grid of four ranks over NCCL, $failures failures"
fi

if [ "${TIMED:-1}" = 1 ]; then
    yes 'the quick brown fox jumps over the lazy dog' | head -c 4000000 >long.txt
    gpt2="model=gpt net.layers=12 net.width=768 net.heads=12 net.vocab=50257 precision=bf16 train.batch=16 data.kind=text data.path=long.txt
        data.samples=0 data.tokenizer=bytes data.seq=1024"
    # seconds of an update, the mean of those after the first ten: of one alone a host that was late would be taken for a fast device
    update() {
        "$mixt" train run.yaml $gpt2 train.validate_every=0 train.steps=40 train.checkpoint_every=0 out=time "$@" -q 2>err || { fail "GPT-2 $*: $(tail -2 err)"; return 1; }
        sed -n '11,40s/.*"samples_s":\([^,]*\),.*/\1/p' time/metrics.jsonl | awk '{ s += 16 / $1 } END { print s / NR }'
        rm -rf time
    }
    for round in $(seq "${ROUNDS:-3}"); do
        plain="${plain:-} $(update)" with="${with:-} $(update dist.transport=nccl dist.bucket=32M)"
    done
    best() { echo "$@" | tr ' ' '\n' | sort -g | head -1; }
    echo "$(best $plain) $(best $with)" | awk '{ printf "GPT-2 124M, bf16: %.5f s an update, %.5f over NCCL: %+.2f%%\n", $1, $2, 100 * ($2 / $1 - 1); exit !($2 <= 1.01 * $1) }' ||
        fail "NCCL takes more than 1% of GPT-2's update"
fi

[ $failures = 0 ]
