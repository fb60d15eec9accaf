#!/usr/bin/env python3
"""GGUF files of mixt against the gguf package, tensor by tensor, and against llama.cpp: tokens of texts, perplexity.

    compare_gguf.py MIXT [DATA]

Needs numpy, gguf, safetensors and transformers, else nothing is done (exit status 77); without llama_cpp (llama-cpp-python) that part
is left out. Small models of gpt and llama are trained for some updates on a text, with bytes, GPT-2's vocabulary, Phi-3's and Qwen's
as tokens (DATA, ../shared/data as it is, where those are there).

Each tensor of each file must have the bytes that gguf.quants makes of the exported one. llama.cpp must make the tokens that mixt makes,
and its perplexity on windows of a text must be that of 'mixt eval': within 0.1% in F32, F16 and BF16, 0.5% in Q8_0.
"""
import gzip, importlib.util, json, math, os, subprocess, sys, tempfile

missing = [name for name in ('numpy', 'gguf', 'safetensors', 'torch') if not importlib.util.find_spec(name)]
if missing:
    print('left out, all of it: not installed:', ', '.join(missing))
    sys.exit(77)
import gguf
import numpy as np
from safetensors.numpy import load_file

MIXT = os.path.abspath(sys.argv[1])
DATA = os.path.abspath(sys.argv[2] if len(sys.argv) > 2 else '../shared/data')
TYPES = {'f32': 0.001, 'f16': 0.001, 'bf16': 0.001, 'q8_0': 0.005, 'q4_0': None}
SEQ = 64
failed = 0


def run(*words):
    out = subprocess.run([MIXT, *map(str, words)], capture_output=True, text=True)
    assert out.returncode == 0, f'mixt {" ".join(map(str, words))}: {out.stderr}'
    return out.stdout


def check(good, what):
    global failed
    failed += not good
    print(f'{"ok    " if good else "FAILED"} {what}', flush=True)


def permute(w, heads):
    return w.reshape(heads, 2, w.shape[0] // heads // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def compare_tensors(path, folder):
    """Bytes of each tensor against those of gguf-py."""
    config = json.load(open(f'{folder}/config.json'))
    arch = {'llama': gguf.MODEL_ARCH.LLAMA, 'gpt2': gguf.MODEL_ARCH.GPT2}[config['model_type']]
    layers = config.get('num_hidden_layers') or config['n_layer']
    names = gguf.get_tensor_name_map(arch, layers)
    own = {}
    for name, w in load_file(f'{folder}/model.safetensors').items():
        if config['model_type'] == 'gpt2' and w.ndim == 2 and 'c_' in name:
            w = w.T
        if name.endswith('q_proj.weight'):
            w = permute(w, config['num_attention_heads'])
        if name.endswith('k_proj.weight'):
            w = permute(w, config['num_key_value_heads'])
        own[names.get_name(name, ('.weight', '.bias'))] = np.ascontiguousarray(w)
    bad = []
    tensors = gguf.GGUFReader(path).tensors
    for t in tensors:
        want = gguf.quants.quantize(own.pop(t.name), t.tensor_type)
        if want.tobytes() != t.data.tobytes():
            bad.append(t.name)
    check(not bad and not [n for n in own if not (n == 'output.weight')], f'{path}: {len(tensors)} tensors as gguf-py packs them {bad or ""}')


def perplexity(path, ids):
    """The mean loss of windows of SEQ tokens, each from its own beginning, as mixt evaluates them; and the model."""
    import llama_cpp
    model = llama_cpp.Llama(path, n_ctx=SEQ, n_batch=SEQ, logits_all=True, n_threads=2, verbose=False)
    total, count = 0.0, 0
    for at in range(0, len(ids) - SEQ, SEQ):
        model.reset()
        model.eval(ids[at:at + SEQ])
        logits = np.array(model.scores[:SEQ], np.float64)
        logits -= logits.max(1, keepdims=True)
        logits -= np.log(np.exp(logits).sum(1, keepdims=True))
        total -= logits[np.arange(SEQ), ids[at + 1:at + SEQ + 1]].sum()
        count += SEQ
    return total / count, model


def main():
    cases = [('gpt', 'bytes', None), ('llama', 'bytes', None)]
    texts = f'{DATA}/tinyshakespeare'
    text = next((open(f'{texts}/{f}', 'rb').read() for f in (sorted(os.listdir(texts)) if os.path.isdir(texts) else []) if f.endswith('.txt') and os.path.getsize(f'{texts}/{f}') > 1e5),
                b''.join(b'the mill %d stood where two rivers met\n' % i for i in range(5000)))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        open('text.txt', 'wb').write(text[:400000])
        open('eval.txt', 'wb').write(text[-8000:])
        if os.path.isdir(f'{DATA}/gpt2_bpe'):
            cases.append(('gpt', 'gpt2', f'{DATA}/gpt2_bpe'))
        for name in ('phi-3', 'qwen2'):
            packed = f'{DATA}/tokenizers/{name}/tokenizer.json.gz'
            if os.path.exists(packed):
                os.mkdir(name)
                open(f'{name}/tokenizer.json', 'wb').write(gzip.open(packed).read())
                cases.append(('llama', name, os.path.abspath(name)))
        for model, tokens, vocab in cases:
            compare_case(model, tokens, vocab)
    sys.exit(1 if failed else 0)


def compare_case(model, tokens, vocab):
    run_folder = f'{model}-{tokens}'
    heads = {'gpt': '{layers: 2, width: 64, heads: 2}', 'llama': '{layers: 2, width: 64, heads: 4, kv_heads: 2}'}[model]
    extra = f', vocab: {vocab}' if vocab else ''
    open('config.yaml', 'w').write(f'model: {model}\nprecision: fp32\ndevice: cpu\nthreads: 2\nnet: {heads}\n'
                                   f'data: {{kind: text, path: text.txt, seq: {SEQ}{extra}}}\ntrain: {{steps: 12, batch: 8, lr: 0.01}}\n')
    run('train', 'config.yaml', f'out={run_folder}', '-q')
    run('export', run_folder)
    ours = json.loads(run('eval', run_folder, 'data.path=eval.txt', '--split', 'all', '--json'))['loss']
    has_llama = importlib.util.find_spec('llama_cpp')
    for kind, bar in TYPES.items():
        path = f'{run_folder}/{kind}.gguf'
        run('export', run_folder, '--gguf', '--type', kind, '--out', path)
        compare_tensors(path, f'{run_folder}/export')
        if not has_llama:
            continue
        text = open('eval.txt', 'rb').read()
        import llama_cpp
        vocabulary = llama_cpp.Llama(path, vocab_only=True, verbose=False)
        theirs = vocabulary.tokenize(text, add_bos=False, special=False)
        mine = mixt_tokens(vocab)
        if kind == 'f32':
            check(theirs == mine, f'{path}: {len(theirs)} tokens of llama.cpp, {len(mine)} of mixt')
        loss, _ = perplexity(path, mine)
        far = abs(math.exp(loss) / math.exp(ours) - 1)
        check(bar is None or far <= bar, f'{path}: perplexity {math.exp(loss):.4f}, mixt {math.exp(ours):.4f}: {100 * far:.4f}%{"" if bar else " (no bar)"}')
    if not has_llama:
        print('left out: perplexity and tokens: llama_cpp is not installed')


def mixt_tokens(vocab):
    return json.loads(run('tokenize', 'eval.txt', *(('--vocab', vocab) if vocab else ('--tokenizer', 'bytes')), '--json'))['tokens']


main()
