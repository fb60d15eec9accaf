"""What the answers of cases.txt rest on: pairs of runs of mixt train in FP32 and in the format, with the same seeds, and the relative
change of the last validation loss. None of the tools that judge is asked. At most 10 pairs.
Usage: longer.py MIXT [PAIRS [CASE...]]"""
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import case
import data

T = (0, 0, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)  # Student's t, two-sided 95%, by number of pairs


def loss(mixt, folder, precision, seed):
    done = subprocess.run(["nice", mixt, "train", f"{precision}.yaml", f"seed={seed}", f"out=run-{precision}-{seed}", "-q", "--json"],
                          cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        value = json.loads(done.stdout)["val_loss"]
    except (ValueError, KeyError):
        return math.inf, done.stderr.strip().split("\n")[0]
    return (math.inf if value is None else value), ""


def main():
    mixt, pairs, names = os.path.realpath(sys.argv[1]), min(10, int(sys.argv[2]) if len(sys.argv) > 2 else 10), sys.argv[3:]
    for c in case.read(os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases.txt"), 1, names):
        with tempfile.TemporaryDirectory() as folder:
            try:
                c.make(mixt, folder)
            except data.Missing as missing:
                print(f"{c.name}: skipped, no {missing}", flush=True)
                continue
            sides = [[loss(mixt, folder, p, 900 + s) for p in ("fp32", c.format)] for s in range(pairs)]
        fine = [(b - a) / a for (a, _), (b, _) in sides if math.isfinite(a) and math.isfinite(b)]
        text = f"{len(fine)} of {pairs} pairs finite"
        if len(fine) > 1:
            mean, spread = 100 * statistics.mean(fine), 100 * statistics.stdev(fine)
            error = spread / math.sqrt(len(fine)) * T[len(fine)]
            text += f", {mean:+.3f}% ({mean - error:+.3f} to {mean + error:+.3f}), sd {spread:.3f}%"
        first = statistics.mean([a for (a, _), _ in sides])
        print(f"{c.name} ({c.format}, {c.answer}): {text}; FP32 ends at {first:.4g}; {sides[0][0][1] or sides[0][1][1]}", flush=True)


if __name__ == "__main__":
    main()
