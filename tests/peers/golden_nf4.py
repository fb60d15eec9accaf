#!/usr/bin/env python3
"""Writes tests/data/nf4/weight.safetensors, which test_nf4 reads: a small matrix ("values", BF16), what bitsandbytes makes of it with
double quantisation ("weight" and what belongs to it, as it writes them), and the values that it reads back ("dequantised").

    golden_nf4.py tests/data/nf4

Needs bitsandbytes, torch and safetensors.
"""
import sys
import bitsandbytes.functional as F
import torch
from safetensors.torch import save_file

torch.set_num_threads(1)
torch.manual_seed(2)
values = (torch.randn(40, 192) * 0.05).to(torch.bfloat16)
values[1, 64:128] = 0
codes, state = F.quantize_4bit(values.float(), blocksize=64, compress_statistics=True, quant_type='nf4')
tensors = {'values': values, 'weight': codes, 'dequantised': F.dequantize_4bit(codes, state)}
tensors.update({'weight.' + name: t for name, t in state.as_dict(packed=True).items()})
save_file({name: t.contiguous() for name, t in tensors.items()}, f'{sys.argv[1]}/weight.safetensors')
