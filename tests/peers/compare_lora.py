#!/usr/bin/env python3
"""LoRA in mixt and in PEFT: updates side by side, adapters that go both ways.

    compare_lora.py MIXT [--steps 20] [--keep FOLDER]

A small Llama and an adapter of it are made by transformers and PEFT, with B other than zero. Then
  updates   both train the adapter on the same batches in FP32, AdamW, for --steps updates: losses and the adapters at the end
  out       PEFT loads what mixt has written: losses against mixt's own, in FP32 and BF16
  qlora     the same over a base in NF4 with double quantisation: rounded by mixt as it loads it, and as bitsandbytes has written it
  subsets   q_proj and v_proj alone, rsLoRA, norms trained beside: what PEFT writes is read, what is written is read by PEFT
Needs peft, transformers, torch, numpy and safetensors, else nothing is done (exit status 77). Prints a line each and fails where a
difference is beyond its bound: 1e-5 relative in FP32, 1e-3 in BF16 and over a base that mixt has rounded itself.
"""
import argparse, importlib.util, json, os, subprocess, sys, tempfile

missing = [name for name in ('numpy', 'torch', 'safetensors', 'transformers', 'peft') if not importlib.util.find_spec(name)]
if missing:
    print('left out, all of it: not installed:', ', '.join(missing))
    sys.exit(77)
os.environ.setdefault('HF_HUB_OFFLINE', '1')
import numpy as np
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file
from transformers import LlamaConfig, LlamaForCausalLM

torch.set_num_threads(1)
VOCAB, SEQ, BATCH = 256, 32, 4
LINEAR = ['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj']
FAILED = []


def report(what, value, bound):
    print(f'{what:62} {value:9.2e}  bound {bound:.0e}  {"ok" if value <= bound else "TOO FAR"}')
    if not value <= bound:
        FAILED.append(what)


def make_base(folder):
    torch.manual_seed(0)
    config = LlamaConfig(num_hidden_layers=2, hidden_size=64, num_attention_heads=4, num_key_value_heads=2, intermediate_size=128, vocab_size=VOCAB,
                         max_position_embeddings=64, rms_norm_eps=1e-5, tie_word_embeddings=False, bos_token_id=None, eos_token_id=None)
    net = LlamaForCausalLM(config)
    with torch.no_grad():
        for p in net.parameters():  # weights of 0.02 would hide what adapters do
            if p.dim() > 1:
                p.mul_(4)
    net.save_pretrained(folder)


def make_adapter(base, folder, **options):
    torch.manual_seed(1)
    net = get_peft_model(LlamaForCausalLM.from_pretrained(base), LoraConfig(task_type='CAUSAL_LM', **options))
    with torch.no_grad():
        for name, p in net.named_parameters():
            if 'lora_B' in name:
                p.normal_(0, 0.05)
            elif p.requires_grad and 'lora_' not in name:
                p.mul_(1 + 0.1 * torch.rand_like(p))
    net.save_pretrained(folder)
    return net


def batches(tokens, count):
    """In the order of the file, as data.in_order has them: sample k begins at k * SEQ and has its targets one further"""
    for i in range(count):
        rows = [tokens[(i * BATCH + k) * SEQ:(i * BATCH + k + 1) * SEQ + 1] for k in range(BATCH)]
        rows = torch.tensor(np.array(rows).astype(np.int64))
        yield rows[:, :-1], rows[:, 1:]


def loss_of(net, x, y):
    return torch.nn.functional.cross_entropy(net(input_ids=x).logits.reshape(-1, VOCAB).float(), y.reshape(-1))


def train_peft(net, tokens, steps):
    optimizer = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=1e-3, weight_decay=0.0)
    losses = []
    for x, y in batches(tokens, steps):
        loss = loss_of(net, x, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def mixt(program, *words):
    done = subprocess.run([program, *words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f'{" ".join(words)}: {done.stderr}')
    return done.stdout


def train_mixt(a, folder, name, *settings):
    out = f'{folder}/{name}'
    mixt(a.mixt, 'train', f'{folder}/run.yaml', f'out={out}', *settings)
    return out, [json.loads(row)['loss'] for row in open(f'{out}/metrics.jsonl') if '"loss"' in row and '"step"' in row]


def far(a, b):
    """The largest difference of two adapters' tensors, relative to the largest number of each"""
    assert sorted(a) == sorted(b), sorted(set(a) ^ set(b))
    return max(((a[k].float() - b[k].float()).abs().max() / b[k].float().abs().max()).item() for k in a)


def trained(net):
    from peft import get_peft_model_state_dict
    return {k: v.detach() for k, v in get_peft_model_state_dict(net).items()}


def updates(a, folder, tokens):
    net = make_adapter(f'{folder}/base', f'{folder}/first', r=4, lora_alpha=8, target_modules=LINEAR)
    out, losses = train_mixt(a, folder, 'run', f'lora.init={folder}/first', f'train.steps={a.steps}')
    theirs = train_peft(net, tokens, a.steps)
    report(f'losses of {a.steps} updates, FP32', max(abs(x - y) / y for x, y in zip(losses, theirs)), 1e-5)
    report('adapters after them', far(load_file(f'{out}/adapter/adapter_model.safetensors'), trained(net)), 1e-5)
    return out


def out_and_back(a, folder, tokens, run):
    net = PeftModel.from_pretrained(LlamaForCausalLM.from_pretrained(f'{folder}/base'), f'{run}/adapter')
    theirs = np.mean([loss_of(net, x, y).item() for x, y in batches(tokens, 1)])
    again, losses = train_mixt(a, folder, 'again', f'lora.init={run}/adapter', 'train.steps=1', 'train.lr=0')
    report('loss of what mixt wrote, loaded by PEFT, FP32', abs(losses[0] - theirs) / theirs, 1e-5)
    report('adapters read and written again', far(load_file(f'{again}/adapter/adapter_model.safetensors'),
                                                   load_file(f'{run}/adapter/adapter_model.safetensors')), 0)
    low, losses = train_mixt(a, folder, 'low', f'lora.init={run}/adapter', 'train.steps=1', 'train.lr=0', 'precision=bf16')
    with torch.autocast('cpu', torch.bfloat16):
        theirs = np.mean([loss_of(net, x, y).item() for x, y in batches(tokens, 1)])
    report('the same in BF16', abs(losses[0] - theirs), 1e-3)


def dequantised(base, quantised):
    """The same model in FP32 with the values that bitsandbytes reads from its weights: on the CPU its own layers round them to BF16"""
    import bitsandbytes
    net = LlamaForCausalLM.from_pretrained(base)
    for (_, low), (_, wide) in zip(quantised.named_modules(), net.named_modules()):
        if isinstance(low, bitsandbytes.nn.Linear4bit):
            wide.weight.data.copy_(bitsandbytes.functional.dequantize_4bit(low.weight.data, low.weight.quant_state))
    return net


def qlora(a, folder, tokens):
    if not importlib.util.find_spec('bitsandbytes'):
        return print('left out: qlora, for want of bitsandbytes')
    from transformers import BitsAndBytesConfig
    how = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type='nf4', bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=torch.float32)
    base = LlamaForCausalLM.from_pretrained(f'{folder}/base', quantization_config=how, device_map='cpu', dtype=torch.float32)
    base.save_pretrained(f'{folder}/base4')
    plain = PeftModel.from_pretrained(dequantised(f'{folder}/base', base), f'{folder}/first', is_trainable=True)
    values = train_peft(plain, tokens, a.steps)
    theirs = train_peft(PeftModel.from_pretrained(base, f'{folder}/first', is_trainable=True), tokens, a.steps)
    for what, source, bound in (('as bitsandbytes wrote it', 'base4', 1e-5), ('rounded by mixt', 'base', 1e-3)):
        out, losses = train_mixt(a, folder, 'nf4-' + source, f'init={folder}/{source}', f'lora.init={folder}/first', 'train.frozen=nf4',
                                 f'train.steps={a.steps}')
        report(f'NF4 {what}: losses, against its values', max(abs(x - y) / y for x, y in zip(losses, values)), bound)
        report(f'NF4 {what}: losses, against its layers', max(abs(x - y) / y for x, y in zip(losses, theirs)), 1e-3)
        if source == 'base4':
            report(f'NF4 {what}: adapters, against its values', far(load_file(f'{out}/adapter/adapter_model.safetensors'), trained(plain)), bound)


def subsets(a, folder, tokens):
    kinds = {'q and v alone': dict(r=3, lora_alpha=5, target_modules=['q_proj', 'v_proj']),
             'rsLoRA, one layer': dict(r=4, lora_alpha=4, use_rslora=True, target_modules=['model.layers.1.self_attn.k_proj', 'up_proj']),
             'norms beside': dict(r=2, lora_alpha=8, target_modules=['o_proj', 'down_proj'], modules_to_save=['model.norm', 'layers.1.input_layernorm'])}
    for i, (what, options) in enumerate(kinds.items()):
        net = make_adapter(f'{folder}/base', f'{folder}/kind{i}', **options)
        out, losses = train_mixt(a, folder, f'run{i}', f'lora.init={folder}/kind{i}', 'train.steps=5')
        theirs = train_peft(net, tokens, 5)
        report(f'{what}: losses of 5 updates', max(abs(x - y) / y for x, y in zip(losses, theirs)), 1e-5)
        report(f'{what}: adapters after them', far(load_file(f'{out}/adapter/adapter_model.safetensors'), trained(net)), 1e-5)
        back = PeftModel.from_pretrained(LlamaForCausalLM.from_pretrained(f'{folder}/base'), f'{out}/adapter')
        x, y = next(batches(tokens, 1))
        report(f'{what}: loaded by PEFT', abs(loss_of(back, x, y).item() - loss_of(net, x, y).item()), 1e-5)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument('mixt')
    arguments.add_argument('--steps', type=int, default=20)
    arguments.add_argument('--keep')
    a = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = a.keep or folder
        os.makedirs(folder, exist_ok=True)
        make_base(f'{folder}/base')
        tokens = np.random.default_rng(0).integers(0, VOCAB, 40000).astype('<u2')
        tokens.tofile(f'{folder}/tokens.bin')
        with open(f'{folder}/run.yaml', 'w') as f:
            f.write(f'model: llama\ninit: {folder}/base\nprecision: fp32\nthreads: 1\nnet: {{vocab: {VOCAB}}}\n'
                    f'data: {{kind: tokens, path: {folder}/tokens.bin, seq: {SEQ}, in_order: true}}\n'
                    f'train: {{batch: {BATCH}, epochs: 0, lr: 0.001, weight_decay: 0, log_every: 1}}\n')
        run = updates(a, folder, tokens)
        out_and_back(a, folder, tokens, run)
        qlora(a, folder, tokens)
        subsets(a, folder, tokens)
    sys.exit(bool(FAILED))


main()
