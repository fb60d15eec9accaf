#!/bin/bash
# The same bits whatever is sharded: four models in three formats, on 2 and 4 CPU ranks, with every level of dist.zero,
# next to one process that makes the parts one after the other; and memory as planned, to the byte.
# Usage: ranks_bits.sh MIXT [RANKS [LEVELS]], as: ranks_bits.sh build/mixt '2 4' '0 1 2 3'
. "$(dirname "$0")/../support/script.sh"
counts=${2:-2 4}
levels=${3:-0 1 2 3}
cd "$work" || exit 1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none MIXT_THREADS=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
if ! command -v mpirun >/dev/null || ! [ -e "$(dirname "$mixt")/libmixt_mpi.so" ]; then
    echo "no mpirun or no libmixt_mpi.so: nothing is tested"
    exit 0
fi

cat >run.yaml <<'Y'
precision: fp32
device: cpu
data: {kind: digits, samples: 400}
train: {batch: 16, eval_batch: 16, epochs: 0, steps: 6, validate_every: 3, log_every: 1, clip: 0.5, checkpoint_every: 3}
Y
seq 20000 >text
tokens='data.kind=text data.path=text data.samples=0 data.limit=200 data.seq=16 data.tokenizer=bytes'
settings_mlp='net.hidden=[96,96,96,96,96,96]'
settings_convnet='net.channels=[8,16,24] net.norm=batch'
settings_gpt="$tokens net.layers=4 net.width=48 net.heads=2 net.dropout=0.1"
settings_lstm="$tokens net.layers=3 net.width=48"

figures() { sed 's/,"samples_s".*"time":[^,}]*//; s/,"checkpoint_stall":[^,}]*//; s/,"memory_by_role".*//' "$1/metrics.jsonl"; }
# check NAME ONE RANKS: weights, metrics but for times and memory, moments
check() {
    cmp -s "$2/model.safetensors" "$3/model.safetensors" || { fail "$1: other weights"; return; }
    cmp -s <(figures "$2") <(figures "$3") || fail "$1: other metrics: $(diff <(figures "$2") <(figures "$3") | head -4)"
    for step in 3 6; do
        cmp -s "$2/checkpoints/step-0000000$step/state.safetensors" "$3/checkpoints/step-0000000$step/state.safetensors" ||
            fail "$1: another state after update $step"
    done
    passed=$((passed + 1))
}

passed=0
for model in mlp convnet gpt lstm; do
    settings="settings_$model"
    for precision in fp32 bf16 fp16; do
        for n in $counts; do
            given=(model=$model precision=$precision ${!settings})
            rm -rf one
            "$mixt" train run.yaml out=one "dist.ranks=$n" "${given[@]}" -q 2>err || { fail "$model $precision: $(cat err)"; continue; }
            for zero in $levels; do
                name="$model $precision, $n ranks, dist.zero=$zero"
                rm -rf ranks
                timeout 120 mpirun -n "$n" "$mixt" train run.yaml out=ranks "dist.zero=$zero" "${given[@]}" -q 2>err || { fail "$name: $(cat err)"; continue; }
                check "$name" one ranks
                planned=$("$mixt" plan run.yaml --ranks "$n" "dist.zero=$zero" "${given[@]}" --json | sed 's/.*"control":[0-9]*,"total":\([0-9]*\).*/\1/')
                grep -q "\"memory\":$planned," ranks/metrics.jsonl || fail "$name: planned $planned bytes, $(grep -o '"memory":[0-9]*' ranks/metrics.jsonl | head -1)"
            done
        done
    done
done
echo "$passed runs of several rankswill have other bits than in the runof one process"
[ $failures = 0 ]
