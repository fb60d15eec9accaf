#!/usr/bin/env python3
"""Makes the blocks that tests/unit/test_gguf.c expects, with the gguf package: tests/peers/golden_gguf.py writes tests/data/gguf/blocks.golden.

A line "TYPE HEX-OF-FLOATS HEX-OF-BLOCKS" a case: ordinary weights, halves that are rounded away from 0, the largest number negative, zeros,
scales that FP16 makes 0 or rounds, numbers of one sign.
"""
import os

import gguf
import numpy as np

OUT = os.path.join(os.path.dirname(__file__), '..', 'data', 'gguf', 'blocks.golden')
TYPES = {'f16': gguf.GGMLQuantizationType.F16, 'bf16': gguf.GGMLQuantizationType.BF16, 'q8_0': gguf.GGMLQuantizationType.Q8_0,
         'q4_0': gguf.GGMLQuantizationType.Q4_0}


def cases():
    draw = np.random.default_rng(5)
    yield draw.normal(0, 0.02, 64)
    halves = np.arange(32) - 15.5
    halves[0] = 127
    yield halves
    halves = (np.arange(32) - 15.5) / 4
    halves[3] = -8
    yield halves
    yield np.zeros(32)
    yield draw.normal(0, 1e-7, 32)
    yield draw.normal(0, 3e4, 32).clip(-65000, 65000)
    yield np.abs(draw.normal(0, 1, 32))
    yield -np.abs(draw.normal(0, 1, 32))
    both = draw.normal(0, 0.1, 32)
    both[4], both[20] = 1, -1  # the first of the largest has the whole range
    yield both
    yield draw.standard_cauchy(96) * 0.01


with open(OUT, 'w') as out:
    for case in cases():
        values = case.astype(np.float32)
        for name, kind in TYPES.items():
            packed = gguf.quants.quantize(values.reshape(-1, 32), kind)
            print(name, values.astype('<f4').tobytes().hex(), packed.tobytes().hex(), file=out)
