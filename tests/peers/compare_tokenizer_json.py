#!/usr/bin/env python3
"""Tokens of mixt and of Hugging Face's tokenizers from the same tokenizer.json.

    compare_tokenizer_json.py MIXT [--texts 1000] [--seed 1] [TEXT_FILE ...]     (default files: README.md, docs/*.md)

MIXT is build/mixt. Trains small tokenizers on the files: Llama 2's kind (byte-pair encoding over characters, bytes to fall back to,
blanks as U+2581, by a normalizer and by Metaspace), Llama 3's (over bytes, its rule), GPT-2's (over bytes, its rule). Random texts of
words, digits, blanks, line ends, letters of many scripts and emoji must have the same ids, without special tokens, and decode to the
text. Needs the packages tokenizers and numpy, else nothing is done (exit status 77).
"""
import argparse, glob, importlib.util, json, os, random, subprocess, sys, tempfile

missing = [name for name in ('tokenizers', 'numpy') if not importlib.util.find_spec(name)]
if missing:
    print('left out, all of it: not installed:', ', '.join(missing))
    sys.exit(77)
import numpy as np
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def sentence(text, metaspace):
    t = Tokenizer(models.BPE(byte_fallback=True, unk_token='<unk>', fuse_unk=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend('▁'), normalizers.Replace(' ', '▁')])
    special = ['<unk>', '<s>', '</s>'] + ['<0x%02X>' % i for i in range(256)]
    words = [w for line in text for w in line.split()]
    t.train_from_iterator(words, trainers.BpeTrainer(vocab_size=1200, special_tokens=special, show_progress=False))
    j = json.loads(t.to_str())
    j['added_tokens'] = [a for a in j['added_tokens'] if a['id'] < 3]
    if metaspace:
        j['normalizer'] = None
        j['pre_tokenizer'] = {'type': 'Metaspace', 'replacement': '▁', 'prepend_scheme': 'first', 'split': False}
    return j


def over_bytes(text, rule):
    t = Tokenizer(models.BPE(ignore_merges=rule is not None))
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=rule is None)
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(rule), 'isolated', False), level]) if rule else level
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(text, trainers.BpeTrainer(vocab_size=1000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    t.add_special_tokens(['<|begin_of_text|>', '<|end_of_text|>'])
    return json.loads(t.to_str())


def random_text(draw, words):
    parts = []
    for _ in range(draw.randint(1, 30)):
        kind = draw.randint(0, 9)
        parts.append(draw.choice(words) if kind < 4 else ' ' * draw.randint(1, 4) if kind < 6 else
                     draw.choice(['\n', '\r\n', '\n\n', '\t', ' \n', "'s", "'LL", "'Re", '...', '!\n', '\u00a0', '\u2003', "'ſ"]) if kind < 7 else
                     str(draw.randint(0, 10 ** draw.randint(1, 9))) if kind < 8 else
                     ''.join(chr(draw.choice([0xe4, 0x3b1, 0x416, 0x5d0, 0x4e2d, 0x1f600, 0x661, 0xbd, 0x301, 0x20ac]) + draw.randint(0, 9))
                             for _ in range(draw.randint(1, 5))) if kind < 9 else chr(draw.randint(33, 126)))
    return ''.join(parts)


def main():
    a = argparse.ArgumentParser()
    a.add_argument('mixt')
    a.add_argument('files', nargs='*')
    a.add_argument('--texts', type=int, default=1000)
    a.add_argument('--seed', type=int, default=1)
    a = a.parse_args()
    text = [line for f in a.files or ['README.md', *sorted(glob.glob('docs/*.md'))] for line in open(f, encoding='utf-8')]
    words = [w for line in text for w in line.split()]
    draw = random.Random(a.seed)
    texts = [random_text(draw, words) for _ in range(a.texts)]
    failed = 0
    for name, j in {'llama 2': sentence(text, False), 'llama 2, metaspace': sentence(text, True), 'llama 3': over_bytes(text, LLAMA3),
                    'gpt-2': over_bytes(text, None)}.items():
        with tempfile.TemporaryDirectory() as folder:
            open(f'{folder}/tokenizer.json', 'w', encoding='utf-8').write(json.dumps(j, ensure_ascii=False))
            theirs = Tokenizer.from_file(f'{folder}/tokenizer.json')
            for i, t in enumerate(texts + [''.join(texts)]):
                open(f'{folder}/{i}.txt', 'w', encoding='utf-8', newline='').write(t)
                ids = theirs.encode(t, add_special_tokens=False).ids
                out = subprocess.run([a.mixt, 'tokenize', f'{folder}/{i}.txt', '--vocab', folder, '--out', f'{folder}/{i}.tokens'], capture_output=True, text=True)
                assert out.returncode == 0, out.stderr
                back = subprocess.run([a.mixt, 'tokenize', '--decode', f'{folder}/{i}.tokens', '--vocab', folder, '--out', f'{folder}/back.txt', '--overwrite'],
                                      capture_output=True, text=True)
                mine = np.fromfile(f'{folder}/{i}.tokens', np.uint8)[-2 * len(ids):].view(np.uint16).tolist() if ids else []
                decoded = open(f'{folder}/back.txt', encoding='utf-8', newline='').read() if back.returncode == 0 else back.stderr
                if mine != ids or decoded != t:
                    failed += 1
                    if failed < 6:
                        print(f'{name}: {t!r}: {mine} here, {ids} there; decoded {decoded!r}')
                for f in (f'{folder}/{i}.txt', f'{folder}/{i}.tokens'):
                    os.remove(f)
            print(f'{name}: {len(texts) + 1} texts', flush=True)
    print('all the same' if not failed else f'{failed} FAILED')
    sys.exit(1 if failed else 0)


main()
