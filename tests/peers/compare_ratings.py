#!/usr/bin/env python3
"""Beside scikit-surprise: biases alone, its SVD over a grid, and a mixt run on the same split of the same ratings.

usage: compare_ratings.py MIXT RUN RATINGS.dat [val|test]
RUN is a run of mf or ncf; which ratings are held out is taken from 'mixt predict RUN val --json'.
Needs the packages numpy and scikit-surprise. By hand; not part of the tests.
"""
import collections
import json
import subprocess
import sys

from surprise import SVD, BaselineOnly, Dataset, Reader


def held_out(mixt, run, part):
    lines = subprocess.run([mixt, "predict", run, part, "--json"], check=True, capture_output=True, text=True).stdout
    rows = [json.loads(line) for line in lines.splitlines()]
    return [(r["user"], r["item"], r["target"][0], r["values"][0]) for r in rows]


def split(path, held):
    left = collections.Counter((u, i, t) for u, i, t, _ in held)
    train = []
    for line in open(path, encoding="utf-8"):
        user, item, rating = line.strip().split("::")[:3]
        key = (user, item, float(rating))
        if left[key]:
            left[key] -= 1
        else:
            train.append((user, item, float(rating), None))
    assert not +left, "the run was trained on other ratings"
    return train


def rmse(pairs):
    return (sum((a - b) ** 2 for a, b in pairs) / len(pairs)) ** 0.5


def train_and_test(algorithm, train, held):
    algorithm.fit(train)
    return rmse([(algorithm.predict(u, i, clip=False).est, t) for u, i, t, _ in held])


def main():
    mixt, run, path = sys.argv[1:4]
    held = held_out(mixt, run, sys.argv[4] if len(sys.argv) > 4 else "val")
    rows = split(path, held)
    data = Dataset(Reader(rating_scale=(0, 10)))
    train = data.construct_trainset(rows)
    print(f"{len(rows)} ratings to train on, {len(held)} held out")
    for method in ("als", "sgd"):
        error = train_and_test(BaselineOnly(bsl_options={"method": method}, verbose=False), train, held)
        print(f"biases alone ({method}, as it stands)   RMSE {error:.4f}")
    biases = min(
        train_and_test(BaselineOnly(bsl_options={"method": "als", "n_epochs": 20, "reg_u": u, "reg_i": i}, verbose=False),
                       train, held) for u in (3, 5, 10, 15) for i in (2, 3, 5, 10))
    print(f"biases alone (als, best of a grid)   RMSE {biases:.4f}")
    best = None
    for factors in (10, 50, 100):
        for epochs in (20, 40):
            for reg in (0.02, 0.05, 0.1):
                error = train_and_test(SVD(n_factors=factors, n_epochs=epochs, reg_all=reg, random_state=1), train, held)
                best = min(best or (9, 0), (error, f"{factors} factors, {epochs} epochs, reg {reg}"))
    print(f"SVD, best of a grid ({best[1]})   RMSE {best[0]:.4f}")
    own = rmse([(v, t) for _, _, t, v in held])
    print(f"mixt {run}   RMSE {own:.4f}: {100 * (1 - own / biases):.2f}% below biases, "
          f"{100 * (1 - own / best[0]):.2f}% below SVD")


if __name__ == "__main__":
    main()
