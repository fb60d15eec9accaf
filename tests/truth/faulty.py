"""Faults at random places and times in whole runs that look after themselves (auto.steer), in models and data that detectors were not
built on (faulty.txt): how many are named, where, and how the runs end next to undisturbed ones. Half of the kinds are not of the list
that faults= knows. With --layers: underflow and
overflow planted in every layer of three nets with residual branches, one at a time.
Usage: faulty.py MIXT [--layers] [--seed N] [--listed N] [--others N] [--jobs N] [--keep FOLDER] [--least SHARE] [NAME...]"""
import argparse
import array
import concurrent.futures
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import data

STEPS = 300
SEEDS = 4  # of a training's runs, drawn once: what undisturbed runs of all of them end with is how much an end scatters
# What a diagnosis must say of a kind that faults= knows, and whether it needs a layer (l), FP16 (h), classes (c), inputs that are
# numbers (n).
LISTED = {"nan_data": ("batch", "n"), "label": ("batch", "c"), "lr": ("optimizer", ""), "dead_layer": ("dead_layer", "l"),
          "overflow": ("precision", "lh"), "underflow": ("precision", "lh"), "scale_collapse": ("precision", "lh"),
          "flip_weight": ("hardware", "l"), "flip_activation": ("hardware", "l")}
# Kinds that faults= does not know: what must be found, or "calm": the run must end as an undisturbed one does, whatever is said.
OTHERS = {"rate10": "rate", "rate100": "rate", "rate1000": "rate", "poison1": "sample", "poison6": "sample", "block": "calm", "two": "two",
          "tiny_scale": "precision", "cells": "sample"}
TABLES = {"clusters-mlp": "clusters.csv", "series-mlp": "series.csv"}  # whose files get poisoned cells
IMAGES = ("shapes-resnet", "shapes-conv")
VALUES = ("prices-mlp", "series-mlp", "films-ncf")  # no classes
NUMBERS = (*TABLES, "prices-mlp", *IMAGES, "spoken-jackson", "moving-c3d")
RESIDUAL = ("drawn-gpt", "german-seq2seq", "shapes-resnet")
PRODUCTS = ("matmul", "conv2d", "conv3d", "lstm", "gru", "rnn")


class Training:
    def __init__(self, line):
        self.name, made, config = (f.strip() for f in line.split("|"))
        self.made = made.split()
        self.settings = [p.strip() for p in config.split(";")]
        self.ends = {}

    def make(self, mixt, root):
        self.folder = os.path.join(root, self.name)
        os.makedirs(self.folder)
        for call in self.made:
            name, *words = call.split(":")
            data.MAKERS[name](self.folder, *words)
        with open(f"{self.folder}/c.yaml", "w") as f:
            f.write("\n".join(["threads: 1", "device: cpu"] + self.settings) + "\n")
        out = subprocess.run([mixt, "plan", "c.yaml", "--json"], cwd=self.folder, capture_output=True, text=True, check=True).stdout
        nodes = [n for n in json.loads(out)["nodes"] if n["op"] in PRODUCTS and not n["backward"]]
        self.layers = [n for n in dict.fromkeys(n["layer"] for n in nodes) if n != "head"]  # a tied one is the embedding's: faults= has no such layer


def trainings():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "faulty.txt")) as f:
        return [Training(line) for line in f if line.strip() and line[0] != "#"]


def train(mixt, t, out, *settings, folder=None):
    """A run's status, its diagnoses, and the loss on validation data at its end."""
    command = [mixt, "train", "c.yaml", f"out={out}", "auto.steer=true", "train.epochs=0", f"train.steps={STEPS}", "train.log_every=1",
               "train.checkpoint_minutes=0", "-q", *settings]
    try:
        done = subprocess.run(command, cwd=folder or t.folder, capture_output=True, text=True, timeout=600)
    except subprocess.TimeoutExpired:
        return 124, [], float("nan"), "no end within 600 s"
    path = f"{folder or t.folder}/{out}"
    events = [json.loads(r) for r in open(f"{path}/events.jsonl")] if os.path.exists(f"{path}/events.jsonl") else []
    rows = [json.loads(r) for r in open(f"{path}/metrics.jsonl")] if os.path.exists(f"{path}/metrics.jsonl") else []
    losses = [r["val_loss"] for r in rows if r.get("val_loss") is not None]
    said = [e for e in events if e["kind"] in ("diagnosis", "decision") and e.get("from") != "auto"]
    return done.returncode, said, losses[-1] if losses else float("nan"), done.stderr


def undisturbed(mixt, t, precision, seed):
    if (precision, seed) not in t.ends:
        t.ends[precision, seed] = train(mixt, t, f"calm-{precision}-{seed}", f"precision={precision}", f"seed={seed}")
    return t.ends[precision, seed]


def spoil_table(t, folder, kind, rng):
    """Rows of the training part, which is a file of its own here."""
    with open(f"{folder}/{TABLES[t.name]}") as f:
        head, *lines = f.read().splitlines()
    parts = {"val": lines[::10], "train": [line for i, line in enumerate(lines) if i % 10]}
    train, chosen = parts["train"], []
    if kind == "block":
        start, labels = rng.randrange(len(train) // 2), [line.rsplit(",", 1)[1] for line in train]
        for row in range(start, start + len(train) // 16):
            train[row] = train[row].rsplit(",", 1)[0] + "," + rng.choice(labels)
    elif kind:
        chosen = sorted(rng.sample(range(len(train)), 6 if kind == "poison6" else 1))
        for row in chosen:
            cells = train[row].split(",")
            if kind == "cells":
                cells[rng.randrange(len(cells) - 1)] = "1e30"
            else:
                cells[:-1] = [repr(float(c) * 1e6) for c in cells[:-1]]
            train[row] = ",".join(cells)
    os.makedirs(f"{folder}/parts")
    for part, rows in parts.items():
        with open(f"{folder}/parts/{part}.csv", "w") as f:
            f.write("\n".join([head] + rows) + "\n")
    return chosen


def spoil_labels(folder, rng):
    path = f"{folder}/shapes/train-labels-idx1-ubyte"
    with open(path, "rb") as f:
        blob = bytearray(f.read())
    start = 8 + rng.randrange((len(blob) - 8) // 2)
    for i in range(start, start + (len(blob) - 8) // 16):
        blob[i] = rng.randrange(4)
    with open(path, "wb") as f:
        f.write(blob)


def spoilt(t, kind, rng, out):
    """A folder with the training's data, some samples spoilt unless `kind` is empty; and their numbers, and settings."""
    folder = f"{t.folder}-{out}"
    shutil.copytree(t.folder, folder, ignore=shutil.ignore_patterns("calm-*", "run-*"), symlinks=True)
    if t.name not in TABLES:
        if kind:
            spoil_labels(folder, rng)
        return folder, [], []
    chosen = spoil_table(t, folder, kind, rng)
    return folder, chosen, ["data.path=parts", "data.normalise=none", "data.normalise_target=none"]  # or a sample spoils all by its share in the deviation


def first_found(said, since=0):
    """What the diagnoses found from an update on: before it nothing was wrong."""
    return [e["evidence"].get("found") for e in said if e["kind"] == "diagnosis" and e["step"] >= since]


def named(found):
    """The first kind that was named; "unknown" where there is a diagnosis and none names a kind."""
    return next((f for f in found if f != "unknown"), "unknown" if found else None)


def left_out(said):
    return {e["to"] for e in said if e["kind"] == "decision" and e["action"] == "skip"} | {
        str(e["evidence"].get("sample")) for e in said if e["kind"] == "diagnosis"}


def listed(mixt, t, kind, rng, number, layer=None):
    wanted, needs = LISTED[kind]
    precision = "fp16" if "h" in needs else rng.choice(["fp16", "bf16"])
    seed, step, layer = rng.choice(t.seeds), rng.randrange(60, STEPS - 60), layer or (rng.choice(t.layers) if "l" in needs else None)
    fault = f"{kind}@{step}" + (f":{layer}" if layer else "")
    status, said, end, err = train(mixt, t, f"run-{number}", f"precision={precision}", f"seed={seed}", f"faults={fault}")
    r = dict(kind=kind, what=f"{precision} seed={seed} faults={fault}", status=status, end=end, err=err, calm=undisturbed(mixt, t, precision, seed),
             ends=lambda: ends_of(mixt, t, precision), found=first_found(said, step), where=None)
    r["near"] = same(end, r["calm"][2], 0.02) or end < r["calm"][2]
    r["well"] = None if kind == "dead_layer" else ends_well(r)  # it stays dead: nothing gives it back
    d = next((e for e in said if e["kind"] == "diagnosis" and e["step"] >= step and e["evidence"].get("found") == wanted), None)
    if d and layer:
        names = (d["evidence"].get("layers") or []) + [d["layer"] or "", d["evidence"].get("parameter") or ""]
        r["where"] = any(n == layer or n.startswith(layer + ".") for n in names)
    elif d and wanted == "batch":
        r["where"] = d["evidence"].get("began") == step
    harmless = not r["found"] and status == 0 and ends_well(r)  # the fault had no effect: nothing to name
    r["right"] = named(r["found"]) == wanted or harmless
    return r


def other(mixt, t, kind, rng, number):
    seed, precision, wanted = rng.choice(t.seeds), rng.choice(["fp16", "bf16"]), OTHERS[kind]
    folder, chosen, settings, what, where, since = None, [], [], kind, None, 0
    if wanted == "rate":
        lr = float(re.search(r"lr: ([\d.e-]+)", " ".join(t.settings))[1])
        settings = [f"train.lr={lr * int(kind[4:]):g}"]
    elif kind == "tiny_scale":
        precision, settings = "fp16", ["train.loss_scale=1e-6"]
    elif kind == "two":
        since, second, layer = rng.randrange(60, 120), rng.randrange(160, 220), rng.choice(t.layers)
        settings = [f"faults=flip_weight@{since}:{layer},nan_data@{second}"]
    else:
        folder, chosen, settings = spoilt(t, kind, rng, f"data-{number}")
    what += " " + " ".join(settings) + (f" samples {chosen}" if chosen else "")
    status, said, end, err = train(mixt, t, f"run-{number}", f"precision={precision}", f"seed={seed}", *settings, folder=folder)
    if folder and t.name in TABLES:  # next to the same data as they should be
        clean = spoilt(t, "", rng, f"clean-{number}")[0]
        runs = [train(mixt, t, f"clean-{s}", f"precision={precision}", f"seed={s}", *settings, folder=clean) for s in [seed] + [s for s in t.seeds if s != seed]]
        calm, ends = runs[0], lambda: [r[2] for r in runs]
    else:
        calm, ends = undisturbed(mixt, t, precision, seed), lambda: ends_of(mixt, t, precision)
    found = first_found(said, since)
    r = dict(kind=kind, what=f"{precision} seed={seed} {what}", status=status, end=end, err=err, calm=calm, ends=ends, found=found)
    well = ends_well(r)
    if wanted == "rate":  # named, or harmless: then it learns at least
        ok = "optimizer" in found or (not found and status == 0 and end < 2 * calm[2])
        well = well or (status == 1 and "optimizer" in found)  # it says so
    elif wanted == "two":
        ok = {"hardware", "batch"} <= set(found)
    elif wanted == "calm":
        ok = status == 0 and not any(e["kind"] == "decision" for e in said)
        if not well:  # labels cost something, which is not the controller's doing
            well = end <= 1.05 * train(mixt, t, f"plain-{number}", f"precision={precision}", f"seed={seed}", "auto.steer=false", *settings, folder=folder)[2]
    elif wanted == "sample":  # when the file is read, or in the run
        names = left_out(said) | set(re.findall(r"sample (\d+)", err)) | set(re.findall(r"row (\d+)", err))
        where = sum(str(c) in names for c in chosen) * 2 >= len(chosen)
        ok = where or "batch" in found
    else:
        ok = wanted in found or well
    return r | dict(right=ok, where=where, well=well)


def same(a, b, by):
    return a == b or abs(a - b) <= by * abs(b)


def ends_of(mixt, t, precision):
    return [undisturbed(mixt, t, precision, s)[2] for s in t.seeds]


def ends_well(r):
    """Whether the run ended no worse than undisturbed ones of any seed, and two of their deviations, or 2% from that of its own."""
    if r["end"] <= r["calm"][2] * 1.02:
        return True
    ends = r["ends"]()
    mean = sum(ends) / len(ends)
    deviation = (sum((e - mean) ** 2 for e in ends) / (len(ends) - 1)) ** 0.5
    return r["end"] <= max(max(ends), mean + 2 * deviation)


def trial(mixt, t, kind, listed_kind, seed, number):
    rng = random.Random(f"{seed} {kind} {number}")
    layer = {"layer": listed_kind} if isinstance(listed_kind, str) else {}
    r = (listed if listed_kind else other)(mixt, t, kind, rng, number, **layer)
    r["unknown"] = named(r["found"]) in (None, "unknown")
    r["name"] = t.name
    return r


def plan(trainings, options):
    """Which training gets which fault: all kinds in turn, trainings drawn among those that can have it."""
    rng, chosen = random.Random(options.seed), []
    for i in range(options.listed):
        kind = list(LISTED)[i % len(LISTED)]
        needs = LISTED[kind][1]
        able = [t for t in trainings if not ("c" in needs and t.name in VALUES) and not ("n" in needs and t.name not in NUMBERS)]
        chosen.append((rng.choice(able), kind, True))
    for i in range(options.others):
        kind = list(OTHERS)[i % len(OTHERS)]
        able = [t for t in trainings if kind != "two" or t.name in NUMBERS]  # one of the two is a NaN among inputs
        able = [t for t in able if OTHERS[kind] not in ("sample", "calm") or t.name in TABLES or (kind == "block" and t.name in IMAGES)]
        chosen.append((rng.choice(able), kind, False)) if able else None
    return chosen


def plan_layers(trainings):
    """Each layer of nets with residual branches flushes what it makes to 0, or makes too much for FP16: one at a time."""
    return [(t, kind, layer) for t in trainings if t.name in RESIDUAL for layer in t.layers for kind in ("underflow", "overflow")]


def share(rows, key):
    rows = [r for r in rows if r.get(key) is not None]
    return f"{sum(bool(r[key]) for r in rows)} of {len(rows)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mixt")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seed", type=int, default=20261119)
    parser.add_argument("--listed", type=int, default=100)
    parser.add_argument("--others", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep")
    parser.add_argument("--layers", action="store_true", help="underflow and overflow in each layer of nets with residual branches instead")
    parser.add_argument("--least", type=float, default=0.93)
    o = parser.parse_intermixed_args()
    mixt, root = os.path.realpath(o.mixt), o.keep or tempfile.mkdtemp()
    able = []
    for t in trainings():
        try:
            if not o.names or t.name in o.names:
                t.make(mixt, root)
                t.seeds = random.Random(f"{o.seed} {t.name}").sample(range(1, 1000), SEEDS)
                able.append(t)
        except data.Missing as missing:
            print(f"{t.name}: skipped, no {missing}")
    done = []
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        work = [pool.submit(trial, mixt, t, kind, is_listed, o.seed, i) for i, (t, kind, is_listed) in enumerate(plan_layers(able) if o.layers else plan(able, o))]
        for w in work:
            r = w.result()
            done.append(r)
            mark = "" if r["right"] else "unknown " if r["unknown"] else "WRONG "
            print(f"{r['name']:15} {r['kind']:15} {mark}{'' if r['where'] in (True, None) else 'other place '}{'' if r['well'] in (True, None) else 'ends worse '}"
                  f"found {','.join(r['found']) or 'nothing'}; status {r['status']}, loss {r['end']:.4g}, undisturbed {r['calm'][2]:.4g}; {r['what']}", flush=True)
    if not o.keep:
        shutil.rmtree(root)
    wrong = [r for r in done if not r["right"] and not r["unknown"]]
    alarms = {(t.name, k): v[1] for t in able for k, v in t.ends.items() if v[1]}
    for place, said in alarms.items():
        print(f"undisturbed {place}: {[(e['kind'], e['evidence'].get('found'), e['action'], e['step']) for e in said]}")
    print(f"{len(done)} faults: kind right {share(done, 'right')}, wrong {len(wrong)}, place right {share(done, 'where')}, ended well {share(done, 'well')}"
          + (f", within 2% of the undisturbed run {share(done, 'near')}" if o.layers else "") +
          f"; undisturbed runs with a decision or diagnosis: {len(alarms)} of {sum(len(t.ends) for t in able)}")
    for name, kind in dict.fromkeys((r["name"] if o.layers else "", r["kind"]) for r in done):
        rows = [r for r in done if r["kind"] == kind and name in ("", r["name"])]
        print(name, f"{kind:16} right {share(rows, 'right')}, place {share(rows, 'where')}, ended well {share(rows, 'well')}")
    return int(sum(bool(r["right"]) for r in done) < o.least * len(done) or len(wrong) > 0.02 * len(done))


if __name__ == "__main__":
    sys.exit(main())
