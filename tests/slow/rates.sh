#!/bin/bash
# Learning rates that are 10, 100 and 1000 times what each of twelve models is trained with: under precision=auto each run must
# be harmless (nothing decided, the loss ends below the first one) or have the optimizer named; and in the end the loss is
# below the first one, or the run has status 1 and has named a rate that is calm. A run with its own rate is let alone.
# Usage: rates.sh MIXT [LEAST [MODEL...]]: at least LEAST of all (34 of 36) must be right
. "$(dirname "$0")/../support/script.sh"
least=${2:-34}
only=${*:3}
cd "$work" || exit 1

for i in $(seq 3000); do echo "line $i says that $((i * i % 97)) is the square of $i, modulo ninety-seven"; done >text.txt
images='data: {kind: digits, limit: 2048}'
tokens='data: {kind: text, path: text.txt, seq: 32}'
# name, its own learning rate, configuration
cat >models <<Y
mlp      | 0.001 | model: mlp; net: {hidden: [64, 64]}; $images; train: {batch: 32, schedule: cosine}
convnet  | 0.002 | model: convnet; net: {channels: [8, 16]}; $images; train: {batch: 32, schedule: cosine, warmup: 20}
gpt      | 0.003 | model: gpt; net: {layers: 2, width: 32, heads: 2}; $tokens; train: {batch: 16, schedule: cosine, warmup: 20, clip: 1.0}
llama    | 0.003 | model: llama; net: {layers: 2, width: 32, heads: 4, kv_heads: 2, tied: true}; $tokens; train: {batch: 16, schedule: cosine, warmup: 20, clip: 1.0}
bert_mlm | 0.003 | model: bert_mlm; net: {layers: 2, width: 32, heads: 2}; $tokens; train: {batch: 16, schedule: cosine, warmup: 20, clip: 1.0}
lstm     | 0.003 | model: lstm; net: {layers: 1, width: 32}; $tokens; train: {batch: 16, schedule: cosine, clip: 1.0}
gru      | 0.003 | model: gru; net: {layers: 1, width: 32}; $tokens; train: {batch: 16, schedule: cosine, clip: 1.0}
rnn      | 0.001 | model: rnn; net: {layers: 1, width: 32}; $tokens; train: {batch: 16, schedule: cosine, clip: 1.0}
seq2seq  | 0.001 | model: seq2seq; net: {layers: 1, width: 32, heads: 2}; data: {kind: parallel, vocab_size: 400, seq: 32}; train: {batch: 32, label_smoothing: 0.1, clip: 1.0, schedule: cosine, warmup: 20}
mf       | 10 | model: mf; net: {width: 8, penalty: 0.05}; data: {kind: ratings, val_fraction: 0.1}; train: {batch: 256, optimizer: sgd, weight_decay: 2e-5, schedule: cosine}
resnet   | 0.1 | model: resnet; net: {depth: 20, width: 4, shortcut: pad}; $images; train: {batch: 32, optimizer: momentum, weight_decay: 0.0001, schedule: cosine, warmup: 20}
c3d      | 0.003 | model: c3d; net: {channels: [4, 8, 8], hidden: [64], norm: batch}; data: {kind: moving, limit: 256}; train: {batch: 8, schedule: cosine, weight_decay: 0.05, warmup: 20}
Y
[ -z "$only" ] || { grep -E "^(${only// /|}) " models >some; mv some models; }
# kinds that were found, in their order
found() { sed -n 's/.*"kind":"diagnosis".*"found":"\([^"]*\)".*/\1/p' "$1/events.jsonl" | paste -sd ' '; }
decided() { grep '"kind":"decision"' "$1/events.jsonl" | grep -v '"step":0,.*"cause":null' | sed 's/.*"from":"\{0,1\}\([^",]*\).*"to":"\([^"]*\)","action":"\([a-z]*\)".*/\3 \1>\2/' | paste -sd ,; }
all=0 right=0
printf '%-9s %7s %6s %9s %9s  %-5s %s\n' model rate status first last right 'found; decided'
while IFS='|' read -r name lr yaml; do
    name=${name// /} lr=${lr// /}
    tr ';' '\n' <<<"$yaml" | sed 's/^ *//' >"$name.yaml"
    for times in 1 10 100 1000; do
        out=$name-$times
        "$mixt" train "$name.yaml" out=$out precision=auto threads=1 device=cpu train.epochs=0 train.steps=200 train.log_every=1 \
            train.lr="$(awk -v a=$lr -v f=$times 'BEGIN { printf "%.9g", a * f }')" train.validate_every=1000 train.checkpoint_minutes=0 -q 2>err
        status=$?
        read -r first last below <<<"$(awk -F'"loss":' '{ split($2, a, ","); l[NR] = a[1] } END { for (i = NR - 19; i <= NR; i++) m += l[i] / 20
            printf "%.4g %.4g %d", l[1], m, m < l[1] }' $out/metrics.jsonl)"
        named=no
        case "$(found $out)" in optimizer*) named=yes ;; esac
        ok=no
        [ $status = 0 ] && [ $below = 1 ] && [ -z "$(decided $out)" ] && ok=yes
        [ $named = yes ] && { [ $below = 1 ] || { [ $status = 1 ] && grep -q 'with train.lr=.* are calm' err; }; } && ok=yes
        printf '%-9s %7s %6s %9s %9s  %-5s %s; %s\n' "$name" "x$times" $status "$first" "$last" $ok "$(found $out)" "$(decided $out)"
        if [ $times = 1 ]; then
            [ -z "$(decided $out)" ] || fail "$out decides: $(cat err)"
            continue
        fi
        all=$((all + 1))
        [ $ok = no ] || right=$((right + 1))
    done
done <models
echo "$right of $all right"
[ $right -ge "$least" ] || fail "$right of $all: $least at least"
exit $((failures > 0))
