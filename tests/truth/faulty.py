"""Faults at random places and times in whole runs that look after themselves (auto.steer), in models and data that detectors were not
built on (faulty.txt): how many are named, where, and how the runs end next to undisturbed ones. Half of the kinds are not of the list
that faults= knows. Usage: faulty.py MIXT [--seed N] [--listed N] [--others N] [--jobs N] [--keep FOLDER] [--least SHARE] [NAME...]"""
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
SEEDS = 3  # undisturbed runs beside the one with the same seed: how much a run's end scatters
# What a diagnosis must say of a kind that faults= knows, and whether it needs a layer (l), FP16 (h), classes (c), inputs that are
# numbers (n).
LISTED = {"nan_data": ("batch", "n"), "label": ("batch", "c"), "lr": ("optimizer", ""), "dead_layer": ("dead_layer", "l"),
          "overflow": ("precision", "lh"), "underflow": ("precision", "lh"), "scale_collapse": ("precision", "lh"),
          "flip_weight": ("hardware", "l"), "flip_activation": ("hardware", "l")}
# Kinds that faults= does not know: what must be found, or "calm": the run must end as an undisturbed one does, whatever is said.
OTHERS = {"rate10": "rate", "rate100": "rate", "rate1000": "rate", "poison1": "sample", "poison6": "sample", "block": "calm", "two": "two",
          "tiny_scale": "precision", "cells": "sample"}
TABLES = {"clusters-mlp": "clusters.csv", "prices-mlp": "prices.csv"}  # whose files get poisoned cells
IMAGES = ("shapes-resnet", "shapes-conv")
VALUES = ("prices-mlp", "films-ncf")  # no classes
NUMBERS = (*TABLES, *IMAGES, "spoken-jackson", "moving-c3d")
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
        self.layers = list(dict.fromkeys(n["layer"] for n in nodes))


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
    return done.returncode, said, losses[-1] if losses else float("nan"), done.stderr.strip().splitlines()[-1:] or ""


def undisturbed(mixt, t, precision, seed):
    if (precision, seed) not in t.ends:
        t.ends[precision, seed] = train(mixt, t, f"calm-{precision}-{seed}", f"precision={precision}", f"seed={seed}")
    return t.ends[precision, seed]


def poisoned(t, kind, rng, out):
    """A folder with the training's data, some samples spoilt; and their numbers."""
    folder = f"{t.folder}-{out}"
    shutil.copytree(t.folder, folder, ignore=shutil.ignore_patterns("calm-*", "run-*"), symlinks=True)
    count = 6 if kind == "poison6" else 1
    if t.name in TABLES:
        with open(f"{folder}/{TABLES[t.name]}") as f:
            head, *lines = f.read().splitlines()
        chosen = sorted(rng.sample(range(len(lines) * 7 // 10), count))  # of the part that is trained on
        for row in chosen:
            cells = lines[row].split(",")
            if kind == "cells":
                cells[rng.randrange(len(cells) - 1)] = "1e30"
            else:
                cells[:-1] = [repr(float(c) * 1e6) for c in cells[:-1]]
            lines[row] = ",".join(cells)
        if kind == "block":
            start, labels = rng.randrange(len(lines) // 2), [line.rsplit(",", 1)[1] for line in lines]
            for row in range(start, start + len(lines) // 16):
                lines[row] = lines[row].rsplit(",", 1)[0] + "," + rng.choice(labels)
        with open(f"{folder}/{TABLES[t.name]}", "w") as f:
            f.write("\n".join([head] + lines) + "\n")
    else:  # images: only labels can be wrong
        path, chosen = f"{folder}/shapes/train-labels-idx1-ubyte", []
        with open(path, "rb") as f:
            blob = bytearray(f.read())
        start = 8 + rng.randrange((len(blob) - 8) // 2)
        for i in range(start, start + (len(blob) - 8) // 16):
            blob[i] = rng.randrange(4)
        with open(path, "wb") as f:
            f.write(blob)
    return folder, chosen


def first_found(said):
    return [e["evidence"].get("found") for e in said if e["kind"] == "diagnosis"]


def left_out(said):
    return {e["to"] for e in said if e["kind"] == "decision" and e["action"] == "skip"} | {
        str(e["evidence"].get("sample")) for e in said if e["kind"] == "diagnosis"}


def listed(mixt, t, kind, rng, number):
    wanted, needs = LISTED[kind]
    precision = "fp16" if "h" in needs else rng.choice(["fp16", "bf16"])
    seed, step, layer = rng.randrange(1, 1000), rng.randrange(60, STEPS - 60), rng.choice(t.layers) if "l" in needs else None
    fault = f"{kind}@{step}" + (f":{layer}" if layer else "")
    status, said, end, err = train(mixt, t, f"run-{number}", f"precision={precision}", f"seed={seed}", f"faults={fault}")
    calm = undisturbed(mixt, t, precision, seed)
    found = first_found(said)
    kinds = bool(found) and found[0] == wanted
    where = None
    if kinds and layer:
        d = next(e for e in said if e["kind"] == "diagnosis")
        named = (d["evidence"].get("layers") or []) + [d["layer"] or "", d["evidence"].get("parameter") or ""]
        where = any(n == layer or n.startswith(layer + ".") for n in named)
    elif kinds and wanted == "batch":
        where = next(e for e in said if e["kind"] == "diagnosis")["evidence"].get("began") == step
    silent = not found and same(end, calm[2]) and status == 0  # the fault had no effect: nothing to name
    return dict(kind=kind, what=f"{precision} seed={seed} faults={fault}", wanted=wanted, found=found, right=kinds or silent, where=where,
                unknown=not found or found[0] == "unknown", status=status, end=end, calm=calm, precision=precision, seed=seed, err=err)


def other(mixt, t, kind, rng, number):
    seed, precision, wanted = rng.randrange(1, 1000), rng.choice(["fp16", "bf16"]), OTHERS[kind]
    folder, chosen, settings, what = None, [], [], kind
    if wanted == "rate":
        lr = float(re.search(r"lr: ([\d.e-]+)", " ".join(t.settings))[1])
        settings = [f"train.lr={lr * int(kind[4:]):g}"]
    elif kind == "tiny_scale":
        precision, settings = "fp16", ["train.loss_scale=1e-6"]
    elif kind == "two":
        a, b, layer = rng.randrange(60, 120), rng.randrange(160, 220), rng.choice(t.layers)
        settings = [f"faults=flip_weight@{a}:{layer},nan_data@{b}"]
    else:
        folder, chosen = poisoned(t, kind, rng, f"data-{number}")
    what += " " + " ".join(settings) + (f" samples {chosen}" if chosen else "")
    status, said, end, err = train(mixt, t, f"run-{number}", f"precision={precision}", f"seed={seed}", *settings, folder=folder)
    calm, found, ok, where = undisturbed(mixt, t, precision, seed), first_found(said), False, None
    if folder:  # samples of the validation part are spoilt too: what FP32 without a controller makes of the same files
        calm = train(mixt, t, f"fp32-{number}", "precision=fp32", f"seed={seed}", "auto.steer=false", folder=folder)
    well = ends_well(mixt, t, dict(end=end, calm=calm, precision=precision, seed=seed))
    if wanted == "rate":  # harmless, or named
        ok = (not found and status == 0 and end < calm[2] * 2) or "optimizer" in found
    elif wanted == "two":
        ok = {"hardware", "batch"} <= set(found)
    elif wanted == "calm":
        ok = status == 0 and (well or not said)  # what the labels themselves cost is not the controller's doing
    elif wanted == "sample":
        names = left_out(said) | set(re.findall(r"\d+", str(err)))
        where = sum(str(c) in names for c in chosen) * 2 >= len(chosen)
        ok = (bool(found) and "batch" in found) or where or well
    else:
        ok = wanted in found or well
    return dict(kind=kind, what=f"{precision} seed={seed} {what}", wanted=wanted, found=found, right=ok, where=where,
                unknown=not found or found[0] == "unknown", status=status, end=end, calm=calm, precision=precision, seed=seed, err=err)


def same(a, b):
    return a == b or abs(a - b) <= 1e-3 * abs(b)


def ends_well(mixt, t, r):
    """Whether the run ended no worse than runs of other seeds that nothing disturbed, and by 2% at most."""
    if r["end"] <= r["calm"][2] * 1.02:
        return True
    ends = [r["calm"][2]] + [undisturbed(mixt, t, r["precision"], r["seed"] + 1000 + i)[2] for i in range(SEEDS)]
    mean = sum(ends) / len(ends)
    deviation = (sum((e - mean) ** 2 for e in ends) / (len(ends) - 1)) ** 0.5
    return r["end"] <= max(max(ends), mean + 2 * deviation)


def trial(mixt, t, kind, listed_kind, seed, number):
    rng = random.Random(f"{seed} {kind} {number}")
    r = (listed if listed_kind else other)(mixt, t, kind, rng, number)
    r["well"] = ends_well(mixt, t, r)
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
        able = [t for t in trainings if OTHERS[kind] not in ("sample", "calm") or t.name in TABLES or (kind == "block" and t.name in IMAGES)]
        chosen.append((rng.choice(able), kind, False)) if able else None
    return chosen


def share(rows, key):
    rows = [r for r in rows if r[key] is not None]
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
    parser.add_argument("--least", type=float, default=0.93)
    o = parser.parse_intermixed_args()
    mixt, root = os.path.realpath(o.mixt), o.keep or tempfile.mkdtemp()
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "faulty.txt")) as f:
        trainings = [Training(line) for line in f if line.strip() and line[0] != "#"]
    able = []
    for t in trainings:
        try:
            if not o.names or t.name in o.names:
                t.make(mixt, root)
                able.append(t)
        except data.Missing as missing:
            print(f"{t.name}: skipped, no {missing}")
    done = []
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        work = [pool.submit(trial, mixt, t, kind, is_listed, o.seed, i) for i, (t, kind, is_listed) in enumerate(plan(able, o))]
        for w in work:
            r = w.result()
            done.append(r)
            mark = "" if r["right"] else "unknown " if r["unknown"] else "WRONG "
            print(f"{r['name']:15} {r['kind']:15} {mark}{'' if r['where'] in (True, None) else 'other place '}{'' if r['well'] else 'ends worse '}"
                  f"found {','.join(r['found']) or 'nothing'}; status {r['status']}, loss {r['end']:.4g}, undisturbed {r['calm'][2]:.4g}; {r['what']}", flush=True)
    if not o.keep:
        shutil.rmtree(root)
    wrong = [r for r in done if not r["right"] and not r["unknown"]]
    alarms = {(t.name, k): v[1] for t in able for k, v in t.ends.items() if v[1]}
    for place, said in alarms.items():
        print(f"undisturbed {place}: {[(e['kind'], e['evidence'].get('found'), e['action'], e['step']) for e in said]}")
    print(f"{len(done)} faults: kind right {share(done, 'right')}, wrong {len(wrong)}, place right {share(done, 'where')}, ended well {share(done, 'well')}; "
          f"undisturbed runs with a decision or diagnosis: {len(alarms)} of {sum(len(t.ends) for t in able)}")
    return int(sum(bool(r["right"]) for r in done) < o.least * len(done) or len(wrong) > 0.02 * len(done))


if __name__ == "__main__":
    sys.exit(main())
