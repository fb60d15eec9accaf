#!/bin/bash
# Folders of Hugging Face models used as they stand: generate, eval, init, several files, tokenizer.json, and what is refused.
# Usage: folders.sh MIXT
. "$(dirname "$0")/../support/script.sh"
cd "$work" || exit 1

# refused TEXT COMMAND...: must fail with status 1 and say TEXT
refused() {
    local text=$1
    shift
    "$@" >out 2>err
    local status=$?
    [ $status = 1 ] || fail "$*: status $status"
    grep -qF -- "$text" err || { fail "$*: says nothing of '$text'"; cat err; }
}

for _ in $(seq 200); do printf 'the cat naps. the dog runs 12 miles\n'; done >text.txt
cat >llama.yaml <<'YAML'
model: llama
precision: fp32
device: cpu
threads: 2
net: {layers: 2, width: 32, heads: 4, kv_heads: 2, inner: 48, eps: 1e-6, rope_theta: 500000}
data: {kind: text, path: text.txt, seq: 32}
train: {steps: 20, batch: 4, lr: 0.01}
YAML
sed 's/model: llama/model: gpt/; s/, kv_heads.*/}/' llama.yaml >gpt.yaml

# ---- what mixt exports is such a folder: the same tokens, the same loss ----
for model in llama gpt; do
    "$mixt" train $model.yaml out=$model -q || fail "train $model"
    "$mixt" export $model --out hf-$model >out || fail "export $model"
    for source in $model hf-$model; do
        "$mixt" generate $source --device cpu -n 20 -t 0 -q --prompt 'the cat' --ids >$source.ids || fail "generate $source"
        "$mixt" eval $source --device cpu data.path=text.txt --json 2>err | sed 's/.*"loss": *\([0-9]\.[0-9]\{6\}\).*/\1/' >$source.loss # other batches
        [ ! -s err ] || { fail "$source: warns of the text that it was trained on"; cat err; }
    done
    "$mixt" train $model.yaml out=$model-cut -q train.steps=1 data.val_fraction=0.3 && "$mixt" export $model-cut --out hf-$model-cut >out || fail "$model cut otherwise"
    "$mixt" eval hf-$model-cut --device cpu data.path=text.txt >out 2>err && [ ! -s err ] || { fail "$model: the parts are cut otherwise than the run's"; cat err; }
    cmp -s $model.ids hf-$model.ids || fail "$model: the folder writes $(cat hf-$model.ids), the run $(cat $model.ids)"
    [ -s $model.loss ] && cmp -s $model.loss hf-$model.loss || fail "$model: loss $(cat hf-$model.loss), of the run $(cat $model.loss)"
done

# ---- init without sizes: they are the folder's ----
sed '/^net:/d' llama.yaml >plain.yaml
"$mixt" train plain.yaml init=hf-llama out=tuned -q train.steps=1 2>err || { fail "init=hf-llama"; cat err; }
grep -q 'kv_heads: 2' tuned/config.yaml && grep -q 'rope_theta: 5e+05' tuned/config.yaml || fail "sizes are not the folder's"
refused "num_hidden_layers is 2, the model here has 1" "$mixt" train plain.yaml init=hf-llama net.layers=1 out=no -q

"$mixt" tokenize text.txt --train --size 270 --out words >/dev/null || fail "tokenize --train"
"$mixt" train gpt.yaml data.vocab=words out=worded -q train.steps=1 && "$mixt" export worded --out hf-worded >out || fail "a gpt with words"
refused "expected a float tensor [256, 32]; nothing was loaded (data.vocab=hf-worded reads the data with the tokens of the file; init_new_head=wte gives that layer new random weights)" \
    "$mixt" train gpt.yaml init=hf-worded out=no -q
refused "nothing was loaded (data.vocab=worded/vocab reads" "$mixt" train gpt.yaml init=worded out=no -q
"$mixt" train gpt.yaml init=hf-worded data.vocab=hf-worded out=reworded -q train.steps=1 2>err || { fail "init with the folder's tokens"; cat err; }
refused "nothing was loaded (init_new_head=wte gives" "$mixt" train gpt.yaml init=hf-worded data.vocab=./hf-worded net.vocab=600 out=no -q

# ---- weights in several files ----
cp -r hf-llama shards && mv shards/model.safetensors shards/model-1.safetensors
names=$(head -c 4000 shards/model-1.safetensors | grep -ao '"[a-z_0-9.]*\.weight"' | sort -u)
{ printf '{"weight_map": {'; for name in $names; do printf '%s: "model-1.safetensors",' "$name"; done | sed 's/,$//'; printf '}}'; } >shards/model.safetensors.index.json
"$mixt" generate shards --device cpu -n 20 -t 0 -q --prompt 'the cat' --ids >shards.ids || fail "generate shards"
cmp -s llama.ids shards.ids || fail "several files write otherwise"
sed -i 's/{"weight_map": {/&"model.extra.weight": "model-1.safetensors",/' shards/model.safetensors.index.json
refused "tensor 'model.extra.weight' is not in model-1.safetensors" "$mixt" generate shards
sed -i 's,: "model-1.safetensors",: "../model-1.safetensors",' shards/model.safetensors.index.json
refused "', but there is no such file beside it" "$mixt" generate shards

# ---- tensors that nobody takes: layers too many are refused, others are counted ----
rm -rf extra && cp -r hf-llama extra && mv extra/model.safetensors extra/model-1.safetensors
header='{"score.weight":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"score.bias":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}'
{ printf "\\x$(printf %x ${#header})\\0\\0\\0\\0\\0\\0\\0%s\\0\\0\\0\\0\\0\\0\\0\\0" "$header"; } >extra/model-2.safetensors
{ printf '{"weight_map": {"score.weight": "model-2.safetensors", "score.bias": "model-2.safetensors"'; for name in $names; do printf ', %s: "model-1.safetensors"' "$name"; done; printf '}}'; } >extra/model.safetensors.index.json
left='extra/model.safetensors.index.json: 2 of its tensors are not in this model and left out: score'
"$mixt" generate extra --device cpu -n 20 -t 0 -q --prompt 'the cat' --ids >extra.ids 2>err || { fail "generate extra"; cat err; }
cmp -s llama.ids extra.ids && grep -qF "mixt: warning: $left" err || { fail "generate: says nothing of tensors left out"; cat err; }
"$mixt" eval extra --device cpu data.path=text.txt >out 2>err || { fail "eval extra"; cat err; }
grep -qF "mixt: warning: $left" err || { fail "eval: says nothing of tensors left out"; cat err; }
"$mixt" train llama.yaml distill.teacher=extra out=taught train.steps=1 >out 2>err || { fail "extra as a teacher"; cat err; }
grep -qF "warning: distill.teacher: $left" err || { fail "distill.teacher: says nothing of tensors left out"; cat err; }
"$mixt" generate hf-llama --device cpu -n 2 -q >out 2>err && [ ! -s err ] || { fail "warns of a folder that has nothing else"; cat err; }
for model in llama gpt; do
    rm -rf fewer && cp -r hf-$model fewer
    sed -i 's/"\(num_hidden_layers\|n_layer\)": 2/"\1": 1/' fewer/config.json
    refused "is 1, but fewer/model.safetensors has 2 layers ('" "$mixt" generate fewer
    refused "is 1, but fewer/model.safetensors has 2 layers ('" "$mixt" eval fewer data.path=text.txt
done

# ---- what the model here does not have ----
# altered FROM TO TEXT: refused with TEXT when config.json says TO instead of FROM
altered() {
    rm -rf other && cp -r hf-llama other && sed -i "s/$1/$2/" other/config.json
    refused "$3" "$mixt" generate other
}
altered '"llama"' '"mamba"' "model_type 'mamba': of Hugging Face's, mixt has gpt2, bert, llama, mistral"
altered '"attention_bias": false' '"attention_bias": true' 'attention_bias is true'
altered '"mlp_bias": false' '"mlp_bias": false, "residual_multiplier": 0.22' 'residual_multiplier is 0.22: the model here (llama) knows nothing of it'
altered '"mlp_bias": false' '"mlp_bias": false, "quantization_config": {"bits": 4}' 'quantization_config is {"bits":4}: the model here (llama) knows nothing of it'
altered '"rope_scaling": null' '"rope_scaling": {"rope_type": "linear", "factor": 4.0, "mrope_section": [1]}' 'its rotary positions have mrope_section'
altered '"rope_scaling": null' '"rope_scaling": null, "partial_rotary_factor": 0.5' 'partial_rotary_factor is 0.5: the model here turns whole heads'
altered '"silu"' '"gelu"' 'hidden_act is "gelu"'
altered '"rope_scaling": null' '"rope_scaling": {"rope_type": "yarn", "factor": 4.0}' "rotary positions of kind 'yarn'"
altered '"head_dim": 8' '"head_dim": 16' 'expected a float tensor [64, 32]'
altered '"num_hidden_layers": 2' '"num_hidden_layers": 3' "'model.layers.2"
altered '"hidden_size": 32' '"hidden_size": -1' 'hidden_size is -1'
refused "has no checkpoint 'last'" "$mixt" generate hf-llama --checkpoint last
refused "is a language model" "$mixt" predict hf-llama text.txt
rm -f other/*; cp hf-llama/config.json hf-llama/model.safetensors other
refused 'has no tokenizer: use token ids (--prompt-ids, --ids), or,' "$mixt" generate other
"$mixt" generate other --device cpu --prompt-ids "$(printf 'the cat' | od -An -tu1 | xargs | tr ' ' ,)" -n 20 -t 0 -q --ids >bare.ids || fail "ids without a tokenizer"
cmp -s llama.ids bare.ids || fail "ids without a tokenizer differ"

for more in '' data.kind=auto; do
    refused 'other: has no tokenizer, and other tokens than its own are noise to it' "$mixt" eval other data.path=text.txt $more
done
for more in data.vocab=hf-llama data.tokenizer=bytes; do
    "$mixt" eval other --device cpu data.path=text.txt $more --json 2>err | sed 's/.*"loss": *\([0-9]\.[0-9]\{6\}\).*/\1/' | cmp -s - hf-llama.loss || { fail "eval with $more"; cat err; }
done
"$mixt" tokenize text.txt --vocab hf-llama --out text.tokens >/dev/null || fail "tokenize"
"$mixt" eval other --device cpu data.kind=tokens data.path=text.tokens >out 2>err || { fail "eval of tokens without a tokenizer"; cat err; }

# a run on ready tokens is no better off
"$mixt" train gpt.yaml data.kind=tokens data.path=text.tokens out=numbers -q train.steps=1 || fail "train on tokens"
refused 'text.txt: is text, but numbers was trained on tokens of an unknown vocabulary: set data.vocab=FOLDER' "$mixt" eval numbers data.kind=text data.path=text.txt
"$mixt" eval numbers data.kind=text data.path=text.txt data.vocab=hf-llama >out 2>err || { fail "text by a vocabulary that is named"; cat err; }

# ---- tokenizer.json of Llama 2's kind: characters, bytes to fall back to ----
mkdir sentence
cat >sentence/tokenizer.json <<'JSON'
{"added_tokens": [{"id": 1, "content": "<s>", "special": true}],
 "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
 "pre_tokenizer": null,
 "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]},
 "model": {"type": "BPE", "byte_fallback": true, "unk_token": "<unk>", "vocab": {"<unk>": 0, "<s>": 1, "</s>": 2, "<0xC3>": 3, "<0xA4>": 4,
   "▁": 5, "a": 6, "b": 7, "ab": 8, "▁ab": 9}, "merges": ["a b", ["▁", "ab"]]}}
JSON
ids() { printf "$1" >ids.txt; "$mixt" tokenize ids.txt --vocab sentence --json | sed 's/.*"tokens": *\[\([^]]*\)\].*/\1/' | tr -d ' '; }
[ "$(ids 'ab abä b')" = 9,9,3,4,5,7 ] || fail "sentence: $(ids 'ab abä b')"
[ "$(ids 'b c')" = 5,7,5,0 ] || fail "sentence, unknown: $(ids 'b c')"
printf 'ab abä b' >ids.txt
"$mixt" tokenize ids.txt --vocab sentence --out ids.tokens >/dev/null && "$mixt" tokenize ids.tokens --vocab sentence --decode | cmp -s - ids.txt ||
    fail "sentence: not back again"
# broken FROM TO TEXT
broken() {
    mkdir -p bad && sed "s/$1/$2/" sentence/tokenizer.json >bad/tokenizer.json
    refused "$3" "$mixt" tokenize ids.txt --vocab bad
}
broken '"BPE"' '"Unigram"' "its model, 'Unigram' is not supported"
broken '"Prepend"' '"Lowercase"' "its normalizer, 'Sequence' is not supported"
broken '"ab": 8' '"ab": 18' "token 'ab' has id 18"
broken '"a b"' '"a c"' "merge 0 ('a' and 'c') names or makes no token"
broken '"byte_fallback": true' '"byte_fallback": false' "its normalizer"
broken '"model"' '"mod' 'not valid JSON'

[ $failures = 0 ] && echo "folders: all good"
exit $((failures > 0))
