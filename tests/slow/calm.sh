#!/bin/bash
# Healthy runs of every model of the zoo in tiny sizes, each in BF16 and in FP16, with a controller
# that may do everything: counts what it did. At most one decision in 100,000 updates may be one too many, and none may go back.
# Usage: calm.sh MIXT [UPDATES [LIMIT [MODEL...]]], as in calm.sh build/mixt 100000
. "$(dirname "$0")/../support/script.sh"
updates=${2:-100000}
limit=${3:-1}
only=${*:4}
cd "$work" || exit 1

for i in $(seq 3000); do echo "line $i says that $((i * i % 97)) is the square of $i, modulo ninety-seven"; done >text.txt
images='data: {kind: digits, limit: 2048}'
tokens='data: {kind: text, path: text.txt, seq: 32}'
# name, how many times as many updates as the slowest, configuration
cat >models <<Y
mlp      | 40 | model: mlp; net: {hidden: [32]}; $images; train: {lr: 0.003}
convnet  | 30 | model: convnet; net: {channels: [4, 8], norm: batch}; $images; train: {lr: 0.003}
resnet   | 4 | model: resnet; net: {depth: 20, width: 4}; $images; train: {lr: 0.003}
vgg      | 1 | model: vgg; net: {depth: 11, hidden: [32]}; data: {kind: random, shape: 32x32x3, classes: 4, samples: 512}; train: {lr: 0.0003}
lstm     | 12 | model: lstm; net: {layers: 1, width: 32}; $tokens; train: {lr: 0.003}
gpt      | 10 | model: gpt; net: {layers: 2, width: 32, heads: 2, dropout: 0.1}; $tokens; train: {lr: 0.003, warmup: 50, schedule: cosine}
bert     | 10 | model: bert; net: {layers: 2, width: 32, heads: 2}; $tokens; train: {lr: 0.003, warmup: 50, schedule: cosine}
bert_mlm | 10 | model: bert_mlm; net: {layers: 2, width: 32, heads: 2}; $tokens; train: {lr: 0.003, warmup: 50, schedule: cosine}
Y
[ -z "$only" ] || { grep -E "^(${only// /|}) " models >some; mv some models; }
shares=$(awk -F'|' '{ sum += 2 * $2 } END { print sum }' models)
count() { grep '"kind":"decision"' "$2" | grep -cE "$1"; }
all=0 back=0 done=0
printf '%-9s %-9s %8s %10s %10s  %s\n' model precision updates decisions rollbacks 'alerts by severity'
while IFS='|' read -r name share yaml; do
    name=${name// /}
    steps=$(((updates * share + shares - 1) / shares))
    tr ';' '\n' <<<"$yaml" | sed 's/^ *//' >"$name.yaml"
    for precision in bf16 fp16; do
        out=$name-$precision
        "$mixt" train "$name.yaml" out=$out precision=$precision auto.steer=true auto.may=precision,scale,rollback,skip,clip,lr \
            threads=1 device=cpu train.epochs=0 train.steps=$steps train.batch=16 train.checkpoint_minutes=0 train.log_every=1000 -q 2>err ||
            fail "$out: $(cat err)"
        decisions=$(count . $out/events.jsonl) rollbacks=$(count '"back":[0-9]' $out/events.jsonl)
        printf '%-9s %-9s %8d %10d %10d  %s\n' "$name" "$precision" $steps "$decisions" "$rollbacks" \
            "$(for s in info warning critical; do echo "$s $(grep '"kind":"alert"' $out/events.jsonl | grep -c "\"severity\":\"$s\"")"; done | paste -sd ' ')"
        grep '"kind":"decision"' $out/events.jsonl | cut -c1-300
        all=$((all + decisions)) back=$((back + rollbacks)) done=$((done + steps))
    done
done <models
echo "$done updates: $all decisions, $back of them went back"
[ $all -le "$limit" ] || fail "$all decisions: $limit at most"
[ $back = 0 ] || fail "$back rollbacks: none may be"
exit $((failures > 0))
