"""Classifier and Regressor: they learn, are the same twice, are pickled and set, with scikit-learn and without."""

import importlib
import pickle
import sys

import numpy as np

draw = np.random.default_rng(1)
X = draw.normal(size=(240, 5)) * [1, 10, 0.1, 1, 1] + [0, 100, 0, 0, 0]
labels = np.where(X[:, 0] * (X[:, 1] - 100) > 0, "same", "other")
y = 3 * X[:, 0] + X[:, 1] + 7


def check(mixt):
    model = mixt.Classifier(hidden=(32,), threads=1, epochs=60)
    assert model.fit(X[:160], labels[:160]) is model
    assert model.score(X[160:], labels[160:]) > 0.85 and list(model.classes_) == ["other", "same"]
    shares = model.predict_proba(X)
    assert shares.shape == (240, 2) and np.allclose(shares.sum(1), 1)
    assert (model.classes_[shares.argmax(1)] == model.predict(X)).all()
    again = mixt.Classifier(hidden=(32,), threads=1, epochs=60).fit(X[:160], labels[:160])
    assert np.array_equal(again.predict_proba(X), shares), "other bits with the same random_state"
    kept = pickle.loads(pickle.dumps(model))
    assert np.array_equal(kept.predict_proba(X), shares)
    lines = mixt.Regressor(threads=1, precision="bf16", epochs=60).fit(X[:160], y[:160])
    assert lines.score(X[160:], y[160:]) > 0.95, lines.score(X[160:], y[160:])
    own = mixt.Classifier(model=lambda b, x, outputs: b.linear("fc", b.tanh(b.linear("h", x, 16)), outputs), threads=1)
    assert own.fit(X, labels).score(X, labels) > 0.8
    assert own.set_params(lr=0.1).get_params()["lr"] == 0.1
    for wrong in (
        lambda: mixt.Classifier().predict(X),
        lambda: model.predict(X[:, :3]),
        lambda: mixt.Classifier().fit(X, np.zeros(240)),
        lambda: mixt.Classifier().fit(X, None),
        lambda: mixt.Regressor().fit(np.full((4, 2), np.nan), [1, 2, 3, 4]),
        lambda: model.set_params(hiden=3),
        lambda: mixt.Classifier(precision="bf17", threads=1).fit(X, labels),
    ):
        try:
            wrong()
        except (ValueError, mixt.Error):
            continue
        raise AssertionError("not refused")


import mixt  # noqa: E402

check(mixt)
with_it = "sklearn" in sys.modules
for name in [n for n in sys.modules if n == "mixt.learn" or n.split(".")[0] == "sklearn"]:
    del sys.modules[name]
sys.modules["sklearn"] = None  # not installed
importlib.reload(mixt)
mixt.learn = importlib.import_module("mixt.learn")
assert not mixt.learn._SKLEARN
check(mixt)
print("with scikit-learn and without" if with_it else "without scikit-learn")
