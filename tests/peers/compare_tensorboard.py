#!/usr/bin/env python3
"""Reads a run's event files with TensorBoard's own reader and holds every scalar against metrics.jsonl and layers.jsonl.

usage: compare_tensorboard.py RUN     (a run trained with train.tensorboard=true; needs the package tensorboard)
"""
import json
import struct
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

NAMES = {"train/loss": "loss", "train/accuracy": "accuracy", "train/lr": "lr", "train/grad_norm": "grad_norm",
         "train/loss_scale": "scale", "train/skipped": "skipped", "train/epoch": "epoch", "val/loss": "val_loss",
         "machine/samples_s": "samples_s", "machine/memory": "memory", "machine/energy": "energy",
         "val/accuracy": "val_accuracy"}


def fp32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def name_of(tag):
    """The metric of a tag: formats/values/bf16 is share_values_bf16."""
    parts = tag.split("/")
    return "_".join(["share", *parts[1:]]) if parts[0] == "formats" else NAMES[tag]


def margins(run, tag):
    """The margins of a tensor by step, as layers.jsonl has them, in five digits."""
    _, tensor, layer = tag.split("/", 2)
    found, names = {}, []
    for row in map(json.loads, open(f"{run}/layers.jsonl")):
        if "names" in row:
            names = row["names"]["layers"]
        elif layer in names and row[tensor]["margin"][names.index(layer)] is not None:
            found[row["step"]] = row[tensor]["margin"][names.index(layer)]
    return found


def main():
    run = sys.argv[1]
    rows = [json.loads(line) for line in open(f"{run}/metrics.jsonl")]
    board = EventAccumulator(run, size_guidance={"scalars": 0, "histograms": 0, "tensors": 0})
    board.Reload()
    wrong = 0
    for tag in board.Tags()["scalars"]:
        theirs = {event.step: event.value for event in board.Scalars(tag)}
        if tag.startswith("margin/"):
            ours = margins(run, tag)
            off = [step for step in ours.keys() | theirs.keys()
                   if step not in ours or step not in theirs or abs(theirs[step] - ours[step]) > 1e-4 * abs(ours[step])]
            wrong += len(off)
            print(f"{tag:20} {len(theirs):6} read, {len(off)} differ from layers.jsonl")
            continue
        ours = {row["step"]: row[name_of(tag)] for row in rows if row.get(name_of(tag)) is not None}
        # rows have nine digits: enough for an FP32 number, not for one that never was one
        off = [step for step in ours if abs(theirs.get(step, float("nan")) - fp32(ours[step])) > 1.2e-7 * abs(ours[step])
               or step not in theirs]
        extra = [step for step in theirs if step not in ours and theirs[step] == theirs[step]]
        exact = sum(theirs.get(step) == fp32(ours[step]) for step in ours)
        print(f"{tag:20} {len(theirs):6} read, {exact:6} exact, {len(off)} differ, {len(extra)} more than rows")
        wrong += len(off) + len(extra)
    for tag in board.Tags()["histograms"]:
        for event in board.Histograms(tag):
            wrong += sum(event.histogram_value.bucket) != event.histogram_value.num
    print(len(board.Tags()["histograms"]), "histograms;", "texts:", [t for t in board.Tags()["tensors"]])
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
