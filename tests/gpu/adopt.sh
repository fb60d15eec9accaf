#!/bin/bash
# mixt adopt from start to end on GPT-2 124M and ResNet-50, and BERT-Large in FP32 and BF16 as mixt table prints it: about six minutes on
# an H200. Prints the figures, and fails where a stage does, or where BERT-Large saves less memory than the bar.
#
#   gpt2      GPT-2 124M, 8 windows of 256 tokens: tiny Shakespeare in GPT-2's tokens, or a text made here, byte by byte
#   resnet50  ResNet-50 on pictures of 224 x 224 made here: ten patterns under noise, one label in five wrong, so that the loss ends above 0
#   bert      BERT-Large on a text made here, 128 windows of 128 tokens
#
# Usage: adopt.sh MIXT [PART...]. DATA: folder with tinyshakespeare and gpt2_bpe. OUT: where reports and tables go. DEVICE (cuda).
# SMALL=1: little models, to see whether the script works. UPDATES of each run (60), BUDGET of each search (40s).
. "$(dirname "$0")/../support/script.sh"
need python3
configs=$(realpath "$(dirname "$0")/../../configs")
device=${DEVICE:-cuda} updates=${UPDATES:-60} budget=${BUDGET:-40s} small=${SMALL:-0}
data=${DATA:+$(realpath "$DATA")}
out=${OUT:-$work/out}
mkdir -p "$out" && out=$(realpath "$out")
shift
cd "$work" || exit 1
export MIXT_CACHE=${MIXT_CACHE:-$work/cache}
unset MIXT_DEVICE
started=$SECONDS

# Text that can be learned, and that holds every word of the vocabulary beside it.
for i in $(seq 20000); do echo "the quick brown fox jumps over the lazy dog $((i * i % 97)) times, and $((i % 10)) more"; done >words.txt
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' the quick brown fox jumps over lazy dog times and more , {0..9} '##'{0..9} >vocab.txt

# pictures SIDE COUNT: pictures.npy and labels.npy
pictures() {
    python3 - "$1" "$2" <<'PYTHON'
import random, struct, sys
side, count = map(int, sys.argv[1:])
random.seed(1)
size = 3 * side * side
def header(shape):
    text = "{'descr': '|u1', 'fortran_order': False, 'shape': %s, }" % (shape,)
    text += ' ' * (-(len(text) + 11) % 64) + '\n'
    return b'\x93NUMPY\x01\x00' + struct.pack('<H', len(text)) + text.encode()
patterns = []  # stripes: how wide, which way, which colour
for k in range(10):
    pixel = [bytes(40 + 30 * ((k * c + 3 * on) % 6) for c in (1, 2, 3)) for on in (0, 1)]
    rows = [b''.join(pixel[(x * (k % 3) + y * (k % 2 + 1)) // (4 + 2 * k) % 2] for x in range(side)) for y in range(side)]
    patterns.append(int.from_bytes(b''.join(rows), 'little'))
noise = int.from_bytes(b'\x7f' * size, 'little')  # all bits but the highest
with open('pictures.npy', 'wb') as pictures, open('labels.npy', 'wb') as labels:
    pictures.write(header((count, side, side, 3)))
    labels.write(header((count,)))
    for i in range(count):
        k = random.randrange(10)
        pictures.write((patterns[k] ^ (random.getrandbits(8 * size) & noise)).to_bytes(size, 'little'))
        labels.write(bytes([k if random.random() < 0.8 else random.randrange(10)]))
PYTHON
}

# adopt NAME CONFIG SETTING...: the whole road; what it decided, its figures, its report
adopt() {
    local name=$1 config=$2 start=$SECONDS status
    shift 2
    "$mixt" adopt "$config" --name "$name" --margin 2% --seeds 6 --budget "$budget" --steps $((updates / 4 > 8 ? updates / 4 : 8)) -q \
        "$@" device="$device" train.epochs=0 train.steps="$updates" train.validate_every="$updates" train.schedule=cosine train.warmup=$((updates / 10)) \
        train.accumulate=1 train.checkpoint_minutes=0 >"$out/$name.txt" 2>"$out/$name.err"
    status=$?
    echo "== $name: status $status after $((SECONDS - start)) s"
    cat "$out/$name.txt"
    case $status in 0 | 3 | 4) ;; *) fail "adopt $name"; cat "$out/$name.err"; return ;; esac
    "$mixt" adopt "$config" --name "$name" --history
    for file in report.html report.md adopted.yaml history.jsonl; do
        cp "runs/adopt-$name/$file" "$out/$name-$file" || fail "$name: no $file"
    done
    local proof
    for proof in runs/compare-adopt-"$name"-*; do
        [ -d "$proof" ] || continue
        cp "$proof/report.html" "$out/$name-compare.html"
        "$mixt" table "$name=$proof" || fail "$name: the table of its pairs"
    done
    # The configuration to use trains.
    "$mixt" train "runs/adopt-$name/adopted.yaml" train.steps=2 train.warmup=0 out=used-"$name" -q || fail "$name: adopted.yaml cannot be trained with"
    rm -rf runs used-"$name"
}

gpt2() {
    local text="data.path=words.txt data.tokenizer=bytes data.vocab= net.vocab=50257" sizes="data.seq=256 train.batch=8"
    [ -n "$data" ] && text="data.path=$data/tinyshakespeare/input.txt data.vocab=$data/gpt2_bpe"
    [ "$small" = 1 ] && text="data.path=words.txt data.tokenizer=bytes data.vocab=" sizes="net.layers=1 net.width=32 net.heads=2 data.seq=32 train.batch=4 data.limit=2000"
    # shellcheck disable=SC2086 # settings are words
    adopt gpt2-124m "$configs/gpt2-124m.yaml" $text $sizes
}

resnet50() {
    local sizes="train.batch=32"
    if [ "$small" = 1 ]; then
        sizes="net.depth=18 net.width=4 train.batch=8"
        pictures 32 200
    else
        pictures 224 2300
    fi
    # shellcheck disable=SC2086
    adopt resnet50 "$configs/resnet50.yaml" data.kind=npy data.path=pictures.npy data.labels=labels.npy data.crop=0 data.resize=0 data.min_area=0 data.mean= data.std= \
        train.lr=0.02 $sizes
}

bert() {
    local sizes="net.vocab=30522 train.batch=128 data.limit=4096" steps=20 start=$SECONDS
    [ "$small" = 1 ] && sizes="net.layers=2 net.width=32 net.heads=2 data.seq=64 train.batch=64 data.limit=512" steps=4
    # shellcheck disable=SC2086
    "$mixt" verify "$configs/bert-large.yaml" data.path=words.txt data.vocab=. $sizes device="$device" --seeds 2 --steps $steps --out "$out/bert-large.json" --overwrite -q \
        train.warmup=4 train.validate_every=1000000 verify.memory=35 verify.lost=5 verify.output=1 >"$out/bert-large.txt" 2>"$out/bert-large.err"
    echo "== BERT-Large: after $((SECONDS - start)) s"
    cat "$out/bert-large.txt"
    [ -s "$out/bert-large.json" ] || { fail "BERT-Large"; cat "$out/bert-large.err"; return; }
    "$mixt" table BERT-Large="$out/bert-large.json" || fail "the table of BERT-Large"
    "$mixt" table BERT-Large="$out/bert-large.json" --format markdown --out "$out/bert-large.md" --overwrite || fail "the table of BERT-Large, for a README"
    "$mixt" table BERT-Large="$out/bert-large.json" --json >bert.json
    python3 - "$small" <<'PYTHON' || fail "BERT-Large: less than 35% of the memory is saved"
import json, sys
row = json.load(open('bert.json'))['rows'][0]
print('BERT-Large: %.1f%% of the memory saved (bar: 35%%), %.2f times as fast' % (100 * row['saved'], row['speedup']))
sys.exit(0 if row['saved'] >= 0.35 or sys.argv[1] == '1' else 1)
PYTHON
}

for part in ${*:-gpt2 resnet50 bert}; do
    case $part in gpt2 | resnet50 | bert) $part ;; *) echo "no part is called $part: gpt2, resnet50, bert" >&2; exit 2 ;; esac
done
echo "all in $((SECONDS - started)) s"
[ $failures = 0 ] && echo "adopt on a GPU: all good"
exit $((failures > 0))
