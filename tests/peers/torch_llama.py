#!/usr/bin/env python3
"""The PyTorch side of 'mixt bench llama': one training step of transformers' LlamaForCausalLM of the same sizes, timed; of the same
network written with torch.nn alone where transformers is missing, or asked for by --plain.

    torch_llama.py [--precision bf16] [--compile] [--plain] [--batch 32] [--seq 1024] [--layers 12] [--steps 20] [--device cuda]

A step is forward, loss, backward, clipping by norm 1.0 and fused AdamW, on random tokens that change every step; matrices in FP32 with
autocast to the precision, as 'mixt bench' keeps FP32 masters. Prints one JSON line: ms (median), items_s (tokens/s), peak_gib.
"""
import argparse, contextlib, json, statistics, time
import torch
import torch.nn.functional as F
from torch import nn

try:
    from transformers import LlamaConfig, LlamaForCausalLM
except ImportError:
    LlamaForCausalLM = None

WIDTH, HEADS, GROUPS, HIDDEN, WORDS = 768, 12, 4, 2048, 50304


def theirs(layers, seq):
    config = LlamaConfig(num_hidden_layers=layers, hidden_size=WIDTH, num_attention_heads=HEADS, num_key_value_heads=GROUPS,
                         intermediate_size=HIDDEN, vocab_size=WORDS, max_position_embeddings=max(1024, seq), rms_norm_eps=1e-5,
                         tie_word_embeddings=True, use_cache=False, bos_token_id=None, eos_token_id=None, attn_implementation='sdpa')
    net = LlamaForCausalLM(config)
    return net, lambda x: net(input_ids=x).logits


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        d = WIDTH // HEADS
        self.before, self.between = nn.RMSNorm(WIDTH, 1e-5), nn.RMSNorm(WIDTH, 1e-5)
        self.q, self.o = nn.Linear(WIDTH, WIDTH, False), nn.Linear(WIDTH, WIDTH, False)
        self.k, self.v = nn.Linear(WIDTH, GROUPS * d, False), nn.Linear(WIDTH, GROUPS * d, False)
        self.gate, self.up, self.down = nn.Linear(WIDTH, HIDDEN, False), nn.Linear(WIDTH, HIDDEN, False), nn.Linear(HIDDEN, WIDTH, False)

    def forward(self, x, cos, sin):
        def heads(y):
            return y.unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2)

        def turned(y):
            low, high = y.chunk(2, -1)
            return (y * cos + torch.cat((-high, low), -1) * sin).to(y.dtype)

        h = self.before(x)
        y = F.scaled_dot_product_attention(turned(heads(self.q(h))), turned(heads(self.k(h))), heads(self.v(h)), is_causal=True, enable_gqa=True)
        x = x + self.o(y.transpose(1, 2).flatten(2))
        h = self.between(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Plain(nn.Module):
    def __init__(self, layers, seq):
        super().__init__()
        self.embed, self.blocks, self.last = nn.Embedding(WORDS, WIDTH), nn.ModuleList(Block() for _ in range(layers)), nn.RMSNorm(WIDTH, 1e-5)
        nn.init.normal_(self.embed.weight, std=0.02)
        d = WIDTH // HEADS
        angle = torch.outer(torch.arange(seq).float(), 1e4 ** (-torch.arange(0, d, 2).float() / d)).repeat(1, 2)
        self.register_buffer('cos', angle.cos())
        self.register_buffer('sin', angle.sin())

    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        return F.linear(self.last(x), self.embed.weight)


def plain(layers, seq):
    net = Plain(layers, seq)
    return net, net


def main():
    a = argparse.ArgumentParser()
    a.add_argument('--precision', default='bf16', choices=['fp32', 'tf32', 'bf16'])
    a.add_argument('--compile', action='store_true')
    a.add_argument('--plain', action='store_true')
    a.add_argument('--batch', type=int, default=32)
    a.add_argument('--seq', type=int, default=1024)
    a.add_argument('--layers', type=int, default=12)
    a.add_argument('--steps', type=int, default=20)
    a.add_argument('--device', default='cuda')
    a = a.parse_args()
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = a.precision == 'tf32'
    net, logits_of = (plain if a.plain or LlamaForCausalLM is None else theirs)(a.layers, a.seq)
    net.to(a.device)
    adam = torch.optim.AdamW(net.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)

    def loss_of(x, y):
        with torch.autocast(a.device, torch.bfloat16) if a.precision == 'bf16' else contextlib.nullcontext():
            logits = logits_of(x)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]).float(), y.view(-1))

    forward = torch.compile(loss_of) if a.compile else loss_of
    wait = torch.cuda.synchronize if a.device == 'cuda' else lambda: None
    times, loss = [], None
    for step in range(a.steps + 5):  # the first ones compile and warm up
        x, y = torch.randint(0, 50304, (2, a.batch, a.seq), device=a.device)
        wait()
        start = time.perf_counter()
        loss = forward(x, y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        adam.step()
        adam.zero_grad(set_to_none=True)
        wait()
        times.append(time.perf_counter() - start)
        if step == 4 and a.device == 'cuda':
            torch.cuda.reset_peak_memory_stats()
    ms = 1000 * statistics.median(times[5:])
    peak = torch.cuda.max_memory_allocated() / 2 ** 30 if a.device == 'cuda' else 0
    print(json.dumps({'model': 'llama', 'written': 'torch.nn' if isinstance(net, Plain) else 'transformers', 'precision': a.precision, 'compile': a.compile, 'batch': a.batch, 'seq': a.seq, 'ms': round(ms, 3),
                      'items_s': round(a.batch * a.seq / ms * 1000), 'peak_gib': round(peak, 2), 'loss': round(loss.item(), 4)}))


main()
