#!/usr/bin/env python3
"""The Python package next to what it works with: mypy, scikit-learn, PyTorch, pandas; what is not installed is left out.
Usage: compare_python.py PACKAGE-FOLDER (build/python)"""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings

package = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(package))
root = pathlib.Path(__file__).resolve().parent.parent.parent
if importlib.util.find_spec("numpy") is None:
    print("SKIPPED: no NumPy")
    sys.exit(77)
import numpy as np  # noqa: E402

import mixt  # noqa: E402

done, left_out = [], []
warnings.simplefilter("ignore")


def there(*modules):
    missing = [m for m in modules if importlib.util.find_spec(m) is None]
    left_out.extend(missing)
    return not missing


# ---- types: the package is strict, and code that misspells an option is found before it runs ----
if there("mypy"):
    with tempfile.TemporaryDirectory() as folder:
        run = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", folder]
        strict = subprocess.run(run + ["-p", "mixt"], cwd=package, capture_output=True, text=True)
        assert strict.returncode == 0, strict.stdout
        good = pathlib.Path(folder, "good.py")
        good.write_text(
            "import mixt\nt = mixt.Trainer(mixt.Model(lambda b, x: b.linear('fc', x, 3)), precision='bf16', lr=0.1)\n"
            "loss: float = t.step([[1.0]], [0]).loss\nverdict: str = mixt.verify('c.yaml', seeds=6).info.safe\n"
        )
        bad = pathlib.Path(folder, "bad.py")
        bad.write_text(
            "import mixt\nt = mixt.Trainer(mixt.Model(lambda b, x: b.linear('fc', x, 3)), precison='bf16')\n"
        )
        env = {**os.environ, "MYPYPATH": str(package)}
        for path, status in ((good, 0), (bad, 1)):
            checked = subprocess.run(run + [str(path)], cwd=folder, env=env, capture_output=True, text=True)
            assert checked.returncode == status, checked.stdout
        assert "precison" in checked.stdout, checked.stdout
    done.append("mypy --strict")

# ---- scikit-learn: all its checks, pipelines, cross-validation, grids ----
if there("sklearn"):
    from sklearn.datasets import load_iris
    from sklearn.model_selection import GridSearchCV, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures
    from sklearn.utils.estimator_checks import check_estimator

    for estimator in (mixt.Classifier(threads=1), mixt.Regressor(threads=1)):
        found = check_estimator(estimator, on_fail=None)
        failed = [(r["check_name"], r["exception"]) for r in found if r["status"] == "failed"]
        assert len(found) > 40 and not failed, failed
        done.append(f"{sum(r['status'] == 'passed' for r in found)} checks of {type(estimator).__name__}")
    X, y = load_iris(return_X_y=True)
    flowers = make_pipeline(PolynomialFeatures(2), mixt.Classifier(epochs=40, threads=1))
    scores = cross_val_score(flowers, X, y, cv=3)
    assert scores.mean() > 0.9, scores
    grid = GridSearchCV(mixt.Classifier(epochs=20, threads=1), {"lr": [1e-3, 1e-2]}, cv=2).fit(X, y)
    assert grid.best_score_ > 0.8
    done.append("cross-validation, pipeline, grid")

# ---- PyTorch: the same memory both ways ----
if there("torch"):
    import torch

    import mixt.trainer as inside

    net = mixt.Model(lambda b, x: b.linear("fc", b.relu(b.linear("h", x, 16)), 3), threads=1)
    t = mixt.Trainer(net, batch=8, lr=0.1, optimizer="sgd")
    x, y = torch.randn(8, 5), torch.randint(0, 3, (8,), dtype=torch.int32)
    seen, call = [], inside._step_on
    inside._step_on = lambda p, i, o, r: (seen.append((i, o)), call(p, i, o, r))[1]
    t.step(x, y)
    inside._step_on = call
    assert seen == [(x.data_ptr(), y.data_ptr())], "copied"
    shown = t.tensor("fc.weight")
    weight = torch.from_dlpack(shown)
    assert weight.data_ptr() == shown.pointer
    # one update more, as PyTorch makes it
    layers = [torch.tensor(t.params[n], requires_grad=True) for n in ("h.weight", "h.bias", "fc.weight", "fc.bias")]
    logits = torch.relu(x @ layers[0].T + layers[1]) @ layers[2].T + layers[3]
    loss = torch.nn.functional.cross_entropy(logits, y.long())
    loss.backward()
    made = t.step(x, y)
    assert abs(made.loss - loss.item()) < 1e-5
    for name, before in zip(("h.weight", "h.bias", "fc.weight", "fc.bias"), layers):
        assert np.allclose(t.params[name], (before - 0.1 * before.grad).detach().numpy(), atol=1e-5), name
    assert np.allclose(weight.numpy(), t.params["fc.weight"])
    del weight, shown
    try:
        t.step(x.clone().requires_grad_(), y)
    except mixt.Error as fault:
        assert "gradient" in str(fault)
    else:
        raise AssertionError("a tensor with a gradient is taken")
    done.append("PyTorch: pointers, and an update")

if there("pandas"):
    import pandas

    table = pandas.DataFrame({"a": np.arange(20.0), "b": np.arange(20.0) % 3})
    assert mixt.Regressor(epochs=40, threads=1).fit(table, table["a"] * 2).score(table, table["a"] * 2) > 0.5
    done.append("pandas")


# ---- what Python costs in a step: CPU time of the wrapper around a call that does nothing ----
def per_call(function, count=20000):
    best = float("inf")
    for _ in range(7):
        began = time.process_time()
        for _ in range(count):
            function()
        best = min(best, (time.process_time() - began) / count)
    return best * 1e6


import mixt.trainer as timed  # noqa: E402

t = mixt.Trainer(mixt.Model(lambda b, x: b.linear("fc", x, 2), threads=1), batch=4)
x, y = np.zeros((4, 3), np.float32), np.zeros(4, np.int32)
t.step(x, y)
call = timed._step_on
timed._step_on = lambda *arguments: 0
wrapper = per_call(lambda: t.step(x, y).loss)
timed._step_on = call
pointer = t._p
through = per_call(lambda: mixt.c.mixt_trainer_steps(pointer))
assert wrapper + through < 5, (wrapper, through)
done.append(f"a step costs {wrapper:.1f} µs of wrapper and {through:.1f} µs of ctypes")

print("; ".join(done))
if left_out:
    print(f"not installed, left out: {', '.join(left_out)}")
