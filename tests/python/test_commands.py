"""What the command does, by function: each gives plain values that agree with the files, and with each other."""

import json
import os
import signal
import subprocess
import sys
import types
import urllib.request

import numpy as np

sys.path.insert(0, os.path.join(os.environ["MIXT_ROOT"], "tests", "python"))
import support  # noqa: E402

import mixt  # noqa: E402

support.files()
few = {"train.steps": 6}


def refused(status, call, *words):
    try:
        call()
    except mixt.Error as fault:
        assert fault.status.name == f"MIXT_{status}", (fault.status, fault)
        for word in words:
            assert word in str(fault), (word, str(fault))
    else:
        raise AssertionError(f"not refused: {words}")


# ---- before a run ----
plan = mixt.plan("bf16.yaml")
assert plan.memory.copies > 0 and mixt.plan("fp32.yaml").memory.copies == 0
largest = mixt.largest_batch("bf16.yaml", memory=64 << 20)
assert largest.batch > 32 and largest.reason and largest.memory <= 64 << 20
choices = mixt.new("houses.csv", {"data.labels": "price"}, out="houses.yaml")
assert open("houses.yaml").read() == choices.yaml and "mlp" in choices.summary and choices.choices[0].key
refused("ERROR_FILE", lambda: mixt.new("houses.csv", out="houses.yaml"), "houses.yaml")

# ---- runs ----
for precision in ("fp32", "bf16"):
    assert mixt.train(f"{precision}.yaml", out=f"runs/{precision}").steps == 6
figures = mixt.metrics("runs/fp32")
rows = [json.loads(line) for line in open("runs/fp32/metrics.jsonl")]
assert figures["loss"] == [r["loss"] for r in rows] and figures.outcome.outcome in ("undecided", "learned")
refused("ERROR_ARGUMENT", lambda: figures["los"], "did you mean 'loss'")
assert "<svg" in open(mixt.plot(["runs/fp32", "runs/bf16"], "both.svg", smooth=3)).read()
refused("ERROR_FILE", lambda: mixt.plot("runs/fp32", "both.svg"), "both.svg")
assert "<html" in open(mixt.report("runs/fp32")).read()
text = mixt.table(["runs/fp32", "runs/bf16"], "markdown")
assert text.startswith("|") and "bf16" in text
both = mixt.compare("runs/fp32", "runs/bf16")
assert both.verdict == "undecided" and {f.name for f in both.figures} > {"samples_s", "memory"}
assert any(x.key == "precision" and (x.a, x.b) == ("fp32", "bf16") for x in both.changes)
written = mixt.export("runs/bf16", folder="exported", dtype="fp16")
assert written.tensors == 4 and os.path.exists("exported/model.safetensors")
refused("ERROR_FILE", lambda: mixt.export("runs/bf16", folder="exported"), "exported")
assert mixt.convert("exported/model.safetensors", "bf16.safetensors", "bf16").overflowed == 0
refused("ERROR_ARGUMENT", lambda: mixt.convert("a", "b", "fp17"), "did you mean 'fp16'")
try:
    with mixt.watch("runs/") as page:
        assert urllib.request.urlopen(page.address, timeout=20).status == 200
    refused("ERROR_STATE", lambda: page.address, "closed")
except mixt.Error as fault:
    assert fault.status == mixt.Status.MIXT_ERROR_UNSUPPORTED, fault

# ---- choosing and proving ----
advice = mixt.advise("bf16.yaml", trial=0, write="advised.yaml")
assert advice.choice.precision and any(n.verdict == "chosen" for n in advice.candidates)
assert mixt.Policy("advised.yaml").text().startswith("version: 1")
found = mixt.sensitivity("bf16.yaml", trials=1, confirm=0, formats="bf16")
assert {r.format for r in found.rows} == {"bf16"} and 0 <= found.rows[0].score <= 1 and len(found.layers) == 2
seen = []
checked = mixt.verify("bf16.yaml", few, seeds=2, progress=seen.append, out="verified.json")
assert checked.info.seeds == 2 and "safe" in checked.judgements and len(checked.lines) == 6
assert json.load(open("verified.json")) and any(p.kind == "step" and p.total == 24 for p in seen)
assert "safe: " in str(checked)
refused("ERROR_STATE", lambda: mixt.verify("bf16.yaml", few, seeds=2, progress=lambda p: False))
try:
    mixt.verify("bf16.yaml", few, seeds=2, progress=lambda p: 1 / 0)
except ZeroDivisionError:
    pass  # a listener's own error
else:
    raise AssertionError("a listener's error is lost")
refused("ERROR_ARGUMENT", lambda: mixt.verify("bf16.yaml", sedes=2), "did you mean 'seeds'")
refused("ERROR_FILE", lambda: mixt.adoption("none"))
child = """
import mixt, os, signal
def hear(p):
    if p.kind == "step":
        os.kill(os.getpid(), signal.SIGINT)
try:
    mixt.verify("bf16.yaml", {"train.steps": 6}, seeds=2, progress=hear)
except KeyboardInterrupt:
    print("ended")
"""
done = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, timeout=120)
assert done.stdout == "ended\n" and done.returncode == 0, done.stderr

# ---- looking into a step ----
run = mixt.Run("bf16.yaml", out="runs/looked")
looked = mixt.debug(run)
assert (
    looked.info.step.step == 1 and looked.info.shadow and len(looked.values) > 5 and looked.info.first_nonfinite == -1
)
assert looked.layers[0].name

# ---- the machine ----
here = mixt.info()
assert (
    here["version"] == mixt.__version__ and here["cpu"].threads >= 1 and any(f.name == "bf16" for f in here["formats"])
)
assert here["gpus"] or here["gpu_reason"]
timed = mixt.bench("mlp", steps=1, batch=8)
assert timed.seconds > 0 and timed.memory.total > 0
refused("ERROR_ARGUMENT", lambda: mixt.bench("mpl"), "mpl")

# ---- texts ----
assert mixt.tokenize("ab") == [97, 98]
with mixt.Tokenizer.train(["book.txt"], 300, "pairs") as pairs:
    tokens = pairs.encode("The mill 7 stood")
    assert pairs.decode(tokens) == "The mill 7 stood" and len(tokens) < 16 and len(pairs) == 300
    assert pairs.make("book.txt", "book.tokens").count > 0
messages = [{"role": "user", "content": "hi"}]
assert mixt.render("Qwen3-0.6B", messages, generation_prompt=True) == "<turn>user hi<end><turn>assistant "
one, again = (mixt.generate("Qwen3-0.6B", "12", tokens=8, temperature=0, seed=s) for s in (1, 2))
assert one == again
with mixt.Generator("Qwen3-0.6B") as generator:
    assert len(list(generator.tokens("12", 5))) == 5 and generator.logits.shape[0] >= 256
with mixt.chat("Qwen3-0.6B", most=4) as talk:
    talk.say("hello")
    assert talk.state.messages == 2
    next(talk.ask("again"), None)  # left early
    talk.reset()
    assert talk.state.messages == 0
tune = mixt.finetune("Qwen3-0.6B", "chat.jsonl", lora=4, base="fp32", out="runs/tuned", settings={"train.epochs": 1})
assert tune.train().steps > 0
assert tune.export("adapter").tensors > 0 and os.path.exists("adapter/adapter_config.json")
refused("ERROR_ARGUMENT", lambda: mixt.finetune("Qwen3-0.6B", "chat.jsonl", lroa=4), "did you mean 'lora'")
assert mixt.bleu(["a b c d e"], ["a b c d e"]).score > 99.9

# ---- tasks ----
rated = mixt.Run(None, {"model": "mf", "data.kind": "ratings", "train.steps": 4, "train.batch": 64}, out="runs/rated")
rated.train()
best = mixt.recommend(rated, 0, top=3)
assert len(best) == 3 and best[0].rating >= best[1].rating >= best[2].rating
assert 0 <= mixt.ranking(rated, "val", others=5).hit_rate <= 1
refused("ERROR_ARGUMENT", lambda: mixt.transcribe(rated, "none.wav"), "transcripts")


# ---- a line in notebooks ----
class Handle:
    updates = []

    def update(self, text):
        self.updates.append(text)


ipython, display = types.ModuleType("IPython"), types.ModuleType("IPython.display")
ipython.get_ipython = lambda: types.SimpleNamespace(kernel=1)
display.Pretty = lambda text: text
display.display = lambda text, display_id: (Handle.updates.append(text), Handle())[1]
sys.modules.update({"IPython": ipython, "IPython.display": display})
mixt.train("bf16.yaml", out="runs/notebook")
assert any("6/6" in u and "loss" in u for u in Handle.updates), Handle.updates
print("done", signal.getsignal(signal.SIGINT) is signal.default_int_handler, np.__version__)
