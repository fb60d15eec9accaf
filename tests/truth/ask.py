"""Each tool asked of a case, and what it says of one thing: is FORMAT for all layers safe here? Answers are yes, no, undecided, "-" where
the tool did not speak of it, failed and slow."""
import json
import math
import os
import re
import subprocess

LIMIT = 240  # seconds of a call; tools with a budget get BUDGET
BUDGET = "12s"


class Answer:
    def __init__(self, says, command, text="", out="", kept=None):
        self.says, self.command, self.text, self.out, self.kept = says, command, text, out, kept


def call(mixt, folder, words):
    done = subprocess.run([mixt] + words + ["--json", "-q"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=LIMIT, check=False)
    objects = []
    for line in done.stdout.splitlines():
        try:
            objects.append(json.loads(line))
        except ValueError:
            pass
    return done.returncode, objects, done.stdout, done.stderr


def judgements(thing):
    """All of them in the JSON, wherever they stand."""
    if isinstance(thing, dict):
        if "claim" in thing and "verdict" in thing:
            yield thing
        else:
            for value in thing.values():
                yield from judgements(value)
    elif isinstance(thing, list):
        for value in thing:
            yield from judgements(value)


def safe_of(objects):
    return next((j for j in judgements(objects) if j["claim"] == "safe"), None)


def plan(mixt, folder, policy):
    """Of each layer with a product whether it is in a lower format than FP32, and the bytes of a step: by the plan, not by the words of
    the tool that made the policy."""
    done = subprocess.run([mixt, "plan", "fp32.yaml", f"precision={policy}", "--graph"], cwd=folder, stdout=subprocess.PIPE,
                          text=True, timeout=LIMIT, check=True)
    lowered, total = {}, 0
    for line in done.stdout.splitlines():
        m = re.match(r"\s*\d+ [fb] (\S+)\s+(\S+)\s.*=", line)
        if m and re.match(r"(conv|matmul|head_step|attention|lstm|gru|rnn)", m[2]):
            lowered[m[1]] = lowered.get(m[1], False) or bool(re.search(r":(bf16|fp16)", m[2]))
        m = re.match(r"total\s+(\d+)", line)
        total = int(m[1]) if m else total
    return lowered, total


def of_policy(mixt, folder, case, policy, safe):
    """What a tool that looks for the least memory, and came to this policy, says of the format for all layers; and the layers that it
    leaves in FP32."""
    lowered, total = plan(mixt, folder, policy)
    everywhere, least = plan(mixt, folder, case.format)
    kept = sorted(name for name, low in lowered.items() if not low)
    if lowered == everywhere:
        return safe["verdict"], kept
    if case.answer == "safe" and total < least * 1.001:
        return "-", kept  # this one is as small: the other was not needed
    return "no", kept


def advise(mixt, folder, case):
    words = ["advise", f"{case.format}.yaml", "--trial", "1"]
    _, objects, out, err = call(mixt, folder, words)
    if not objects:
        return Answer("failed", words, err, out)
    mine = next((c for c in objects[0]["candidates"] if c["name"] == case.format), {})
    safe = safe_of([mine])
    if safe:
        return Answer(safe["verdict"], words, safe["text"], out)
    return Answer("no" if mine.get("verdict") == "loses" else "-", words, mine.get("why", ""), out)


def sensitivity(mixt, folder, case):
    words = ["sensitivity", f"{case.format}.yaml", "--formats", case.format]
    _, objects, out, err = call(mixt, folder, words)
    cells = [o for o in objects if "recommend" in o]
    if not cells:
        return Answer("-" if "no layer whose format a policy can change" in err else "failed", words, err, out)
    kept = sorted({o["layer"] for o in cells if o["recommend"] == "fp32"})
    text = f"keeps {', '.join(kept) or 'none'} of {len({o['layer'] for o in cells})} layers in FP32"
    return Answer("no" if kept else "yes", words, text, out, kept)


def search(mixt, folder, case):
    words = ["search", "fp32.yaml", "--for", "memory", "--formats", case.format, "--budget", BUDGET, "--out", "found.yaml"]
    _, objects, out, err = call(mixt, folder, words)
    if not objects:
        return Answer("failed", words, err, out)
    says, kept = of_policy(mixt, folder, case, "found.yaml", safe_of(objects[0]["judgements"]))
    refused = safe_of([objects[0].get("refused")])
    text = f"{objects[0]['line']}; " + (f"refused {refused['text']}; " if refused else "") + safe_of(objects[0]["judgements"])["text"]
    return Answer(says, words, text, out, kept)


def verify(mixt, folder, case):
    words = ["verify", f"{case.format}.yaml"]
    _, objects, out, err = call(mixt, folder, words)
    safe = safe_of(objects)
    return Answer(safe["verdict"], words, safe["text"], out) if safe else Answer("failed", words, err, out)


def compare(mixt, folder, case):
    words = ["compare", "fp32.yaml", f"{case.format}.yaml", "--name", "truth", "--budget", "60s"]
    _, objects, out, err = call(mixt, folder, words)
    if not objects:
        return Answer("failed", words, err, out)
    safe = safe_of(objects)
    says = safe["verdict"] if safe else {"non-inferior": "yes", "inferior": "no"}.get(objects[0]["verdict"], "undecided")
    return Answer(says, words, safe["text"] if safe else objects[0]["reason"], out)


def adopt(mixt, folder, case):
    words = ["adopt", "fp32.yaml", "--for", "memory", "--budget", BUDGET, "--name", "truth"]
    _, objects, out, err = call(mixt, folder, words)
    if not objects:
        return Answer("failed", words, err, out)
    state, safe = objects[0], safe_of(objects[0]["judgements"])
    text = f"{state['outcome']} {state['precision']}; " + (safe["text"] if safe else "nothing judged")
    chosen = state["policy"] if state["outcome"] == "adopted" else re.sub(r"[a-z]+\.yaml$", "policy.yaml", state["best"] or "")
    if not chosen:
        return Answer(safe["verdict"] if safe and case.answer == "safe" else "no", words, text, out)
    lowered, _ = plan(mixt, folder, chosen)
    if case.answer == "safe":  # adopt tries every format and what activations are kept in: any policy that saves memory will do
        return Answer(safe["verdict"], words, text, out)
    with open(f"{folder}/{chosen}") as f:
        taken = f"default: {case.format}\n" in f.read() and lowered == plan(mixt, folder, case.format)[0]
    return Answer(safe["verdict"] if taken else "no", words, text, out)


def trained(mixt, folder, words):
    status, objects, out, err = call(mixt, folder, ["train"] + words)
    value = objects[0].get("val_loss") if objects else None
    return status, (math.inf if value is None else value), out, err


def as_good(mixt, folder, case, name, end, fp32):
    """Whether a run ends as well as FP32: within the tolerance of the one with its seed, or of the worst of three other seeds, where
    FP32 itself scatters by more."""
    if end <= fp32 * (1 + case.tolerance):
        return True
    return end <= max(trained(mixt, folder, ["fp32.yaml", f"seed={seed}", f"out={name}-fp32-{seed}"])[1] for seed in (11, 12, 13))


def steered(mixt, folder, case, words, name):
    """A run that looks after itself: yes where it ends as well as FP32 without a decision, no where it ended well after one or
    said with status 1 that it did not, worse where it ended badly and did not say so."""
    status, end, out, err = trained(mixt, folder, words + [f"out={name}"])
    _, fp32, _, _ = trained(mixt, folder, ["fp32.yaml", f"out={name}-fp32"])
    path = f"{folder}/{name}/events.jsonl"
    events = []
    if os.path.exists(path):
        with open(path) as f:
            events = [json.loads(line) for line in f if line.strip()]
    chosen = [e for e in events if e["kind"] == "decision" and e["step"] == 0 and not e.get("cause")]  # by auto, before anything was made
    made = [e for e in events if e["kind"] == "decision" and e not in chosen]
    causes = [f"{e.get('cause')} {e.get('action')}@{e['step']}" for e in made]
    said = " ".join([e.get("evidence", {}).get("text", "") for e in events if e["kind"] in ("decision", "diagnosis")] + [err])
    text = f"status {status}, loss {end:.4g}, FP32 {fp32:.4g}; {', '.join(causes[:4]) or 'no decision'}"
    well = status == 0 and as_good(mixt, folder, case, name, end, fp32)
    if case.answer == "explodes":
        blamed = any(e.get("action") == "precision" for e in made)
        named = re.search(r"learning rate|optimizer|diverged", said)
        return Answer("no" if named and not blamed and (status == 1 or end < 6) else "worse", words, text, out + err)
    if status == 0 and not well:
        return Answer("worse", words, text, out + err)
    return Answer("yes" if well and not made else "no", words, text, out + err)


def auto(mixt, folder, case):
    return steered(mixt, folder, case, [f"{case.format}.yaml", "precision=auto"], "auto")


def steer(mixt, folder, case):
    return steered(mixt, folder, case, [f"{case.format}.yaml", "auto.steer=true"], "steer")


TOOLS = {f.__name__: f for f in (advise, sensitivity, search, verify, compare, adopt, auto, steer)}
ON_RUNS = ("auto", "steer")  # which do not judge a format but train well, or say that they did not


def ask(tool, mixt, folder, case):
    try:
        return TOOLS[tool](mixt, folder, case)
    except subprocess.TimeoutExpired as e:
        return Answer("slow", e.cmd, f"more than {LIMIT} s")


def right(tool, case, answer):
    """right, wrong, undecided, or None where the tool did not speak of the format."""
    says = answer.says
    if says == "-":
        return None
    if says == "worse" or says == "failed":
        return "wrong"
    if says in ("undecided", "slow"):
        return "undecided"
    if tool in ON_RUNS:  # choosing another format, or raising layers, is what it is for
        return "wrong" if says == "no" and case.answer == "safe" else "right"
    if case.answer == "fragile" and says == "no" and answer.kept is not None:
        if answer.kept and case.fragile[0] not in answer.kept:
            return "wrong"  # something stays in FP32, and not what has to
    return "right" if (says == "yes") == (case.answer == "safe") else "wrong"
