#!/bin/bash
# What watching costs: for GPT-2 124M and ResNet-50 the milliseconds of a plain update without the monitor, with it, and of
# an update whose layers are looked into. Usage: monitor_overhead.sh MIXT [small]; CASES (a pattern) narrows it
#   small: little models, for a CPU; figures are medians over the updates of two runs each, taken in turns.
# Bars: the monitor 1% (CPU: 2%), a look into the layers 1.3 times a plain update.
set -eu
mixt=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
printf '%s\n' 'precision: bf16' 'data: {val_fraction: 0}' 'train: {epochs: 0, log_every: 1, checkpoint_minutes: 0}' >base.yaml
(yes 'the quick brown fox jumps over the lazy dog and runs away from it at once' || true) | head -c 4000000 >text.txt
if [ "${2:-}" = small ]; then
    steps=200
    models=(
        "gpt model=gpt net.layers=2 net.width=128 net.heads=4 data.kind=text data.path=text.txt data.seq=128 train.batch=8"
        "resnet model=resnet net.depth=20 data.kind=digits train.batch=32"
        "mlp model=mlp data.kind=digits train.batch=128"
    )
else
    steps=200
    models=(
        "gpt2-124m model=gpt net.layers=12 net.width=768 net.heads=12 net.vocab=50257 data.kind=text data.path=text.txt data.seq=1024 train.batch=32"
        "resnet50 model=resnet net.depth=50 data.kind=random data.shape=224x224x3 data.classes=1000 data.samples=1024 train.batch=256"
    )
fi

# times NAME SETTINGS...: the milliseconds of each update, as "step ms"
times() {
    local name=$1 batch
    shift
    batch=$(printf '%s\n' "$@" | sed -n 's/^train.batch=//p')
    "$mixt" train base.yaml "$@" out="$name" train.steps=$steps -q
    sed 's/.*"step":\([0-9]*\),.*"samples_s":\([0-9.e+]*\),.*/\1 \2/' "$name/metrics.jsonl" |
        awk -v batch="$batch" '{ print $1, 1000 * batch / $2 }'
    rm -rf "$name"
}
median() { sort -n | awk '{ v[NR] = $1 } END { print NR ? v[int((NR + 1) / 2)] : "-" }'; }

echo "model plain_ms monitor_ms monitor looked_into_ms looked_into"
for model in "${models[@]}"; do
    read -r -a words <<<"$model"
    # shellcheck disable=SC2254 # a pattern it is
    case ${words[0]} in ${CASES:-*}) ;; *) continue ;; esac
    for turn in 1 2; do
        times "off$turn" "${words[@]:1}" watch.monitor=false watch.every=0 >>off
        times "on$turn" "${words[@]:1}" watch.every=10 >>on
    done
    # the first updates warm up; the one behind a look waits for its row
    plain=$(awk '$1 > 25 { print $2 }' off | median)
    monitor=$(awk '$1 > 25 && $1 % 10 > 1 { print $2 }' on | median)
    looked=$(awk '$1 > 25 && $1 % 10 == 0 { print $2 }' on | median)
    awk -v n="${words[0]}" -v p="$plain" -v m="$monitor" -v l="$looked" \
        'BEGIN { printf "%s %.4f %.4f %+.2f%% %.4f %.3fx\n", n, p, m, 100 * (m / p - 1), l, l / m }'
    rm off on
done
