#!/bin/bash
# Ranks that share one GPU: the bits of one process that computes all parts, the memory that was planned, an overflow that all skip,
# going on, with every dist.zero. Usage: ranks.sh MIXT; MODELS, PRECISIONS, RANKS and ZEROS narrow it. DEVICE=cpu: the same with the CPU as if it had
# memory of its own.
. "$(dirname "$0")/../support/script.sh"
cd "$work" || exit 1
export MIXT_CACHE=${MIXT_CACHE:-$work/cache}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_btl_vader_single_copy_mechanism=none
unset MIXT_DEVICE MIXT_REPLAY MIXT_FUSION
device=${DEVICE:-cuda}
[ "$device" = cpu ] && export MIXT_DISCRETE=1 MIXT_THREADS=1
if ! command -v mpirun >/dev/null || ! [ -e "$(dirname "$mixt")/libmixt_mpi.so" ]; then
    echo "no mpirun or no libmixt_mpi.so: ranks cannot be tested"
    exit 1
fi

yes 'the quick brown fox jumps over the lazy dog' | head -c 40000 >words.txt
cat >run.yaml <<'Y'
data: {kind: digits, samples: 400}
train: {batch: 16, eval_batch: 16, epochs: 0, steps: 8, validate_every: 4, log_every: 1}
threads: 2
Y
mlp="model=mlp net.hidden=64,32 net.dropout=0.1"
convnet="model=convnet net.channels=8,16 net.norm=batch train.accumulate=2"
text="data.kind=text data.path=words.txt data.samples=0 data.seq=32 data.limit=400"
gpt="model=gpt net.layers=6 net.width=64 net.heads=2 train.clip=0.5 $text"
lstm="model=lstm net.layers=2 net.width=64 train.split=2 $text"

number() { grep -o "\"$1\": *[-+.0-9e]*" | head -1 | sed 's/.*: *//'; }
# figures of a run but for times and memory, and without the second loss that one process says of itself
figures() { sed 's/,"samples_s".*"time":[^,}]*//; s/,"checkpoint_stall":[^,}]*//; s/,"energy[^,}]*//g; s/,"memory_by_role".*//; s/}$//' "$1/metrics.jsonl"; }
# same FOLDER FOLDER: weights, checkpoints, metrics
same() {
    cmp -s "$1/model.safetensors" "$2/model.safetensors" || { fail "$1 and $2 have other weights"; return; }
    cmp -s "$1"/checkpoints/step-00000008/state.safetensors "$2"/checkpoints/step-00000008/state.safetensors || fail "$1 and $2 have other states"
    cmp -s <(figures "$1") <(figures "$2") || fail "$1 and $2 have other metrics: $(diff <(figures "$1") <(figures "$2") | head -4)"
}
# train OUT SETTINGS...: in one process
train() {
    local out=$1
    shift
    "$mixt" train run.yaml device=$device out="$out" --json "$@" >"$out.json" 2>err || { fail "$out: status $?: $(tail -3 err)"; return 1; }
}
# ranks N OUT SETTINGS...
ranks() {
    local n=$1 out=$2
    shift 2
    timeout 120 mpirun -n "$n" "$mixt" train run.yaml device=$device out="$out" --json "$@" >"$out.json" 2>err ||
        { fail "$out: status $?: $(tail -3 err)"; return 1; }
}

cells=0
for model in ${MODELS:-mlp convnet gpt lstm}; do
    for precision in ${PRECISIONS:-fp32 bf16 fp16}; do
        for n in ${RANKS:-2 4}; do
            name=$model-$precision-$n settings="${!model} precision=$precision"
            train $name-one $settings dist.ranks=$n || continue
            for zero in ${ZEROS:-$((n / 2 - 1)) 2 3}; do # the two that are like each other on 2 ranks and on 4
                ranks $n $name-zero$zero $settings dist.zero=$zero || continue
                same $name-one $name-zero$zero
                "$mixt" plan run.yaml $settings --device $device --ranks $n dist.zero=$zero --json >plan 2>err || fail "plan of $name: $(cat err)"
                planned=$(number total <plan) allocated=$(number memory_allocated <$name-zero$zero.json)
                [ -n "$planned" ] && [ "$planned" = "$allocated" ] || fail "$name, dist.zero=$zero: planned $planned, allocated $allocated"
                cells=$((cells + 1))
            done
        done
    done
done
echo "$cells runs of ranks on $device, $failures failures"

# Without replay; an overflow on one rank alone; going on from the middle.
model="$mlp precision=fp16"
MIXT_REPLAY=0 ranks 2 issued $model && train parts $model dist.ranks=2 && same parts issued
train skipped $model dist.ranks=2 train.inject_overflow=3
timeout 120 mpirun -n 1 "$mixt" train run.yaml device=$device out=skips $model -q : \
    -n 1 "$mixt" train run.yaml device=$device out=skips $model train.inject_overflow=3 -q 2>err || fail "an overflow on one rank: $(tail -3 err)"
same skipped skips
[ "$(grep -c '"skipped":1' skips/metrics.jsonl)" = 1 ] || fail "one update is skipped: $(cat skips/metrics.jsonl)"
ranks 2 half $model dist.zero=1 train.steps=4 &&
    { timeout 120 mpirun -n 2 "$mixt" train --resume half train.steps=8 -q 2>err || fail "going on: $(tail -3 err)"; }
same parts half

# The same of what is sharded, looked into every other step; a rank's memory of a model that is no toy.
train looked $gpt precision=fp16 dist.ranks=2 train.inject_overflow=3 watch.every=2
for zero in 2 3; do
    timeout 120 mpirun -n 1 "$mixt" train run.yaml device=$device out=looked-$zero $gpt precision=fp16 watch.every=2 dist.zero=$zero -q : \
        -n 1 "$mixt" train run.yaml device=$device out=looked-$zero $gpt precision=fp16 watch.every=2 dist.zero=$zero train.inject_overflow=3 -q 2>err ||
        fail "an overflow on one rank, dist.zero=$zero: $(tail -3 err)"
    same looked looked-$zero
done
for pair in '3 0' '2 3'; do
    read -r from to <<<"$pair"
    ranks 2 from-$from $model dist.zero=$from train.steps=4 &&
        { timeout 120 mpirun -n 2 "$mixt" train --resume from-$from train.steps=8 dist.zero=$to -q 2>err || fail "from dist.zero=$from to $to: $(tail -3 err)"; }
    same parts from-$from
done
# Norms of LAMB, of parameters that are cut between ranks and have more chunks than a warp has lanes.
norms="$gpt net.layers=2 net.width=512 precision=bf16 train.optimizer=lamb"
train norms $norms dist.ranks=2
for zero in 1 2 3; do
    ranks 2 norms-$zero $norms dist.zero=$zero && same norms norms-$zero
done
role() { "$mixt" plan run.yaml model=gpt $text net.layers=24 net.width=128 net.heads=2 --device $device --ranks 4 dist.zero=$1 --json 2>err | number $2; }
[ $(($(role 2 gradients) * 2)) -lt "$(role 1 gradients)" ] || fail "dist.zero=2 keeps $(role 2 gradients) bytes of $(role 1 gradients) of gradients"
[ $(($(role 3 parameters) * 3)) -lt "$(role 0 parameters)" ] || fail "dist.zero=3 keeps $(role 3 parameters) bytes of $(role 0 parameters) of parameters"
[ $(($(role 3 copies) * 2)) -lt "$(role 0 parameters)" ] || fail "dist.zero=3 gathers $(role 3 copies) bytes at once"

[ $failures = 0 ]
