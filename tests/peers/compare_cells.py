#!/usr/bin/env python3
"""Recurrent layers of mixt next to PyTorch's: outputs, and gradients of inputs, weights and biases.

    compare_cells.py CELLS_PROGRAM [--device cpu|cuda] [--problems N]

CELLS_PROGRAM is build/tests/cells. For each of lstm, gru, rnn (tanh and relu), N problems of random sizes and numbers, every
candidate in FP32 against torch.nn.LSTM, GRU and RNN in FP64 on the CPU, whose weight_ih is the identity so that its inputs are the
gates' inputs. The relative difference (root mean square) must stay within 2^-24 * sqrt(longest sum) * sqrt(steps + 2), the product
with the state and what each step hands on to the next; so far the largest was a fifth of that. Status 77 where PyTorch is missing.
"""
import argparse, math, subprocess, sys

try:
    import numpy as np
    import torch
except ImportError:
    print('compare_cells: PyTorch is missing: nothing is compared')
    sys.exit(77)

GATES = {'lstm': 4, 'gru': 3, 'rnn': 1, 'rnn_relu': 1}
CANDIDATES = {'cpu': ('avx512', 'avx2', 'plain'), 'cuda': ('cluster_fp32', 'plain')}


def theirs(cell, x, weight, bias, grad):
    """dst and the gradients, in mixt's order"""
    rows, hidden = weight.shape
    make = {'lstm': torch.nn.LSTM, 'gru': torch.nn.GRU}.get(cell, torch.nn.RNN)
    options = {'nonlinearity': 'relu'} if cell == 'rnn_relu' else {}
    net = make(rows, hidden, batch_first=True, **options).double()
    x = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    with torch.no_grad():
        net.weight_ih_l0.copy_(torch.eye(rows))
        net.weight_hh_l0.copy_(torch.from_numpy(weight))
        net.bias_ih_l0.zero_()
        net.bias_hh_l0.zero_()
        if cell == 'gru':
            net.bias_hh_l0[2 * hidden:].copy_(torch.from_numpy(bias))
    dst = net(x)[0]
    dst.backward(torch.from_numpy(grad).double())
    out = [dst.detach(), x.grad, net.weight_hh_l0.grad]
    return [t.numpy() for t in out + ([net.bias_hh_l0.grad[2 * hidden:]] if cell == 'gru' else [])]


def ours(program, cell, candidate, device, inputs, sizes, shapes):
    out = subprocess.run([program, cell, candidate, *map(str, sizes), device], input=b''.join(a.tobytes() for a in inputs),
                         capture_output=True)
    if out.returncode == 77:
        return None
    if out.returncode:
        sys.exit(f'{cell} {candidate}: {out.stderr.decode().strip()}')
    values, at, result = np.frombuffer(out.stdout, np.float32), 0, []
    for shape in shapes:
        result.append(values[at:at + math.prod(shape)].reshape(shape))
        at += math.prod(shape)
    assert at == values.size
    return result


def distance(a, b):
    size = math.sqrt(float(np.mean(b ** 2)))
    return math.sqrt(float(np.mean((a - b) ** 2))) / size if size else float(np.abs(a).max(initial=0))


def main():
    a = argparse.ArgumentParser()
    a.add_argument('program')
    a.add_argument('--device', default='cpu', choices=('cpu', 'cuda'))
    a.add_argument('--problems', type=int, default=20)
    a = a.parse_args()
    torch.set_num_threads(1)                                           # layers as small as these gain nothing from more
    draw, failed = np.random.default_rng(1), 0
    for cell, gates in GATES.items():
        worst, runs = {}, {}
        for _ in range(a.problems):
            batch, steps, hidden = int(draw.integers(1, 20)), int(draw.integers(1, 40)), int(draw.integers(1, 80))
            if draw.random() < 0.5:
                hidden = (hidden + 7) // 8 * 8                         # what faster candidates take
            rows, scale = gates * hidden, 1 / math.sqrt(hidden)
            x = draw.uniform(-2, 2, (batch, steps, rows)).astype(np.float32)
            weight = draw.uniform(-scale, scale, (rows, hidden)).astype(np.float32)
            bias = draw.uniform(-1, 1, hidden).astype(np.float32)
            grad = draw.uniform(-1, 1, (batch, steps, hidden)).astype(np.float32)
            expected = theirs(cell, x, weight, bias, grad)
            bound = 2.0 ** -24 * math.sqrt(max(rows, batch * steps)) * math.sqrt(steps + 2)
            for candidate in CANDIDATES[a.device]:
                inputs = [x, weight] + ([bias] if cell == 'gru' else []) + [grad]
                got = ours(a.program, cell, candidate, a.device, inputs, (batch, steps, hidden), [e.shape for e in expected])
                if got is None:
                    continue
                runs[candidate] = runs.get(candidate, 0) + 1
                for name, g, e in zip(('dst', 'grad_gates_x', 'grad_weight_hh', 'grad_bias_hn'), got, expected):
                    share = distance(g.astype(np.float64), e) / bound
                    if not share <= 1:
                        failed += 1
                        print(f'{cell} {candidate} ({batch}, {steps}, {hidden}): {name} is {share:.2f} times its bound off')
                    worst[name] = max(worst.get(name, 0), share)
        print(f'{cell:8s} {", ".join(f"{c} {n}" for c, n in runs.items())} problems; largest share of the bound: '
              + ', '.join(f'{n} {s:.2f}' for n, s in worst.items()), flush=True)
    sys.exit(1 if failed else 0)


main()
