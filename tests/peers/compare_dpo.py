#!/usr/bin/env python3
"""Preferences beside PyTorch: 10 updates of all weights over the same pairs, with the DPO loss (sigmoid of beta times the difference
of the log-ratios, as TRL's default) written out over transformers' Llama. Losses, accuracies and margins must agree.
Usage: compare_dpo.py MIXT   (status 77 without torch and transformers)"""
import json
import os
import subprocess
import sys
import tempfile

try:
    import torch
    import transformers
except ImportError as e:
    print(f'SKIPPED: {e}')
    sys.exit(77)

BETA, LR, BATCH, UPDATES, SEQ = 0.2, 1e-3, 8, 10, 256
torch.set_num_threads(1)
mixt = os.path.realpath(sys.argv[1])
failures = 0


def run(*words):
    done = subprocess.run([mixt, *words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f'{" ".join(words)}: {done.stderr}')
    return done.stdout


def check(what, difference, bound):
    global failures
    print(f'{what:40} {difference:.2e}  (at most {bound:.0e})')
    failures += not difference <= bound


def make(folder):
    """A small model that has seen a text, and pairs of different lengths."""
    words = 'the mill stands by a river and its wheel turns slowly when rain has been far too rare this year'.split()
    with open('text.txt', 'w') as f:
        for i in range(2000):
            f.write(' '.join(words[(i * k) % len(words)] for k in range(1, 9)) + '.\n')
    with open('base.yaml', 'w') as f:
        f.write('model: llama\ndevice: cpu\nnet: {layers: 2, width: 64, heads: 4, kv_heads: 2, inner: 128}\n'
                f'data: {{kind: text, path: text.txt, seq: {SEQ}}}\n'
                'train: {batch: 4, epochs: 0, steps: 40, lr: 0.003}\n')
    run('train', 'base.yaml', 'out=base', '-q')
    run('export', 'base', '--out', folder)
    rows = [{'prompt': ' '.join(words[i % 7:i % 7 + 2 + i % 5]), 'chosen': ' ' + ' '.join(words[i % 5:i % 5 + 3 + i % 4]),
             'rejected': ' ' + ' '.join(words[(i * 3) % 9:(i * 3) % 9 + 2 + i % 6])} for i in range(BATCH * UPDATES)]
    with open('pairs.jsonl', 'w') as f:
        for row in rows:
            print(json.dumps(row), file=f)
    return rows


def scores(model, tokenizer, rows, side):
    """log p of each answer, given its prompt."""
    out = []
    for row in rows:
        prompt = tokenizer(row['prompt'])['input_ids']
        ids = torch.tensor([tokenizer(row['prompt'] + row[side])['input_ids']])
        logp = model(ids).logits[0, :-1].log_softmax(-1)
        each = logp.gather(1, ids[0, 1:, None])[:, 0]
        out.append(each[len(prompt) - 1:].sum())
    return torch.stack(out)


def train_torch(folder, rows):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    with torch.no_grad():
        reference = scores(model, tokenizer, rows, 'chosen') - scores(model, tokenizer, rows, 'rejected')
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=0)
    figures = []
    for u in range(UPDATES):
        part = slice(u * BATCH, (u + 1) * BATCH)
        ratio = scores(model, tokenizer, rows[part], 'chosen') - scores(model, tokenizer, rows[part], 'rejected')
        margins = BETA * (ratio - reference[part])
        loss = -torch.nn.functional.logsigmoid(margins).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        figures.append((loss.item(), (margins > 0).float().mean().item(), margins.mean().item()))
    return reference, figures


def main():
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        rows = make('folder')
        run('finetune', 'folder', 'pairs.jsonl', '--preference', '--full', '--base', 'fp32', '--out', 'run', '-q', f'dpo.beta={BETA}',
            f'train.lr={LR}', f'train.batch={BATCH}', 'train.epochs=0', f'train.steps={UPDATES}', 'train.weight_decay=0', 'train.clip=1',
            'train.schedule=constant', 'train.warmup=0', 'data.val_fraction=0', 'data.in_order=true', f'data.seq={SEQ}',
            'train.log_every=1')
        reference, figures = train_torch('folder', rows)
        ours = [json.loads(line) for line in open('run/metrics.jsonl')]
        with open('run/reference.safetensors', 'rb') as f:
            header = json.loads(f.read(int.from_bytes(f.read(8), 'little')))
            payload = f.read()
        begin, end = header['train']['data_offsets']
        kept = torch.frombuffer(bytearray(payload[begin:end]), dtype=torch.float32)
        check('scores of the reference', (kept - reference).abs().max().item() / reference.abs().max().item(), 1e-4)
        check('losses of 10 updates', max(abs(o['loss'] - t[0]) / t[0] for o, t in zip(ours, figures)), 1e-4)
        check('accuracies', max(abs(o['accuracy'] - t[1]) for o, t in zip(ours[1:], figures[1:])), 1e-6)
        check('margins', max(abs(o['margin'] - t[2]) for o, t in zip(ours, figures)), 1e-4)
        print('losses', ' '.join(f'{o["loss"]:.4f}' for o in ours))
        if len(ours) != UPDATES:
            sys.exit(f'{len(ours)} rows of metrics')
    sys.exit(failures > 0)


main()
