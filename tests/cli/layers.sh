#!/bin/bash
# watch.every: statistics of layers in layers.jsonl, the same after a stop, in the report also where rows are damaged.
# Usage: layers.sh MIXT
. "$(dirname "$0")/../support/script.sh"
cd "$work" || exit 1

cat >net.yaml <<'Y'
model: convnet
precision: fp16
threads: 1
device: cpu
net: {channels: [4, 8]}
data: {kind: digits, limit: 128}
train: {epochs: 0, steps: 24, batch: 8, checkpoint_every: 10}
watch: {every: 5}
Y

"$mixt" train net.yaml out=whole -q 2>err || fail "train: $(cat err)"
[ "$(grep -o '^{"step":[0-9]*' whole/layers.jsonl | grep -o '[0-9]*' | xargs)" = '5 5 10 15 20' ] || fail "steps: $(cut -c1-60 whole/layers.jsonl)"
for part in '"names":{"layers":["conv' '"gradients":{"amax":[' '"margin":[' '"flushed":[' '"parameters":{"amax":[' '"scale":'; do
    grep -qF -- "$part" whole/layers.jsonl || fail "no $part in $(cat whole/layers.jsonl)"
done

# killed between two looks, behind a checkpoint: the rows after that are taken back and come again
"$mixt" train net.yaml out=killed train.steps=18 -q 2>err || fail "killed: $(cat err)"
rm -r killed/checkpoints/*18* && "$mixt" train --resume killed train.steps=24 -q 2>err || fail "resume: $(cat err)"
cmp whole/layers.jsonl killed/layers.jsonl || fail "other rows after a stop"
cmp whole/model.safetensors killed/model.safetensors || fail "other weights after a stop"
"$mixt" train --resume whole out=further train.steps=30 -q 2>err || fail "fork: $(cat err)"
[ "$(wc -l <further/layers.jsonl)" = 7 ] && [ "$(wc -l <whole/layers.jsonl)" = 5 ] || fail "a run that goes on elsewhere: $(cut -c1-40 further/layers.jsonl)"

# off, and too far apart for this run: no file, the same bits
"$mixt" train net.yaml out=off watch.every=0 -q && "$mixt" train net.yaml out=far watch.every=25 -q || fail "off"
[ ! -e off/layers.jsonl ] && [ ! -e far/layers.jsonl ] || fail "rows of a run that looks at nothing"
cmp -s whole/model.safetensors off/model.safetensors || fail "looking changes bits"
"$mixt" train net.yaml out=bad watch.every=-1 2>err && fail "watch.every=-1 was taken"
grep -q 'watch.every' err && [ ! -e bad ] || fail "watch.every=-1: $(cat err)"

# the report: all rows, and the damaged ones said
"$mixt" report whole off --out both.html || fail "report"
[ "$(grep -c 'data-layers="0"' both.html)" = 1 ] && ! grep -q 'data-layers="1"' both.html || fail "layers in the page"
printf '%s\n' '{"step":25,"activations":3}' '{"step":' 'null' >>whole/layers.jsonl
printf '{"step":30,"activ' >>whole/layers.jsonl # is being written
"$mixt" report whole --out damaged.html && grep -q '3 rows of its layers are left out, the first in line 6' damaged.html ||
    fail "damaged rows: $(grep -o '[0-9]* rows of its layers[^"]*' damaged.html)"
rm whole/layers.jsonl && "$mixt" report whole --out none.html && ! grep -q 'script type="application/json" data-layers' none.html || fail "no rows"

# of a long run rows are put together: the worst of each number stays
mkdir long && cp off/config.yaml off/metrics.jsonl long
awk 'BEGIN {
    print "{\"step\":1,\"names\":{\"layers\":[\"a\"],\"activations\":[\"fp16\"],\"gradients\":[\"fp16\"],\"parameters\":[\"a.w\"]}}"
    for (s = 1; s <= 9000; s++)
        printf "{\"step\":%d,\"activations\":{\"margin\":[%d],\"zero\":[%g]},\"gradients\":{\"margin\":[null]},\"parameters\":{\"zero\":[0]}}\n", s, s == 4567 ? 1 : 9, s == 33 ? 0.75 : 0.5
}' >long/layers.jsonl
"$mixt" report long --out long.html || fail "a long run"
rows=$(grep -o '"step":[0-9]*,"activations"' long.html | wc -l)
[ "$rows" -ge 500 ] && [ "$rows" -le 2000 ] || fail "$rows rows of 9000 in the page"
[ "$(grep -o '"margin":\[1\]' long.html | wc -l)" = 1 ] && [ "$(grep -o '"zero":\[0.75\]' long.html | wc -l)" = 1 ] || fail "one bad update is lost"

[ "$failures" = 0 ] || { echo "$failures checks failed"; exit 1; }
echo "layers are looked into"
