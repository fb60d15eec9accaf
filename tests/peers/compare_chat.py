#!/usr/bin/env python3
"""Which tokens of conversations are trained: mixt next to TRL and to renderings of prefixes by Jinja.

    compare_chat.py build/tests/chat DATA      (DATA: the folder with chat, chat_templates and tokenizers)

With each tokenizer and each template:
- prompt and completion, as texts and as conversations: tokens and labels are those of TRL's SFTTrainer.
- conversations: an answer is what lies between the rendering of the messages before it, with the generation prompt, and
  that of the messages up to it, wherever both are prefixes of the whole; an empty block of thoughts that the template
  writes itself where enable_thinking is false is not the answer's. Other answers are counted, and at least their text is
  trained, and no text of another message.
Needs the packages transformers, trl, torch and datasets, else nothing is done (exit status 77).
"""
import gzip, importlib.util, json, logging, os, shutil, subprocess, sys, tempfile

missing = [name for name in ('transformers', 'trl', 'torch', 'datasets') if not importlib.util.find_spec(name)]
if missing:
    print('left out, all of it: not installed:', ', '.join(missing))
    sys.exit(77)
os.environ['HF_HUB_OFFLINE'] = '1'
import datasets, torch, transformers, trl

torch.set_num_threads(1)
datasets.disable_progress_bars()
transformers.logging.set_verbosity_error()
logging.getLogger('trl').setLevel(logging.ERROR)


def make_folder(data, tokenizer, template, folder):
    os.makedirs(folder)
    with gzip.open(f'{data}/tokenizers/{tokenizer}/tokenizer.json.gz') as f, open(folder + '/tokenizer.json', 'wb') as to:
        to.write(f.read())
    shutil.copy(f'{data}/chat_templates/{template}.jinja', folder + '/chat_template.jinja')
    known = json.load(open(f'{data}/chat_templates/{template}.json'))[0]
    end = '<|im_end|>' if tokenizer == 'qwen2' else '<|endoftext|>'  # one that the vocabulary has
    config = {'tokenizer_class': 'PreTrainedTokenizerFast', 'eos_token': end, 'pad_token': '<|endoftext|>'}
    if known['bos_token']:
        config['bos_token'] = known['bos_token'] if tokenizer == 'phi-3' and known['bos_token'] == '<s>' else '<|endoftext|>'
    json.dump(config, open(folder + '/tokenizer_config.json', 'w'))


def mixt(program, rows, folder, loss_on='assistant'):
    with open(folder + '/rows.jsonl', 'w') as f:
        for row in rows:
            f.write(json.dumps(row) + '\n')
    run = subprocess.run([program, folder + '/rows.jsonl', folder, loss_on, '100000'], capture_output=True, text=True)
    if run.returncode:
        return run.stderr.strip()
    return {s['line'] - 1: s for s in map(json.loads, run.stdout.splitlines())}


def labels_of_trl(tokenizer, rows):
    """Token ids and labels of each row as SFTTrainer prepares them."""
    config = transformers.LlamaConfig(vocab_size=len(tokenizer), hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1)
    with tempfile.TemporaryDirectory() as out:
        a = trl.SFTConfig(output_dir=out, max_length=None, report_to=[], use_cpu=True, bf16=False, dataset_num_proc=None)
        trainer = trl.SFTTrainer(transformers.LlamaForCausalLM(config), args=a, train_dataset=datasets.Dataset.from_list(rows), processing_class=tokenizer)
        return [(r['input_ids'], r['labels']) for r in trainer.train_dataset]


def common(a, b):
    n = 0
    while n < len(a) and n < len(b) and a[n] == b[n]:
        n += 1
    return n


class Reference:
    def __init__(self, tokenizer):
        self.t = tokenizer

    def text(self, messages, prompt=False, **more):
        try:
            return self.t.apply_chat_template(messages, tokenize=False, add_generation_prompt=prompt, **more)
        except Exception:
            return None

    def ids(self, text):
        return self.t(text, add_special_tokens=False)['input_ids']

    def spans(self, messages, whole):
        """(begin, end) in the text of each answer whose renderings are prefixes; None where they are not."""
        for i, m in enumerate(messages):
            if m['role'] != 'assistant':
                continue
            before, upto = self.text(messages[:i], True) if i else None, self.text(messages[:i + 1])
            if before is None or upto is None or not whole.startswith(upto) or not upto.startswith(before):
                yield m, None
                continue
            quiet = self.text(messages[:i], True, enable_thinking=False)
            block = quiet[len(before):].strip() if quiet and quiet.startswith(before) else ''
            inserted = block and upto.startswith(quiet) and block not in m['content']
            yield m, (len(quiet) if inserted else len(before), len(upto))


def check_conversations(program, reference, rows, folder, counts):
    taken = [row for row in rows if reference.text(row['messages']) is not None]
    for row in rows:
        if row not in taken:
            counts['refused'] += 1
            refusal = mixt(program, [row], folder)
            assert isinstance(refusal, str) and 'line 1' in refusal, (folder, row, refusal)
    samples = mixt(program, taken, folder)
    if isinstance(samples, str):  # one row that mixt refuses: each alone
        each = [mixt(program, [row], folder) for row in taken]
        samples = {i: one.get(0) for i, one in enumerate(each) if isinstance(one, dict)}
        counts['refused by mixt'] += len(taken) - len(samples)
        print([one for one in each if isinstance(one, str)])
        taken = [row for i, row in enumerate(taken) if i in samples]
        samples = dict(enumerate(samples.values()))
    for number, row in enumerate(taken):
        messages = row['messages']
        whole = reference.text(messages)
        ids = reference.ids(whole)
        got = [samples.get(number) or {'tokens': ids, 'trained': [0] * len(ids)}]
        assert got[0]['tokens'] == ids, (folder, whole, got[0]['tokens'], ids)
        spans = list(reference.spans(messages, whole))
        wanted = [0] * len(ids)
        for message, span in spans:
            if span:
                for k in range(common(reference.ids(whole[:span[0]]), ids), common(reference.ids(whole[:span[1]]), ids)):
                    wanted[k] = k > 0
        if all(span for _, span in spans):
            counts['equal'] += len(spans)
            assert got[0]['trained'] == wanted, (folder, whole, [reference.t.decode([i]) for i, w, g in zip(ids, wanted, got[0]['trained']) if w != g])
            continue
        counts['by content'] += sum(1 for _, span in spans if not span)
        trained = [reference.t.decode([i for i, g in zip(ids, got[0]['trained']) if g])]
        assert all(g >= w for g, w in zip(got[0]['trained'], wanted)), (folder, whole)
        for m in messages:
            text = m['content'].split('</think>')[-1].strip()
            if m['role'] == 'assistant' and text and text in whole:
                assert text[1:-1] in trained[0], (folder, text, trained)  # a token may cross its ends where markers are plain text
            if m['role'] == 'user' and len(text) > 12:
                assert text not in trained[0], (folder, text, trained)


def check_completions(program, tokenizer, rows, folder, counts, kind):
    wanted, got = labels_of_trl(tokenizer, rows), mixt(program, rows, folder)
    assert not isinstance(got, str), (folder, got)
    for i, (ids, labels) in enumerate(wanted):
        trained = [int(l != -100 and k > 0) for k, l in enumerate(labels)]
        assert sum(trained) == 0 or got[i]['tokens'] == ids, (folder, rows[i], ids, got[i]['tokens'])
        assert sum(trained) == 0 or got[i]['trained'] == trained, (folder, rows[i])
        counts[kind] += 1


def main():
    program, data = os.path.abspath(sys.argv[1]), sys.argv[2]
    templates = sorted(f[:-6] for f in os.listdir(data + '/chat_templates') if f.endswith('.jinja'))
    sgd = [json.loads(line) for line in open(data + '/chat/sgd_messages.jsonl')][:3]
    texts = [json.loads(line) for line in open(data + '/chat/gsm8k_test.jsonl')][:20]
    texts += [{'prompt': 'a  ', 'completion': '  b'}, {'prompt': 'Natur', 'completion': 'al'}, {'prompt': 'x', 'completion': 'y<|endoftext|>'}]
    counts = dict.fromkeys(('equal', 'by content', 'refused', 'refused by mixt', 'texts', 'conversations of prompt and completion'), 0)
    for name in ('qwen2', 'phi-3'):
        for n, template in enumerate(templates):
            with tempfile.TemporaryDirectory() as work:
                folder = f'{work}/{template}'
                make_folder(data, name, template, folder)
                tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(folder)
                reference = Reference(tokenizer)
                rows = [{'messages': r['messages']} for r in json.load(open(f'{data}/chat_templates/{template}.json'))
                        if any(m['role'] == 'assistant' for m in r['messages'])]
                check_conversations(program, reference, rows + sgd, folder, counts)
                pairs = [{'prompt': r['messages'][:k], 'completion': r['messages'][k:]} for r in rows + sgd
                         for k in range(1, len(r['messages'])) if r['messages'][k]['role'] == 'assistant'
                         and reference.text(r['messages']) is not None and reference.text(r['messages'][:k], True) is not None]
                if pairs:
                    check_completions(program, tokenizer, pairs, folder, counts, 'conversations of prompt and completion')
                if not n:
                    check_completions(program, tokenizer, texts, folder, counts, 'texts')
                print(name, template, counts, flush=True)


main()
