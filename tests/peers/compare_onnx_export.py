#!/usr/bin/env python3
"""ONNX files that mixt writes beside onnx's checker and onnxruntime. Needs onnx, onnxruntime and NumPy.

    compare_onnx_export.py MIXT PROGRAMS [MODEL…]

Trains small models, writes each as ONNX, and compares outputs of onnxruntime, of several numbers of samples, with mixt's:
logarithms of probabilities with those of 'mixt predict', or outputs with those of PROGRAMS/logits and
PROGRAMS/outputs. Status 77 where a package is missing, 1 where one differs by more than 1e-5.
"""
import json, math, os, subprocess, sys, tempfile

try:
    import numpy as np, onnx, onnxruntime
except ImportError as missing:
    print("SKIPPED:", missing)
    sys.exit(77)

IMAGES = "data: {path: images}\n"
MODELS = {
    "mlp": "model: mlp\nnet: {hidden: [32, 16]}\n" + IMAGES,
    "mlp-batch-norm": "model: mlp\nnet: {hidden: [32, 16], norm: batch}\n" + IMAGES,
    "convnet": "model: convnet\nnet: {channels: [4, 8]}\n" + IMAGES,
    "convnet-batch-norm": "model: convnet\nnet: {channels: [4, 8], norm: batch}\n" + IMAGES,
    "resnet18": "model: resnet\nnet: {depth: 18, width: 8}\n" + IMAGES,
    "resnet50": "model: resnet\nnet: {depth: 50, width: 8}\n" + IMAGES,
    "resnet20-pad": "model: resnet\nnet: {depth: 20, width: 8, shortcut: pad}\n" + IMAGES,
}
TEXT = "data: {kind: text, path: words.txt, seq: 16}\n"
LANGUAGE = { # and their sizes for the other program
    "gpt": ("model: gpt\nnet: {layers: 2, width: 16, heads: 2}\n" + TEXT, "layers=2 width=16 heads=2 vocab=256 seq=1024"),
    "llama": ("model: llama\nnet: {layers: 2, width: 32, heads: 4, kv_heads: 2}\n" + TEXT, "layers=2 width=32 heads=4 kv_heads=2 vocab=256"),
    "lstm": ("model: lstm\nnet: {layers: 2, width: 24}\n" + TEXT, "layers=2 width=24 vocab=256"),
    "gru": ("model: gru\nnet: {layers: 2, width: 24}\n" + TEXT, "layers=2 width=24 vocab=256"),
    "rnn": ("model: rnn\nnet: {layers: 2, width: 24}\n" + TEXT, "layers=2 width=24 vocab=256"),
    "bert_mlm": ("model: bert_mlm\nnet: {layers: 2, width: 16, heads: 2}\n" + TEXT, "layers=2 width=16 heads=2 vocab=256 seq=512"),
}
FAMILIES = {name: f"model: {name}\nnet: {{layers: 2, width: 32, heads: 4, kv_heads: 2}}\n" + TEXT
            for name in "mistral qwen2 qwen3 phi3 smollm3 gemma2 gemma3 olmo2".split()}
FAMILIES["bert"] = "model: bert\nnet: {layers: 2, width: 32, heads: 4}\n" + TEXT
FAMILIES["vgg"] = "model: vgg\nnet: {depth: 11, hidden: [32]}\ndata: {kind: random, path: 32x32x3, classes: 5, samples: 32}\n"
LABELLED = "model: bert_classify\nnet: {layers: 2, width: 16, heads: 2%s}\ndata: {kind: labelled, path: rows.tsv, tokenizer: wordpiece, vocab: vocab, seq: 16}\n"
CLASSIFIERS = {"bert_classify": LABELLED % "", "bert_classify-mean": LABELLED % ", pool: mean"}
mixt, programs = (os.path.abspath(p) for p in sys.argv[1:3])
configs = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../configs"))
OWN = {"mf": 20, "ncf": 20, "seq2seq": 100, "pair": 60, "c3d": 1, "speech": 1, "speech-ctc": 1} # a configuration of the project, and ids below
work = tempfile.mkdtemp()
os.chdir(work)


def run(*words):
    done = subprocess.run([mixt, *words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"mixt {' '.join(words)}: status {done.returncode}\n{done.stderr}")
    return done.stdout


def written(name, config, steps=3):
    """A run of a small model, as a session of onnxruntime and its metadata"""
    with open(f"{name}.yaml", "w") as f:
        f.write(config + "precision: fp32\ndevice: cpu\nthreads: 1\ntrain: {steps: %d, batch: 16, lr: 0.01}\n" % steps)
    run("train", f"{name}.yaml", f"out={name}", "-q")
    run("export", name, "--onnx", "--out", f"{name}.onnx")
    model = onnx.load(f"{name}.onnx")
    onnx.checker.check_model(model, full_check=True)
    return onnxruntime.InferenceSession(f"{name}.onnx", providers=["CPUExecutionProvider"]), {p.key: p.value for p in model.metadata_props}


def from_predicted(name, words, got):
    """The largest difference of the logarithms of probabilities"""
    rows = [json.loads(line) for line in run("predict", name, *words, "--json", "--top", str(got.shape[-1])).splitlines()]
    got = got.astype(float)
    got -= np.log(np.exp(got).sum(-1, keepdims=True))
    return max(abs(math.log(c["probability"]) - y[c["class"]]) for row, y in zip(rows, got, strict=True) for c in row["top"])


def images(name):
    session, meta = written(name, MODELS[name])
    mean, std = (np.array(json.loads(meta[k]), np.float32) for k in ("mixt.mean", "mixt.std"))
    rng, worst = np.random.default_rng(1), 0.0
    for count in (1, 7):
        x = rng.random((count, 16, 16, 3), dtype=np.float32)
        np.save("x.npy", x)
        got = session.run(None, {"input": np.ascontiguousarray(((x - mean) / std).transpose(0, 3, 1, 2))})[0]
        worst = max(worst, from_predicted(name, ["x.npy"], got))
    return worst


def tokens(name):
    config, sizes = LANGUAGE[name]
    session, _ = written(name, config)
    rng, worst = np.random.default_rng(1), 0.0
    for count in (1, 5):
        x = rng.integers(0, 256, (count, 16)).astype(np.int32)
        x.tofile("in.bin")
        subprocess.run([f"{programs}/logits", name, "fp32", "cpu", f"{name}/model.safetensors", "in.bin", "out.bin", str(count), "16", *sizes.split()],
                       check=True, stdout=subprocess.DEVNULL)
        got = session.run(None, {"input": x.astype(np.int64)})[0]
        expected = np.fromfile("out.bin", np.float32).reshape(got.shape)
        worst = max(worst, float(np.abs(got - expected).max()))
    return worst


def texts(name):
    """Texts of several lengths in one batch"""
    session, _ = written(name, CLASSIFIERS[name], steps=60) # so many that scores depend on the text
    vocabulary = open("vocab/vocab.txt").read().split()
    lines = ["the quick fox", "the fox jumps jumps jumps the", "quick", "slow fox jumps the quick fox the"]
    with open("lines.txt", "w") as f:
        f.write("\n".join(lines) + "\n")
    ids = [[2] + [vocabulary.index(w) for w in line.split()] + [3] for line in lines]
    places = session.get_inputs()[0].shape[1] # as many as the longest text of the data has
    x = np.array([i + [0] * (places - len(i)) for i in ids], np.int64)
    lengths = np.array([len(i) for i in ids], np.int64)
    given = {"length": lengths, "mask": (np.arange(places) < lengths[:, None]).astype(np.float32)}
    feed = {i.name: given.get(i.name.rsplit(".", 1)[-1], x) for i in session.get_inputs()}
    got = session.run(None, feed)[0]
    assert np.ptp(got[:, 0]) > 0.1, got
    assert np.abs(session.run(None, feed | {n: np.full_like(v, places) for n, v in feed.items() if n.endswith(".length")})[0] - got).max() > 1e-4
    return from_predicted(name, ["lines.txt"], got)


def own(name):
    """A configuration of the project, or a small one, on made-up samples of all its inputs"""
    if name in FAMILIES:
        text = FAMILIES[name]
    else:
        with open(f"{configs}/{name}.yaml") as f:
            text = f.read()
    with open(f"own-{name}.yaml", "w") as f:
        f.write(text)
    run("train", f"own-{name}.yaml", f"out=own-{name}", "-q", "precision=fp32", "device=cpu", "train.steps=2", "train.batch=4", "train.warmup=0")
    run("export", f"own-{name}", "--onnx", "--out", f"own-{name}.onnx")
    onnx.checker.check_model(onnx.load(f"own-{name}.onnx"), full_check=True)
    session, worst = onnxruntime.InferenceSession(f"own-{name}.onnx", providers=["CPUExecutionProvider"]), 0.0
    for count in (1, 5):
        subprocess.run([f"{programs}/outputs", f"own-{name}", str(count), str(OWN.get(name, 256)), "."], check=True)
        feed = {}
        for i in session.get_inputs():
            shape = [count] + i.shape[1:]
            if i.type == "tensor(int64)":
                feed[i.name] = np.fromfile(f"{i.name}.bin", np.int32).reshape(shape).astype(np.int64)
                continue
            x = np.fromfile(f"{i.name}.bin", np.float32)
            if len(shape) > 3: # channels in front
                x = np.moveaxis(x.reshape([count] + shape[2:] + shape[1:2]), -1, 1)
            feed[i.name] = np.ascontiguousarray(x.reshape(shape))
        got = session.run(None, feed)[0]
        expected = np.fromfile("outputs.bin", np.float32).reshape(got.shape)
        assert count == 1 or np.ptp(expected, axis=0).max() > 1e-3 * np.abs(expected).max(), "samples with one output"
        worst = max(worst, float(np.abs(got - expected).max() / max(1, np.abs(expected).max())))
    return worst


with open("words.txt", "w") as f:
    f.writelines(f"the quick brown fox {i}\n" for i in range(400))
os.mkdir("vocab")
with open("vocab/vocab.txt", "w") as f:
    f.write("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nquick\nslow\nfox\njumps\n")
with open("rows.tsv", "w") as f:
    f.write("sentence\tlabel\n")
    f.writelines(f"the {'quick' if i % 2 else 'slow'} fox {'jumps ' * (i % 5)}\t{i % 2}\n" for i in range(60))
rng = np.random.default_rng(0)
os.mkdir("images")
np.save("images/x.npy", rng.random((64, 16, 16, 3), dtype=np.float32))
np.save("images/y.npy", np.arange(64) % 5)
failed = False
for compare, names in ((images, MODELS), (tokens, LANGUAGE), (texts, CLASSIFIERS), (own, [*OWN, *FAMILIES])):
    for name in names:
        if len(sys.argv) > 3 and name not in sys.argv[3:]:
            continue
        worst = compare(name)
        failed = failed or not worst <= 1e-5
        print(f"{name:20} largest difference {worst:.2g} {'ok' if worst <= 1e-5 else 'DIFFERS'}", flush=True)
sys.exit(failed)
