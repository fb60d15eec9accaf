#!/usr/bin/env python3
"""What transformers computes for the small models of families.py, into tests/data/families/NAME.json: logits of a text, its loss, the losses
of some updates, and what is written greedily.

    golden_families.py [FOLDER]

Needs numpy, torch and transformers; tests/unit/test_families.c and tests/cli/families.sh check against the files without them.
"""
import json, os, sys
import torch
import transformers
import families

BATCH, SEQ, STEPS, LR, EPS, NEW = 2, 21, 5, 1e-3, 1e-6, 12
torch.set_num_threads(1)
transformers.logging.set_verbosity_error()


def loss_of(net, x, y):
    logits = net(input_ids=x).logits.float()
    return torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))


def golden(name):
    net = families.make(name)
    tokens = [3 + int(families.fraction(7000 + i) * (families.SIZES['vocab_size'] - 3)) for i in range(BATCH * SEQ + 1)]
    x, y = torch.tensor(tokens[:-1]).reshape(BATCH, SEQ), torch.tensor(tokens[1:]).reshape(BATCH, SEQ)
    config = json.loads(net.config.to_json_string())
    config['architectures'] = [type(net).__name__]
    tensors = {k: v for k, v in net.named_parameters()}
    result = {'config': config, 'tensors': [[k, list(tensors[k].shape), families.center(k, families.FAMILIES[name][0])] for k in sorted(tensors)],
              'tokens': tokens, 'seq': SEQ, 'lr': LR, 'eps': EPS}
    with torch.no_grad():
        result['logits'] = [[float(f'{v:.6g}') for v in row] for row in net(input_ids=x[:1]).logits[0].tolist()]
        if name != 'phi3-long':  # there transformers takes other divisors from token 17 on, in the midst of a text
            result['greedy'] = net.generate(x[:1, :9], max_new_tokens=NEW, do_sample=False, eos_token_id=None)[0, 9:].tolist()
    step = torch.optim.AdamW(net.train().parameters(), lr=LR, betas=(0.9, 0.999), eps=EPS, weight_decay=0)
    result['losses'] = []
    for _ in range(STEPS):
        loss = loss_of(net, x, y)
        step.zero_grad()
        loss.backward()
        step.step()
        result['losses'].append(float(f'{loss.item():.8g}'))
    return result


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), '../data/families')
    os.makedirs(folder, exist_ok=True)
    for name in families.FAMILIES:
        with open(f'{folder}/{name}.json', 'w') as f:
            text = json.dumps(golden(name), separators=(',', ':'))
            f.write(text.replace(',"tensors"', ',\n"tensors"').replace(',"tokens"', ',\n"tokens"').replace('],[', '],\n[') + '\n')


main()
