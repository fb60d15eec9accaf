#!/bin/bash
# Whole training runs on the GPU: they learn, give the same bits twice and without replay, take the memory that was
# planned, and follow the CPU's loss. Usage: system.sh MIXT; MODELS and PRECISIONS narrow it.
. "$(dirname "$0")/../support/script.sh"
cd "$work" || exit 1
export MIXT_CACHE=${MIXT_CACHE:-$work/cache}
unset MIXT_DEVICE MIXT_REPLAY MIXT_FUSION

yes 'the quick brown fox jumps over the lazy dog' | head -c 40000 >words.txt
printf 'model: mlp\n' >any.yaml
mlp="model=mlp net.hidden=64,32 net.dropout=0.1 data.limit=2048 train.batch=64"
convnet="model=convnet net.channels=8,16 data.limit=2048 train.batch=64"
resnet="model=resnet net.depth=20 net.width=16 data.limit=1024 train.batch=32"
gpt="model=gpt net.layers=2 net.width=64 net.heads=2 data.kind=text data.path=words.txt data.seq=64 train.batch=8 train.accumulate=2 train.clip=1"
lstm="model=lstm net.layers=2 net.width=64 data.kind=text data.path=words.txt data.seq=32 train.batch=8"
gru="${lstm/lstm/gru}"
rnn="${lstm/lstm/rnn}"
seq2seq="model=seq2seq net.layers=1 net.width=64 net.heads=2 data.kind=parallel data.samples=512 data.vocab_size=300 data.seq=32 train.batch=8"
steps=20
common="train.steps=$steps train.epochs=0 train.lr=0.002 threads=2"

number() { grep -o "\"$1\": *[-+.0-9e]*" | head -1 | sed 's/.*: *//'; }
losses() { sed 's/.*"loss":\([^,]*\),.*/\1/' "$1/metrics.jsonl"; }
# train OUT SETTING...: a quiet run whose result is in $OUT.json
train() {
    local out=$1
    shift
    "$mixt" train any.yaml $common out="$out" --json "$@" >"$out.json" 2>err || { fail "train $*: status $?"; cat err; return 1; }
}
same_bits() { cmp -s "$1/model.safetensors" "$2/model.safetensors" && [ "$(losses "$1")" = "$(losses "$2")" ]; }

# close NAME PRECISION GPU CPU TWIN: each loss within a bound. A sum of about 1000 FP32 terms grows a rounding by about 32, and every
# update hands its error on; a low format adds two of its roundings to a value, which the batch averages out. Where training itself
# magnifies roundings (a ReLU at zero behind a batch norm, Adam's first updates), TWIN says by how much: it is the CPU's run with
# other roundings, and the bound grows by 4 times the largest distance between the two so far.
close() {
    paste <(losses "$3") <(losses "$4") <(losses "$5") | awk -v name="$1" -v low="$2" '
        function distance(a, b) { return (a > b ? a - b : b - a) / b }
        BEGIN { unit["fp32"] = 0; unit["tf32"] = unit["fp16"] = 2 ^ -11; unit["bf16"] = 2 ^ -8 }
        { gpu[NR] = $1; cpu[NR] = $2; twin[NR] = distance($3, $2) }
        END {
            for (i = 1; i <= NR; i++) {
                for (j = 1; j <= i + 1; j++) if (twin[j] > grown) grown = twin[j]
                difference = distance(gpu[i], cpu[i])
                bound = 32 * 2 ^ -24 * i + 2 * unit[low] * (1 + i / 10) + 4 * grown
                if (!(difference <= bound)) { printf "step %d: loss %s, on the CPU %s: off by %.2g, bound %.2g\n", i, gpu[i], cpu[i], difference, bound; bad = 1 }
                if (difference / bound > worst) worst = difference / bound
            }
            printf "  %s: %.2f of the bound on the CPU'"'"'s losses\n", name, worst
            exit bad || !NR
        }'
}

for model in ${MODELS:-mlp convnet resnet gpt lstm gru rnn seq2seq}; do
    for precision in ${PRECISIONS:-fp32 tf32 fp16 bf16}; do
        name=$model-$precision settings="${!model} precision=$precision"
        train $name-gpu $settings device=cuda || continue
        losses $name-gpu | awk 'NR <= 3 { first += $1 } { last = $1 + before; before = $1 } END { exit !(NR == '$steps' && last / 2 < 0.97 * first / 3) }' ||
            fail "$name: the loss does not fall: $(losses $name-gpu | tr '\n' ' ')"
        train $name-again $settings device=cuda && { same_bits $name-gpu $name-again || fail "$name: a second run gives other bits"; }
        MIXT_REPLAY=0 train $name-issued $settings device=cuda && { same_bits $name-gpu $name-issued || fail "$name: replay changes the bits"; }
        train $name-looked $settings device=cuda watch.every=3 && MIXT_REPLAY=0 train $name-looks $settings device=cuda watch.every=3 && {
            same_bits $name-gpu $name-looked || fail "$name: looking into layers changes the bits"
            [ "$(wc -l <$name-looked/layers.jsonl)" = 7 ] || fail "$name: looks into layers: $(cut -c1-80 $name-looked/layers.jsonl)"
            cmp $name-looked/layers.jsonl $name-looks/layers.jsonl || fail "$name: replay changes what layers show"
            [ "$(number memory_allocated <$name-looked.json)" = "$(number memory_allocated <$name-gpu.json)" ] || fail "$name: a look takes memory that was not planned"
        }
        "$mixt" plan any.yaml $common $settings --device cuda --json >plan 2>err || { fail "plan of $name"; cat err; }
        planned=$(number total <plan) allocated=$(number memory_allocated <$name-gpu.json)
        [ -n "$planned" ] && [ "$planned" = "$allocated" ] || fail "$name: planned $planned, allocated $allocated"
        total=0
        for role in parameters copies gradients moments state activations workspace batches control; do
            bytes=$(number $role <plan)
            total=$((total + ${bytes:--1}))
        done
        [ $total = "$planned" ] || fail "$name: the roles sum up to $total, the total is $planned"
        # No format of the CPU's is TF32: it computes those products in FP32; FP16 rounds as TF32 does. A classifier's head on the
        # CPU keeps its logits in FP32 where the GPU rounds them: with MIXT_FUSION=0 it rounds them too.
        MIXT_FUSION=0 train $name-cpu $settings device=cpu
        if [ $precision = tf32 ]; then
            MIXT_FUSION=0 train $name-twin ${!model} precision=fp16 device=cpu
        else
            MIXT_FUSION=0 MIXT_CANDIDATE=batch_norm=plain train $name-twin $settings device=cpu
        fi
        close $name $precision $name-gpu $name-cpu $name-twin || fail "$name: not the CPU's losses"
    done
done

# What waits for the backward pass in fewer bytes: the same forward pass, the memory that was planned, the same bits every time.
printf 'default: fp32\nkeep: fp8_e4m3\n' >keep.yaml
for model in resnet gpt lstm; do
    settings="${!model} device=cuda"
    train $model-whole $settings precision=fp32 || continue
    train $model-keep $settings precision=keep.yaml || continue
    MIXT_REPLAY=0 train $model-keep-issued $settings precision=keep.yaml && { same_bits $model-keep $model-keep-issued || fail "$model, keep: replay changes the bits"; }
    [ "$(losses $model-whole | head -1)" = "$(losses $model-keep | head -1)" ] || fail "$model, keep: the first loss is another"
    paste <(losses $model-keep) <(losses $model-whole) | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > 0.1 * $2) exit 1 }' || fail "$model, keep: not the losses of whole values"
    whole=$("$mixt" plan any.yaml $common $settings precision=fp32 --json | number activations)
    "$mixt" plan any.yaml $common $settings precision=keep.yaml --json >plan
    [ "$(number activations <plan)" -lt "$whole" ] || fail "$model, keep: no less memory than $whole"
    [ "$(number total <plan)" = "$(number memory_allocated <$model-keep.json)" ] || fail "$model, keep: another amount is allocated than planned"
done

# Runs that start at once without a choice of algorithms between them take the same ones: the first to have timed one decides. Then
# one alone.
for run in 1 2 3 4; do
    MIXT_CACHE=$work/fresh train once-$run $gpt net.width=192 net.heads=6 precision=fp32 device=cuda &
done
wait
MIXT_CACHE=$work/fresh train once-5 $gpt net.width=192 net.heads=6 precision=fp32 device=cuda
for run in 2 3 4 5; do
    same_bits once-1 once-$run || fail "of runs that start at once, number $run has other bits"
done

# What a GPU run says and leaves.
"$mixt" bench mlp --precision bf16 --device cuda --profile >text 2>err || { fail "bench --profile: status $?"; cat err; }
grep -q 'of matrix FLOPs on Tensor Cores' text || fail "the profile does not speak of Tensor Cores"
"$mixt" plan any.yaml $mlp --device cuda --profile --json >plan 2>err || { fail "plan --profile: status $?"; cat err; }
grep -q '"limit_share"' plan || fail "plan --profile holds nothing against the device's limits"
run=$(ls -d ./*-gpu | head -1)
for device in cuda cpu; do
    "$mixt" eval "$run" --device $device --json >$device 2>err || { fail "eval $run on $device: status $?"; cat err; }
done
awk -v a="$(number loss <cuda)" -v b="$(number loss <cpu)" 'BEGIN { exit !(a > 0 && (a - b) ^ 2 <= (0.01 * b) ^ 2) }' ||
    fail "eval $run: loss $(number loss <cuda) on the GPU, $(number loss <cpu) on the CPU"
if "$mixt" info | grep -q '^GPU.* W$'; then # a GPU that knows its power
    grep -q '"energy"' "$run/metrics.jsonl" || fail "no energy in the metrics of $run"
fi
"$mixt" bench mlp --precision bf16 --batch 16777216 --device cuda >text 2>err
[ $? = 1 ] && grep -q 'training needs .* GiB free: a batch of about' err || { fail "a step above the GPU's memory"; cat err; }

[ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
echo "system tests passed"
