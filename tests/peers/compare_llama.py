#!/usr/bin/env python3
"""Losses of mixt's Llama and of transformers' LlamaForCausalLM from the same weights on the same batches, step by step.

    compare_llama.py STEPS_PROGRAM [--device cpu] [--steps 20] [--batch 2] [--seq 64] [--layers 12] [--data random]

STEPS_PROGRAM is build/tests/steps. mixt trains the Llama of 'mixt bench' in FP32, BF16 and FP16; transformers in FP32, and in BF16 (on a
GPU in FP16 too) under autocast, with AdamW and clipping as the recipe of the benchmark has them. Needs numpy, torch, safetensors and
transformers, else nothing is done (exit status 77). Tokens are those of a text made here that can be learned: 400 words of which each
has one of four behind it, so that the loss falls; with '--data random' any token may follow any.

Each curve is held against transformers' FP32: FP32 within 1e-6 of the loss at every step; low formats within
u * sqrt(roundings) * sqrt(1 + k) at step k, as compare_steps.py has it. 'twin' is no bound: it tells how far transformers' own FP32 ends
from itself when its weights begin one unit in the last place away, which is what training makes of roundings.
"""
import argparse, importlib.util, json, math, os, subprocess, sys, tempfile

missing = [name for name in ('numpy', 'torch', 'safetensors', 'transformers') if not importlib.util.find_spec(name)]
if missing:
    print('left out, all of it: not installed:', ', '.join(missing))
    sys.exit(77)
import numpy as np
import torch
from safetensors.torch import load_file
from transformers import LlamaConfig, LlamaForCausalLM

SIZES = dict(num_hidden_layers=12, hidden_size=768, num_attention_heads=12, num_key_value_heads=4, intermediate_size=2048, vocab_size=50304,
             max_position_embeddings=1024, rms_norm_eps=1e-5, tie_word_embeddings=True, bos_token_id=None, eos_token_id=None)
ROUNDINGS = 12 * 12  # rounded results one after the other: about a dozen a block
UNIT = {'fp16': 2.0 ** -12, 'bf16': 2.0 ** -9}


def transformers_names(state):
    """mixt's weights under the names of transformers"""
    out = {}
    for name, t in state.items():
        name = name.replace('h.', 'model.layers.', 1) if name.startswith('h.') else name
        for a, b in (('wte.', 'model.embed_tokens.'), ('ln_f.', 'model.norm.'), ('.ln1.', '.input_layernorm.'), ('.ln2.', '.post_attention_layernorm.'),
                     ('.attn.proj.', '.self_attn.o_proj.'), ('.mlp.gate.', '.mlp.gate_proj.'), ('.mlp.up.', '.mlp.up_proj.'), ('.mlp.out.', '.mlp.down_proj.')):
            name = name.replace(a, b)
        if '.attn.qkv.' not in name:
            out[name] = t
            continue
        shared = (t.shape[0] - t.shape[1]) // 2
        for part, rows in zip('qkv', t.split([t.shape[1], shared, shared])):
            out[name.replace('.attn.qkv.', f'.self_attn.{part}_proj.')] = rows
    return out


def write_text(path, count):
    """Tokens as 'mixt train' reads them from a .bin file: two bytes each"""
    draw = np.random.default_rng(9)
    words = draw.choice(50000, 400, replace=False)
    after = draw.integers(0, 400, (400, 4))
    at, tokens = 0, np.empty(count, '<u2')
    for i, turn in enumerate(draw.integers(0, 4, count)):
        tokens[i] = words[at]
        at = after[at, turn]
    tokens.tofile(path)


def nudged(state):
    """Each weight one unit in its last place up, down or as it is"""
    draw = torch.Generator().manual_seed(1)
    return {name: t * (1 + 2.0 ** -23 * torch.randint(-1, 2, t.shape, generator=draw)) for name, t in state.items()}


def run_transformers(a, folder, low, twin=False):
    net = LlamaForCausalLM(LlamaConfig(**{**SIZES, 'num_hidden_layers': a.layers}, attn_implementation='sdpa')).to(a.device)
    state = transformers_names(load_file(f'{folder}/weights.safetensors'))
    lost, unknown = net.load_state_dict(nudged(state) if twin else state, strict=False)
    assert not unknown and set(lost) <= {'lm_head.weight'}, (lost, unknown)
    net.tie_weights()
    matrices = [p for p in net.parameters() if p.dim() > 1]
    rest = [p for p in net.parameters() if p.dim() < 2]
    step = torch.optim.AdamW([{'params': matrices, 'weight_decay': 0.1}, {'params': rest, 'weight_decay': 0.0}], lr=3e-4, betas=(0.9, 0.95), eps=1e-8)
    x, y = (torch.from_numpy(np.fromfile(f'{folder}/{name}.bin', np.int32).reshape(a.steps, a.batch, a.seq)).long() for name in ('input', 'target'))
    scaler = torch.amp.GradScaler(a.device, enabled=low == torch.float16)
    losses = []
    for i in range(a.steps):
        with torch.autocast(a.device, low or torch.bfloat16, enabled=low is not None):
            logits = net(input_ids=x[i].to(a.device)).logits
        loss = torch.nn.functional.cross_entropy(logits.float().view(-1, logits.shape[-1]), y[i].to(a.device).view(-1))
        scaler.scale(loss).backward()
        scaler.unscale_(step)
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(step)
        scaler.update()
        step.zero_grad()
        losses.append(loss.item())
    return losses


def main():
    a = argparse.ArgumentParser()
    a.add_argument('program')
    a.add_argument('--device', default='cpu')
    a.add_argument('--steps', type=int, default=20)
    a.add_argument('--batch', type=int, default=2)
    a.add_argument('--seq', type=int, default=64)
    a.add_argument('--layers', type=int, default=12)
    a.add_argument('--data', default='made', choices=['made', 'random'])
    a = a.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        curves, data = {}, '-'
        if a.data == 'made':
            data = f'tokens:{folder}/text.bin'
            write_text(f'{folder}/text.bin', a.steps * a.batch * a.seq + 1)
        for precision in ('fp32', 'bf16', 'fp16'):
            words = [a.program, 'llama', precision, a.device, str(a.steps), str(a.batch), str(a.seq), folder, '1', '0', data, str(a.layers)]
            out = subprocess.run(words, capture_output=True, text=True)
            assert out.returncode == 0, out.stderr
            curves[f'mixt {precision}'] = json.loads(out.stdout)['losses']
        base = run_transformers(a, folder, None)
        twin = run_transformers(a, folder, None, True)
        curves['transformers bf16'] = run_transformers(a, folder, torch.bfloat16)
        if a.device == 'cuda':  # autocast of the CPU has no FP16 that trains
            curves['transformers fp16'] = run_transformers(a, folder, torch.float16)
    print(f'twin               largest difference of two runs of transformers fp32 {max(abs(t - b) / abs(b) for t, b in zip(twin, base)):.1e}')
    for name, losses in curves.items():
        precision = name.split()[1]
        bounds = [1e-6 if precision == 'fp32' else UNIT[precision] * math.sqrt(ROUNDINGS) * math.sqrt(1 + k) for k in range(a.steps)]
        gaps = [abs(l - b) / abs(b) for l, b in zip(losses, base)]
        worst = max(range(a.steps), key=lambda k: gaps[k] / bounds[k])
        ok = all(g <= b for g, b in zip(gaps, bounds))
        failed += not ok
        print(f'{name:18s} loss {losses[0]:.5f} -> {losses[-1]:.5f}, largest difference from transformers fp32 {gaps[worst]:.1e} at step {worst + 1}, '
              f'{gaps[worst] / bounds[worst]:.3f} of its bound{"" if ok else "  FAILED"}', flush=True)
    sys.exit(1 if failed else 0)


main()
