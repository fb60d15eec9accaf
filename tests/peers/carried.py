"""Runs that were carried away: trained by mixt, their data moved, exported, and loaded by the other program with nothing but
the files of the export. Used by compare_exports.py.

Each case trains a small model for some updates in FP32 on data made here, asks for predictions, moves the data, asks again
(the same bytes), exports, and holds the other program's outputs on the same inputs against mixt's. Inputs are prepared from
inputs.json (mean, std, shape), texts by the exported tokenizer, sizes come from config.json.
"""
import json, math, os, random, shutil, struct, subprocess, tempfile, zipfile
import numpy as np
import torch

CLASSES = ['ant', 'bee', 'cow']
WORDS = 'sun moon star sky the a of and rises sets shines'.split()
SIDE, SEQ = 32, 24
LEAST = 1e-20  # probabilities below have lost their digits, and say nothing of the outputs
TEXT_SIZES = {'layers': 2, 'width': 32, 'heads': 2}


# ---- data ----

def byte_letters():
    letters, extra = {}, 256
    for b in range(256):
        prints = 32 < b < 127 or 160 < b < 256 and b != 173
        letters[b] = chr(b if prints else extra)
        extra += not prints
    return letters


def make_vocabularies(folder):
    os.makedirs(f'{folder}/bpe'), os.makedirs(f'{folder}/pieces')
    merges = [('s', 'u'), ('su', 'n'), ('m', 'o'), ('mo', 'o'), ('moo', 'n'), ('t', 'h'), ('th', 'e'), ('\u0120', 'the')]
    tokens = {letter: b for b, letter in byte_letters().items()}
    for pair in merges:
        tokens[''.join(pair)] = len(tokens)
    tokens['<|endoftext|>'] = len(tokens)
    json.dump(tokens, open(f'{folder}/bpe/encoder.json', 'w'))
    open(f'{folder}/bpe/vocab.bpe', 'w').write('#version: 0.2\n' + ''.join('%s %s\n' % p for p in merges))
    open(f'{folder}/pieces/vocab.txt', 'w').write('\n'.join(['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', *WORDS]) + '\n')


def make_pictures(folder, rng):
    labels = np.arange(60) % 3
    pictures = rng.integers(0, 90, (60, SIDE, SIDE, 3)).astype(np.uint8) + (50 * labels[:, None, None, None]).astype(np.uint8)
    np.save(f'{folder}/x.npy', pictures), np.save(f'{folder}/y.npy', labels.astype(np.uint8))
    np.save(f'{folder}/values.npy', (labels + rng.random(60)).astype(np.float32)[:, None])
    np.savez(f'{folder}/both.npz', x=pictures, y=labels.astype(np.uint8))
    for sub in 'idx', 'cifar', 'images':
        os.makedirs(f'{folder}/{sub}')
    grey = pictures[:, :28, :28, 0].tobytes()
    open(f'{folder}/idx/train-images-idx3-ubyte', 'wb').write(struct.pack('>IIII', 0x803, 60, 28, 28) + grey)
    open(f'{folder}/idx/train-labels-idx1-ubyte', 'wb').write(struct.pack('>II', 0x801, 60) + labels.astype(np.uint8).tobytes())
    planes = pictures.transpose(0, 3, 1, 2)
    rows = b''.join(bytes([label]) + planes[i].tobytes() for i, label in enumerate(labels))
    open(f'{folder}/cifar/data_batch_1.bin', 'wb').write(rows)
    open(f'{folder}/cifar/test_batch.bin', 'wb').write(rows)
    open(f'{folder}/cifar/batches.meta.txt', 'w').write('\n'.join(CLASSES + [f'class{i}' for i in range(3, 10)]) + '\n')
    for i, label in enumerate(labels):
        os.makedirs(f'{folder}/images/{CLASSES[label]}', exist_ok=True)
        open(f'{folder}/images/{CLASSES[label]}/{i}.ppm', 'wb').write(b'P6 32 32 255\n' + pictures[i].tobytes())


def make_data(folder, mixt):
    os.makedirs(folder)
    make_vocabularies(folder)
    make_pictures(folder, np.random.default_rng(11))
    draw = random.Random(12)
    open(f'{folder}/text.txt', 'w').write(' '.join(draw.choice(WORDS) for _ in range(4000)))
    for vocab in 'bpe', 'pieces':
        subprocess.run([mixt, 'tokenize', f'{folder}/text.txt', '--vocab', f'{folder}/{vocab}', '--out', f'{folder}/{vocab}.tokens'],
                       check=True, capture_output=True)
    said = [(draw.choice(CLASSES), ' '.join(draw.choice(WORDS) for _ in range(draw.randrange(1, 18)))) for _ in range(400)]
    lines = ['%s %s\t%s' % (text, WORDS[CLASSES.index(label)], label) for label, text in said]
    open(f'{folder}/said.tsv', 'w').write('text\tlabel\n' + '\n'.join(lines) + '\n')
    ids = np.random.default_rng(13).integers(0, 264, 4000).astype('<u2')
    ids.tofile(f'{folder}/raw.bin')


# ---- cases ----

NPY = 'data.path=data/x.npy data.labels=data/y.npy'
GPT, BERT = f'model=gpt data.seq={SEQ}', f'model=bert_mlm data.seq={SEQ} data.mask=0.2'
VISION = {  # name: settings, shape of a probe
    'resnet18 npy': (f'model=resnet net.depth=18 {NPY}', (SIDE, SIDE, 3)),
    'resnet18 npz': ('model=resnet net.depth=18 data.path=data/both.npz', (SIDE, SIDE, 3)),
    'resnet18 idx': ('model=resnet net.depth=18 data.kind=idx data.path=data/idx', (28, 28, 1)),
    'resnet18 cifar': ('model=resnet net.depth=18 data.kind=cifar data.path=data/cifar data.pad=2', (SIDE, SIDE, 3)),
    'resnet18 images': ('model=resnet net.depth=18 data.kind=images data.path=data/images data.crop=32', (SIDE, SIDE, 3)),
    'resnet18 digits': ('model=resnet net.depth=18 data.kind=digits data.limit=64', (28, 28, 1)),
    'resnet18 values': ('model=resnet net.depth=18 data.path=data/x.npy data.labels=data/values.npy', (SIDE, SIDE, 3)),
    'resnet34 given': (f'model=resnet net.depth=34 {NPY} data.mean=0.5,0.4,0.3 data.std=0.2', (SIDE, SIDE, 3)),
    'resnet50 npy': (f'model=resnet net.depth=50 {NPY}', (SIDE, SIDE, 3)),
    'vgg11 npy': (f'model=vgg net.depth=11 {NPY}', (SIDE, SIDE, 3)),
    'vgg13_bn cifar': ('model=vgg net.depth=13 net.norm=batch data.kind=cifar data.path=data/cifar', (SIDE, SIDE, 3)),
}
TEXT = {  # name: settings, the vocabulary of its texts
    'gpt bytes': (f'{GPT} data.path=data/text.txt', None),
    'gpt pairs': (f'{GPT} data.path=data/text.txt data.vocab=data/bpe', 'bpe'),
    'gpt tokens': (f'{GPT} data.kind=tokens data.path=data/bpe.tokens data.vocab=data/bpe', 'bpe'),
    'gpt raw': (f'{GPT} data.kind=tokens data.path=data/raw.bin data.vocab=data/bpe', 'bpe'),
    'bert_mlm pieces': (f'{BERT} data.path=data/text.txt data.vocab=data/pieces', 'pieces'),
    'bert_mlm tokens': (f'{BERT} data.kind=tokens data.path=data/pieces.tokens data.vocab=data/pieces', 'pieces'),
}
SAID = f'model=bert_classify net.pool=first data.kind=labelled data.path=data/said.tsv data.seq={SEQ}'
CLASSIFIED = {  # name: settings, the vocabulary of its texts
    'bert_classify own': (SAID, None),
    'bert_classify given': (f'{SAID} data.vocab=data/pieces', 'pieces'),
}
PROBES = ['the sun rises', 'a moon', 'star of the sky sets and shines', 'the ' * 40]  # the last is longer than the model reads


class Carried:
    """One case. `unit` is what one rounded result of FP32 may be off, with the longest sum counted."""

    def __init__(self, mixt, logits, work, name, unit):
        self.mixt_command, self.logits, self.work, self.name, self.unit = mixt, logits, work, name, unit
        self.words = name.split()
        self.settings, self.fact = (VISION.get(name) or TEXT.get(name) or CLASSIFIED[name])
        self.run, self.out = f'{work}/{name.replace(" ", "-")}', f'{work}/{name.replace(" ", "-")}-export'
        self.problems, self.note, self.difference, self.bound = [], '', math.nan, math.nan

    def mixt(self, *words):
        out = subprocess.run([self.mixt_command, *words], capture_output=True, text=True, cwd=self.work)
        assert out.returncode == 0, (words, out.stdout, out.stderr)
        return out.stdout

    def expect(self, what, holds):
        if not holds:
            self.problems.append(what)

    def hold(self, ours, theirs, roundings):
        rms = lambda v: math.sqrt(np.mean(np.square(v)))
        self.difference, self.bound = rms(ours - theirs) / rms(theirs), self.unit * math.sqrt(roundings)
        self.expect('outputs', self.difference <= self.bound)

    def compare(self):
        open(f'{self.work}/net.yaml', 'w').write('precision: fp32\ndevice: cpu\n')
        steps, rate = (80, 3e-3) if self.name not in VISION else (4, 1e-5) if self.name == 'vgg11 npy' else (30, 1e-4)
        sizes = [] if self.name in VISION else [f'net.{k}={v}' for k, v in TEXT_SIZES.items()]
        self.mixt('train', 'net.yaml', f'out={self.run}', f'train.steps={steps}', 'train.batch=8', f'train.lr={rate}', '-q', *sizes,
                  *self.settings.split())
        before = self.said()
        os.rename(f'{self.work}/data', f'{self.work}/gone')
        try:
            self.expect('the same without the data', self.said() == before)
            self.mixt('export', self.run, '--out', self.out)
            self.load(before)
        finally:
            os.rename(f'{self.work}/gone', f'{self.work}/data')
        shutil.rmtree(self.run), shutil.rmtree(self.out)
        return self

    def json(self, name):
        return json.load(open(f'{self.out}/{name}'))


class Vision(Carried):
    def said(self):
        rng = np.random.default_rng(5)
        self.probe = (rng.integers(0, 90, (6, *self.fact)) + 50 * (np.arange(6) % 3)[:, None, None, None]).astype(np.uint8)
        np.save(f'{self.work}/probe.npy', self.probe)
        return self.mixt('predict', self.run, 'probe.npy', '--json', '--top', '10')

    def build(self, config, state):
        """torchvision's own model of that name; what it must be changed by is named in the table"""
        import torchvision
        net = getattr(torchvision.models, config['architecture'])(num_classes=config['num_classes'])
        changed = []
        if config['in_channels'] != 3:
            old = net.conv1 if hasattr(net, 'conv1') else net.features[0]
            new = torch.nn.Conv2d(config['in_channels'], old.out_channels, old.kernel_size, old.stride, old.padding, bias=old.bias is not None)
            if hasattr(net, 'conv1'):
                net.conv1 = new
            else:
                net.features[0] = new
            changed.append('first layer')
        linear = sorted(int(k.split('.')[1]) for k in state if k.startswith('classifier.') and k.endswith('weight'))
        if linear and (len(linear) != 3 or state['classifier.0.weight'].shape[1] != 25088):
            layers = []
            for i in linear:
                rows, columns = state[f'classifier.{i}.weight'].shape
                layers += [torch.nn.Linear(columns, rows), torch.nn.ReLU(), torch.nn.Dropout()]
            net.classifier, net.avgpool = torch.nn.Sequential(*layers[:-2]), torch.nn.Identity()
            changed.append('classifier')
        self.expect('config.json says whether torchvision fits', config['torchvision'] == (not changed))
        self.note = 'changed: ' + ', '.join(changed) if changed else "torchvision's own"
        net.load_state_dict(state, strict=True)
        return net.double().eval()

    def load(self, before):
        from safetensors.torch import load_file
        config, inputs = self.json('config.json'), self.json('inputs.json')
        data = inputs['data']
        net = self.build(config, load_file(f'{self.out}/model.safetensors'))
        self.expect('shape', data['input_shape'] == list(self.fact))
        if self.words[1] in ('images', 'cifar'):
            self.expect('class names', data['class_names'][:3] == CLASSES and len(data['class_names']) == config['num_classes'])
        x = (self.probe.astype(np.float64) / 255 - np.array(data['mean'])) / np.array(data['std'])
        with torch.no_grad():
            theirs = net(torch.from_numpy(x.transpose(0, 3, 1, 2)))
        rows = [json.loads(line) for line in before.splitlines()]
        depth = int(''.join(c for c in config['architecture'] if c.isdigit()))
        if inputs['loss'] == 'mse':
            self.hold(np.array([row['values'] for row in rows]), theirs.numpy(), 3 * depth)
            return
        ours = np.full(theirs.shape, np.nan)
        for i, row in enumerate(rows):
            for guess in row['top']:
                ours[i, guess['class']] = math.log(max(guess['probability'], LEAST))
        self.expect('probabilities that tell something', (ours > math.log(LEAST)).all())
        self.hold(ours, torch.log_softmax(theirs, 1).numpy(), 3 * depth)


class Text(Carried):
    def said(self):
        if self.words[0] != 'gpt':
            return ''
        return json.loads(self.mixt('generate', self.run, '-n', '12', '-t', '0', '--prompt', 'the sun', '--json'))['text']

    def outputs(self, ids, vocab):
        """mixt's logits for one text, from the run's own weights"""
        sizes = [f'{k}={v}' for k, v in TEXT_SIZES.items()] + [f'vocab={vocab}', f'seq={1024 if self.words[0] == "gpt" else 512}']
        np.array(ids, np.int32).tofile(f'{self.work}/ids')
        subprocess.run([self.logits, self.words[0], 'fp32', 'cpu', f'{self.run}/model.safetensors', f'{self.work}/ids', f'{self.work}/outputs', '1',
                        str(len(ids)), *sizes], check=True, capture_output=True)
        return np.fromfile(f'{self.work}/outputs', np.float32).astype(np.float64).reshape(len(ids), -1)[:, :vocab]

    def load(self, before):
        from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer
        gpt = self.words[0] == 'gpt'
        net, info = (AutoModelForCausalLM if gpt else AutoModelForMaskedLM).from_pretrained(
            self.out, dtype=torch.float32, output_loading_info=True)
        self.expect('every tensor', not any(info.get(k) for k in ('missing_keys', 'unexpected_keys', 'mismatched_keys')))
        tokenizer = AutoTokenizer.from_pretrained(self.out)
        config = net.config
        positions = config.n_positions if gpt else config.max_position_embeddings
        self.expect(f'{positions} positions, {SEQ} trained', positions == tokenizer.model_max_length == SEQ)
        text = 'the sun rises and the moon sets of a star'
        ids = tokenizer(text, add_special_tokens=False).input_ids
        open(f'{self.work}/some.txt', 'w').write(text)
        vocab = ('--vocab', f'{self.run}/vocab') if self.fact else ()
        own = [int(line.split()[0]) for line in self.mixt('tokenize', 'some.txt', *vocab).splitlines()]
        self.expect('tokens', ids == own)
        self.expect('text of tokens', tokenizer.decode(ids) == text)
        self.special(net, tokenizer, gpt)
        ids = own[:SEQ]
        with torch.no_grad():
            theirs = net.double().eval()(input_ids=torch.tensor([ids])).logits[0].numpy()
        self.hold(self.outputs(ids, config.vocab_size), theirs, 30)
        self.note = f"transformers' {type(net).__name__}, {type(tokenizer).__name__}"
        if gpt:
            self.write(net, tokenizer, before)

    def special(self, net, tokenizer, gpt):
        """ids of special tokens: those that the vocabulary has, in the model, its generation and its tokenizer"""
        if not gpt:
            self.expect('special tokens', (tokenizer.pad_token_id, tokenizer.mask_token_id, net.config.pad_token_id) == (0, 4, 0))
            return
        end = 264 if self.fact else None
        found = [net.config.bos_token_id, net.config.eos_token_id, tokenizer.bos_token_id, tokenizer.eos_token_id, net.generation_config.eos_token_id]
        self.expect(f'bos and eos {found}, expected {end}', found == [end] * 5)
        self.expect(f'{len(tokenizer)} tokens, the model has {net.config.vocab_size}', len(tokenizer) == net.config.vocab_size)

    def write(self, net, tokenizer, text):
        """the most probable text after a prompt"""
        prompt = tokenizer('the sun', return_tensors='pt')
        made = net.generate(**prompt, do_sample=False, max_new_tokens=12, pad_token_id=0)
        self.expect(f'text {tokenizer.decode(made[0])!r}, mixt {text!r}', tokenizer.decode(made[0]) in (text, 'the sun' + text))


class Classified(Carried):
    """Classifiers of texts, also the other way: transformers' own, with its tokenizer, as a folder for 'mixt predict'"""

    def judged(self, folder):
        return self.mixt('predict', folder, *(f'text:{text}' for text in PROBES), '--json', '--top', '10')

    def said(self):
        return self.judged(self.run)

    def hold_folder(self, folder, net, lines):
        """what mixt said next to what transformers says, with the folder's tokenizer"""
        from transformers import AutoTokenizer
        tokenizer = AutoTokenizer.from_pretrained(folder)
        ours, theirs = [], []
        for text, line in zip(PROBES, lines.splitlines()):
            top = {guess['class']: guess for guess in json.loads(line)['top']}
            ours.append([math.log(top[i]['probability']) for i in range(len(CLASSES))])
            self.expect(f'names of classes: {top}', [top[i]['name'] for i in range(len(CLASSES))] == [net.config.id2label[i] for i in range(len(CLASSES))])
            with torch.no_grad():
                batch = tokenizer(text, return_tensors='pt', truncation=True, max_length=net.config.max_position_embeddings)
                theirs.append(torch.log_softmax(net(**batch).logits[0], 0).numpy())
        self.hold(np.array(ours), np.array(theirs), 40)
        return self.difference

    def load(self, before):
        from transformers import AutoModelForSequenceClassification
        net, info = AutoModelForSequenceClassification.from_pretrained(self.out, dtype=torch.float32, output_loading_info=True)
        self.expect('every tensor', not any(info.get(k) for k in ('missing_keys', 'unexpected_keys', 'mismatched_keys')))
        self.expect(f'labels {net.config.id2label}', sorted(net.config.id2label.values()) == CLASSES)
        out = self.hold_folder(self.out, net.double().eval(), before)
        back = self.back(net.config)
        self.difference = max(out, back)
        self.note = f"transformers' {type(net).__name__}, and back"

    def back(self, config):
        """weights that transformers drew, under its names, with what it writes itself"""
        from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification
        sizes = {k: getattr(config, k) for k in ('num_hidden_layers', 'hidden_size', 'num_attention_heads', 'intermediate_size', 'vocab_size')}
        labels = dict(enumerate(['x', 'y', 'z']))
        net = BertForSequenceClassification(BertConfig(**sizes, max_position_embeddings=2 * SEQ, id2label=labels, label2id={v: k for k, v in labels.items()}))
        gen = torch.Generator().manual_seed(6)
        for t in net.parameters():
            t.data.add_(0.1 * torch.randn(t.shape, generator=gen))
        folder = f'{self.work}/back'
        net.save_pretrained(folder), AutoTokenizer.from_pretrained(self.out).save_pretrained(folder)
        difference = self.hold_folder(folder, net.double().eval(), self.judged(folder))
        shutil.rmtree(folder)
        return difference


def compare(mixt, logits, have, unit, wanted=None):
    """Runs the cases (`wanted`: those with one of these words) whose packages are there; returns how many failed and which
    were left out."""
    work = tempfile.mkdtemp()
    make_data(f'{work}/data', mixt)
    done, left_out = [], []
    for cases, kind, package in ((VISION, Vision, 'torchvision'), (TEXT, Text, 'transformers'), (CLASSIFIED, Classified, 'transformers')):
        for name in cases:
            if wanted and not any(word in name for word in wanted):
                continue
            if package in have:
                done.append(kind(mixt, logits, work, name, unit).compare())
            else:
                left_out.append(f'{name} (no {package})')
    shutil.rmtree(work)
    print(f'{"run, data":20s} {"loaded by":44s} {"difference":>10s} {"bound":>8s}')
    for case in done:
        print(f'{case.name:20s} {case.note:44s} {case.difference:10.1e} {case.bound:8.1e}  {"FAILED: " + "; ".join(case.problems) if case.problems else "well"}')
    return sum(bool(case.problems) for case in done), left_out
