#!/bin/bash
# Each family of decoders from a Hugging Face folder: generated from, evaluated, trained and exported, against what transformers computes
# (tests/data/families, made by tests/peers/golden_families.py).
# Usage: families.sh MIXT
. "$(dirname "$0")/../support/script.sh"
here=$(cd "$(dirname "$0")/.." && pwd)
cd "$work" || exit 1
need python3 # makes the folders

# near WHAT GOT EXPECTED: numbers of both files, a line each, within 1e-5 of each other
near() {
    paste "$2" "$3" | awk 'NF != 2 || ($1 - $2) ^ 2 > (1e-5 * $2) ^ 2 { print $1 " expected " $2; bad = 1 } END { exit bad || !NR }' || fail "$1"
}

cat >train.yaml <<'YAML'
precision: fp32
device: cpu
threads: 1
net: {vocab: 67}
data: {kind: tokens, val_fraction: 0, in_order: true}
train: {batch: 2, steps: 5, epochs: 0, optimizer: adamw, beta1: 0.9, beta2: 0.999, weight_decay: 0, clip: 0}
YAML
for golden in "$here"/data/families/*.json; do
    name=$(basename "$golden" .json)
    python3 "$here/support/hf_folder.py" "$golden" $name || { fail "$name: no folder"; continue; }
    "$mixt" eval $name --device cpu data.kind=tokens data.path=$name/text.bin $(head -1 $name.train) data.val_fraction=0 --json >out 2>err || { fail "eval $name"; cat err; }
    sed 's/.*"loss": *\([0-9.]*\).*/\1/' out | head -1 >got
    head -1 $name.losses >first && near "$name: loss of eval" got first
    if [ -s $name.greedy ]; then
        "$mixt" generate $name --device cpu --prompt-ids $(cat $name.prompt) -n 12 -t 0 -q --ids 2>err | tr ', ' '\n\n' | grep . | tail -12 >got
        cmp -s $name.greedy got || { fail "$name writes $(xargs <got), expected $(xargs <$name.greedy)"; cat err; }
    fi
    "$mixt" train train.yaml init=$name data.path=$name/text.bin $(cat $name.train) out=run-$name -q 2>err || { fail "train $name"; cat err; continue; }
    sed -n 's/.*"loss":\([0-9.]*\).*/\1/p' run-$name/metrics.jsonl | head -5 >got
    near "$name: losses of updates" got $name.losses
    "$mixt" train train.yaml init=$name data.path=$name/text.bin $(cat $name.train) out=still-$name -q train.steps=1 train.optimizer=sgd train.lr=1e-30 2>err &&
        "$mixt" export still-$name --out back-$name >out 2>err || { fail "export $name"; cat err; continue; }
done

# What is exported is the folder again: the same tensors, and a config.json that means the same.
python3 - $(for golden in "$here"/data/families/*.json; do basename "$golden" .json; done) <<'PYTHON' || fail "exports"
import json, struct, sys
def tensors(folder):
    data = open(folder + '/model.safetensors', 'rb').read()
    size = struct.unpack('<Q', data[:8])[0]
    header = json.loads(data[8:8 + size])
    return {k: (v['dtype'], v['shape'], data[8 + size + v['data_offsets'][0]:8 + size + v['data_offsets'][1]]) for k, v in header.items() if k != '__metadata__'}
for name in sys.argv[1:]:
    if tensors(name) != tensors('back-' + name):
        sys.exit(f'{name}: exported tensors are not those of the folder')
PYTHON
for name in gemma3 phi3-long; do
    "$mixt" eval back-$name --device cpu data.kind=tokens data.path=$name/text.bin $(head -1 $name.train) data.val_fraction=0 --json >out 2>err || { fail "eval of what was exported of $name"; cat err; }
    sed 's/.*"loss": *\([0-9.]*\).*/\1/' out | head -1 >got
    head -1 $name.losses >first && near "$name: loss of the export" got first
done

# ---- from scratch: what is exported means the same ----
for model in gemma2 gemma3 smollm3 qwen3; do
    "$mixt" train train.yaml model=$model net.layers=2 net.width=32 net.heads=4 data.path=qwen3/text.bin data.seq=21 train.lr=0.01 out=own-$model -q 2>err &&
        "$mixt" export own-$model --out hf-$model >out 2>err || { fail "$model from scratch"; cat err; }
    for source in own-$model hf-$model; do
        "$mixt" eval $source --device cpu data.kind=tokens data.path=qwen3/text.bin data.seq=21 data.val_fraction=0 --json 2>err | sed 's/.*"loss": *\([0-9.]*\).*/\1/' | head -1 >$source.loss
        [ -s $source.loss ] || { fail "eval $source"; cat err; }
    done
    near "$model from scratch, exported" own-$model.loss hf-$model.loss
done

# ---- tables with more rows than the tokenizer has tokens, as Qwen's and Phi's: they stay ----
for _ in $(seq 40); do echo 'the cat naps, the dog runs 12 miles'; done >text.txt
printf 'precision: fp32\ndevice: cpu\nthreads: 1\ndata: {kind: text, path: text.txt, seq: 16}\ntrain: {batch: 2, steps: 1, epochs: 0, optimizer: sgd, lr: 1e-30}\n' >text.yaml
"$mixt" train text.yaml model=qwen3 net.layers=1 net.width=32 net.heads=2 net.vocab=320 out=spare -q 2>err && "$mixt" export spare --vocab 320 --out hf-spare >out 2>err || { fail "a table with rows to spare"; cat err; }
"$mixt" train text.yaml init=hf-spare data.vocab=hf-spare out=spare-on -q 2>err && "$mixt" export spare-on --out hf-spare-on >out 2>err || { fail "init from a table with rows to spare"; cat err; }
cmp -s hf-spare/model.safetensors hf-spare-on/model.safetensors || fail "a table with rows to spare is another"

# ---- what a family does not have ----
# altered FOLDER CHANGE TEXT: refused with TEXT when CHANGE, of sed, was made to config.json
altered() {
    rm -rf other && cp -r $1 other && sed -i "$2" other/config.json
    cmp -s $1/config.json other/config.json && fail "$2: changes nothing"
    "$mixt" generate other --device cpu --prompt-ids 1 -n 1 --ids >out 2>err && fail "$2: taken"
    grep -qF -- "$3" err || { fail "$2: says nothing of '$3'"; cat err; }
}
altered qwen3 's/"use_sliding_window": false/"use_sliding_window": true/; s/"sliding_window": null/"sliding_window": 4/; s/"max_window_layers": 28/"max_window_layers": 1/; s/"layer_types": [[][^]]*/"layer_types_": [/' 'the first 1 of 3 layers have no window'
altered qwen3-window 's/"sliding_attention"\]/"full_attention"]/' 'the model here has a window in all layers or in none'
altered gemma3 's/"layer_types": \["sliding/"layer_types": ["full/' 'layer_types: the model here has an order'
altered gemma2 's/"gelu_pytorch_tanh"/"silu"/' 'hidden_activation is "silu"'
altered gemma3 's/"attn_logit_softcapping": null/"attn_logit_softcapping": 50.0/' 'attn_logit_softcapping is 50.0'
altered smollm3 's/"no_rope_layers": \[1/"no_rope_layers": [0/' 'no_rope_layers: the model here has an order'
altered olmo2 's/"hidden_size": 32/&, "clip_qkv": 8/' 'clip_qkv is 8: the model here (olmo2) knows nothing of it'
altered phi3-long 's/"short_factor": \[1.0/"short_factor": [0/' 'its numbers for rotary positions'
altered mistral 's/"sliding_window": 7/"sliding_window": "7"/' 'sliding_window is not a whole number'
altered qwen2 's/"rope_type": "default"/"rope_type": "yarn"/' "rotary positions of kind 'yarn'"
# what says nothing, or nothing of the computation, is taken
cp -r phi3 plenty && sed -i 's/"hidden_size": 32/&, "full_attn_mod": 1, "lm_head_bias": false, "auto_map": {"AutoConfig": "x.Phi3Config"}, "max_length": 20, "pretraining_tp": 2, "use_mrope": null/' plenty/config.json
"$mixt" generate plenty --device cpu --prompt-ids $(cat phi3.prompt) -n 12 -t 0 -q --ids 2>err | tr ', ' '\n\n' | grep . | tail -12 | cmp -s - phi3.greedy || { fail "fields that say nothing"; cat err; }
altered llama 's/"head_dim": 8/"head_dim": 7/' 'rotary positions need an even number in each'

[ $failures = 0 ] && echo "families: all good"
exit $((failures > 0))
