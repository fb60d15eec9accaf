"""Healthy runs that nothing may be decided about: regressions in raw units, with means and deviations that are drawn; and runs of faulty.txt
that are resumed under other settings, each of those that a resume may change, with a bad batch behind it: that is what a diagnosis may find,
and never the machine. Usage: resumed.py MIXT [--seed N] [--jobs N] [NAME...]"""
import argparse
import concurrent.futures
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import data
import faulty

REGRESSIONS = 10
AT, STEPS, BAD = 120, 200, 135  # the resume, the end, the bad batch
CHANGES = {"lr": ["train.lr={lr}", "--allow", "train.lr"], "decay": ["train.weight_decay=0.03", "--allow", "train.weight_decay"],
           "precision": ["precision={other}", "--allow", "precision"], "threads": ["threads=2"], "steps": [f"train.steps={STEPS + 20}"],
           "log": ["train.log_every=7"]}


def said_of(path):
    rows = [json.loads(r) for r in open(f"{path}/events.jsonl")] if os.path.exists(f"{path}/events.jsonl") else []
    return [e for e in rows if e["kind"] in ("diagnosis", "decision") and e.get("from") != "auto"]


def train(mixt, folder, *words):
    done = subprocess.run([mixt, "train", *words, "-q"], cwd=folder, capture_output=True, text=True, timeout=900)
    return done.returncode, done.stderr.strip()


def resumed(mixt, t, seed):
    """What each change has led to."""
    rng = random.Random(f"{seed} {t.name}")
    precision, found = rng.choice(["fp16", "bf16"]), []
    begin = ["c.yaml", "out=begun", f"precision={precision}", f"seed={rng.randrange(1, 1000)}", f"faults=label@{BAD}", "auto.steer=true", "train.epochs=0",
             f"train.steps={STEPS}", f"train.checkpoint_every={AT}", "train.keep=100", "auto.snapshot_every=50"]
    status, err = train(mixt, t.folder, *begin)
    if status:
        return [(t.name, "begin", "broken", err)]
    for step in os.listdir(f"{t.folder}/begun/checkpoints"):
        if int(step.split("-")[1]) > AT:
            shutil.rmtree(f"{t.folder}/begun/checkpoints/{step}")
    lr = float(re.search(r"lr: ([\d.e-]+)", " ".join(t.settings))[1])
    for name, words in CHANGES.items():
        shutil.copytree(f"{t.folder}/begun", f"{t.folder}/on-{name}")
        filled = [w.format(lr=lr * rng.choice([0.3, 0.6]), other="bf16" if precision == "fp16" else "fp16") for w in words]
        status, err = train(mixt, t.folder, "--resume", f"on-{name}", *filled)
        kinds = [e["evidence"].get("found") for e in said_of(f"{t.folder}/on-{name}") if e["kind"] == "diagnosis"]
        wrong = "broken" if status else "hardware" if "hardware" in kinds else "precision" if "precision" in kinds else ""
        found.append((t.name, name, wrong, err if status else ",".join(kinds)))
    return found


def regression(mixt, root, number, seed):
    rng, folder = random.Random(f"{seed} raw {number}"), os.path.join(root, f"raw-{number}")
    os.makedirs(folder)
    mean, deviation, width = rng.choice([-1, 1]) * 10 ** rng.uniform(0.5, 3), 10 ** rng.uniform(0.5, 2.5), rng.choice([4, 8, 16])
    weights = [rng.gauss(0, 1) for _ in range(width)]
    lines = []
    for _ in range(900):
        x = [rng.gauss(0, 1) for _ in range(width)]
        lines.append(x + [mean + deviation * (sum(w * v for w, v in zip(weights, x)) / width ** 0.5 + rng.gauss(0, 0.2))])
    data.rows(f"{folder}/raw.csv", [f"x{i}" for i in range(width)] + ["y"], lines)
    found = []
    for precision, rest in (("bf16", ["train.optimizer=adam", "train.lr=0.01"]), ("fp16", ["train.optimizer=adamw", "train.lr=0.02"])):
        status, err = train(mixt, folder, "model=mlp", "net.hidden=[32, 32]", "data.path=raw.csv", "data.task=values", "data.normalise_target=none", "threads=1",
                            "device=cpu", f"precision={precision}", f"out={precision}", f"seed={number + 1}", "train.epochs=0", "train.steps=300", "train.batch=32",
                            "auto.steer=true", *rest)
        said = said_of(f"{folder}/{precision}")
        wrong = "broken" if status else "decision" if any(e["kind"] == "decision" for e in said) else ""
        found.append((f"raw-{number}", f"{precision}, {mean:.3g} +- {deviation:.3g}", wrong, err if status else ",".join(e["evidence"].get("found") or e["action"] for e in said)))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mixt")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seed", type=int, default=20261120)
    parser.add_argument("--jobs", type=int, default=2)
    o = parser.parse_intermixed_args()
    mixt, root = os.path.realpath(o.mixt), tempfile.mkdtemp()
    trainings, work, done = faulty.trainings(), [], []
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        for t in trainings:
            try:
                if not o.names or t.name in o.names:
                    t.make(mixt, root)
                    work.append(pool.submit(resumed, mixt, t, o.seed))
            except data.Missing as missing:
                print(f"{t.name}: skipped, no {missing}")
        work += [pool.submit(regression, mixt, root, i, o.seed) for i in range(REGRESSIONS)]
        for w in work:
            for row in w.result():
                done.append(row)
                print(f"{row[0]:15} {row[1]:28} {row[2] or 'fine':9} {row[3]}", flush=True)
    shutil.rmtree(root)
    raw = [r for r in done if r[0].startswith("raw-")]
    print(f"{len(done) - len(raw)} resumed runs, {sum(bool(r[2]) for r in done if r not in raw)} with a machine or a format blamed; {len(raw)} regressions in raw units, "
          f"{sum(bool(r[2]) for r in raw)} with a decision")
    return int(any(r[2] for r in done))


if __name__ == "__main__":
    sys.exit(main())
