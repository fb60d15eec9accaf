#!/usr/bin/env python3
"""Folders of Hugging Face models whose weights a formula gives, from a file of tests/data/families. Needs no packages.

    hf_folder.py GOLDEN.json FOLDER

writes config.json, model.safetensors and text.bin (its tokens, two bytes each), and beside the folder what is expected, as text: FOLDER.losses,
FOLDER.greedy (empty: not known), FOLDER.prompt, FOLDER.train (keys).
"""
import array, json, os, struct, sys


def fraction(i):
    """A number in [0, 1) for each whole number"""
    i = (i * 2654435761 + 12345) & 0xffffffff
    i ^= i >> 15
    i = (i * 2246822519) & 0xffffffff
    i ^= i >> 13
    return i / 4294967296


def value(tensor, element, dims, around_zero):
    """Weight number `element` of tensor number `tensor` in the order of names"""
    u = fraction(tensor * 1000003 + element) - 0.5
    return u * 3.4 / dims[-1] ** 0.5 if len(dims) > 1 else 0.6 * u + (0 if around_zero else 1)


def main():
    with open(sys.argv[1]) as f:
        golden = json.load(f)
    folder = sys.argv[2]
    os.makedirs(folder)
    header, bodies, at = {'__metadata__': {'format': 'pt'}}, [], 0
    for number, (name, dims, around_zero) in enumerate(golden['tensors']):
        count = 1
        for d in dims:
            count *= d
        body = array.array('f', (value(number, i, dims, around_zero) for i in range(count))).tobytes()
        header[name] = {'dtype': 'F32', 'shape': dims, 'data_offsets': [at, at + len(body)]}
        bodies.append(body)
        at += len(body)
    text = json.dumps(header).encode()
    with open(folder + '/model.safetensors', 'wb') as f:
        f.write(struct.pack('<Q', len(text)) + text + b''.join(bodies))
    with open(folder + '/config.json', 'w') as f:
        json.dump(golden['config'], f)
    with open(folder + '/text.bin', 'wb') as f:
        f.write(array.array('H', golden['tokens']).tobytes())
    texts = {'losses': golden['losses'], 'greedy': golden.get('greedy', []), 'prompt': [','.join(map(str, golden['tokens'][:9]))],
             'train': [f'data.seq={golden["seq"]}', f'train.lr={golden["lr"]}', f'train.eps={golden["eps"]}']}
    for name, lines in texts.items():
        with open(f'{folder}.{name}', 'w') as f:
            f.writelines(f'{line}\n' for line in lines)


if __name__ == '__main__':
    main()
