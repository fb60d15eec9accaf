"""Runs: trained by a loop or at once, stopped, interrupted, resumed, asked."""

import io
import os
import subprocess
import sys
import threading
import time

import numpy as np

import mixt

config = os.path.join(os.environ["MIXT_ROOT"], "configs/digits.yaml")
small = {"data.samples": 320, "train.epochs": 3, "train.batch": 32, "train.warmup": 0, "train.validate_every": 5}


def refused(status, call, *words):
    try:
        call()
    except mixt.Error as fault:
        assert fault.status.name == f"MIXT_{status}", (fault.status, fault)
        for word in words:
            assert word in str(fault), (word, str(fault))
    else:
        raise AssertionError(f"not refused: {words}")


# ---- planned, then trained in a loop: the same bits as at once ----
run = mixt.Run(config, small, out="runs/loop", precision="bf16")
plan = run.plan()
assert plan.bytes == plan.memory.total > 0 and "activations" in str(plan) and plan.nodes[0].kernel is not None
events = []
run.listen(lambda e: events.append(e.kind))
steps = list(run)
assert [s.step for s in steps] == list(range(1, 31)) and run.result.steps == 30
assert run.result.memory.total == plan.bytes == run.result.memory.allocated
assert events[0] == "note" and events[-1] == "end" and "validation" in events and events.count("step") == 30
whole = mixt.train(config, small, out="runs/whole", precision="bf16")
assert whole.loss == run.result.loss == steps[-1].loss
assert open("runs/loop/model.safetensors", "rb").read() == open("runs/whole/model.safetensors", "rb").read()

# ---- asked ----
found = run.eval("test")
assert 0 <= found.accuracy <= 1 and found.count > 0
report = run.report("test")
assert report.confusion.sum() == report.info.samples == found.count
assert abs(report.info.accuracy - found.accuracy) < 1e-9 and len(report.figures) == 10
pictures = np.random.default_rng(1).random((7, 28, 28, 1)).astype(np.float32)
np.save("mine.npy", pictures)
by_array, by_file = run.predict(pictures), run.predict("mine.npy")
assert np.array_equal(by_array.outputs, by_file.outputs) and by_array.outputs.shape == (7, 10)
assert by_array.names == [str(i) for i in by_array.labels] and np.allclose(by_array.probabilities.sum(1), 1)
assert np.array_equal(run.predict(pictures[0]).outputs[0], by_array.outputs[0])  # one sample alone
assert np.array_equal(run.predict(pictures, batch=3).outputs, by_array.outputs)
grey = (pictures * 255).astype(np.uint8)
assert np.allclose(run.predict(grey).outputs, run.predict(grey / np.float32(255)).outputs, atol=1e-4)
refused("ERROR_SHAPE", lambda: run.predict(np.zeros((2, 5))), "28")
refused("ERROR_DATA", lambda: run.predict(np.full((1, 28, 28, 1), np.nan)), "not finite")
loaded = mixt.Run.load("runs/loop")
assert np.array_equal(loaded.predict(pictures).outputs, by_array.outputs)
assert mixt.predict("runs/loop", "mine.npy").names == by_array.names
again = mixt.eval("runs/loop", "test")
assert (again.loss, again.accuracy, again.count) == (found.loss, found.accuracy, found.count)

# ---- stopped: by the loop, by leaving it, by a listener ----
run = mixt.Run(config, small, out="runs/stopped")
for step in run:
    if step.step == 7:
        run.stop()
    refused("ERROR_STATE", lambda: run.eval("test"), "being trained")
assert run.result.stopped and 7 <= run.result.steps <= 9
run = mixt.Run(config, small, out="runs/left")
for step in run:
    if step.step == 4:
        break
assert run.result.stopped and run.result.steps < 8 and os.path.exists("runs/left/model.safetensors")
result = mixt.train(config, small, out="runs/heard", listener=lambda e: e.kind != "step" or e.step.step < 5)
assert result.stopped and result.steps < 8


def fails(event):
    if event.kind == "step":
        raise KeyError("mine")


try:
    mixt.train(config, small, out="runs/fails", listener=fails)
except KeyError as fault:
    assert "mine" in str(fault)
else:
    raise AssertionError("a listener's own error is lost")

# ---- and resumed: the same weights as if it had never stopped ----
resumed = mixt.resume("runs/left")
assert resumed.steps == 30
through = mixt.train(config, small, out="runs/through")
assert open("runs/left/model.safetensors", "rb").read() == open("runs/through/model.safetensors", "rb").read()
refused("ERROR_CONFIG", lambda: mixt.Run.resume("runs/left", {"train.lr": 0.5}), "train.lr")

# ---- Ctrl-C ends it after the update, with a checkpoint; a second one is Python's own ----
child = """
import mixt, os, signal, sys
def hear(e):
    if e.kind == "step" and e.step.step == 6:
        os.kill(os.getpid(), signal.SIGINT)
run = mixt.Run(%r, %r, out=sys.argv[1], listener=hear)
if sys.argv[2] == "loop":
    for step in run:
        pass
else:
    run.train()
r = run.result
print(r.interrupted, r.signal, r.steps, signal.getsignal(signal.SIGINT) is signal.default_int_handler)
""" % (config, small)
for how in ("loop", "train"):
    done = subprocess.run(
        [sys.executable, "-c", child, f"runs/{how}-c", how], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    interrupted, number, made, python_again = done.stdout.split()
    assert interrupted == "True" and number == "2" and 6 <= int(made) <= 8 and python_again == "True", done.stdout
    assert f"continue with mixt.Run.resume('runs/{how}-c')" in done.stderr, done.stderr
    mixt.resume(f"runs/{how}-c")
    assert open(f"runs/{how}-c/model.safetensors", "rb").read() == open("runs/through/model.safetensors", "rb").read()
twice = """
import mixt, os, signal, sys, time
def hear(e):
    if e.kind == "step" and e.step.step == 3:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
try:
    mixt.train(%r, %r, out="runs/twice", listener=hear)
except KeyboardInterrupt:
    print("Python's own")
""" % (config, small)
done = subprocess.run([sys.executable, "-c", twice], capture_output=True, text=True, timeout=120)
assert done.returncode == 0 and "Python's own" in done.stdout, (done.returncode, done.stdout, done.stderr)

# ---- a program that ends within a loop ends its run first ----
ends = "import mixt, sys\nfor step in mixt.Run(%r, %r, out='runs/ends'):\n    sys.exit(5)" % (config, small)
done = subprocess.run([sys.executable, "-c", ends], capture_output=True, text=True, timeout=120)
assert done.returncode == 5 and os.path.exists("runs/ends/model.safetensors"), (done.returncode, done.stderr)

# ---- two runs in two threads; one run in two is refused or waits, and nothing is lost ----
outcomes = {}
threads = [
    threading.Thread(target=lambda i=i: outcomes.__setitem__(i, mixt.train(config, small, out=f"runs/thread{i}").loss))
    for i in range(2)
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert outcomes[0] == outcomes[1] == through.loss


# ---- the bar ----
class Terminal(io.StringIO):
    def isatty(self):
        return True


seen, sys.stderr = sys.stderr, Terminal()
try:
    mixt.train(config, small, out="runs/bar")
    shown = sys.stderr.getvalue()
finally:
    sys.stderr = seen
assert "\r[" in shown and "30/30" in shown and "loss" in shown, shown

# ---- settings ----
assert mixt.Config(config, {"train": {"lr": 0.5, "batch": 7}})["train.lr"] == 0.5
refused("ERROR_CONFIG", lambda: mixt.Run(config, precison="bf16"), "precison", "did you mean precision")
refused("ERROR_CONFIG", lambda: mixt.Run(config, {"train.lr": "fast"}), "train.lr")
refused("ERROR_FILE", lambda: mixt.Run("nowhere.yaml"), "nowhere.yaml")
refused("ERROR_STATE", lambda: (loaded.close(), loaded.plan()), "closed")

# ---- without a file: chosen by the data ----
np.savez("points.npz", x=np.random.default_rng(2).normal(size=(200, 4)).astype(np.float32), y=np.arange(200) % 3)
chosen = mixt.Run(data={"path": "points.npz"}, train={"epochs": 2}, out="runs/points")
assert "points.npz" in chosen.choices or "mlp" in chosen.choices, chosen.choices
assert chosen.train().steps > 0 and chosen.predict(np.zeros((2, 4), np.float32)).labels.shape == (2,)
print("done", time.process_time())
