#!/bin/bash
# Long runs on a GPU over real data, whose figures people quote: prints them, and fails where a bar is missed (the tables of
# verify say themselves what passes).
#
#   shakespeare  the character GPT on tiny Shakespeare, BF16 and FP32, 3 seeds; then lets the first one write
#   verify       mixt verify for GPT-2 124M, BERT-Base and ResNet-50 (on pictures made from MNIST)
#   loader       GPT-2 124M trained from a token file against the bench, which has nothing to load
#   curves       GPT-2 124M, 200 steps from the same weights and data as PyTorch
#   clips        C3D on moving digits, FP32, BF16 and FP16, 3 seeds, judged on clips of another seed; then its bench
#   speech       spoken digits as classes and letter by letter, FP32, BF16 and FP16, 3 seeds, judged on the test part
#   kills        runs that are killed 50 times and resumed
#
# Usage: acceptance.sh BUILD DATA [PART...]; DATA holds tinyshakespeare, gpt2_bpe, mnist, fsdd and bert (vocab.txt).
# QUICK=1 shortens everything to see whether it works; STEPS of verify (60); DEVICE (cuda); MIXT_PEERS: folder of torch_peer.py.
set -u
build=$(realpath "$1") data=$(realpath "$2")
shift 2
cd "$(dirname "$0")/../.." || exit 1
mixt=$build/mixt device=${DEVICE:-cuda} failed=""
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
now() { date +%s; }
fail() { echo "FAILED: $*"; failed=1; }
# least FILE KEY: the smallest value of a key in metrics
least() { grep -o "\"$2\":[-0-9.e]*" "$1" | cut -d: -f2 | sort -g | head -1; }
mean() { awk '{ s += $1 } END { printf "%.5f", s / NR }'; }

shakespeare() {
    local short="train.steps=2000" seed precision start # the best comes after 1250 or so
    [ "${QUICK:-0}" = 1 ] && short="train.steps=20 train.validate_every=10 net.layers=1 net.width=64 net.heads=2 train.batch=4"
    for precision in bf16 fp32; do
        for seed in 1 2 3; do
            start=$(now)
            "$mixt" train configs/shakespeare-gpt.yaml data.path="$data/tinyshakespeare/input.txt" precision=$precision seed=$seed device=$device \
                out="$work/play-$precision-$seed" train.checkpoint_every=250 train.keep=1 $short -q || { fail "shakespeare $precision $seed"; return; }
            least "$work/play-$precision-$seed/metrics.jsonl" val_loss >>"$work/$precision"
            echo "shakespeare $precision seed $seed: best validation loss $(tail -1 "$work/$precision"), $(($(now) - start)) s"
        done
    done
    awk -v low="$(mean <"$work/bf16")" -v full="$(mean <"$work/fp32")" 'BEGIN {
        printf "shakespeare: bf16 %s, fp32 %s, %+.2f%%\n", low, full, 100 * (low / full - 1)
        exit !(low <= 1.48 && low / full - 1 <= 0.005)
    }' || [ "${QUICK:-0}" = 1 ] || fail "shakespeare: above 1.48, or more than 0.5% above FP32"
    "$mixt" generate "$work/play-bf16-1" --checkpoint best --prompt "ROMEO:" --tokens 300 --temperature 0.8 --seed 1
}

# Colour pictures of digits in class folders: PICTURES COUNT_TRAIN COUNT_VAL
pictures() {
    python3 - "$data/mnist" "$@" <<'PYTHON'
import gzip, os, sys
source, folder, counts = sys.argv[1], sys.argv[2], {'train': int(sys.argv[3]), 'val': int(sys.argv[4])}
for part, name in (('train', 'train'), ('val', 't10k')):
    images = gzip.open(f'{source}/{name}-images-idx3-ubyte.gz').read()[16:]
    labels = gzip.open(f'{source}/{name}-labels-idx1-ubyte.gz').read()[8:]
    for i in range(counts[part]):
        pixels = images[784 * i:784 * (i + 1)]
        tint = [(i * k) % 7 + 2 for k in (3, 5, 11)]
        rows = []
        for y in range(28):
            row = b''.join(bytes(p * t // 8 for t in tint) * 4 for p in pixels[28 * y:28 * (y + 1)])
            rows += [row] * 4
        path = f'{folder}/{part}/{labels[i]}'
        os.makedirs(path, exist_ok=True)
        open(f'{path}/{i}.ppm', 'wb').write(b'P6 112 112 255\n' + b''.join(rows))
PYTHON
}

verify() {
    local steps=${STEPS:-60} small="" images=6000 held=1024
    [ "${QUICK:-0}" = 1 ] && steps=2 small="net.layers=1 train.batch=2" images=64 held=64
    "$mixt" verify configs/gpt2-124m.yaml data.path="$data/tinyshakespeare/input.txt" data.vocab="$data/gpt2_bpe" train.accumulate=1 train.warmup=20 \
        device=$device --steps $steps -q $small || echo "(gpt2: status $?)"
    "$mixt" verify configs/bert-base-mlm.yaml data.path="$data/tinyshakespeare/input.txt" data.vocab="$data/bert" train.warmup=20 \
        device=$device --steps $steps -q $small || echo "(bert: status $?)"
    [ "${QUICK:-0}" = 1 ] && small="train.batch=4 net.depth=18 data.crop=64 data.resize=72"
    pictures "$work/pictures" $images $held
    "$mixt" verify configs/resnet50.yaml data.path="$work/pictures" data.min_area=0.6 data.flip=false train.warmup=20 train.lr=0.05 \
        device=$device --steps $((3 * steps)) -q $small || echo "(resnet50: status $?)"
}

loader() {
    local steps=60 seq=1024 small="" bench="--batch 32"
    [ "${QUICK:-0}" = 1 ] && steps=4 seq=128 small="train.batch=1 data.seq=128" bench="--batch 1 --seq 128 --steps 1"
    "$mixt" train configs/gpt2-124m.yaml data.path="$data/tinyshakespeare/input.txt" data.vocab="$data/gpt2_bpe" train.accumulate=1 train.steps=$steps \
        train.log_every=$((steps / 4)) train.warmup=20 device=$device out="$work/loaded" $small -q || fail "loader"
    local trained benched
    trained=$(sed -n 's/.*"samples_s":\([0-9.]*\),.*/\1/p' "$work/loaded/metrics.jsonl" | sed -n '2,$p' | sort -g | tail -1)
    benched=$("$mixt" bench gpt2 --precision bf16 $bench --device $device --json | grep -o '"items_s": *[0-9.]*' | grep -o '[0-9.]*$')
    awk -v trained="$trained" -v seq=$seq -v benched="$benched" 'BEGIN {
        printf "loader: %.0f tokens/s trained from a file, %.0f in the bench: %+.1f%%\n", trained * seq, benched, 100 * (trained * seq / benched - 1)
        exit !(trained * seq >= 0.97 * benched)
    }' || [ "${QUICK:-0}" = 1 ] || fail "loader: costs more than 3%"
}

curves() {
    local steps=200 batch=4 model=gpt2 seq=1024
    [ "${QUICK:-0}" = 1 ] && steps=3 batch=1 seq=64
    "$mixt" tokenize "$data/tinyshakespeare/input.txt" --vocab "$data/gpt2_bpe" --out "$work/play.tokens" >/dev/null || fail "curves: tokenize"
    python3 tests/peers/compare_steps.py "$build/tests/steps" --models $model --device $device --steps $steps --batch $batch --seq $seq \
        --seeds 3 --data "tokens:$work/play.tokens" || fail "curves"
}

clips() {
    local short="" seed precision share
    [ "${QUICK:-0}" = 1 ] && short="data.limit=256 train.epochs=1 net.channels=4,8"
    for precision in fp32 bf16 fp16; do
        for seed in 1 2 3; do
            "$mixt" train configs/c3d.yaml precision=$precision seed=$seed device=$device out="$work/clips-$precision-$seed" $short -q ||
                { fail "clips $precision $seed"; return; }
            share=$("$mixt" eval "$work/clips-$precision-$seed" data.draw_seed=$((100 + seed)) --split test --json 2>/dev/null |
                sed 's/.*"accuracy":\([0-9.]*\).*/\1/')
            echo "clips $precision seed $seed: $share of clips drawn with another seed"
            awk -v share="$share" 'BEGIN { exit !(share >= 0.97) }' || [ "${QUICK:-0}" = 1 ] || fail "clips $precision $seed: below 97%"
        done
    done
    [ "${QUICK:-0}" = 1 ] || "$mixt" bench c3d --precision bf16 --device $device
}

# judge CONFIG KEY BAR settings…: a rate of errors on the test part, by format and seed; the mean of each format is below the bar
# and at most 0.005 above that of FP32.
judge() {
    local config=$1 key=$2 bar=$3 short="" seed precision rate
    shift 3
    [ "${QUICK:-0}" = 1 ] && short="train.epochs=1 net.channels=4,8"
    for precision in fp32 bf16 fp16; do
        : >"$work/rates-$precision"
        for seed in 1 2 3; do
            "$mixt" train "configs/$config.yaml" data.path="$data/fsdd" data.test_files='*_[0-4].wav' data.val_fraction=0 "$@" precision=$precision \
                seed=$seed device=$device out="$work/$config-$precision-$seed" $short -q || { fail "$config $precision $seed"; return; }
            rate=$("$mixt" eval "$work/$config-$precision-$seed" --split test --json | sed "s/.*\"$key\":\([0-9.]*\).*/\1/")
            echo "$rate" | tee -a "$work/rates-$precision" | sed "s/^/$config $precision seed $seed: $key /"
        done
        awk -v rate="$(mean <"$work/rates-$precision")" -v full="$(mean <"$work/rates-fp32")" -v bar="$bar" -v name="$config $precision" 'BEGIN {
            printf "%s: mean %.4f, FP32 %.4f\n", name, rate, full
            exit !(rate <= bar && rate <= full + 0.005)
        }' || [ "${QUICK:-0}" = 1 ] || fail "$config $precision: above $bar, or more than 0.5 points above FP32"
    done
}
speech() {
    judge speech error_rate 0.05 train.epochs=80
    judge speech-ctc character_error_rate 0.1 data.labels=configs/spoken-digits.tsv train.epochs=120
}

kills() {
    local run count=50
    [ "${QUICK:-0}" = 1 ] && count=2
    for run in conv-fp16 conv-bf16 gpt-fp16 gpt-bf16; do
        bash tests/slow/kills.sh "$mixt" $count $device $run >"$work/kills-$run" 2>&1 &
    done
    wait
    cat "$work"/kills-*
    [ "$(cat "$work"/kills-* | grep -c ' the same bits$')" = 4 ] || fail "kills"
}

for part in ${*:-shakespeare verify loader curves clips speech kills}; do
    echo "== $part"
    $part
done
[ -z "$failed" ]
