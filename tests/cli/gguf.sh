#!/bin/bash
# Runs and folders as GGUF files: every number, metadata, tokenizers, refusals, nothing left. Usage: gguf.sh MIXT
. "$(dirname "$0")/../support/script.sh"
need python3
read=$(realpath "$(dirname "$0")")/gguf_read.py
cd "$work" || exit 1

seq 1 2000 >text.txt
cat >gpt.yaml <<'YAML'
model: gpt
precision: fp32
device: cpu
threads: 2
net: {layers: 2, width: 32, heads: 2}
data: {kind: text, path: text.txt, seq: 16}
train: {steps: 2, batch: 4, lr: 0.01, weight_decay: 0}
YAML
sed 's/model: gpt/model: llama/; s/heads: 2/heads: 4, kv_heads: 2/' gpt.yaml >llama.yaml
# refused TEXT COMMAND...: must fail with status 1 and say TEXT
refused() {
    local text=$1
    shift
    "$@" >out 2>err
    local status=$?
    [ $status = 1 ] || fail "$*: status $status"
    grep -qF -- "$text" err || { fail "$*: says nothing of '$text'"; cat err; }
}
# key FILE KEY VALUE: as JSON
key() { [ "$(python3 "$read" "$1" "$2")" = "$3" ] || fail "$1: $2 is $(python3 "$read" "$1" "$2"), expected $3"; }

# ---- every number ----
for model in gpt llama; do
    "$mixt" train $model.yaml out=$model -q 2>err || { fail "train $model"; cat err; }
    "$mixt" export $model >/dev/null || fail "export $model"
    for type in f32 f16 bf16 q8_0 q4_0; do
        "$mixt" export $model --gguf --type $type >out || fail "export $model --gguf --type $type"
        grep -q "^$model/export/model-$type.gguf: .* tensors, $type, .*, architecture" out || fail "$model $type: $(cat out)"
        python3 "$read" $model/export/model-$type.gguf --of $model/export >out 2>err || { fail "$model $type"; cat err; }
    done
    # A folder gives the same file as the run that it was exported from, but for its name.
    "$mixt" export $model/export --gguf --type q8_0 --out folder.gguf --overwrite >out || fail "export of a folder"
    cmp <(tail -c 8192 folder.gguf) <(tail -c 8192 $model/export/model-q8_0.gguf) || fail "$model: the folder's numbers are others"
done
q8=llama/export/model-q8_0.gguf
key $q8 general.architecture '"llama"'
key $q8 general.file_type 7
key $q8 general.quantization_version 2
key $q8 llama.block_count 2
key $q8 llama.attention.head_count_kv 2
key $q8 llama.rope.freq_base 10000.0
key gpt/export/model-f32.gguf gpt2.context_length 16
key gpt/export/model-f32.gguf general.quantization_version '"-"'
key $q8 tokenizer.ggml.model '"gpt2"'
key $q8 tokenizer.ggml.pre '"gpt-2"'
key $q8 tokenizer.ggml.tokens '["Ā", "ā", "Ă", 256]'
key $q8 tokenizer.ggml.merges '[]'
key $q8 tokenizer.ggml.add_bos_token false
"$mixt" export llama --gguf --type q4_0 --json --overwrite | grep -q '"type":"q4_0","architecture":"llama","tensors":21,"bytes":' || fail "--json"

# ---- tokenizers of other programs ----
folder() { rm -rf "$1" && cp -r llama/export "$1" && rm -f "$1"/*.gguf "$1"/vocab.json "$1"/merges.txt "$1"/inputs.json "$1"/tokenizer_config.json; }
folder sentence
python3 - <<'PY'
import json
tokens = ['<unk>', '<s>', '</s>'] + [f'<0x{i:02X}>' for i in range(190)] + ['▁', 'a', 'b', 'ab', '▁a', '▁ab']
vocab = {t: i for i, t in enumerate(tokens)}
added = [{'id': i, 'content': t, 'single_word': False, 'lstrip': False, 'rstrip': False, 'normalized': False, 'special': True} for t, i in (('<unk>', 0), ('<s>', 1), ('</s>', 2))]
added += [{**added[0], 'id': len(tokens), 'content': '<|end|>'}, {**added[0], 'id': len(tokens) + 1, 'content': '▁▁', 'special': False}]
json.dump({'added_tokens': added, 'normalizer': {'type': 'Sequence', 'normalizers': [{'type': 'Prepend', 'prepend': '▁'}, {'type': 'Replace', 'pattern': {'String': ' '}, 'content': '▁'}]},
           'pre_tokenizer': None, 'post_processor': {'type': 'TemplateProcessing', 'single': [{'SpecialToken': {'id': '<s>', 'type_id': 0}}, {'Sequence': {'id': 'A', 'type_id': 0}}]},
           'model': {'type': 'BPE', 'unk_token': '<unk>', 'byte_fallback': True, 'vocab': vocab, 'merges': ['a b', ['▁', 'a'], '▁ ab', '▁a b']}}, open('sentence/tokenizer.json', 'w'))
json.dump({'bos_token': '<s>', 'eos_token': {'content': '</s>'}, 'pad_token': '</s>', 'chat_template': [{'name': 'tool_use', 'template': 'no'}, {'name': 'default', 'template': '{{ messages }}é'}]}, open('sentence/tokenizer_config.json', 'w'))
json.dump({'eos_token_id': [2, 199]}, open('sentence/generation_config.json', 'w'))
PY
"$mixt" export sentence --gguf --type f16 --out s.gguf >out 2>err || { fail "sentence"; cat err; }
key s.gguf tokenizer.ggml.model '"llama"'
key s.gguf tokenizer.ggml.pre '"default"'
key s.gguf tokenizer.ggml.bos_token_id 1
key s.gguf tokenizer.ggml.eos_token_id 2
key s.gguf tokenizer.ggml.eot_token_id 199
key s.gguf tokenizer.ggml.unknown_token_id 0
key s.gguf tokenizer.ggml.padding_token_id 2
key s.gguf tokenizer.ggml.add_bos_token true
key s.gguf tokenizer.ggml.add_space_prefix true
key s.gguf tokenizer.chat_template '"{{ messages }}é"'
python3 - "$read" <<'PY' || fail "sentence: tokens"
import subprocess, sys
sys.argv = [sys.argv[1], 's.gguf']
exec(open(sys.argv[0]).read().split('\nfile = ')[0])
f = Reader('s.gguf').fields
text, kind, score = (f['tokenizer.ggml.' + k] for k in ('tokens', 'token_type', 'scores'))
assert len(text) == 256 and text[193:] == ['▁', 'a', 'b', 'ab', '▁a', '▁ab', '<|end|>', '  '] + [f'[PAD{i}]' for i in range(201, 256)], text[190:]
assert kind[:4] == [2, 3, 3, 6] and kind[193:203] == [1] * 6 + [3, 4, 5, 5], kind[190:]
assert score[196:201] == [0, -1, -2, -1000, -1000] and score[1] == -1000, score[190:]
PY
echo 'alone: {{ messages }}' >sentence/chat_template.jinja
"$mixt" export sentence --gguf --out s.gguf --overwrite >out && key s.gguf tokenizer.chat_template '"alone: {{ messages }}\n"'

# ---- rotary positions and windows ----
folder scaled
cp llama/export/{vocab.json,merges.txt,tokenizer_config.json} scaled
config() { python3 - "$@" <<'PY'
import json, sys
c = json.load(open(sys.argv[1] + '/config.json'))
c.update(json.loads(sys.argv[2]))
json.dump(c, open(sys.argv[1] + '/config.json', 'w'))
PY
}
config scaled '{"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}, "rope_theta": 500000.0}'
"$mixt" export scaled --gguf --type f32 --out r.gguf >out 2>err || { fail "llama3"; cat err; }
python3 - "$read" <<'PY' || fail "llama3: factors"
import math, sys
exec(open(sys.argv[1]).read().split('\nfile = ')[0])
found, _ = Reader('r.gguf').numbers('rope_freqs.weight')
for i, f in enumerate(found):
    wave = 2 * math.pi * 500000 ** (2 * i / (2 * len(found)))
    s = (8192 / wave - 1) / 3
    want = 1 if wave < 2048 else 8 if wave > 8192 else 1 / ((1 - s) / 8 + s)
    assert abs(f - want) < 1e-6 * want, (i, f, want)
PY
key r.gguf llama.rope.freq_base 500000.0
config scaled '{"rope_scaling": {"rope_type": "linear", "factor": 2.0}}'
"$mixt" export scaled --gguf --out r.gguf --overwrite >out && key r.gguf llama.rope.scaling.type '"linear"' && key r.gguf llama.rope.scaling.factor 2.0

# ---- refusals: nothing is written ----
refused "llama/export/model-q8_0.gguf: exists already" "$mixt" export llama --gguf --type q8_0
refused "--dtype: is for safetensors" "$mixt" export llama --gguf --dtype bf16
refused "--type: is for --gguf" "$mixt" export llama --type q8_0
folder bare
refused "bare: has no tokenizer, which belongs into a GGUF: put its tokenizer.json into the folder" "$mixt" export bare --gguf
cp -r scaled other
config other '{"model_type": "falcon"}'
refused "model_type 'falcon'" "$mixt" export other --gguf --out x.gguf
cp -r scaled extra
python3 - <<'PY'
import json, struct
d = open('extra/model.safetensors', 'rb').read()
n, = struct.unpack_from('<Q', d)
h = json.loads(d[8:8 + n])
h['model.layers.0.self_attn.sinks'] = {'dtype': 'F32', 'shape': [0], 'data_offsets': [len(d) - 8 - n] * 2}
t = json.dumps(h).encode()
t += b' ' * (-len(t) % 8)
open('extra/model.safetensors', 'wb').write(struct.pack('<Q', len(t)) + t + d[8 + n:])
PY
refused "tensor 'model.layers.0.self_attn.sinks': GGUF's architecture llama has no place for it" "$mixt" export extra --gguf --out x.gguf
cp -r scaled cut
truncate -s -100 cut/model.safetensors
refused "cut/model.safetensors" "$mixt" export cut --gguf --out x.gguf
cp -r scaled broken
printf '\377\377\377\177' | dd of=broken/model.safetensors bs=1 conv=notrunc seek=$(($(stat -c %s broken/model.safetensors) - 64)) 2>dd
refused "is not finite" "$mixt" export broken --gguf --out x.gguf
folder large
cp sentence/tokenizer.json large
python3 - <<'PY'
import json
t = json.load(open('large/tokenizer.json'))
t['added_tokens'][3]['id'] = 256
json.dump(t, open('large/tokenizer.json', 'w'))
PY
refused "large" "$mixt" export large --gguf --out x.gguf
for write in 1 2 3 9; do
    MIXT_FAIL_WRITE=$write "$mixt" export scaled --gguf --out x.gguf >out 2>err && fail "a full disk at write $write"
done
ls x.gguf .x.gguf* x.gguf.* 2>/dev/null && fail "a refusal left a file"
[ $failures = 0 ] || exit 1
