#!/bin/bash
# Batches padded to several lengths: planned, resumed, shared by ranks, refused. Usage: buckets.sh MIXT
. "$(dirname "$0")/../support/script.sh"
. "$(dirname "$0")/../support/ranks.sh"
cd "$work" || exit 1
export MIXT_CACHE=$work/cache

cat >run.yaml <<'Y'
model: seq2seq
precision: bf16
device: cpu
threads: 1
net: {layers: 1, width: 16, heads: 2, dropout: 0.1}
data: {kind: parallel, samples: 90, vocab_size: 300, seq: 32}
train: {batch: 8, eval_batch: 8, epochs: 3, validate_every: 100, log_every: 1, checkpoint_every: 7, keep: 100}
Y
cat >texts.yaml <<'Y'
model: bert_classify
precision: fp16
device: cpu
threads: 1
net: {layers: 1, width: 16, heads: 2}
data: {kind: labelled, samples: 90}
train: {batch: 8, eval_batch: 8, epochs: 3, validate_every: 100, log_every: 1, checkpoint_every: 7, keep: 100, accumulate: 2}
Y

cat >sound.yaml <<'Y'
model: speech
precision: bf16
device: cpu
threads: 1
net: {channels: [4, 4], layers: 1, width: 8, dropout: 0.1}
data: {kind: audio, task: text, samples: 40, mels: 12, hop: 5, tail: 0.1, shift: 0.05, noise: 0.1, time_mask: 9, mel_mask: 2}
train: {batch: 4, eval_batch: 4, epochs: 2, validate_every: 100, log_every: 1, checkpoint_every: 7, keep: 100}
Y

# number JSON NAME: the first of that name
number() { grep -o "\"$2\":[0-9.]*" <<<"$1" | head -1 | cut -d: -f2; }

# ---- planned = taken, and less padding ----

for config in run texts sound; do
    plan=$("$mixt" plan $config.yaml --json 2>/dev/null)
    buckets=$(grep -o '"buckets":{.*' <<<"$plan")
    awk -v with="$(number "$buckets" padding)" -v without="$(number "$buckets" padding_without)" 'BEGIN { exit !(with < without - 0.1) }' ||
        fail "$config: padding: ${buckets:0:600}"
    "$mixt" train $config.yaml out=$config -q 2>err || fail "$config: $(cat err)"
    taken=$(number "$(head -1 $config/metrics.jsonl)" memory)
    planned=$(grep -o '"total":[0-9]*' <<<"$plan" | head -1 | cut -d: -f2)
    [ "$taken" = "$planned" ] || fail "$config: planned $planned bytes, took $taken"
    "$mixt" plan $config.yaml data.buckets=1 --json 2>/dev/null | grep -q '"buckets":null' || fail "$config: data.buckets=1 has buckets"
done
"$mixt" plan run.yaml >out 2>err && grep -q '^source  target  samples  updates  activations' out || fail "the table of lengths: $(cat out err)"

# ---- stopped in the middle of an epoch ----

for config in run texts sound; do
    cp -r $config $config-cut
    for other in $config-cut/checkpoints/*; do [ "${other##*/}" = step-00000007 ] || rm -r "$other"; done
    rm $config-cut/model.safetensors
    "$mixt" train --resume $config-cut -q 2>err || fail "$config: resume: $(cat err)"
    same $config $config-cut
done
"$mixt" train --resume run data.buckets=2 -q 2>err && fail "resumed with other buckets"
grep -q 'data.buckets: 0 -> 2' err || fail "resumed with other buckets: $(cat err)"

# ---- looked into: the FP32 pass beside it has the same length ----

"$mixt" debug run --step 10 >out 2>err || fail "debug: $(cat err)"
grep -Eq '^dec.ln_f +[0-9.]+% +[0-9.]+% +[0-9.]+%' out || fail "debug has no errors of dec.ln_f: $(grep dec.ln_f out)"

# ---- a run of a version without buckets goes on without ----

"$mixt" train run.yaml out=plain data.buckets=1 -q 2>err || fail "one length: $(cat err)"
cp -r plain old
for other in old/checkpoints/*; do [ "${other##*/}" = step-00000007 ] || rm -r "$other"; done
rm old/model.safetensors
sed -i '/^  buckets:/d' old/config.yaml
"$mixt" train --resume old -q 2>err || fail "a run of before: $(cat err)"
same plain old
cmp -s run/model.safetensors plain/model.safetensors && fail "buckets changed nothing"

# ---- refused, with words ----

"$mixt" train run.yaml out=no data.buckets=9 -q 2>err && fail "9 buckets"
grep -q 'data.buckets' err || fail "9 buckets: $(cat err)"
"$mixt" train run.yaml out=no data.buckets=4 data.in_order=true -q 2>err && fail "in order and in buckets"
grep -q 'data.in_order keeps the order of the file' err || fail "in order and in buckets: $(cat err)"

# ---- ranks see the same batches ----

for config in run sound; do
    "$mixt" train $config.yaml out=$config-parts dist.ranks=2 train.epochs=1 -q 2>err || fail "$config: dist.ranks=2: $(cat err)"
done
need_ranks
for zero in 0 3; do
    for config in run sound; do
        ranks 2 "$mixt" train $config.yaml out=$config-two$zero dist.zero=$zero train.epochs=1 -q 2>err || fail "$config: two ranks, dist.zero=$zero: $(cat err)"
        same $config-parts $config-two$zero
    done
done
[ $failures = 0 ] || { echo "$failures checks failed"; exit 1; }
