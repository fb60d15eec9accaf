#!/bin/bash
# Efficiency of ranks on one machine: 4 ranks of 4 cores against 1 rank of 4 cores, at the same batch a rank, beside
# PyTorch's DistributedDataParallel over gloo. GPT 6 x 384 and ResNet-18 in FP32; rates are medians over updates.
# Messages are copied once, as Open MPI does it by itself where processes may read each other's memory (SINGLE_COPY=none:
# twice); CORES=1 RANKS=2 for a machine of two cores.
# Usage: ranks.sh MIXT [TORCH_PEER.py [TEXT]]. Needs 16 cores, mpirun, libmixt_mpi.so beside MIXT, python3; for the
# peers torch (the GPT) and torchvision (ResNet-18). About 2 minutes.
. "$(dirname "$0")/../support/script.sh"
SINGLE_COPY=${SINGLE_COPY:-cma}
. "$(dirname "$0")/../support/ranks.sh"
peer=$(realpath "${2:-../shared/peers/torch_peer.py}")
[ -z "${3:-}" ] || text=$(realpath "$3")
cd "$work" || exit 1
need_ranks
cores=${CORES:-4} many=${RANKS:-4} updates=${UPDATES:-24}
export MIXT_THREADS=$cores OMP_NUM_THREADS=$cores
{ [ -n "${text:-}" ] && cat "$text" || seq 300000; } | head -c 200000 >text # validation at the end takes a part of it

# a rank's own cores, whoever started it
cat >bound.sh <<E
r=\${OMPI_COMM_WORLD_LOCAL_RANK:-\${LOCAL_RANK:-0}}
exec taskset -c \$((r * $cores))-\$((r * $cores + $cores - 1)) "\$@"
E
python3 - <<'E'
import os
for c in 'ab':
    for part, n in (('train', 128), ('val', 8)):
        os.makedirs(f'images/{part}/{c}', exist_ok=True)
        for i in range(n):
            open(f'images/{part}/{c}/{i}.ppm', 'wb').write(b'P6 128 128 255\n' + os.urandom(3 * 128 * 128))
E
cat >gpt.yaml <<E
model: gpt
precision: fp32
device: cpu
net: {layers: 6, width: 384, heads: 6}
data: {kind: text, path: text, tokenizer: bytes, seq: 256}
train: {epochs: 0, steps: $updates, lr: 0.0003, beta2: 0.95, weight_decay: 0.1, clip: 1.0, log_every: 1, validate_every: 0, checkpoint_minutes: 0}
watch: {monitor: false}
E
cat >resnet18.yaml <<E
model: resnet
precision: fp32
device: cpu
net: {depth: 18}
data: {kind: images, path: images, crop: 112, resize: 128}
train: {epochs: 0, steps: $updates, optimizer: momentum, lr: 0.01, weight_decay: 0.0001, log_every: 1, validate_every: 0, checkpoint_minutes: 0}
watch: {monitor: false}
E
cat >resnet18.py <<'E'
import argparse, json, os, statistics, time, torch, torchvision
a = argparse.ArgumentParser(); a.add_argument('--batch', type=int); a.add_argument('--steps', type=int); a = a.parse_args()
torch.set_num_threads(int(os.environ['OMP_NUM_THREADS']))
model = torchvision.models.resnet18(num_classes=2).to(memory_format=torch.channels_last)
if int(os.environ.get('WORLD_SIZE', 1)) > 1:
    torch.distributed.init_process_group('gloo')
    model = torch.nn.parallel.DistributedDataParallel(model)
opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4, fused=True)
x = torch.randn(a.batch, 3, 112, 112).to(memory_format=torch.channels_last); y = torch.randint(0, 2, (a.batch,))
times = []
for i in range(a.steps):
    t = time.perf_counter()
    opt.zero_grad(); torch.nn.functional.cross_entropy(model(x), y).backward(); opt.step()
    times.append(time.perf_counter() - t)
if int(os.environ.get('RANK', 0)) == 0:
    print(json.dumps({'ms': 1e3 * statistics.median(times[4:])}))
E

median() { sort -g | awk '{a[NR] = $1} END {print a[int((NR + 1) / 2)]}'; }
# step_ms MODEL RANKS BATCH: milliseconds of an update of mixt
step_ms() {
    local out=$1-$2 batch=$(($2 * $3))
    timeout 120 mpirun -n "$2" bash bound.sh "$mixt" train "$1.yaml" "out=$out" train.batch=$batch --profile -q >"$out.said" 2>&1 || { cat "$out.said" >&2; return; }
    sed -n 's/.*"samples_s":\([0-9.e+]*\).*/\1/p' "$out/metrics.jsonl" | tail -n +5 | awk -v b=$batch '{print 1e3 * b / $1}' | median
}
# apart_ms MODEL RANKS BATCH: the same of so many processes that train side by side and know nothing of each other: what the machine
# itself loses when all of its cores work, by their memory, caches and clock; then of the slowest of them in each update, for which
# ranks that add up gradients have to wait
apart_ms() {
    local r
    for r in $(seq 0 $(($2 - 1))); do
        LOCAL_RANK=$r timeout 120 bash bound.sh "$mixt" train "$1.yaml" "out=$1-apart-$r" "train.batch=$3" -q >"$1-apart-$r.said" 2>&1 &
    done
    wait
    for r in $(seq 0 $(($2 - 1))); do
        sed -n 's/.*"samples_s":\([0-9.e+]*\).*/\1/p' "$1-apart-$r/metrics.jsonl" | tail -n +5 | awk -v b="$3" '{print 1e3 * b / $1}' >"apart-$r.ms"
    done
    echo "$(cat apart-?.ms | median) $(paste apart-?.ms | awk '{m = 0; for (i = 1; i <= NF; i++) if ($i > m) m = $i; print m}' | median)"
}
# row NAME ONE MANY [WORDS]
row() { awk -v n="$1" -v a="${2:-0}" -v b="${3:-0}" -v w="${4:-}" 'BEGIN {printf "%-28s %9.1f %9.1f %9.3f   %s\n", n, a, b, (b > 0 ? a / b : 0), w}'; }
peer_ms() { sed -n 's/.*"ms": *\([0-9.]*\).*/\1/p' | head -1; }

printf '%-28s %9s %9s %9s\n' "ms an update" "1 x $cores" "$many x $cores" efficiency
for model in gpt:${GPT_BATCH:-8} resnet18:${RESNET_BATCH:-32}; do
    batch=${model#*:} model=${model%:*}
    one=$(step_ms "$model" 1 "$batch") all=$(step_ms "$model" "$many" "$batch")
    hidden=$(sed -n 's/.*of which \([0-9.]*%\) hidden.*/\1/p' "$model-$many.said")
    row "mixt $model, $batch a rank" "$one" "$all" "$hidden of communication hidden"
    read -r each slowest <<<"$(apart_ms "$model" "$many" "$batch")"
    row "the same, not together" "$one" "$each" "what the machine allows"
    row "of those the slowest" "$one" "$slowest" "what it allows ranks that wait for each other"
done
started="python3 -m torch.distributed.run --nproc-per-node $many --no-python bash bound.sh"
if python3 -c 'import torch' 2>/dev/null && [ -e "$peer" ]; then
    words="--precision fp32 --device cpu --batch ${GPT_BATCH:-8} --seq 256 --steps $updates --threads $cores"
    row "PyTorch gpt, gloo" "$(bash bound.sh python3 "$peer" gpt $words 2>/dev/null | peer_ms)" "$($started python3 "$peer" gpt $words 2>/dev/null | peer_ms)"
fi
if python3 -c 'import torch, torchvision' 2>/dev/null; then
    words="--batch ${RESNET_BATCH:-32} --steps $updates"
    row "PyTorch resnet18, gloo" "$(bash bound.sh python3 resnet18.py $words 2>/dev/null | peer_ms)" "$($started python3 resnet18.py $words 2>/dev/null | peer_ms)"
fi
sed -n '/^communication of the last/,$p' "gpt-$many.said"
[ $failures = 0 ]
