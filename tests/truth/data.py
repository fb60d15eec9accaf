"""What cases of cases.txt are made from: data drawn from seeds, files of the shared data unpacked, and weights to begin with
that plant a fault. Each maker is called with the words behind its name and writes into the folder of the case."""
import array
import gzip
import json
import math
import os
import random
import struct
import sys

SHARED = os.path.realpath(os.environ.get("MIXT_TEST_DATA", "../shared/data"))


class Missing(Exception):
    """A file of the shared data is not there: the case is skipped."""


def shared(name):
    path = os.path.join(SHARED, name)
    if not os.path.exists(path):
        raise Missing(path)
    return path


def idx(path, kind, shape, values):
    with open(path, "wb") as f:
        f.write(struct.pack(">BBBB", 0, 0, kind, len(shape)) + struct.pack(f">{len(shape)}I", *shape) + bytes(values))


def drawn_shape(rng, what, side):
    """A circle, square, cross or pair of bars at a random place, under noise."""
    x0, y0, r = rng.uniform(4, side - 5), rng.uniform(4, side - 5), rng.uniform(2.2, 3.8)
    pixels = []
    for y in range(side):
        for x in range(side):
            dx, dy = abs(x - x0), abs(y - y0)
            on = (abs(math.hypot(dx, dy) - r) < 0.8, max(dx, dy) <= r and max(dx, dy) > r - 1.2,
                  (dx < 0.8 or dy < 0.8) and max(dx, dy) <= r, abs(dx - r) < 0.8 and dy <= r)[what]
            pixels.append(min(255, max(0, int(rng.gauss(190 if on else 40, 30)))))
    return pixels


def shapes(folder, seed, count="1200"):
    rng, count, side = random.Random(int(seed)), int(count), 16
    os.mkdir(f"{folder}/shapes")
    for part, n in (("train", count), ("t10k", 400)):
        labels = [rng.randrange(4) for _ in range(n)]
        pixels = [p for label in labels for p in drawn_shape(rng, label, side)]
        idx(f"{folder}/shapes/{part}-images-idx3-ubyte", 8, (n, side, side), pixels)
        idx(f"{folder}/shapes/{part}-labels-idx1-ubyte", 8, (n,), labels)


def rows(path, header, lines):
    with open(path, "w") as f:
        f.write(",".join(header) + "\n")
        for line in lines:
            f.write(",".join(f"{v:.9g}" for v in line) + "\n")


def prices(folder, seed, unit="1"):
    """Flats: area, age, floor, distance, income of the district; the price in thousands, times `unit`."""
    rng = random.Random(int(seed))
    lines = []
    for _ in range(1600):
        area, age, floor = rng.gauss(80, 25), rng.uniform(0, 90), rng.randrange(12)
        far, income = rng.expovariate(0.2), rng.gauss(42000, 9000)
        price = 2.4 * area - 0.6 * age + 1.5 * floor - 40 * math.tanh(far / 5) + income / 500
        price += 0.01 * area * floor + rng.gauss(0, 40)
        lines.append((area, age, floor, far, income, price * float(unit)))
    rows(f"{folder}/prices.csv", ("area", "age", "floor", "far", "income", "price"), lines)


def dates(folder, seed, origin):
    """A height by two dates, in days since a day long ago: those of one day are one number in BF16."""
    rng = random.Random(int(seed))
    lines = []
    for _ in range(1600):
        a, b = rng.random(), rng.random()
        lines.append((float(origin) + a, float(origin) + b, math.sin(5 * a) + b * b - a * b + rng.gauss(0, 0.05)))
    rows(f"{folder}/dates.csv", ("begin", "end", "height"), lines)


def series(folder, seed, scale="1", centre="0", inputs="1"):
    """The next value of a noisy oscillator from its last eight, which are in other units: times `inputs`."""
    rng, x = random.Random(int(seed)), [0.1, 0.2]
    for _ in range(2000):
        x.append(1.5 * x[-1] - 0.8 * x[-2] + 0.2 * math.tanh(x[-2]) + rng.gauss(0, 0.3))
    x = [float(centre) + float(scale) * v for v in x]
    lines = [[float(inputs) * v for v in x[i:i + 8]] + [x[i + 8]] for i in range(100, len(x) - 9)]
    rows(f"{folder}/series.csv", [f"x{i}" for i in range(8)] + ["next"], lines)


def clusters(folder, seed, classes="5", width="12"):
    rng = random.Random(int(seed))
    centres = [[rng.gauss(0, 1) for _ in range(int(width))] for _ in range(int(classes))]
    lines = []
    for _ in range(6000):
        label = rng.randrange(int(classes))
        lines.append([c + rng.gauss(0, 1.6) for c in centres[label]] + [label])
    rows(f"{folder}/clusters.csv", [f"f{i}" for i in range(int(width))] + ["class"], lines)


def sentences(folder, seed):
    """Drawn by a small grammar, for where the shared data is not."""
    rng = random.Random(int(seed))
    nouns = "river stone bird engine letter garden winter teacher".split()
    verbs = "sees carries forgets opens follows answers".split()
    with open(f"{folder}/text.txt", "w") as f:
        for _ in range(4000):
            a, b, c = (rng.choice(nouns) for _ in range(3))
            f.write(f"the {a} {rng.choice(verbs)} a {b} and the {c} {rng.choice(verbs)} it.\n")


def text(folder, name, limit="300000"):
    path = shared(name)
    with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as f:
        data = f.read(int(limit))
    with open(f"{folder}/text.txt", "wb") as f:
        f.write(data)


def translations(folder, count="3000"):
    os.mkdir(f"{folder}/pairs")
    for part in ("train", "val"):
        for language in ("en", "de"):
            with gzip.open(shared(f"multi30k/{part}.{language}.gz"), "rt") as f, open(f"{folder}/pairs/{part}.{language}", "w") as out:
                out.writelines(f.readlines()[:int(count) if part == "train" else 400])


def ratings(folder, count="20000"):
    with open(shared("movietweetings_100k/ratings.dat")) as f, open(f"{folder}/ratings.dat", "w") as out:
        out.writelines(f.readlines()[:int(count)])


def sounds(folder, speaker):
    os.mkdir(f"{folder}/sounds")
    path = shared("fsdd")
    for name in sorted(os.listdir(path)):
        if name.endswith(".wav") and name.split("_")[1] == speaker:
            os.symlink(os.path.join(path, name), f"{folder}/sounds/{name}")


def read_weights(path):
    with open(path, "rb") as f:
        blob = f.read()
    size = struct.unpack("<Q", blob[:8])[0]
    header = json.loads(blob[8:8 + size])
    header.pop("__metadata__", None)
    return {name: (t["shape"], array.array("f", blob[8 + size + t["data_offsets"][0]:8 + size + t["data_offsets"][1]]))
            for name, t in header.items() if t["dtype"] == "F32"}


def write_weights(path, weights):
    header, at = {}, 0
    for name, (shape, values) in weights.items():
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + 4 * len(values)]}
        at += 4 * len(values)
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(head)) + head)
        for _, values in weights.values():
            values.tofile(f)


def scale(weights, layer, factor):
    """Times `factor`: a norm behind the layer divides it out again, where the format can hold it."""
    for name in {f"{layer}.weight", f"{layer}.bias"} & set(weights):  # a layer before a batch norm has no bias
        shape, values = weights[name]
        weights[name] = (shape, array.array("f", (v * float(factor) for v in values)))


def common(weights, layer, after, size, gain="1"):
    """Rows of `layer` in pairs that differ by little next to what they share, `size`; `after` takes the differences. What
    16 bits round away of the shared part is more than the difference, so that layer and reader need FP32 between them."""
    (rows_, width), first = weights[f"{layer}.weight"][0], weights[f"{layer}.weight"][1]
    bias = weights[f"{layer}.bias"][1]
    for row in range(0, rows_ - 1, 2):
        bias[row], bias[row + 1] = float(size), float(size)
        for i in range(width):
            first[(row + 1) * width + i] = -first[row * width + i]
    (outs, width), second = weights[f"{after}.weight"][0], weights[f"{after}.weight"][1]
    for out in range(outs):
        for i in range(0, width - 1, 2):
            v = float(gain) * second[out * width + i]
            second[out * width + i], second[out * width + i + 1] = v, -v


def centre(weights, layer, value):
    """The bias takes out what all inputs have in common, so that FP32 sees only how they differ."""
    (rows_, width), values = weights[f"{layer}.weight"]
    bias = weights[f"{layer}.bias"][1]
    for row in range(rows_):
        bias[row] -= float(value) * sum(values[row * width:(row + 1) * width])


MAKERS = {f.__name__: f for f in (shapes, prices, dates, series, clusters, sentences, text, translations, ratings, sounds)}
PLANTS = {f.__name__: f for f in (scale, common, centre)}


def plant(folder, words):
    """start.safetensors becomes planted.safetensors."""
    weights = read_weights(f"{folder}/start.safetensors")
    for call in words:
        name, *rest = call.split(":")
        PLANTS[name](weights, *rest)
    write_weights(f"{folder}/planted.safetensors", weights)


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    MAKERS[sys.argv[2]](*[sys.argv[1]] + sys.argv[3:])
