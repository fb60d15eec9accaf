#!/bin/bash
# Healthy runs that look after themselves and that nothing may be decided about: regressions in raw units, whose first
# gradient norms are far above any fixed limit. Usage: auto_healthy.sh MIXT
. "$(dirname "$0")/../support/script.sh"
cd "$work" || exit 1

# raw_data SEED MEAN DEVIATION: 800 rows of eight normal inputs and a target that follows from them, with some noise
raw_data() {
    awk -v seed="$1" -v mean="$2" -v deviation="$3" 'BEGIN { srand(seed); for (i = 0; i < 800; i++) { sum = 0
        for (j = 0; j < 8; j++) {
            x = sqrt(-2 * log(1 - rand())) * cos(6.2831853 * rand()); sum += x * (j % 3 - 0.7); printf "%.5f,", x }
        printf "%.4f\n", mean + deviation * (sum / 2.3 + 0.3 * (rand() - 0.5)) } }'
}
cat >raw.yaml <<'Y'
model: mlp
threads: 1
device: cpu
data: {kind: csv, task: values}
net: {hidden: [32, 32]}
train: {epochs: 0, steps: 150, batch: 32}
auto: {steer: true}
Y
decisions() { grep '"kind":"decision"' "$1/events.jsonl" | grep -vc '"from":"auto"'; }
for seed in 1 2 3; do
    for target in "50 25" "152 77"; do
        raw_data $seed $target >rows.csv
        for how in "auto train.optimizer=adam train.lr=0.01" "fp16 train.optimizer=sgd train.lr=0.0005"; do
            run="raw-$seed-${target% *}-${how%% *}"
            "$mixt" train raw.yaml data.path=rows.csv out=$run seed=$seed precision=$how 2>err >/dev/null || fail "$run: $(cat err)"
            [ "$(decisions $run)" = 0 ] || fail "$run decides: $(cat $run/events.jsonl)"
            ! grep -q '"kind":"diagnosis"' $run/events.jsonl || fail "$run is looked into: $(cat $run/events.jsonl)"
            [ "$(grep -c 'above watch.grad_norm_max' err)" = 1 ] || fail "$run tells of the limit other than once: $(cat err)"
        done
    done
done

[ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
