"""A case of cases.txt: its line read, its folder made."""
import random
import re
import subprocess

import data

PLACES = 3  # of {i}: a fragile layer is one of the first three


class Case:
    def __init__(self, line, seed):
        fields = [f.strip() for f in line.split("|")]
        if len(fields) != 6:
            raise ValueError(f"six parts are expected: {line}")
        place = random.Random(f"{fields[0]} {seed}").randrange(PLACES)
        filled = [re.sub(r"\{i(?:\+(\d))?\}", lambda m: str(place + int(m[1] or 0)), f) for f in fields]
        self.name, self.format, answer, made, config, self.why = filled
        self.answer, *self.fragile = answer.split()
        self.made, _, self.planted = made.partition(">")
        self.place = place if "{i" in line else None
        self.tolerance = 0.05  # of the loss at the end of a run that looks after itself: seeds differ by more
        self.settings = [part.strip() for part in config.split(";")]

    def write(self, folder, precision):
        with open(f"{folder}/{precision}.yaml", "w") as f:
            f.write("\n".join([f"precision: {precision}", "threads: 1", "device: cpu"] + self.settings) + "\n")

    def make(self, mixt, folder):
        """Data, planted weights, and the configurations in FP32 and in the format."""
        for call in self.made.split():
            name, *words = call.split(":")
            data.MAKERS[name](folder, *words)
        self.settings = [re.sub(r"train: \{", "train: {epochs: 0, ", s) for s in self.settings]
        if self.planted:
            self.write(folder, "fp32")
            subprocess.run([mixt, "train", "fp32.yaml", "train.steps=1", "train.lr=0", "out=start", "-q"], cwd=folder, check=True)
            subprocess.run(["mv", "start/model.safetensors", "start.safetensors"], cwd=folder, check=True)
            data.plant(folder, self.planted.split())
            self.settings.append("init: planted.safetensors")
        for precision in ("fp32", self.format):
            self.write(folder, precision)


def read(path, seed, names):
    with open(path) as f:
        cases = [Case(line, seed) for line in f if line.strip() and not line.startswith("#")]
    unknown = set(names) - {c.name for c in cases}
    if unknown:
        raise ValueError(f"no case called {', '.join(sorted(unknown))}")
    return [c for c in cases if not names or c.name in names]
