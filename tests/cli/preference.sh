#!/bin/bash
# Preferences: pairs of answers are learned against a reference whose scores are made once, kept with a checksum and read when the run
# goes on; the same bits after a stop; both forms; what is not a pair is named. Usage: preference.sh MIXT
. "$(dirname "$0")/../support/script.sh"
cd "$work" || exit 1
cat >base.yaml <<'Y'
model: llama
device: cpu
net: {layers: 1, width: 64, heads: 2, inner: 64}
data: {kind: text, seq: 128}
train: {batch: 4, eval_batch: 16, epochs: 0, steps: 2}
Y
"$mixt" train base.yaml out=base -q 2>err || fail "a model to begin with: $(cat err)"
"$mixt" export base --out folder >/dev/null 2>err || fail "its folder: $(cat err)"
for i in $(seq 24); do
    echo "{\"prompt\": \"item $((i % 7))\", \"chosen\": \" is $((i % 5)) good$( [ $i = 1 ] && echo " and more than that")\", \"rejected\": \" was bad $((i % 3))\"}"
done >pairs.jsonl
quick=(--base fp32 -q train.epochs=0 train.batch=4 train.lr=0.01 data.val_fraction=0.2 train.log_every=1 train.validate_every=6 train.warmup=0)

# ---- training, its figures, its bits ----

tune() { "$mixt" finetune folder "$@" "${quick[@]}" 2>err || fail "finetune $*: $(cat err)"; }
tune pairs.jsonl --preference --out one train.steps=6 train.schedule=constant
grep -q '"step":1,.*"loss":0.693147.*"margin":0.0' one/metrics.jsonl || fail "adapters begin at the reference: $(head -1 one/metrics.jsonl)"
grep -q '"step":6,.*"val_accuracy":1.0,"margin":[0-9.]*,"val_margin":[0-9.]*}' one/metrics.jsonl || fail "nothing was learned: $(tail -1 one/metrics.jsonl)"
tune pairs.jsonl --preference --out half train.steps=3 train.schedule=constant
"$mixt" train --resume half train.steps=6 -q 2>err || fail "the other half: $(cat err)"
cmp one/model.safetensors half/model.safetensors || fail "other bits after a resume"
cmp one/reference.safetensors half/reference.safetensors || fail "other scores"
tune pairs.jsonl --preference --full --out all train.steps=6 train.schedule=constant
cmp one/reference.safetensors all/reference.safetensors || fail "all weights have another reference than adapters"
tune pairs.jsonl --preference --out four --base nf4 train.steps=2
for run in one all; do
    "$mixt" eval $run --json >eval.json 2>err || fail "eval of $run: $(cat err)"
    grep -q 'is not the data' err && fail "$run: its own data are taken for others: $(cat err)"
    awk -v a="$(grep -o '"loss":[0-9.e-]*' eval.json | cut -d: -f2)" -v b="$(grep -o '"val_loss":[0-9.e-]*' $run/metrics.jsonl | tail -1 | cut -d: -f2)" \
        'BEGIN { exit !(a > 0 && (a - b)^2 < 1e-10) }' || fail "$run: $(cat eval.json) is not what training said: $(tail -1 $run/metrics.jsonl)"
done
echo hello | "$mixt" generate one --prompt "item 3" --tokens 4 -q >/dev/null 2>err || fail "generate: $(cat err)"

# ---- conversations ----

echo '{% for m in messages %}{{ m["content"] }}{% endfor %}' >folder/chat_template.jinja
sed 's/"prompt": \("[^"]*"\), "chosen": \("[^"]*"\), "rejected": \("[^"]*"\)/"prompt": [{"role": "user", "content": \1}], "chosen": [{"role": "assistant", "content": \2}], "rejected": [{"role": "assistant", "content": \3}]/' pairs.jsonl >lists.jsonl
sed 's/"prompt": \("[^"]*"\), "chosen": \("[^"]*"\), "rejected": \("[^"]*"\)/"chosen": [{"role": "user", "content": \1}, {"role": "assistant", "content": \2}], "rejected": [{"role": "user", "content": \1}, {"role": "assistant", "content": \3}]/' pairs.jsonl >whole.jsonl
"$mixt" data lists.jsonl --model folder --loss-on preference --json >data.json 2>err || fail "data: $(cat err)"
grep -q '"form":"conversational_preference"' data.json && grep -q '"samples":48' data.json || fail "data: $(cat data.json)"
for form in lists whole; do
    tune $form.jsonl --preference --out $form train.steps=2 train.schedule=constant
    cmp one/reference.safetensors $form/reference.safetensors || fail "$form: the same words have other scores"
done

# ---- pairs that say nothing ----

{ cat pairs.jsonl; echo '{"prompt": "a", "chosen": "same", "rejected": "same"}'; } >same.jsonl
tune same.jsonl --preference --out same train.steps=1
grep -q 'same.jsonl: 1 of 20 pairs have the same answer twice' err || fail "no word about a pair of one answer: $(cat err)"
tune pairs.jsonl --preference --out different train.steps=1
grep -q 'the same answer twice' err && fail "pairs that differ are called alike: $(cat err)"

# ---- refusals ----

refused() {
    local words=$1 status
    shift
    rm -rf bad
    "$mixt" "$@" >out 2>err
    status=$?
    [ $status != 0 ] || fail "$*: status 0"
    grep -q -- "$words" err || fail "$*: says nothing of '$words': $(cat err)"
    [ ! -e bad ] || fail "$*: left a run"
}
refused 'mixt finetune --preference' finetune folder pairs.jsonl --out bad
echo '{"prompt": "a", "completion": "b"}' >single.jsonl
refused 'preferences are learned of rows with' finetune folder single.jsonl --preference --out bad data.val_fraction=0
echo '{"prompt": "a", "chosen": "b"}' >lone.jsonl
refused 'lone.jsonl: line 1: "chosen" without "rejected"' finetune folder lone.jsonl --preference --out bad data.val_fraction=0
{ cat pairs.jsonl; echo '{"prompt": "a", "chosen": "b", "rejected": [{"role": "assistant", "content": "c"}]}'; } >mixed.jsonl
refused 'mixed.jsonl: line 25: "prompt", "chosen" and "rejected" must be three texts' finetune folder mixed.jsonl --preference --out bad
{ cat lists.jsonl; echo '{"chosen": [{"role": "user", "content": "a"}], "rejected": [{"role": "user", "content": "b"}]}'; } >apart.jsonl
refused 'apart.jsonl: line 25: no "prompt"' finetune folder apart.jsonl --preference --out bad
refused 'whose scores are not known here' sensitivity one
cp -r one damaged
printf X | dd of=damaged/reference.safetensors bs=1 seek=$(($(stat -c %s damaged/reference.safetensors) - 2)) conv=notrunc 2>/dev/null
refused 'damaged/reference.safetensors: is damaged' train --resume damaged train.steps=8 -q
rm damaged/reference.safetensors
refused 'damaged/reference.safetensors' train --resume damaged train.steps=8 -q

[ $failures = 0 ]
