#!/usr/bin/env python3
"""Beside scikit-surprise: biases alone, SVD, and with --all SVD++ and neighbours, and mixt runs on the same split of the same ratings.

usage: compare_ratings.py MIXT RUN RATINGS.dat [--also RUN...] [--all]
RUN is a run of mf or ncf with a validation and a test part (data.val_fraction, data.test_fraction); which ratings those are is taken from
'mixt predict RUN val --json'. Everybody learns from the training part alone; the settings of every method are those of its grid that are
best on the validation part, as a run's own should be; what is told is the error on the test part, which nobody has looked at.
More runs, --also, must have the same parts.
Needs the packages numpy and scikit-surprise. By hand; not part of the tests.
"""
import argparse
import collections
import itertools
import json
import subprocess

from surprise import SVD, BaselineOnly, Dataset, KNNBaseline, Reader, SVDpp


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


def error_of(algorithm, rows):
    return rmse([(algorithm.predict(u, i, clip=False).est, t) for u, i, t, _ in rows])


def grid(**lists):
    return [dict(zip(lists, values)) for values in itertools.product(*lists.values())]


def biases(reg_u, reg_i):
    return BaselineOnly(bsl_options={"method": "als", "n_epochs": 20, "reg_u": reg_u, "reg_i": reg_i}, verbose=False)


def neighbours(k, shrinkage):
    return KNNBaseline(k=k, sim_options={"name": "pearson_baseline", "user_based": False, "shrinkage": shrinkage},
                       bsl_options={"method": "als", "n_epochs": 20, "reg_u": 2, "reg_i": 2}, verbose=False)


METHODS = {
    "biases": (biases, grid(reg_u=(1, 2, 3, 5, 10), reg_i=(1, 2, 3, 5, 10))),
    "SVD": (lambda **o: SVD(random_state=1, **o),
            grid(n_factors=(2, 5, 20, 100), n_epochs=(20, 40), reg_all=(0.05, 0.1, 0.2, 0.4), lr_all=(0.005, 0.01))),
}
SLOW = {  # an hour, and 4 GB for similarities of all items
    "SVD++": (lambda **o: SVDpp(random_state=1, **o), grid(n_factors=(5, 20), n_epochs=(20, 40), reg_all=(0.05, 0.1), lr_all=(0.005, 0.01))),
    "neighbours": (neighbours, grid(k=(20, 40, 80), shrinkage=(50, 100, 300))),
}


def show_run(mixt, run, errors, val, test):
    own_val, own = (held_out(mixt, run, part) for part in ("val", "test"))
    assert [r[:3] for r in own_val + own] == [r[:3] for r in val + test], f"{run} has other parts"
    error = rmse([(v, t) for _, _, t, v in own])
    print(f"{'mixt':10s} RMSE {error:.4f} (validation {rmse([(v, t) for _, _, t, v in own_val]):.4f}, {run}): "
          + ", ".join(f"{100 * (1 - error / e):+.2f}% better than {name}" for name, e in errors.items()))


def main():
    a = argparse.ArgumentParser()
    a.add_argument("mixt")
    a.add_argument("run")
    a.add_argument("ratings")
    a.add_argument("--also", nargs="*", default=[])
    a.add_argument("--all", action="store_true")
    a = a.parse_args()
    val, test = (held_out(a.mixt, a.run, part) for part in ("val", "test"))
    rows = split(a.ratings, val + test)
    train = Dataset(Reader(rating_scale=(0, 10))).construct_trainset(rows)
    print(f"{len(rows)} ratings to train on, {len(val)} to choose settings, {len(test)} to judge")
    errors = {}
    for name, (make, settings) in {**METHODS, **(SLOW if a.all else {})}.items():
        tried = [(error_of(make(**o).fit(train), val), n) for n, o in enumerate(settings)]
        chosen = settings[min(tried)[1]]
        errors[name] = error_of(make(**chosen).fit(train), test)
        print(f"{name:10s} RMSE {errors[name]:.4f} (validation {min(tried)[0]:.4f}, best of {len(tried)}: {chosen})", flush=True)
    for run in [a.run] + a.also:
        show_run(a.mixt, run, errors, val, test)


if __name__ == "__main__":
    main()
