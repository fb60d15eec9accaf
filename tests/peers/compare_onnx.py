#!/usr/bin/env python3
"""ONNX files in mixt beside onnx's own node tests, onnxruntime and PyTorch. Needs onnx, onnxruntime, torch, torchvision.

    compare_onnx.py BUILD nodes [GLOB]     node tests of the onnx package: how many pass in FP32, and why others do not
    compare_onnx.py BUILD models [NAME…]   forward against onnxruntime, 20 updates of plain SGD against PyTorch
    compare_onnx.py BUILD files FILE…      forward of any file against onnxruntime, on random inputs

BUILD is a build folder with the target onnx_run. Status 77 where a package is missing, 1 where a model differs.
"""
import collections, fnmatch, glob, json, os, struct, subprocess, sys, tempfile

try:
    import numpy as np, onnx, onnxruntime
    from onnx import numpy_helper, helper
except ImportError as missing:
    print("SKIPPED:", missing)
    sys.exit(77)

OPS = """Add Sub Mul Div Neg Pow Sqrt Reciprocal Exp Log Erf Abs Max Min Clip Where Equal Less Greater Not Cast Relu LeakyRelu PRelu Elu Selu
Sigmoid Tanh Gelu HardSwish HardSigmoid Softplus Mish Softmax LogSoftmax MatMul Gemm Conv ConvTranspose Einsum Attention RotaryEmbedding MaxPool
AveragePool GlobalAveragePool GlobalMaxPool BatchNormalization LayerNormalization InstanceNormalization GroupNormalization RMSNormalization
ReduceMean ReduceSum ReduceMax ReduceMin ReduceL2 ArgMax CumSum Reshape Transpose Flatten Squeeze Unsqueeze Concat Split Slice Gather
GatherElements GatherND Expand Tile Pad Resize DepthToSpace SpaceToDepth Shape Range Constant ConstantOfShape Identity Trilu Dropout LSTM GRU RNN
QuantizeLinear DequantizeLinear""".split()
work = tempfile.mkdtemp()


class Runner:
    """onnx_run, asked case after case"""

    def __init__(self, build):
        self.program = os.path.join(build, "tests", "onnx_run")
        self.start()

    def start(self):
        self.process = subprocess.Popen([self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def forward(self, path, inputs):
        """The output as an array, or a text that says why there is none"""
        words, out = [path, os.path.join(work, "out.bin")], os.path.join(work, "out.bin")
        for i, x in enumerate(inputs):
            x = np.transpose(x, (0, 2, 3, 1)) if x.ndim == 4 else x # as mixt's pictures are
            kind, x = ("f", x.astype(np.float32)) if x.dtype.kind == "f" else ("i", x.astype(np.int32))
            x = np.ascontiguousarray(x)
            x.tofile(os.path.join(work, f"in{i}.bin"))
            words.append(f"{kind}:{'x'.join(map(str, x.shape))}:{work}/in{i}.bin")
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline().strip()
        if not line:
            self.start()
            return "crashed"
        if not line.startswith("ok"):
            return line[3:]
        dims = [int(d) for d in line[3:].split("x")] if line[3:] else []
        return np.fromfile(out, np.float32).reshape(dims)


# ---- node tests ----

def as_constants(model, inputs):
    """All inputs but the first of floats become initializers, as they are in models"""
    data, initializers = None, []
    for info, x in zip(list(model.graph.input), inputs):
        if data is None and x.dtype == np.float32 and 1 <= x.ndim <= 6 and x.size:
            data = (info, x)
        else:
            initializers.append(numpy_helper.from_array(x, info.name))
    del model.graph.input[:]
    if data:
        model.graph.input.append(data[0])
    model.graph.initializer.extend(initializers)
    return [data[1]] if data else []


def node_case(runner, folder):
    model = onnx.load(os.path.join(folder, "model.onnx"))
    ops = {n.op_type for n in model.graph.node}
    data = os.path.join(folder, "test_data_set_0")
    read = lambda kind, i: numpy_helper.to_array(onnx.load_tensor(os.path.join(data, f"{kind}_{i}.pb")))
    inputs = [read("input", i) for i in range(len(glob.glob(os.path.join(data, "input_*.pb"))))]
    expected = read("output", 0)
    given = [i for i in model.graph.input]
    if len(inputs) != len(given):
        return "an input that is left out"
    if any(x.dtype not in (np.float32, np.int64, np.int32, np.bool_) for x in inputs + [expected]):
        return None # not FP32
    fed = as_constants(model, inputs)
    path = os.path.join(work, "case.onnx")
    onnx.save(model, path)
    found = runner.forward(path, fed)
    if isinstance(found, str):
        return found.split("): ", 1)[-1][:110]
    if found.shape != expected.shape:
        return f"shape {found.shape}, expected {expected.shape}"
    if not np.allclose(found, expected.astype(np.float32), rtol=1e-3, atol=1e-5, equal_nan=True):
        return f"differs by {np.max(np.abs(found - expected)):.2g}"
    return True


def nodes(runner, pattern):
    root = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data", "node")
    passed, why, by_op = 0, collections.defaultdict(list), collections.Counter()
    for folder in sorted(glob.glob(os.path.join(root, "test_*"))):
        name = os.path.basename(folder)
        if not fnmatch.fnmatch(name, pattern) or name.endswith("_expanded") or "_expanded_" in name:
            continue
        try:
            ops = {n.op_type for n in onnx.load(os.path.join(folder, "model.onnx")).graph.node}
            if not ops & set(OPS):
                continue
            result = node_case(runner, folder)
        except Exception as error: # sequences, strings, optional inputs
            result = f"not of tensors: {error}"[:60]
        if result is True:
            passed += 1
        elif result is not None:
            why[result].append(name)
    failed = sum(map(len, why.values()))
    for reason, names in sorted(why.items(), key=lambda p: -len(p[1])):
        print(f"{len(names):4} {reason}: {' '.join(n[5:] for n in names[:6])}{' …' if len(names) > 6 else ''}")
    print(f"node tests: {passed} of {passed + failed} in FP32 pass (onnx {onnx.__version__})")


# ---- models ----

def export(net, example, path, **options):
    import torch, warnings
    warnings.simplefilter("ignore")
    axes = {"x": {0: "n"}}
    torch.onnx.export(net.eval(), example, path, dynamo=False, input_names=["x"], dynamic_axes=axes, opset_version=18,
                      training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False, **options)


def zoo():
    import torch, torch.nn as nn, torchvision.models as tv
    f, i = lambda *s: torch.randn(*s), lambda *s: torch.randint(0, 97, s)
    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.e, self.l, self.o = nn.Embedding(97, 24), nn.LSTM(24, 32, 2, batch_first=True), nn.Linear(32, 97)
        def forward(self, x):
            return self.o(self.l(self.e(x))[0])
    class Block(nn.Module):
        def __init__(self, n, heads, causal):
            super().__init__()
            self.n1, self.n2 = nn.LayerNorm(n), nn.LayerNorm(n)
            self.qkv, self.proj, self.up, self.down = nn.Linear(n, 3 * n), nn.Linear(n, n), nn.Linear(n, 4 * n), nn.Linear(4 * n, n)
            self.heads, self.causal = heads, causal
            self.register_buffer("mask", torch.tril(torch.ones(64, 64)).bool(), persistent=False)
        def forward(self, x):
            b, t, c = x.shape
            q, k, v = [p.view(b, t, self.heads, c // self.heads).transpose(1, 2) for p in self.qkv(self.n1(x)).split(c, 2)]
            s = q @ k.transpose(-2, -1) / (c // self.heads) ** 0.5
            if self.causal:
                s = s.masked_fill(~self.mask[:t, :t], float("-inf"))
            x = x + self.proj((s.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c))
            return x + self.down(torch.nn.functional.gelu(self.up(self.n2(x))))
    class Text(nn.Module):
        def __init__(self, causal, outputs):
            super().__init__()
            self.e, self.p = nn.Embedding(97, 48), nn.Parameter(torch.randn(1, 64, 48) * 0.02)
            self.h, self.n, self.o, self.causal = nn.ModuleList([Block(48, 4, causal) for _ in range(2)]), nn.LayerNorm(48), nn.Linear(48, outputs), causal
        def forward(self, x):
            x = self.e(x) + self.p[:, :x.shape[1]]
            for h in self.h:
                x = h(x)
            x = self.n(x)
            return self.o(x if self.causal else x.mean(1))
    mlp = nn.Sequential(nn.Flatten(), nn.Linear(48, 32), nn.ReLU(), nn.Linear(32, 10))
    vit = lambda: tv.VisionTransformer(image_size=32, patch_size=8, num_layers=2, num_heads=4, hidden_dim=48, mlp_dim=96, num_classes=10)
    unet = lambda: torch.nn.Sequential(nn.Conv2d(3, 8, 3, 1, 1), nn.ReLU(), nn.ConvTranspose2d(8, 8, 2, 2), nn.Conv2d(8, 4, 3, 2, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 10))
    picture = lambda s: (f(4, 3, s, s), "class", 10)
    return {
        "mlp": (lambda: mlp, (f(4, 3, 4, 4), "class", 10)),
        "resnet18": (lambda: tv.resnet18(num_classes=10), picture(64)),
        "resnet50": (lambda: tv.resnet50(num_classes=10), picture(64)),
        "vgg11": (lambda: tv.vgg11_bn(num_classes=10, dropout=0.0), picture(32)),
        "squeezenet": (lambda: tv.squeezenet1_1(num_classes=10, dropout=0.0), picture(64)),
        "mobilenet_v3": (lambda: tv.mobilenet_v3_small(num_classes=10, dropout=0.0), picture(64)),
        "efficientnet_b0": (lambda: tv.efficientnet_b0(num_classes=10, dropout=0.0, stochastic_depth_prob=0.0), picture(64)),
        "convnext_tiny": (lambda: tv.convnext_tiny(num_classes=10, stochastic_depth_prob=0.0), picture(64)),
        "densenet": (lambda: tv.DenseNet(8, (2, 2), 16, num_classes=10), picture(64)),
        "unet": (unet, picture(16)),
        "vit": (vit, picture(32)),
        "bert": (lambda: Text(False, 5), (i(4, 16), "class", 5)),
        "gpt2": (lambda: Text(True, 97), (i(4, 16), "tokens", 97)),
        "lstm": (Tagger, (i(4, 16), "tokens", 97)),
    }


def safetensors(path):
    with open(path, "rb") as f:
        size = struct.unpack("<Q", f.read(8))[0]
        head, body = json.loads(f.read(size)), f.read()
    return {n: np.frombuffer(body[t["data_offsets"][0]:t["data_offsets"][1]], np.float32).reshape(t["shape"])
            for n, t in head.items() if n != "__metadata__"}


def matches(name, ours, theirs):
    """Largest difference of a parameter, whichever order its dimensions have; None: it has other sizes"""
    if ours.ndim == 4 and theirs.ndim == 4:
        ours = ours.transpose(0, 3, 1, 2)
    if ours.shape != theirs.shape and ours.shape == theirs.T.shape:
        ours = ours.T
    return float(np.max(np.abs(ours - theirs))) if ours.shape == theirs.shape else None


def torch_losses(net, path, xs, ys, lr):
    """Of plain SGD from the weights beside the file, in the format of the net."""
    import torch
    net.load_state_dict(torch.load(path + ".pt"))
    dtype, optimizer, losses = next(net.parameters()).dtype, torch.optim.SGD(net.parameters(), lr=lr), []
    for x, y in zip(xs, ys):
        optimizer.zero_grad()
        scores = net(x if x.dtype == torch.int64 else x.to(dtype))
        loss = torch.nn.functional.cross_entropy(scores.reshape(-1, scores.shape[-1]), y.reshape(-1))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def train_both(build, name, make, path, shape, kind, count, steps=20, lr=0.001):
    import torch
    torch.manual_seed(1)
    net = make().train()
    net.load_state_dict(torch.load(path + ".pt"))
    whole = shape.dtype == torch.int64
    xs = [torch.randint(0, 97, shape.shape) if whole else torch.randn(shape.shape) for _ in range(steps)]
    outputs = net.eval()(xs[0]).shape
    net.train()
    ys = [torch.randint(0, outputs[-1], outputs[:-1]) for _ in range(steps)]
    flat = [(x.permute(0, 2, 3, 1) if x.ndim == 4 else x).contiguous().numpy() for x in xs]
    np.concatenate([x.astype(np.int32 if whole else np.float32) for x in flat]).tofile(work + "/x.bin")
    np.concatenate([y.numpy().astype(np.int32) for y in ys]).tofile(work + "/y.bin")
    dims = "x".join(map(str, flat[0].shape))
    run = subprocess.run([os.path.join(build, "tests", "onnx_run"), "train", path, work + "/x.bin", ("i:" if whole else "f:") + dims,
                          work + "/y.bin", f"{kind}:{count if kind == 'tokens' else outputs[-1]}", str(steps), str(lr), work], capture_output=True, text=True)
    if run.returncode:
        return "not trained: " + run.stderr.strip()[-200:]
    losses = [float(l) for l in run.stdout.split()]
    exact = torch_losses(make().double().train(), path, xs, ys, lr)
    found = torch_losses(net, path, xs, ys, lr)
    away = lambda a, b: max(abs(x - y) / max(1, abs(y)) for x, y in zip(a, b))
    worst, own = away(losses, found), away(found, exact)
    theirs, weights, unknown = dict(net.named_parameters()), safetensors(work + "/weights.safetensors"), 0
    ours = {n: w for n, w in weights.items() if n in theirs}
    moved = [matches(n, w, theirs[n].detach().numpy()) for n, w in ours.items()]
    return worst, own, max([m for m in moved if m is not None], default=0.0), len(ours), len(theirs)


def models(runner, build, names):
    import torch
    bad = 0
    for name, (make, (example, kind, count)) in zoo().items():
        if names and name not in names:
            continue
        torch.manual_seed(0)
        net, path = make(), os.path.join(work, name + ".onnx")
        torch.save(net.state_dict(), path + ".pt")
        try:
            export(net, example, path)
        except Exception as error: # torch's own exporter
            print(f"{name:16} no file: {str(error).splitlines()[0][:150]}", flush=True)
            continue
        expected = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": example.numpy()})[0]
        found = runner.forward(path, [example.numpy()])
        if isinstance(found, str):
            print(f"{name:16} no: {found}", flush=True)
            bad += 1
            continue
        forward = float(np.max(np.abs(found - expected))) / max(1.0, float(np.max(np.abs(expected))))
        trained = train_both(build, name, make, path, example, kind, count)
        # nets in which differences grow differ as much as PyTorch's own formats do
        bad += forward > 1e-5 or isinstance(trained, str) or trained[0] > max(1e-5, 4 * trained[1])
        text = trained if isinstance(trained, str) else ("20 updates: losses within %.2g (PyTorch's FP32 within %.2g of its FP64), "
                                                         "weights within %.2g (%d of %d by name)" % trained)
        print(f"{name:16} forward within {forward:.2g}; {text}", flush=True)
    return bad


def files(runner, paths):
    for path in paths:
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        rng, feed = np.random.default_rng(0), {}
        for i in session.get_inputs():
            dims = [d if isinstance(d, int) and d > 0 else 2 if k == 0 else 16 for k, d in enumerate(i.shape)]
            feed[i.name] = rng.standard_normal(dims).astype(np.float32) if "float" in i.type else rng.integers(0, 9, dims).astype(np.int64)
        expected = session.run(None, feed)[0]
        found = runner.forward(path, list(feed.values()))
        print(path, found if isinstance(found, str) else f"within {np.max(np.abs(found - expected)):.2g} of {np.max(np.abs(expected)):.3g}")


def main():
    build, what, rest = sys.argv[1], sys.argv[2], sys.argv[3:]
    runner = Runner(build)
    if what == "nodes":
        nodes(runner, rest[0] if rest else "*")
    elif what == "files":
        files(runner, rest)
    else:
        sys.exit(models(runner, build, rest) > 0)


main()
