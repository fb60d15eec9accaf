#!/usr/bin/env python3
"""Reads a GGUF file, and holds it against the safetensors that mixt exports of the same run.

    gguf_read.py FILE KEY...        prints the value of each key as JSON ("-" where there is none)
    gguf_read.py FILE --of FOLDER   every number of every tensor: equal in F32, within the format's rounding in others

Needs nothing but Python. Tensors of the architecture llama have rows of queries and keys in another order.
"""
import json, struct, sys

KINDS = {0: 'B', 1: 'b', 2: 'H', 3: 'h', 4: 'I', 5: 'i', 6: 'f', 7: '?', 10: 'Q', 11: 'q', 12: 'd'}


class Reader:
    def __init__(self, path):
        self.data, self.at = open(path, 'rb').read(), 0
        assert self.data[:4] == b'GGUF', 'magic'
        self.at = 4
        assert self.number('I') == 3, 'version'
        tensors, fields = self.number('Q'), self.number('Q')
        self.fields = {}
        for _ in range(fields):
            key = self.text()
            assert key not in self.fields, f'{key} is there twice'
            self.fields[key] = self.value(self.number('I'))
        self.tensors = {}
        for _ in range(tensors):
            name = self.text()
            dims = [self.number('Q') for _ in range(self.number('I'))]
            self.tensors[name] = dims, self.number('I'), self.number('Q')
        self.data_at = (self.at + 31) // 32 * 32

    def number(self, kind):
        value, = struct.unpack_from('<' + kind, self.data, self.at)
        self.at += struct.calcsize('<' + kind)
        return value

    def text(self):
        size = self.number('Q')
        self.at += size
        return self.data[self.at - size:self.at].decode()

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            kind, count = self.number('I'), self.number('Q')
            return [self.value(kind) for _ in range(count)]
        return self.number(KINDS[kind])

    def numbers(self, name):
        """All of a tensor, and how far each may be from what it was."""
        dims, kind, offset = self.tensors[name]
        count = 1
        for d in dims:
            count *= d
        at = self.data_at + offset
        assert offset % 32 == 0, name
        if kind == 0:
            return list(struct.unpack_from(f'<{count}f', self.data, at)), [0] * count
        if kind == 1:
            values = struct.unpack_from(f'<{count}e', self.data, at)
            return list(values), [abs(v) * 2 ** -11 + 2 ** -25 for v in values]
        if kind == 30:
            bits = struct.unpack_from(f'<{count}H', self.data, at)
            values = struct.unpack(f'<{count}f', b''.join(struct.pack('<I', b << 16) for b in bits))
            return list(values), [abs(v) * 2 ** -8 for v in values]
        values, room = [], []
        for block in range(count // 32):
            size = 34 if kind == 8 else 18
            scale, = struct.unpack_from('<e', self.data, at + block * size)
            packed = self.data[at + block * size + 2:at + (block + 1) * size]
            if kind == 8:
                q = struct.unpack('<32b', packed)
            else:
                q = [(b & 15) - 8 for b in packed] + [(b >> 4) - 8 for b in packed]
            values += [scale * x for x in q]
            room += [abs(scale) * (0.5 if kind == 8 else 1) + abs(scale * x) * 2 ** -10 + 1e-7 for x in q]
        return values, room


def safetensors(path):
    data = open(path, 'rb').read()
    size, = struct.unpack_from('<Q', data)
    out = {}
    for name, t in json.loads(data[8:8 + size]).items():
        if name != '__metadata__':
            begin, end = t['data_offsets']
            out[name] = t['shape'], list(struct.unpack(f'<{(end - begin) // 4}f', data[8 + size + begin:8 + size + end]))
    return out


LLAMA = {'token_embd': 'model.embed_tokens', 'output_norm': 'model.norm', 'output': 'lm_head', 'attn_norm': 'input_layernorm', 'attn_q': 'self_attn.q_proj',
         'attn_k': 'self_attn.k_proj', 'attn_v': 'self_attn.v_proj', 'attn_output': 'self_attn.o_proj', 'ffn_norm': 'post_attention_layernorm',
         'ffn_gate': 'mlp.gate_proj', 'ffn_up': 'mlp.up_proj', 'ffn_down': 'mlp.down_proj'}
GPT2 = {'token_embd': 'transformer.wte', 'position_embd': 'transformer.wpe', 'output_norm': 'transformer.ln_f', 'attn_norm': 'ln_1', 'attn_qkv': 'attn.c_attn',
        'attn_output': 'attn.c_proj', 'ffn_norm': 'ln_2', 'ffn_up': 'mlp.c_fc', 'ffn_down': 'mlp.c_proj'}


def check(file, folder):
    there = safetensors(f'{folder}/model.safetensors')
    config = json.load(open(f'{folder}/config.json'))
    llama = config['model_type'] == 'llama'
    seen = 0
    for name, (dims, kind, _) in file.tensors.items():
        words = name.split('.')
        layer = words[1] if words[0] == 'blk' else None
        own = (LLAMA if llama else GPT2)[words[-2]]
        full = f'{own}.{words[-1]}' if layer is None else f'{"model.layers" if llama else "transformer.h"}.{layer}.{own}.{words[-1]}'
        shape, values = there.get(full) or there[full.replace('transformer.', '', 1)]
        if not llama and words[-2] in ('attn_qkv', 'attn_output', 'ffn_up', 'ffn_down') and len(shape) == 2:
            values = [values[r * shape[1] + c] for c in range(shape[1]) for r in range(shape[0])]
            shape = shape[::-1]
        if llama and words[-2] in ('attn_q', 'attn_k'):  # halves of a head become neighbours
            head = config['head_dim']
            rows = [r // head * head + r % head % 2 * (head // 2) + r % head // 2 for r in range(shape[0])]
            values = [x for r in rows for x in values[r * shape[1]:(r + 1) * shape[1]]]
        assert dims == shape[::-1], f'{name}: {dims}, {shape}'
        found, room = file.numbers(name)
        far = [(a, b) for a, b, r in zip(found, values, room) if abs(a - b) > r]
        assert not far, f'{name}: {far[:3]}'
        seen += 1
    print(seen, 'tensors')


file = Reader(sys.argv[1])
if sys.argv[2] == '--of':
    check(file, sys.argv[3])
else:
    for key in sys.argv[2:]:
        value = file.fields.get(key, '-')
        print(json.dumps(value if not isinstance(value, list) or len(value) < 20 else value[:3] + [len(value)], ensure_ascii=False))
