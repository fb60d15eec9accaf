#!/usr/bin/env python3
"""ONNX files that mixt writes beside onnx's checker and onnxruntime. Needs onnx, onnxruntime and NumPy.

    compare_onnx_export.py MIXT [MODEL…]

Trains small models, writes each as ONNX, and compares logarithms of onnxruntime's probabilities, of several numbers of
samples, with those of 'mixt predict'. Status 77 where a package is missing, 1 where one differs by more than 1e-5.
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
mixt = os.path.abspath(sys.argv[1])
work = tempfile.mkdtemp()
os.chdir(work)


def run(*words):
    done = subprocess.run([mixt, *words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"mixt {' '.join(words)}: status {done.returncode}\n{done.stderr}")
    return done.stdout


def compare(name, config):
    """The largest difference"""
    with open(f"{name}.yaml", "w") as f:
        f.write(config + "precision: fp32\ndevice: cpu\nthreads: 1\ntrain: {steps: 3, batch: 16, lr: 0.01}\n")
    run("train", f"{name}.yaml", f"out={name}", "-q")
    run("export", name, "--onnx", "--out", f"{name}.onnx")
    model = onnx.load(f"{name}.onnx")
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(f"{name}.onnx", providers=["CPUExecutionProvider"])
    rng, worst = np.random.default_rng(1), 0.0
    for count in (1, 7):
        x = rng.random((count, 16, 16, 3), dtype=np.float32)
        np.save("x.npy", x)
        rows = [json.loads(line) for line in run("predict", name, "x.npy", "--json", "--top", "5").splitlines()]
        mean, std = (np.array(json.loads(p.value), np.float32) for k in ("mixt.mean", "mixt.std") for p in model.metadata_props if p.key == k)
        got = session.run(None, {"input": np.ascontiguousarray(((x - mean) / std).transpose(0, 3, 1, 2))})[0].astype(float)
        got -= np.log(np.exp(got).sum(-1, keepdims=True))
        for row, y in zip(rows, got, strict=True):
            worst = max([worst] + [abs(math.log(c["probability"]) - y[c["class"]]) for c in row["top"]])
    return worst


rng = np.random.default_rng(0)
os.mkdir("images")
np.save("images/x.npy", rng.random((64, 16, 16, 3), dtype=np.float32))
np.save("images/y.npy", np.arange(64) % 5)
failed = False
for name, config in MODELS.items():
    if len(sys.argv) > 2 and name not in sys.argv[2:]:
        continue
    worst = compare(name, config)
    failed = failed or not worst <= 1e-5
    print(f"{name:20} largest difference {worst:.2g} {'ok' if worst <= 1e-5 else 'DIFFERS'}", flush=True)
sys.exit(failed)
