#!/usr/bin/env python3
"""The PyTorch side of 'mixt bench llama': one training step of transformers' LlamaForCausalLM of the same sizes, timed.

    torch_llama.py [--precision bf16] [--compile] [--batch 32] [--seq 1024] [--layers 12] [--steps 20] [--device cuda]

A step is forward, loss, backward, clipping by norm 1.0 and fused AdamW, on random tokens that change every step; matrices in FP32 with
autocast to the precision, as 'mixt bench' keeps FP32 masters. Prints one JSON line: ms (median), items_s (tokens/s), peak_gib.
"""
import argparse, contextlib, json, statistics, time
import torch
import torch.nn.functional as F
from transformers import LlamaConfig, LlamaForCausalLM


def main():
    a = argparse.ArgumentParser()
    a.add_argument('--precision', default='bf16', choices=['fp32', 'tf32', 'bf16'])
    a.add_argument('--compile', action='store_true')
    a.add_argument('--batch', type=int, default=32)
    a.add_argument('--seq', type=int, default=1024)
    a.add_argument('--layers', type=int, default=12)
    a.add_argument('--steps', type=int, default=20)
    a.add_argument('--device', default='cuda')
    a = a.parse_args()
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = a.precision == 'tf32'
    config = LlamaConfig(num_hidden_layers=a.layers, hidden_size=768, num_attention_heads=12, num_key_value_heads=4, intermediate_size=2048,
                         vocab_size=50304, max_position_embeddings=max(1024, a.seq), rms_norm_eps=1e-5, tie_word_embeddings=True, use_cache=False,
                         bos_token_id=None, eos_token_id=None, attn_implementation='sdpa')
    net = LlamaForCausalLM(config).to(a.device)
    adam = torch.optim.AdamW(net.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)

    def loss_of(x, y):
        with torch.autocast(a.device, torch.bfloat16) if a.precision == 'bf16' else contextlib.nullcontext():
            logits = net(input_ids=x).logits
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
    print(json.dumps({'model': 'llama', 'precision': a.precision, 'compile': a.compile, 'batch': a.batch, 'seq': a.seq, 'ms': round(ms, 3),
                      'items_s': round(a.batch * a.seq / ms * 1000), 'peak_gib': round(peak, 2), 'loss': round(loss.item(), 4)}))


main()
