#!/usr/bin/env python3
"""Each family of decoders next to transformers: logits, 20 updates, greedy text, export and back, all from folders.

    compare_families.py MIXT LOGITS_PROGRAM [--runs qwen3,gemma2] [--device cpu]

LOGITS_PROGRAM is build/tests/logits. For each family of families.py, transformers makes a small model with random weights and saves it.
- FP32: mixt's logits of the folder are within 1e-4 of transformers', relative to the largest; BF16: within u * sqrt(roundings) as root mean square
- 'mixt train init=FOLDER' makes 20 updates of plain AdamW on one batch, 'plain' (SGD) the same: losses within 1e-5 of transformers' each
- 'mixt generate FOLDER' writes the same tokens as transformers' generate, greedily, past the window
- 'mixt export' of an untrained run has the folder's tensors byte for byte; of the trained one, transformers loads it: the same logits
Needs numpy, torch, safetensors and transformers, else nothing is done (exit status 77).
"""
import argparse, importlib.util, json, math, os, shutil, subprocess, sys, tempfile

missing = [name for name in ('numpy', 'torch', 'safetensors', 'transformers') if not importlib.util.find_spec(name)]
if missing:
    print('SKIPPED, all of it: not installed:', ', '.join(missing))
    sys.exit(77)
import numpy as np
import torch
import transformers
from safetensors import safe_open
import families

BATCH, SEQ, STEPS, LR = 3, 29, 20, {'adamw': 3e-3, 'sgd': 0.01}
torch.set_num_threads(1)
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()


class Case:
    def __init__(self, a, name):
        self.a, self.name, self.failed = a, name, 0
        self.work = tempfile.mkdtemp()
        self.net = families.make(name)
        self.folder = self.path('folder')
        self.net.save_pretrained(self.folder)
        rng = np.random.default_rng(4)
        self.tokens = rng.integers(3, families.SIZES['vocab_size'], BATCH * SEQ + 1).astype('<u2')
        self.tokens.tofile(self.path('text.bin'))
        self.x = self.tokens[:-1].astype(np.int32).reshape(BATCH, SEQ)
        self.x.tofile(self.path('input'))

    def path(self, name):
        return os.path.join(self.work, name)

    def run(self, *words):
        out = subprocess.run(words, capture_output=True, text=True)
        assert out.returncode == 0, (words, out.stdout, out.stderr)
        return out.stdout

    def report(self, what, ok, text):
        self.failed += not ok
        print(f'{self.name:10s} {what:22s} {text}{"" if ok else "  FAILED"}', flush=True)

    def mixt_logits(self, folder, precision='fp32'):
        self.run(self.a.logits, 'folder', precision, self.a.device, folder, self.path('input'), self.path('output'), str(BATCH), str(SEQ))
        y = np.fromfile(self.path('output'), np.float32).reshape(BATCH, SEQ, -1)
        return y[..., :families.SIZES['vocab_size']].astype(np.float64)

    def their_logits(self, net):
        with torch.no_grad():
            return net(input_ids=torch.from_numpy(self.x).long()).logits.double().numpy()

    def check_logits(self, what, got, expected, bound, rms=False):
        gap = math.sqrt(np.mean((got - expected) ** 2) / np.mean(expected ** 2)) if rms else np.abs(got - expected).max() / np.abs(expected).max()
        self.report(what, gap <= bound, f'logits up to {np.abs(expected).max():.2f} differ by {gap:.1e}, bound {bound:.1e}')

    def their_losses(self, optimizer):
        net = families.make(self.name).train()
        step = torch.optim.AdamW(net.parameters(), lr=LR[optimizer], betas=(0.9, 0.999), eps=1e-6, weight_decay=0) if optimizer == 'adamw' else \
            torch.optim.SGD(net.parameters(), lr=LR[optimizer])
        x, y = torch.from_numpy(self.x).long(), torch.from_numpy(self.tokens[1:].astype(np.int64)).reshape(BATCH, SEQ)
        losses = []
        for _ in range(STEPS):
            logits = net(input_ids=x).logits
            loss = torch.nn.functional.cross_entropy(logits.float().reshape(-1, logits.shape[-1]), y.reshape(-1))
            step.zero_grad()
            loss.backward()
            step.step()
            losses.append(loss.item())
        return losses

    def train(self, out, *more):
        with open(self.path('config.yaml'), 'w') as f:
            f.write(f'init: {self.folder}\nprecision: fp32\ndevice: {self.a.device}\nthreads: 1\nnet: {{vocab: {families.SIZES["vocab_size"]}}}\n'
                    f'data: {{kind: tokens, path: {self.path("text.bin")}, seq: {SEQ}, val_fraction: 0, in_order: true}}\n'
                    f'train: {{batch: {BATCH}, schedule: constant, weight_decay: 0, clip: 0, epochs: 0}}\n')
        self.run(self.a.mixt, 'train', self.path('config.yaml'), f'out={out}', '-q', *more)

    def check_training(self, optimizer):
        out = self.path(optimizer)
        more = ['train.beta1=0.9', 'train.beta2=0.999', 'train.eps=1e-6'] if optimizer == 'adamw' else ['train.momentum=0']
        self.train(out, f'train.steps={STEPS}', f'train.optimizer={optimizer}', f'train.lr={LR[optimizer]}', *more)
        rows = [json.loads(line) for line in open(out + '/metrics.jsonl')]
        losses = [r['loss'] for r in rows if 'loss' in r and 'step' in r]
        theirs = self.their_losses(optimizer)
        gap = max(abs(a - b) / b for a, b in zip(losses, theirs)) if len(losses) == STEPS else math.inf
        self.report(f'{STEPS} updates, {optimizer}', gap <= 1e-5, f'loss {theirs[0]:.4f} -> {theirs[-1]:.4f}, differs by {gap:.1e}, bound 1e-5')
        return out

    def check_text(self):
        prompt = [int(t) for t in self.x[0, :9]]
        with torch.no_grad():
            theirs = self.net.generate(torch.tensor([prompt]), max_new_tokens=16, do_sample=False, eos_token_id=None)[0, len(prompt):].tolist()
        out = self.run(self.a.mixt, 'generate', self.folder, '--device', self.a.device, '--prompt-ids', ','.join(map(str, prompt)), '-n', '16', '-t', '0', '-q', '--ids')
        ours = [int(t) for t in out.replace(',', ' ').split()][-16:]
        self.report('greedy text', ours == theirs, f'{ours}' if ours == theirs else f'{ours}, expected {theirs}')

    def check_export(self, trained):
        same = self.path('same')
        self.train(self.path('untrained'), 'train.steps=1', 'train.optimizer=sgd', 'train.lr=1e-30', 'train.momentum=0')
        self.run(self.a.mixt, 'export', self.path('untrained'), '--out', same)
        with safe_open(self.folder + '/model.safetensors', 'np') as a, safe_open(same + '/model.safetensors', 'np') as b:
            names = set(a.keys()) == set(b.keys())
            equal = names and all(a.get_tensor(k).tobytes() == b.get_tensor(k).tobytes() for k in a.keys())
            text = f'{len(a.keys())} tensors byte-equal' if equal else 'tensors differ' if names else f'names differ: {sorted(set(a.keys()) ^ set(b.keys()))[:4]}'
        self.report('export as it was', equal, text)
        out = self.path('exported')
        self.run(self.a.mixt, 'export', trained, '--out', out)
        net = type(self.net).from_pretrained(out, dtype=torch.float32, attn_implementation='eager')
        self.check_logits('trained, exported', self.mixt_logits(out), self.their_logits(net.eval()), 1e-4)
        with open(out + '/config.json') as f:
            written = json.load(f)
        before, after = self.net.config.to_dict(), net.config.to_dict()
        after['rope_parameters'].pop('type', None)  # the older word
        ignored = {'transformers_version', '_name_or_path', 'dtype', 'architectures', 'bos_token_id', 'eos_token_id', 'pad_token_id', 'sliding_window',
                   'max_window_layers', 'initializer_range', 'hidden_act'}
        other = {k: (before[k], after.get(k)) for k in before if k not in ignored and before[k] != after.get(k)}
        self.report('its config.json', not other, f'{len(written)} keys' if not other else f'{other}')

    def all(self):
        expected = self.their_logits(self.net)
        self.check_logits('fp32', self.mixt_logits(self.folder), expected, 1e-4)
        low = self.path('bf16')
        families.make(self.name).to(torch.bfloat16).save_pretrained(low)
        rounded = self.their_logits(type(self.net).from_pretrained(low, dtype=torch.float32, attn_implementation='eager').eval())
        self.check_logits('bf16 file', self.mixt_logits(low), rounded, 1e-4)
        self.check_logits('bf16', self.mixt_logits(low, 'bf16'), rounded, 2 ** -9 * math.sqrt(16 * self.net.config.num_hidden_layers), rms=True)
        if self.name != 'phi3-long':  # transformers takes other divisors from token 17 on, in the midst of a text
            self.check_text()
        self.check_training('sgd')
        self.check_export(self.check_training('adamw'))
        shutil.rmtree(self.work)
        return self.failed


def main():
    a = argparse.ArgumentParser()
    a.add_argument('mixt')
    a.add_argument('logits')
    a.add_argument('--runs', default=','.join(families.FAMILIES))
    a.add_argument('--device', default='cpu')
    a = a.parse_args()
    a.mixt, a.logits = os.path.abspath(a.mixt), os.path.abspath(a.logits)
    failed = sum(Case(a, name).all() for name in a.runs.split(','))
    print(f'{failed} failed' if failed else 'all good')
    sys.exit(1 if failed else 0)


main()
