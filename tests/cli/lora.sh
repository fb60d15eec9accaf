#!/bin/bash
# Adapters beside a folder of another program: the run's files hold them alone, as PEFT reads them, and they begin another run; the same
# bits after a stop, within a budget and on ranks; evaluated and written with like any run; bad wishes and adapters of other models are
# named, and nothing is written. Usage: lora.sh MIXT
. "$(dirname "$0")/../support/script.sh"
. "$(dirname "$0")/../support/ranks.sh"
cd "$work" || exit 1
for i in $(seq 300); do echo "line $i says that $((i * i % 97)) is the square of $i, modulo ninety-seven"; done >text.txt
cat >base.yaml <<'Y'
model: llama
device: cpu
net: {layers: 2, width: 32, heads: 4, kv_heads: 2, inner: 64}
data: {kind: text, path: text.txt, seq: 32}
train: {batch: 4, eval_batch: 16, epochs: 0, steps: 4, validate_every: 4}
Y
"$mixt" train base.yaml out=base -q 2>err || fail "a model to begin with: $(cat err)"
"$mixt" export base --dtype bf16 --out folder >/dev/null 2>err || fail "its folder: $(cat err)"
cat >run.yaml <<'Y'
model: llama
init: folder
device: cpu
precision: bf16
data: {kind: text, path: text.txt, seq: 32}
train: {batch: 4, eval_batch: 16, epochs: 0, steps: 8, lr: 0.01, validate_every: 4, log_every: 1, checkpoint_every: 4}
lora: {rank: 2, dropout: 0.1}
Y

# ---- a run and its files ----

"$mixt" train run.yaml out=one 2>err >/dev/null || fail "a run: $(cat err)"
planned=$("$mixt" plan run.yaml --json | sed 's/.*"control":[0-9]*,"total":\([0-9]*\).*/\1/')
grep -q "\"memory\":$planned," one/metrics.jsonl || fail "planned $planned bytes, $(grep -o '"memory":[0-9]*' one/metrics.jsonl | head -1)"
for words in '"r": 2,' '"lora_alpha": 4,' '"q_proj",' '"down_proj"' '"task_type": "CAUSAL_LM"' "\"base_model_name_or_path\": \"$work/folder\""; do
    grep -q -- "$words" one/adapter/adapter_config.json || fail "no $words in $(cat one/adapter/adapter_config.json)"
done
# tensor FILE NAME SHAPE
tensor() { grep -aq "\"$2\":{\"dtype\":\"F32\",\"shape\":\[$3\]" "$1" || fail "$1 has no $2 of shape $3: $(head -c 2000 "$1" | tail -c +9)"; }
file=one/adapter/adapter_model.safetensors layer=base_model.model.model.layers.1
tensor $file $layer.self_attn.q_proj.lora_A.weight 2,32
tensor $file $layer.self_attn.k_proj.lora_B.weight 16,2
tensor $file $layer.mlp.down_proj.lora_A.weight 2,64
tensor one/model.safetensors h.1.attn.qkv.lora_a 6,32
grep -aq 'h.1.attn.qkv.weight' one/model.safetensors && fail "the run's weights hold the base too"
"$mixt" eval one --json >one.json 2>err || fail "eval: $(cat err)"
"$mixt" eval one --checkpoint last --json >last.json 2>err || fail "eval of a checkpoint: $(cat err)"
cmp <(grep -o '"loss":[0-9.e-]*' one.json) <(grep -o '"loss":[0-9.e-]*' last.json) || fail "the last checkpoint and the final weights have other losses"
for which in final last; do
    "$mixt" generate one --checkpoint $which --prompt to --tokens 12 --seed 3 -q >$which.txt 2>err || fail "generate, $which: $(cat err)"
done
cmp final.txt last.txt || fail "the last checkpoint and the final weights write other texts"

# ---- the same bits ----

"$mixt" train run.yaml out=half train.steps=4 -q || fail "half a run"
"$mixt" train --resume half train.steps=8 -q 2>err || fail "the other half: $(cat err)"
cmp one/model.safetensors half/model.safetensors || fail "other bits after a resume"
least=$("$mixt" plan run.yaml train.recompute=1 2>&1 | sed "s/.*budget is \([0-9]*\) bytes.*/\1/")
"$mixt" train run.yaml out=again train.recompute="$least" -q 2>err || fail "recomputation within $least: $(cat err)"
cmp one/model.safetensors again/model.safetensors || fail "other bits where activations are computed again"

ls one/checkpoints/step-*/frozen.safetensors >/dev/null 2>&1 && fail "checkpoints hold the base again"
cp -r folder kept
"$mixt" train base.yaml out=base2 seed=5 -q && "$mixt" export base2 --dtype bf16 --out folder --overwrite >/dev/null 2>&1
"$mixt" train --resume half train.steps=10 -q 2>err && fail "it went on beside other weights"
grep -q 'init=.*/folder is not what the run began with (checksum' err || fail "other weights to stand beside: $(cat err)"
rm -r folder && mv kept folder

# ---- adapters come back ----

"$mixt" train run.yaml out=on lora= lora.rank=0 lora.init=one/adapter train.steps=1 train.lr=0 -q 2>err && fail "lora.rank 0 with an adapter"
sed '/^lora/d' run.yaml >plain.yaml
"$mixt" train plain.yaml out=on lora.init=one/adapter train.steps=1 train.lr=0 -q 2>err || fail "an adapter to begin with: $(cat err)"
cmp one/adapter/adapter_model.safetensors on/adapter/adapter_model.safetensors || fail "an adapter changed on its way"
"$mixt" train plain.yaml out=words lora.rank=2 lora.layers=q_proj,v_proj lora.also=ln_f -q 2>err || fail "layers by other words: $(cat err)"
tensor words/model.safetensors h.1.attn.qkv.lora_a 4,32
tensor words/adapter/adapter_model.safetensors base_model.model.model.norm.weight 32
grep -aq 'lora_b.1' words/model.safetensors && fail "keys were not to have an adapter"
grep -q '"model.norm"' words/adapter/adapter_config.json || fail "what is trained beside: $(cat words/adapter/adapter_config.json)"
"$mixt" train plain.yaml out=words2 lora.init=words/adapter train.steps=1 train.lr=0 -q 2>err || fail "an adapter of some layers: $(cat err)"
cmp words/adapter/adapter_model.safetensors words2/adapter/adapter_model.safetensors || fail "an adapter of some layers changed on its way"

# ---- bad wishes ----

refused() {
    local words=$1; shift
    "$mixt" train "$@" out=bad -q 2>err && fail "$*: it was done"
    grep -q -- "$words" err || fail "$*: $(cat err)"
    [ -e bad ] && fail "$*: something was written"
}
refused "'q_prog' matches no linear layer of this model, which has h.\*.attn.qkv.0, .*, h.\*.mlp.out, head" run.yaml lora.layers=q_prog
refused "adapters are described, but lora.rank is 0" run.yaml lora.rank=0
refused 'say which model it is of with init=' plain.yaml init= net.layers=2 lora.init=one/adapter
refused "adapter of another rank\|of another model, or of another rank" run.yaml lora.init=one/adapter lora.rank=3
"$mixt" train base.yaml out=other net.width=64 -q && "$mixt" export other --out folder2 >/dev/null 2>&1
refused "'base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight' is fp32 \[2, 32\], the model here needs a float tensor \[2, 64\]" plain.yaml init=folder2 lora.init=one/adapter
cp -r one/adapter broken
sed -i 's/"use_dora": false/"use_dora": true/' broken/adapter_config.json
refused 'broken/adapter_config.json: its use_dora is set, and computes something that mixt does not' plain.yaml lora.init=broken
cp one/adapter/adapter_config.json broken/ && head -c 3000 one/adapter/adapter_model.safetensors >broken/adapter_model.safetensors
refused 'broken/adapter_model.safetensors' plain.yaml lora.init=broken
echo '{"peft_type": "LOHA"}' >broken/adapter_config.json
refused 'its peft_type is not LORA' plain.yaml lora.init=broken
echo '{' >broken/adapter_config.json
refused 'broken/adapter_config.json' plain.yaml lora.init=broken

# ---- ranks ----

need_ranks
"$mixt" train run.yaml out=parts dist.ranks=2 -q || fail "two ranks in one process"
for zero in 0 1 2 3; do
    ranks 2 "$mixt" train run.yaml out=zero-$zero dist.zero=$zero train.steps=4 -q 2>err || fail "dist.zero=$zero: $(cat err)"
    ranks 2 "$mixt" train --resume zero-$zero train.steps=8 -q 2>err || fail "dist.zero=$zero resumed: $(cat err)"
    cmp parts/model.safetensors zero-$zero/model.safetensors || fail "dist.zero=$zero: other bits"
done

[ $failures = 0 ]
