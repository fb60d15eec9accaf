"""1,000 wrong calls and more: each is refused by an exception, and none ends the interpreter."""

import faulthandler
import inspect
import os
import random
import subprocess
import sys
import warnings

import numpy as np

CALLS = 1400


def objects():
    """Objects in good order, and such that are closed."""
    import mixt

    net = mixt.Model(lambda b, x: b.linear("fc", x, 2), loss="cross_entropy", threads=1)
    trainer = mixt.Trainer(net, batch=4)
    trainer.step(np.zeros((4, 3), np.float32), np.zeros(4, np.int32))
    data = mixt.Data(np.zeros((8, 3), np.float32), np.arange(8) % 2)
    run = mixt.Run(
        os.path.join(os.environ["MIXT_ROOT"], "configs/digits.yaml"),
        {"data.samples": 64, "train.batch": 16},
        progress=False,
    )
    closed_net = mixt.Model(lambda b, x: x, threads=1)
    closed_trainer = mixt.Trainer(closed_net)
    closed_net.close()
    closed = [
        mixt.Data(np.zeros((2, 2), np.float32), [0, 1]),
        mixt.Policy("bf16"),
        mixt.Config(),
        mixt.Tokenizer(kind="bytes"),
    ]
    for thing in closed:
        thing.close()
    tensor = trainer.tensor("fc.weight")
    good = [
        trainer,
        data,
        run,
        mixt.Policy("fp16"),
        mixt.Config(),
        mixt.Tokenizer(kind="bytes"),
        tensor,
        trainer.params,
    ]
    return good, closed + [closed_trainer]


def strange(draw, things):
    """Something that no function takes, or not in this place."""
    kind = draw.randrange(26)
    plain = [
        None,
        -1,
        0,
        2**70,
        -(2**63),
        1.5,
        float("nan"),
        float("inf"),
        "",
        "x",
        "a\0b",
        "\udc80",
        b"bytes",
        [],
        {},
        (),
        object(),
    ]
    if kind < len(plain):
        return plain[kind]
    arrays = [
        np.zeros((0, 3), np.float32),
        np.zeros((4, 5), np.float32),
        np.zeros(4, complex),
        np.array("text"),
        np.zeros((4, 3))[::2],
    ]
    if kind < len(plain) + len(arrays):
        return arrays[kind - len(plain)]
    return draw.choice([lambda *a: None, int, draw.choice(things), draw.choice(things), [None, "x"]])


def functions(mixt, things):
    """Everything public: functions, classes, methods and properties of objects."""
    # what would only wait, or print help for the whole package
    left_out = {"bench"}
    for name in sorted(mixt.__all__):
        thing = getattr(mixt, name)
        if callable(thing) and name not in left_out:
            yield name, thing
    for thing in things:
        for name in sorted(dir(type(thing))):
            if name.startswith("_") and name not in (
                "__getitem__",
                "__setitem__",
                "__len__",
                "__repr__",
                "__enter__",
                "__reduce__",
                "__dlpack__",
                "__iter__",
            ):
                continue
            if name in ("close", "train"):
                continue
            yield f"{type(thing).__name__}.{name}", lambda *a, thing=thing, name=name, **k: use(thing, name, a, k)


def use(thing, name, arguments, keywords):
    value = getattr(thing, name)
    if name == "__iter__":
        return None if type(thing).__name__ == "Run" else list(value(*arguments, **keywords))[:3]
    found = value(*arguments, **keywords) if callable(value) else value
    return list(x for _, x in zip(range(3), found)) if inspect.isgenerator(found) else found


def build(draw, mixt):
    """A model function that makes wrong calls."""

    def wrong(b, x):
        name = draw.choice([n for n in dir(b) if not n.startswith("_") and n not in ("close", "closed")])
        method = getattr(b, name)
        arguments = [draw.choice([x, strange(draw, [x]), "n", 3]) for _ in range(draw.randrange(4))]
        out = method(*arguments)
        return out if draw.random() < 0.5 else x

    return mixt.Model(
        wrong,
        draw.choice(["mse", "cross_entropy"]),
        input=draw.choice([(3,), (4, 4, 1), (2, 2, 2, 2, 2, 2, 2), ()]),
        threads=1,
    )


def child(seed):
    import mixt

    faulthandler.enable()
    warnings.simplefilter("ignore")
    draw = random.Random(seed)
    good, closed = objects()
    things = good + closed
    all_of_them = list(functions(mixt, things))
    refused = 0
    for i in range(CALLS):
        try:
            if i % 7 == 0:
                where, _ = "Model", build(draw, mixt)
                continue
            where, function = draw.choice(all_of_them)
            arguments = [strange(draw, things) for _ in range(draw.randrange(4))]
            keywords = (
                {draw.choice(["batch", "lr", "dtype", "precision", "data", "out", "x"]): strange(draw, things)}
                if draw.random() < 0.2
                else {}
            )
            if os.environ.get("MISUSE_SHOW"):
                print(i, where, [type(a).__name__ for a in arguments], keywords, file=sys.stderr, flush=True)
            function(*arguments, **keywords)
        except Exception as fault:  # noqa: BLE001: any exception is an answer
            refused += 1
            assert not isinstance(fault, (SystemError, MemoryError)), repr(fault)
    for thing in closed:  # none of them works again
        for name in ("info", "rules", "text", "encode", "step"):
            if hasattr(type(thing), name):
                try:
                    use(thing, name, () if name in ("info", "rules", "text") else (b"x",), {})
                except mixt.Error as fault:
                    assert fault.status == mixt.Status.MIXT_ERROR_STATE, fault
                else:
                    raise AssertionError(f"a closed {type(thing).__name__} works: {name}")
    good[0].step(np.zeros((4, 3), np.float32), np.zeros(4, np.int32))  # what is in order still works
    print(f"{CALLS} calls, {refused} refused")
    assert refused >= 1000, refused


def main():
    if len(sys.argv) > 1:
        return child(int(sys.argv[1]))
    seed = int(os.environ.get("MISUSE_SEED", "1"))
    done = subprocess.run([sys.executable, __file__, str(seed)], capture_output=True, text=True, timeout=300)
    print(done.stdout[-2000:], done.stderr[-4000:] if done.returncode else "")
    if done.returncode:
        sys.exit(f"seed {seed}: status {done.returncode}")


main()
