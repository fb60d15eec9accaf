#!/usr/bin/env python3
"""Losses of mixt and PyTorch from the same weights on the same batches, step by step.

    compare_steps.py STEPS_PROGRAM --models mlp,gpt2,bert,resnet50,lstm,gru,rnn --device cuda [--steps 20] [--batch B] [--seq T] [--peers DIR]
                     [--seeds N] [--lr R] [--data tokens:FILE]

STEPS_PROGRAM is build/tests/steps. PyTorch's models come from torch_peer.py in DIR. For each model:
mixt in FP32, FP16 and BF16, PyTorch in FP32 and BF16. Every curve is held against mixt's FP32 curve; the bound of step k is

    u * sqrt(roundings) * sqrt(1 + k) + 4 * twin

relative to the loss: u the unit roundoff of the format (2^-9 BF16, 2^-12 FP16; FP32: 2^-24 times the square root of the longest
sum), roundings the number of rounded results one after the other in a forward pass, and a random walk over the k updates. Where
training itself magnifies roundings, twin says by how much: it is the largest distance so far between PyTorch's FP32 run and another
whose weights began one unit in the last place away: 1e-7 for the perceptron, 3e-6 for the conv net, 2e-3 after one update for
ResNet-50, whose batch norms magnify what little tells one picture of noise from another. At the benchmark's learning rate of 0.1 the
FP32 losses of both systems were 2.5 times their size apart after 14 steps: ResNet-50 is therefore trained at 0.001.

With --seeds above 1, long curves are held against the seeds instead: the mean difference between mixt and PyTorch in the same format
must lie within the standard deviation, over the seeds (other weights, other order of data), of PyTorch's own mean loss in FP32.
"""
import argparse, json, math, os, subprocess, sys, tempfile
import numpy as np

RECURRENT = ('lstm', 'gru', 'rnn')


def torch_names(model, state):
    """mixt's weights under PyTorch's names and layouts"""
    import torch
    out = {}
    for name, t in state.items():
        t = torch.from_numpy(t)
        if t.ndim == 4:
            t = t.permute(0, 3, 1, 2).contiguous()                      # OHWI -> OIHW
        if model in ('gpt', 'gpt2', 'bert'):
            name = name.replace('h.', 'blocks.', 1) if name.startswith('h.') else name
            name = name.replace('.attn.', '.').replace('.mlp.', '.').replace('ln_f.', 'ln.')
        elif model in RECURRENT and name.startswith('rnn.'):
            layer, part = name.split('.')[1:]
            if part == 'bias_hn':                                       # the only one of its kind that mixt has
                t = torch.cat([torch.zeros(2 * len(t)), t])
            name = f"rnn.{ {'bias': 'bias_ih', 'bias_hn': 'bias_hh'}.get(part, part)}_l{layer}"
        elif model == 'resnet50':
            if name.startswith('layer'):
                stage, block, rest = name.split('.', 2)
                index = sum((3, 4, 6, 3)[:int(stage[5:]) - 1]) + int(block)
                rest = rest.replace('downsample.conv', 'down.0').replace('downsample.bn', 'down.1')
                rest = rest.replace('conv', 'c').replace('bn', 'b')
                name = f'layers.{index}.{rest}'
            else:
                name = name.replace('conv1', 'c').replace('bn1', 'b')
            name = name.replace('running_variance', 'running_var')
        elif model == 'convnet':
            name = name.replace('conv', 'c')
            if name == 'fc.weight':                                     # rows over (7, 7, 64) -> (64, 7, 7)
                t = t.reshape(-1, 7, 7, 64).permute(0, 3, 1, 2).reshape(t.shape[0], -1)
        out[name] = t
    return out


def nudged(weights):
    """Each weight one unit in its last place up, down or as it is"""
    draw = np.random.default_rng(1)
    return {name: (w * (1 + 2.0 ** -23 * draw.integers(-1, 2, w.shape))).astype(w.dtype) for name, w in weights.items()}


def run_torch(model, precision, folder, steps, batch, seq, lr, device, peers, twin=False):
    import torch
    sys.path.insert(0, peers)
    sys.argv = ['torch_peer.py']
    source = open(os.path.join(peers, 'torch_peer.py')).read().rsplit('\nmain()', 1)[0]
    peer = {}
    exec(compile(source, 'torch_peer.py', 'exec'), peer)
    from safetensors.numpy import load_file
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    net = peer['build'](model, batch, seq)[0]
    weights = load_file(f'{folder}/weights.safetensors')
    missing, unexpected = net.load_state_dict(torch_names(model, nudged(weights) if twin else weights), strict=False)
    missing = [m for m in missing if 'num_batches' not in m and 'bias_hh' not in m and 'running' not in m]
    unexpected = [u for u in unexpected if 'running' not in u]
    assert not missing and not unexpected, (missing, unexpected)
    if model in RECURRENT:                                              # mixt has one bias a gate, and a GRU's last two
        for n, p in net.named_parameters():
            if 'bias_hh' in n and model == 'gru':
                p.register_hook(lambda g: torch.cat([torch.zeros_like(g[:len(g) // 3 * 2]), g[len(g) // 3 * 2:]]))
            elif 'bias_hh' in n:
                torch.nn.init.zeros_(p)
                p.requires_grad_(False)
    net.to(device)
    params = [p for p in net.parameters() if p.requires_grad]
    decay, plain = [p for p in params if p.dim() > 1], [p for p in params if p.dim() <= 1]
    if model == 'resnet50':
        net.to(memory_format=torch.channels_last)
        opt = torch.optim.SGD([{'params': decay}, {'params': plain, 'weight_decay': 0}], lr=lr, momentum=0.9, weight_decay=1e-4)
    else:
        opt = torch.optim.AdamW([{'params': decay}, {'params': plain, 'weight_decay': 0}], lr=lr, betas=(0.9, 0.95), weight_decay=0.1)
    tokens = model in ('gpt', 'gpt2', 'bert') + RECURRENT
    x_all = np.fromfile(f'{folder}/input.bin', np.int32 if tokens else np.float32)
    y_all = np.fromfile(f'{folder}/target.bin', np.int32)
    shape = (steps, batch, seq) if tokens else (steps, batch, 224, 224, 3) if model == 'resnet50' else (steps, batch, 28, 28, 1) if model == 'convnet' else (steps, batch, -1)
    x_all, y_all = x_all.reshape(shape), y_all.reshape((steps, batch, seq) if tokens else (steps, batch))
    low = {'fp16': torch.float16, 'bf16': torch.bfloat16}.get(precision)
    losses = []
    for k in range(steps):
        x, y = torch.from_numpy(x_all[k]).to(device), torch.from_numpy(y_all[k]).long().to(device)
        if tokens:
            x = x.long()
        if x.ndim == 4:
            x = x.permute(0, 3, 1, 2)
        with torch.autocast(device, dtype=low or torch.bfloat16, enabled=low is not None):
            loss = net(x, y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        if tokens:
            torch.nn.utils.clip_grad_norm_(params, 1.0)
        opt.step()
        losses.append(loss.item())
    return losses


RATES = {'resnet50': 1e-3} # all others: 3e-4
ROUNDINGS = {'mlp': 4, 'convnet': 6, 'lstm': 256, 'gru': 256, 'rnn': 256, 'gpt': 60, 'gpt2': 120, 'bert': 120, 'resnet50': 160}


def bound(model, precision, k):
    u = {'bf16': 2.0 ** -9, 'fp16': 2.0 ** -12, 'fp32': 2.0 ** -24 * math.sqrt(65536)}[precision]
    return u * math.sqrt(ROUNDINGS[model]) * math.sqrt(1 + k)


def run_all(a, model, batch, seq, seed, formats):
    """The losses of both systems in each format, by name"""
    curves, lr = {}, a.lr or RATES.get(model, 3e-4)
    with tempfile.TemporaryDirectory() as folder:
        for p in formats['mixt']:
            cmd = [a.program, model, p, a.device, str(a.steps), str(batch), str(seq), folder, str(seed), str(lr)] + ([a.data] if a.data else [])
            out = subprocess.run(cmd, capture_output=True, text=True)
            if out.returncode:
                sys.exit(f'{model} {p}: {out.stderr.strip()}')
            curves['mixt ' + p] = json.loads(out.stdout)['losses']
        for p in formats['torch']:
            name, *twin = p.split()
            curves['torch ' + p] = run_torch(model, name, folder, a.steps, batch, seq, lr, a.device, a.peers, bool(twin))
    return curves


def within_bounds(a, model, batch, seq):
    """Every curve against mixt's in FP32, step by step"""
    curves = run_all(a, model, batch, seq, 1, {'mixt': ('fp32', 'bf16', 'fp16'), 'torch': ('fp32', 'bf16', 'fp32 twin')})
    base = curves['mixt fp32']
    gaps = [abs(x - y) / abs(y) for x, y in zip(curves.pop('torch fp32 twin'), curves['torch fp32'])]
    twin = [max(gaps[:k + 1]) for k in range(len(gaps))]
    print(f'{model:9s} twin       largest distance between two FP32 runs a rounding apart {twin[-1]:.2e}')
    failed = 0
    for name, losses in curves.items():
        bounds = [bound(model, name.split()[1], k) + 4 * t for k, t in enumerate(twin)]
        worst = max((abs(l - b) / abs(b) / bounds[k], abs(l - b) / abs(b), k) for k, (l, b) in enumerate(zip(losses, base)))
        ok = worst[0] <= 1
        failed += not ok
        print(f'{model:9s} {name:10s} loss {losses[0]:.5f} -> {losses[-1]:.5f}  largest difference from mixt fp32 {worst[1]:.2e} at step {worst[2] + 1}, '
              f'{worst[0]:.2f} of its bound{"" if ok else "  FAILED"}', flush=True)
    return failed


def within_seed_noise(a, model, batch, seq):
    """Mean difference between the systems against what another seed changes"""
    runs = []
    for seed in range(1, a.seeds + 1):
        runs.append(run_all(a, model, batch, seq, seed, {'mixt': ('fp32', 'bf16'), 'torch': ('fp32', 'bf16')}))
        print(f'{model} seed {seed}: ' + ', '.join(f'{name} {c[0]:.4f} -> {c[-1]:.4f} (mean {np.mean(c):.5f})' for name, c in runs[-1].items()), flush=True)
    noise = float(np.std([np.mean(r['torch fp32']) for r in runs], ddof=1))
    failed = 0
    for p in ('fp32', 'bf16'):
        gaps = [np.array(r['mixt ' + p]) - np.array(r['torch ' + p]) for r in runs]
        mean, spread = float(np.mean(gaps)), float(np.mean(np.abs(gaps)))
        ok = abs(mean) <= noise
        failed += not ok
        print(f'{model} {p}: mixt - torch over {a.seeds} seeds of {a.steps} steps: mean {mean:+.2e}, mean size {spread:.2e}; '
              f'seed noise {noise:.2e}{"" if ok else "  FAILED"}', flush=True)
    return failed


def main():
    a = argparse.ArgumentParser()
    a.add_argument('program')
    a.add_argument('--models', default='mlp,convnet,gpt')
    a.add_argument('--device', default='cuda')
    a.add_argument('--steps', type=int, default=20)
    a.add_argument('--batch', type=int, default=0)
    a.add_argument('--seq', type=int, default=0)
    a.add_argument('--seeds', type=int, default=1)
    a.add_argument('--lr', type=float, default=0)
    a.add_argument('--data', default='')
    a.add_argument('--peers', default=os.environ.get('MIXT_PEERS', '../shared/peers'))
    a = a.parse_args()
    defaults = {'gpt2': (32, 1024), 'gpt': (8, 256), 'bert': (256, 128), 'resnet50': (256, 0), 'convnet': (64, 0), 'mlp': (128, 0), 'lstm': (64, 256), 'gru': (64, 256), 'rnn': (64, 256)}
    failed = 0
    for model in a.models.split(','):
        batch, seq = a.batch or defaults[model][0], (a.seq or defaults[model][1]) if defaults[model][1] else 0
        failed += (within_seed_noise if a.seeds > 1 else within_bounds)(a, model, batch, seq)
    sys.exit(1 if failed else 0)


main()
