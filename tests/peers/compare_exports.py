#!/usr/bin/env python3
"""What mixt exports, loaded by Hugging Face transformers and torchvision, and what both make of it.

    compare_exports.py MIXT LOGITS_PROGRAM [--runs WORD,...] [--models gpt,llama,bert_mlm,resnet18,...] [--device cpu]     (make test-peers)

MIXT is build/mixt, LOGITS_PROGRAM build/tests/logits. Needs numpy, torch and safetensors, else nothing is done (exit status
77); without transformers or torchvision their models are left out and named at the end. Two parts:

Runs that were carried away (carried.py): trained, data moved, exported, loaded with the files that lie in the export.

Weights both ways, for each of --models:

    out   mixt draws weights, 'mixt export' writes them in fp32, fp16 and bf16, the other program loads the folder
    back  the other program draws weights and saves them, mixt loads them (init=)

Each time both compute the outputs of one batch, mixt in FP32, the other program in FP64 with the weights as stored. The relative
difference (root mean square) must stay within u * sqrt(roundings): roundings the number of rounded results one after the other, u for
FP32 2^-24 times the square root of the longest sum; and for what storing the weights in a format costs, the format's unit roundoff.
The same bound holds for the loss. A file with a tensor missing, misshapen or of integers must be refused by name.
"""
import argparse, importlib.util, json, math, os, shutil, subprocess, sys, tempfile

HAVE = {name for name in ('numpy', 'torch', 'safetensors', 'transformers', 'torchvision') if importlib.util.find_spec(name)}
if not HAVE.issuperset({'numpy', 'torch', 'safetensors'}):
    print('left out, all of it: not installed:', ', '.join(sorted({'numpy', 'torch', 'safetensors'} - HAVE)))
    sys.exit(77)
os.environ.setdefault('HF_HUB_OFFLINE', '1')
os.environ.setdefault('TQDM_DISABLE', '1')
import numpy as np
import torch
from safetensors.torch import load_file, save_file
import carried
if 'transformers' in HAVE:
    import transformers
    transformers.logging.set_verbosity_error()  # texts longer than the model's positions are meant here

UNIT = {'fp32': 2.0 ** -24 * math.sqrt(65536), 'fp16': 2.0 ** -11, 'bf16': 2.0 ** -8}


def gpt(sizes):
    from transformers import GPT2Config, GPT2LMHeadModel
    return GPT2LMHeadModel(GPT2Config(n_layer=sizes['layers'], n_embd=sizes['width'], n_head=sizes['heads'], vocab_size=sizes['vocab'],
                                      n_positions=sizes['seq'], bos_token_id=None, eos_token_id=None))


def bert(sizes):
    from transformers import BertConfig, BertForMaskedLM
    return BertForMaskedLM(BertConfig(num_hidden_layers=sizes['layers'], hidden_size=sizes['width'], num_attention_heads=sizes['heads'],
                                      intermediate_size=4 * sizes['width'], vocab_size=sizes['vocab'], max_position_embeddings=sizes['seq']))


def llama(sizes):
    from transformers import LlamaConfig, LlamaForCausalLM
    rope = {'rope_type': 'default', 'rope_theta': float(sizes.get('rope_theta', 10000))}
    if 'rope_high' in sizes:
        rope |= {'rope_type': 'llama3', 'factor': float(sizes['rope_factor']), 'low_freq_factor': float(sizes['rope_low']),
                 'high_freq_factor': float(sizes['rope_high']), 'original_max_position_embeddings': sizes['rope_original']}
    return LlamaForCausalLM(LlamaConfig(
        num_hidden_layers=sizes['layers'], hidden_size=sizes['width'], num_attention_heads=sizes['heads'],
        num_key_value_heads=sizes['kv_heads'], intermediate_size=sizes['inner'], vocab_size=sizes['vocab'],
        max_position_embeddings=sizes['seq'], rms_norm_eps=1e-5, tie_word_embeddings=bool(sizes['tied']), rope_parameters=rope,
        bos_token_id=None, eos_token_id=None, attn_implementation='eager'))


def vision(name):
    def make(sizes):
        import torchvision
        return getattr(torchvision.models, name)(num_classes=sizes['classes'])
    return make


SMALL = {'layers': 2, 'width': 48, 'heads': 3, 'vocab': 211, 'seq': 1024}
LLAMA = {'layers': 2, 'width': 48, 'heads': 6, 'kv_heads': 2, 'inner': 80, 'tied': 0, 'vocab': 211, 'seq': 1024}
MODELS = {  # name: mixt's model, its sizes, the other program's, batch, dims, roundings
    'gpt': ('gpt', SMALL, gpt, 2, '64', 24),
    'gpt2-124m': ('gpt', {'layers': 12, 'width': 768, 'heads': 12, 'vocab': 50257, 'seq': 1024}, gpt, 1, '128', 120),
    'llama': ('llama', LLAMA, llama, 2, '64', 30),
    'llama-tied': ('llama', {**LLAMA, 'tied': 1, 'kv_heads': 6, 'rope_theta': 500000}, llama, 2, '64', 30),
    'llama3': ('llama', {**LLAMA, 'width': 96, 'rope_theta': 500000, 'rope_factor': 8, 'rope_low': 1, 'rope_high': 4, 'rope_original': 64},
               llama, 2, '200', 30),
    'bert_mlm': ('bert_mlm', {**SMALL, 'seq': 512}, bert, 2, '64', 28),
    'bert-base': ('bert_mlm', {'layers': 12, 'width': 768, 'heads': 12, 'vocab': 30522, 'seq': 512}, bert, 1, '128', 130),
    **{f'resnet{d}': ('resnet', {'depth': d, 'classes': 1000 if d == 50 else 10}, vision(f'resnet{d}'), 2, '96x96x3' if d != 50 else '224x224x3', 3 * d)
       for d in (18, 34, 50, 101, 152)},
    **{f'vgg{d}': ('vgg', {'depth': d, 'classes': 10}, vision(f'vgg{d}'), 2, '224x224x3', 3 * d) for d in (11, 13, 16, 19)},
}


def shake(net):
    """random weights of sizes that matter: biases, norms and running statistics included"""
    gen = torch.Generator().manual_seed(5)
    for name, t in net.state_dict().items():
        if not t.is_floating_point():
            continue
        noise = torch.randn(t.shape, generator=gen)
        if name.endswith('running_var'):
            t.copy_((1 + 0.1 * noise).clamp(0.5, 2))
        elif t.ndim == 1:
            t.add_(0.05 * noise)
    return net


class Case:
    def __init__(self, a, name):
        self.a, self.name = a, name
        self.model, self.sizes, self.make, self.batch, self.dims, self.roundings = MODELS[name]
        self.folder = tempfile.mkdtemp()
        self.failed = 0
        rng = np.random.default_rng(3)
        shape = (self.batch,) + tuple(int(d) for d in self.dims.split('x'))
        self.tokens = self.model in ('gpt', 'bert_mlm', 'llama')
        self.x = rng.integers(0, self.sizes['vocab'], shape).astype(np.int32) if self.tokens else rng.standard_normal(shape, np.float32)
        self.y = rng.integers(0, self.sizes['vocab'] if self.tokens else self.sizes['classes'], shape if self.tokens else shape[:1])
        self.x.tofile(self.path('input'))

    def path(self, name):
        return os.path.join(self.folder, name)

    def command(self, *words, fails=None):
        out = subprocess.run(words, capture_output=True, text=True)
        assert (out.returncode == 0) == (fails is None), (words, out.stdout, out.stderr)
        if fails:
            assert fails in out.stderr, (fails, out.stderr)

    def mixt(self, weights):
        sizes = [f'{k}={v}' for k, v in self.sizes.items()]
        self.command(self.a.logits, self.model, 'fp32', self.a.device, weights, self.path('input'), self.path('output'), str(self.batch), self.dims, *sizes)
        y = np.fromfile(self.path('output'), np.float32).astype(np.float64)
        if not self.tokens:
            return y.reshape(self.batch, -1)
        return y.reshape(self.x.shape + (-1,))[..., :self.sizes['vocab']]  # the rest is padding

    def other(self, net):
        x = torch.from_numpy(self.x)
        with torch.no_grad():
            net = net.double().eval()
            y = net(input_ids=x.long()).logits if self.tokens else net(x.permute(0, 3, 1, 2).double())
        return y.numpy()

    def export(self, weights, dtype, out):
        """a run directory around the weights, exported"""
        run = self.path('run')
        shutil.rmtree(run, ignore_errors=True)
        os.mkdir(run)
        shutil.copy(weights, run + '/model.safetensors')
        with open(run + '/config.yaml', 'w') as f:
            f.write(f'model: {self.model}\nnet: {{' + ', '.join(
                f'{k}: {str(bool(v)).lower() if k == "tied" else v}' for k, v in self.sizes.items() if k != 'seq') + '}\n')
        vocab = ('--vocab', str(self.sizes['vocab'])) if self.tokens else ()
        self.command(self.a.mixt, 'export', run, '--dtype', dtype, '--out', out, '--overwrite', *vocab)

    def load(self, folder):
        if self.tokens:
            net = type(self.make(self.sizes)).from_pretrained(folder, torch_dtype=torch.float32)
            net.tie_weights()
            return net
        assert json.load(open(folder + '/config.json'))['torchvision'], folder
        net = self.make(self.sizes)
        net.load_state_dict(load_file(folder + '/model.safetensors'), strict=True)
        return net

    def loss(self, logits):
        t = torch.from_numpy(logits)
        return torch.nn.functional.cross_entropy(t.reshape(-1, t.shape[-1]), torch.from_numpy(self.y).reshape(-1)).item()

    def hold(self, what, got, expected, unit):
        bound = unit * math.sqrt(self.roundings)
        rms = lambda v: math.sqrt(np.mean(np.square(v)))
        difference = rms(got - expected) / rms(expected)
        a, b = self.loss(got), self.loss(expected)
        ok = difference <= bound and abs(a - b) <= bound * abs(b)
        self.failed += not ok
        print(f'{self.name:10s} {what:34s} outputs differ by {difference:.1e}, loss {b:.6f} by {abs(a - b):.1e}, bound {bound:.1e}'
              f'{"" if ok else "  FAILED"}', flush=True)

    def run(self):
        exact = self.mixt('-')
        drawn = self.path('output.safetensors')
        for dtype in ('fp32', 'fp16', 'bf16'):
            out = self.path(dtype)
            self.export(drawn, dtype, out)
            theirs = self.other(self.load(out))
            self.hold(f'out, {dtype}: mixt on the export', self.mixt(out), theirs, UNIT['fp32'])
            if dtype != 'fp32':
                self.hold(f'out, {dtype}: against fp32', theirs, exact, UNIT[dtype])
        net = shake(self.make(self.sizes))
        back = self.path('back')
        os.mkdir(back)
        if self.tokens:
            net.save_pretrained(back)
        else:
            save_file(net.state_dict(), back + '/model.safetensors', metadata={'format': 'pt'})
        self.hold('back', self.mixt(back), self.other(net), UNIT['fp32'])
        state = load_file(back + '/model.safetensors')
        name = sorted(k for k in state if k.endswith('weight') and state[k].ndim > 1)[0]
        self.refuse(state, name, None, 'is missing')
        self.refuse(state, name, state[name][:-1].clone(), 'expected a float tensor')
        self.refuse(state, name, state[name].to(torch.int32), 'expected a float tensor')
        shutil.rmtree(self.folder)
        return self.failed

    def refuse(self, state, name, value, text):
        state = {k: v for k, v in state.items() if k != name}
        if value is not None:
            state[name] = value
        bad = self.path('bad.safetensors')
        save_file(state, bad, metadata={'format': 'pt'})
        sizes = [f'{k}={v}' for k, v in self.sizes.items()]
        words = (self.a.logits, self.model, 'fp32', self.a.device, bad, self.path('input'), self.path('output'), str(self.batch), self.dims, *sizes)
        self.command(*words, fails=text)
        self.command(*words, fails=f"'{name}'")


def main():
    a = argparse.ArgumentParser()
    a.add_argument('mixt')
    a.add_argument('logits')
    a.add_argument('--models', default='gpt,llama,llama-tied,llama3,bert_mlm,resnet18')
    a.add_argument('--runs', help='only runs with one of these words in their name, as resnet50,gpt')
    a.add_argument('--device', default='cpu')
    a = a.parse_args()
    torch.manual_seed(1)
    failed, left_out = carried.compare(os.path.abspath(a.mixt), os.path.abspath(a.logits), HAVE, UNIT['fp32'],
                                       a.runs.split(',') if a.runs else None)
    for name in a.models.split(','):
        package = 'transformers' if MODELS[name][2] in (gpt, bert, llama) else 'torchvision'
        if package in HAVE:
            failed += Case(a, name).run()
        else:
            left_out.append(f'{name} (no {package})')
    for name in left_out:
        print('left out:', name)
    sys.exit(1 if failed else 0)


main()
