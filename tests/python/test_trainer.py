"""Models and trainers: what they learn, what they share with NumPy, and how they end."""

import copy
import gc
import os
import pickle
import threading

import numpy as np

import mixt


def refused(status, call, *words):
    try:
        call()
    except mixt.Error as fault:
        assert fault.status.name == f"MIXT_{status}", (fault.status, fault)
        for word in words:
            assert word in str(fault), (word, str(fault))
    else:
        raise AssertionError(f"not refused: {words}")


draw = np.random.default_rng(1)
x = draw.normal(size=(64, 20)).astype(np.float32)
y = x[:, :10].argmax(1).astype(np.int32)
net = mixt.Model(lambda b, v: b.linear("fc", b.relu(b.linear("h", v, 64)), 10), loss="cross_entropy")

# ---- it learns, in every format, and the same bits come twice ----
losses = {}
for precision in ("fp32", "bf16", "fp16"):
    t = mixt.Trainer(net, precision=precision, lr=3e-3, batch=64, seed=3)
    losses[precision] = [t.step(x, y).loss for _ in range(150)]
    assert losses[precision][-1] < 0.2 * losses[precision][0], precision
    assert t.eval(x, y).accuracy > 0.95 and t.predict(x).shape == (64, 10)
again = mixt.Trainer(net, precision="fp32", lr=3e-3, batch=64, seed=3)
assert [again.step(x, y).loss for _ in range(5)] == losses["fp32"][:5]

# ---- nothing is copied on the way in: the step sees the array where it lies ----
seen = []
step_on = mixt.c.mixt_trainer_step_on
import mixt.trainer as inside  # noqa: E402

inside._step_on = lambda p, i, o, r: (seen.append((i, o)), step_on(p, i, o, r))[1]
t.step(x, y)
assert seen[-1] == (x.ctypes.data, y.ctypes.data)


class Elsewhere:
    """What another library has: only DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **kw):
        return self.array.__dlpack__(**kw)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


t.step(Elsewhere(x), Elsewhere(y))
assert seen[-1] == (x.ctypes.data, y.ctypes.data)
t.step(x.astype(np.float64), y.astype(np.int64))  # converted, as their formats are not the step's
assert seen[-1][0] != x.ctypes.data
inside._step_on = step_on

# ---- nor on the way out: a parameter where it lies, read-only, until it is let go of ----
shown = t.tensor("fc.weight")
weight = np.from_dlpack(shown)
assert weight.ctypes.data == shown.pointer and weight.shape == (10, 64) and not weight.flags.writeable
before = weight.copy()
assert np.array_equal(before, t.params["fc.weight"])
t.step(x, y)
assert not np.array_equal(before, weight), "an update is not seen: it is a copy"
refused("ERROR_STATE", lambda: setattr(t, "precision", "fp32"), "shown where it lies")
refused("ERROR_STATE", t.close)
del shown
gc.collect()
refused("ERROR_STATE", t.close)  # the array alone keeps it
del weight
gc.collect()
t.precision = "fp32"
assert "default: fp32" in t.precision

# ---- parameters, by name ----
t.params["fc.bias"] = np.arange(10)
assert t.params["fc.bias"].tolist() == list(range(10)) and len(t.params) == 4 and "fc.bias" in t.params
refused("ERROR_ARGUMENT", lambda: t.params["fc.bais"], "did you mean 'fc.bias'")
refused("ERROR_SHAPE", lambda: t.params.__setitem__("fc.bias", np.zeros(9)), "(9,)")

# ---- by hand, and as a whole: the same update ----
a, b = (mixt.Trainer(net, precision="fp32", lr=0.1, optimizer="sgd", batch=64, seed=5) for _ in range(2))
a.compile(input=(20,))
a.backward(x, y, scale=8.0)
assert a.grad("fc.bias").shape == (10,)
assert a.unscale(8.0) and a.clip(1e9) > 0
a.apply(0.1)
b.step(x, y)
for name in a.params:
    assert np.allclose(a.params[name], b.params[name], atol=1e-6), name

# ---- files: weights, and states that go on with the same bits ----
b.save("weights.safetensors")
a.load("weights.safetensors")
assert np.array_equal(a.params["h.weight"], b.params["h.weight"])
b.checkpoint("state")
went_on = [b.step(x, y).loss for _ in range(3)]
fresh = mixt.Trainer(net, precision="fp32", lr=0.1, optimizer="sgd", batch=64, seed=5)
fresh.compile(input=(20,))
fresh.restore("state")
assert [fresh.step(x, y).loss for _ in range(3)] == went_on

# ---- data sets ----
data = mixt.Data(x, y)
assert len(data) == 64 and data.info.classes == 10 and data.info.target == "class"
fitted = mixt.Trainer(net, batch=16)
last = fitted.fit(data, epochs=2)
assert fitted.steps == 8 and last.epoch == 2 and last.samples == 16
values = mixt.Data(x, y.astype(np.float32))
assert values.info.target == "values"
two = mixt.named({"user": np.arange(8), "item": np.arange(8), "rating": np.ones(8, np.float32)}, ["rating"])
assert [a.name for a in two.arrays] == ["user", "item", "rating"]


def factors(b, user):
    item = b.input("item", dtype="int32")
    both = b.mul(b.embedding("u", user, 8, 4), b.embedding("i", item, 8, 4))
    rating = b.sum(both, axes=[1], keep_dims=True)
    b.loss_add(b.loss_mse(rating, b.target("rating")))
    return rating


rated = mixt.Trainer(mixt.Model(factors, "custom"), batch=4, lr=0.1)
assert rated.fit(two, epochs=40).loss < 0.2


# ---- what a model function may do ----
def block(b, v):
    with b.scope("block"):
        h = b.batch_norm("norm", b.conv2d("conv", v, 8, 3, pad=1))
    h = b.concat([h, b.reshape(b.flatten(h), -1, 6, 6, 8)])
    left, right = b.split(h, 2)
    h = b.transpose(b.relu(left * 2 + right - 1), 0, 2, 1, 3)
    return b.linear("fc", b.flatten(b.max_pool(-h / 2.0, 2)), 3)


conv = mixt.Trainer(mixt.Model(block), batch=4)
conv.step(draw.normal(size=(4, 6, 6, 1)), [0, 1, 2, 0])
assert "block.conv.weight" in conv.params

# ---- what is refused, in words ----
refused("ERROR_ARGUMENT", lambda: mixt.Trainer(net, precison="bf16"), "precison", "did you mean 'precision'")
refused("ERROR_FILE", lambda: mixt.Trainer(net, precision="bf17"), "did you mean bf16")
refused("ERROR_ARGUMENT", lambda: mixt.Trainer(net, lr=-1), "lr")
refused("ERROR_ARGUMENT", lambda: mixt.Trainer(net, batch=1.5), "batch=1.5")
refused("ERROR_ARGUMENT", lambda: mixt.Model(lambda b, v: v, loss="cross_entopy"), "did you mean 'cross_entropy'")
refused("ERROR_SHAPE", lambda: a.step(x[:3], y[:3]), "3 samples, but an update takes 64")
refused("ERROR_SHAPE", lambda: a.step(x[:, :3], y), "(3,)", "(20,)")
refused("ERROR_DTYPE", lambda: a.step(x, y.astype(np.float32)), "classes")
refused("ERROR_STATE", lambda: mixt.Trainer(net).params["fc.bias"], "has not seen a batch yet")
refused("ERROR_ARGUMENT", lambda: mixt.Model(lambda b, v: None, input=(3,)), "must return a value")
refused("ERROR_SHAPE", lambda: mixt.Model(lambda b, v: b.conv2d("c", v, 3, 3), input=(3,)))
other = []
mixt.Model(lambda b, v: (other.append(v), b.linear("fc", v, 3))[1], input=(3,))
refused("ERROR_ARGUMENT", lambda: mixt.Model(lambda b, v: b.relu(other[0]), input=(3,)), "another model")
try:
    mixt.Model(lambda b, v: 1 / 0, input=(3,))
except ZeroDivisionError:
    pass  # a model function's own error is its own

# ---- pickling, copying, closing ----
for thing in (a, net, data, mixt.Policy("bf16")):
    refused("ERROR_UNSUPPORTED", lambda thing=thing: pickle.dumps(thing), "pickled")
refused("ERROR_UNSUPPORTED", lambda: copy.deepcopy(data), "copied")
assert str(pickle.loads(pickle.dumps(mixt.Error("x", 3)))) == "x"
with mixt.Data(x, y) as short:
    pass
refused("ERROR_STATE", lambda: short.info, "closed")
short.close()
lost = mixt.Model(lambda b, v: b.linear("fc", v, 3))
orphan = mixt.Trainer(lost, batch=4)
orphan.step(x[:4], y[:4] % 3)
lost.close()
refused("ERROR_STATE", lambda: orphan.step(x[:4], y[:4]), "closed")
refused("ERROR_STATE", lambda: orphan.params["fc.bias"], "closed")

# ---- threads: of one context they take turns, contexts run at once; the GIL is free meanwhile ----
results, faults = {}, []


def work(number, model):
    try:
        own = mixt.Trainer(model, lr=3e-3, batch=64, seed=3)
        results[number] = [own.step(x, y).loss for _ in range(30)]
    except BaseException as fault:  # noqa: BLE001
        faults.append(fault)


alone = mixt.Model(net._function)
threads = [threading.Thread(target=work, args=(i, net if i < 3 else alone)) for i in range(5)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not faults, faults
assert all(results[i] == losses["fp32"][:30] for i in range(5))

# ---- a call that takes long leaves Python to others ----
counted, ticking = [0], True


def count():
    while ticking:
        counted[0] += 1


other_thread = threading.Thread(target=count)
long_set = mixt.Data(draw.normal(size=(4000, 200)).astype(np.float32), np.arange(4000) % 10)
wide = mixt.Trainer(mixt.Model(lambda b, v: b.linear("fc", b.relu(b.linear("h", v, 800)), 10)), batch=64)
wide.compile(long_set)
other_thread.start()
before = counted[0]
wide.eval(long_set)  # one call of the library
during = counted[0] - before
ticking = False
other_thread.join()
assert during > 1000, during

# ---- a process that was forked is told, and does not wait for threads that it has not ----
child = os.fork()
if not child:
    status = 1
    try:
        wide.eval(long_set)
    except mixt.Error as fault:
        status = 0 if "forked" in str(fault) else 2
    del wide, long_set
    gc.collect()
    os._exit(status)
assert os.waitpid(child, 0)[1] == 0

# ---- everything goes, in whatever order ----
policy = mixt.Policy(text="default: bf16").add("fp32", layer="fc*")
assert policy.rules[0].layer == "fc*" and policy.rules[0].forward == "fp32"
kept = mixt.Trainer(net, policy=policy, batch=64)
kept.step(x, y)
del policy, net, data, alone
gc.collect()
kept.step(x, y)
print("done, in process", os.getpid())
