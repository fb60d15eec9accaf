#!/bin/bash
# mixt finetune: a folder and a file of conversations become a run like any other: adapters and full, resume, chat with what comes out,
# JSON, settings that win, refusals that leave nothing. Usage: finetune.sh MIXT
. "$(dirname "$0")/../support/script.sh"
need python3
script=$(realpath "$(dirname "$0")")
cd "$work" || exit 1

seq 1 400 >text.txt
python3 - <<'PY'
import json, os, random
code = [b for b in range(256) if 33 <= b < 127 or 161 <= b < 173 or b > 173]
rest = [b for b in range(256) if b not in code]
tokens = {**{chr(b): b for b in code}, **{chr(256 + i): b for i, b in enumerate(rest)}}
added = [{'id': 256 + i, 'content': t, 'single_word': False, 'lstrip': False, 'rstrip': False, 'normalized': False, 'special': True} for i, t in enumerate(('<end>', '<turn>'))]
os.mkdir('tokens')
json.dump({'added_tokens': added, 'normalizer': None, 'pre_tokenizer': {'type': 'ByteLevel', 'add_prefix_space': False, 'use_regex': True}, 'post_processor': None,
           'model': {'type': 'BPE', 'vocab': tokens, 'merges': []}}, open('tokens/tokenizer.json', 'w'))
json.dump({'eos_token': '<end>', 'chat_template': '{% for m in messages %}<turn>{{ m.role }} {{ m.content }}<end>{% endfor %}{% if add_generation_prompt %}<turn>assistant {% endif %}'},
          open('tokens/tokenizer_config.json', 'w'))
draw, words = random.Random(1), ['red', 'blue', 'green', 'mill', 'river']
with open('chats.jsonl', 'w') as out:
    for i in range(240):
        w = draw.choice(words)
        print(json.dumps({'messages': [{'role': 'user', 'content': f'say {w}'}, {'role': 'assistant', 'content': f'{w}!'}]}), file=out)
PY
cat >base.yaml <<'YAML'
model: llama
threads: 1
precision: fp32
net: {layers: 1, width: 32, heads: 2}
data: {kind: text, path: text.txt, seq: 128, vocab: tokens}
train: {steps: 2, batch: 2, lr: 0.01}
YAML
"$mixt" train base.yaml out=base -q && "$mixt" export base --out folder >/dev/null || fail "a model to begin with"
# refused TEXT COMMAND...: must fail with status 1 (or 2) and say TEXT, and make no run
refused() {
    local text=$1
    shift
    "$@" --out refused >out 2>err
    local status=$?
    [ $status = 1 ] || [ $status = 2 ] || fail "$*: status $status"
    grep -qF -- "$text" err || { fail "$*: says nothing of '$text'"; cat err; }
    [ ! -e refused ] || { fail "$*: left a run"; rm -rf refused; }
}
field() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' out "$1"; }
quick="threads=1 device=cpu train.epochs=1"

# ---- adapters ----
"$mixt" finetune folder chats.jsonl --out lora --json $quick >out 2>err || { fail "finetune"; cat err; }
python3 - <<'PY' || { fail "the result as JSON"; cat out; }
import json, math
r = json.load(open('out'))
assert r['run'] == 'lora' and r['adapter'] == 'lora/adapter' and r['tokens_s'] > 0 and r['memory'] > 0, r
assert math.isfinite(r['eval_loss']) and r['trained_tokens'] > 228 * 4 and 0 < r['trainable'] < r['parameters'], r
PY
[ -s lora/adapter/adapter_model.safetensors ] && [ -s lora/adapter/adapter_config.json ] || fail "no adapter"
grep -q '^ *rank: 16' lora/config.yaml && grep -q 'kind: chat' lora/config.yaml && grep -q 'schedule: cosine' lora/config.yaml || fail "config.yaml: $(cat lora/config.yaml)"
# The run is the one that its configuration describes: trained again, the same bits.
"$mixt" train lora/config.yaml out=again -q 2>err || { fail "config.yaml does not train"; cat err; }
cmp lora/adapter/adapter_model.safetensors again/adapter/adapter_model.safetensors || fail "config.yaml makes another adapter"
"$mixt" finetune folder chats.jsonl --out two --json $quick --lora 4 train.lr=0.003 lora.layers='h.*.mlp' data.seq=64 >out 2>err || { fail "settings"; cat err; }
grep -q '^ *rank: 4' two/config.yaml && grep -q 'lr: 0.003' two/config.yaml && grep -q 'seq: 64' two/config.yaml || fail "settings do not win"
[ $(field trainable) = $((3 * 4 * (32 + $(sed -n 's/^ *inner: \([0-9]*\).*/\1/p' two/config.yaml)))) ] || fail "adapters of rank 4 beside one perceptron have $(field trainable) numbers"
"$mixt" finetune folder chats.jsonl --out coarse --base int8 $quick -q 2>err && grep -q 'frozen: int8' coarse/config.yaml || { fail "--base int8"; cat err; }

# ---- all weights, resumed, and talked to ----
"$mixt" finetune folder chats.jsonl --full --out full $quick train.epochs=12 train.lr=0.01 >out 2>err || { fail "--full"; cat err; }
grep -q '^memory' err && grep -q '^run ' err || fail "no plan in bytes: $(cat err)"
grep -q 'mixt chat full' out && grep -q 'mixt export full --gguf --type q8_0' out || fail "no next commands: $(cat out)"
[ -e full/adapter ] && fail "all weights were trained, and there is an adapter"
said=$(printf 'say mill\n' | "$mixt" chat full -t 0 2>err) || { fail "chat full"; cat err; }
[ "$said" = 'mill!' ] || fail "the model has not learned to answer: '$said'"
"$mixt" train --resume full train.epochs=13 -q 2>err || { fail "resume"; cat err; }
"$mixt" export full --gguf --type q8_0 --out full.gguf >out 2>err && [ -s full.gguf ] || { fail "export --gguf"; cat err; }
"$mixt" export lora --gguf --type f32 >out 2>err || { fail "export of adapters --gguf"; cat err; }
python3 - - "$script/gguf_read.py" <<'PY' || fail "the adapter as GGUF"
import sys
exec(open(sys.argv[2]).read().split('\nfile = ')[0])
f = Reader('lora/export/adapter-f32.gguf')
import json, math, struct
assert f.fields['general.type'] == 'adapter' and f.fields['adapter.type'] == 'lora' and f.fields['adapter.lora.alpha'] == 32.0, f.fields
d = open('lora/adapter/adapter_model.safetensors', 'rb').read()
n, = struct.unpack_from('<Q', d)
there = {}
for name, t in json.loads(d[8:8 + n]).items():
    if name != '__metadata__':
        a, b = t['data_offsets']
        there[name] = t['shape'], struct.unpack(f'<{(b - a) // 4}f', d[8 + n + a:8 + n + b])
assert len(there) == len(f.tensors) == 14
for name, (dims, _, _) in f.tensors.items():
    words = name.split('.')
    shape, values = there[f'base_model.model.model.layers.{words[1]}.{LLAMA[words[2]]}.lora_{words[4][-1].upper()}.weight']
    if words[4] == 'lora_b' and words[2] in ('attn_q', 'attn_k'):
        rows = [r // 16 * 16 + r % 16 % 2 * 8 + r % 16 // 2 for r in range(shape[0])]
        values = [x for r in rows for x in values[r * shape[1]:(r + 1) * shape[1]]]
    assert dims == shape[::-1] and f.numbers(name)[0] == list(values), name
PY
printf 'say mill\nsay red\n' | "$mixt" chat folder --adapter lora/adapter -t 0 -n 5 --json >a 2>err || { fail "chat --adapter"; cat err; }
printf 'say mill\nsay red\n' | "$mixt" chat lora -t 0 -n 5 --json >b 2>err || { fail "chat of a run with adapters"; cat err; }
python3 - <<'PY' || fail "the adapter beside the folder answers otherwise than the run: $(cat a b)"
import json
a, b = ([json.loads(l)['answer'] for l in open(f)] for f in 'ab')
assert len(a) == 2 and a == b, (a, b)
PY

# ---- context ----
printf 'say mill\n' | "$mixt" chat folder -t 0 -n 50 --context 48 --json >a 2>err || { fail "chat --context"; cat err; }
grep -q '"end":"context"' a || fail "a context of 48 tokens is not one: $(cat a)"
printf 'say mill\n' | "$mixt" chat folder --context 1000000 >a 2>err && fail "a context of a million tokens"
grep -q 'folder: a context of 1000000 tokens, but the model has [0-9]* positions' err || fail "a context of a million tokens: $(cat err)"

# ---- refusals ----
refused "nowhere: no such folder" "$mixt" finetune nowhere chats.jsonl
refused "text.txt" "$mixt" finetune folder text.txt
refused "none.jsonl: no such file" "$mixt" finetune folder none.jsonl
refused "lora: is not a Hugging Face folder" "$mixt" finetune lora chats.jsonl
cp -r folder bare && rm bare/tokenizer.json bare/tokenizer_config.json
refused "bare: has no tokenizer" "$mixt" finetune bare chats.jsonl
cp -r folder plain && rm plain/tokenizer_config.json
refused "template" "$mixt" finetune plain chats.jsonl
cp -r folder cut && truncate -s -100 cut/model.safetensors
refused "the file was cut short, copy it again" "$mixt" finetune cut chats.jsonl $quick
cp -r folder shards && rm shards/model.safetensors
echo '{"weight_map": {"model.norm.weight": "model-00001-of-00002.safetensors"}}' >shards/model.safetensors.index.json
refused "model-00001-of-00002.safetensors: is not there, and shards/model.safetensors.index.json names it" "$mixt" finetune shards chats.jsonl $quick
echo '{"messages": [{"role": "user", "content": "no answer"}]}' >unanswered.jsonl
refused "unanswered.jsonl" "$mixt" finetune folder unanswered.jsonl $quick
refused "base int8" "$mixt" finetune folder chats.jsonl --full --base int8
refused "--full trains all weights, --lora adapters beside them" "$mixt" finetune folder chats.jsonl --full --lora 8
refused "lora.layers" "$mixt" finetune folder chats.jsonl lora.layers=nothing $quick
"$mixt" finetune folder chats.jsonl --out lora $quick >out 2>err && fail "a run that exists was taken"
grep -q 'lora' err || fail "nothing says that the run exists: $(cat err)"
refused "does not fit into 1.00 KiB" "$mixt" finetune folder chats.jsonl --memory 1K $quick
[ $failures = 0 ] || exit 1
