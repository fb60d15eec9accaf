"""The package knows every public function, struct and constant as the library has them; nothing of the headers is lost."""

import ctypes
import inspect
import os
import re
import time

began = time.process_time()
import mixt  # noqa: E402

seconds = time.process_time() - began
from mixt import c, options, results  # noqa: E402

root = os.environ["MIXT_ROOT"]
abi = os.path.join(root, "tests", "abi")

# ---- what compiled programs depend on is what ctypes has ----
rows = faults = 0
for line in open(os.path.join(abi, "layouts.txt"), encoding="utf-8"):
    words = line.split()
    rows += 1
    if "=" in line:
        faults += int(getattr(c, words[0])) != int(words[2])
    elif "." in words[0]:
        struct, field = words[0].split(".")
        place = getattr(getattr(c, struct), field)
        faults += (place.offset, place.size) != (int(words[1]), int(words[2]))
    else:
        faults += ctypes.sizeof(getattr(c, words[0])) != int(words[1])
assert rows > 1500 and not faults, (rows, faults)

symbols = [line.strip() for line in open(os.path.join(abi, "symbols.txt"), encoding="utf-8")]
for symbol in symbols:
    function = getattr(c, symbol)
    assert function.argtypes is not None and isinstance(function.__doc__, str), symbol
stub = open(os.path.join(os.path.dirname(c.__file__), "c.pyi"), encoding="utf-8").read()
typed = set(re.findall(r"^def (mixt_\w+)\(.*\) -> .*: \.\.\.$", stub, re.M))
assert typed == set(symbols), typed ^ set(symbols)
documented = sum(bool(getattr(c, s).__doc__) for s in symbols)
assert documented > 0.75 * len(symbols), documented

# ---- every op is a method of the builder ----
headers = "".join(open(os.path.join(root, "include/mixt", h), encoding="utf-8").read() for h in ("graph.h", "loss.h"))
ops = set(re.findall(r"^MIXT_API mixt_value mixt_(\w+?)(?:_with)?\(mixt_builder", headers, re.M)) | {
    "split",
    "loss_add",
}
missing = [op for op in ops if not hasattr(mixt.Builder, op)]
assert len(ops) > 50 and not missing, missing

# ---- options and results ----
structs = [
    n
    for n in dir(c)
    if n.startswith("mixt_") and inspect.isclass(getattr(c, n)) and issubclass(getattr(c, n), ctypes.Structure)
]
for struct in structs:
    if struct.endswith("_options"):
        name = "".join(part.capitalize() for part in struct.removeprefix("mixt_").split("_"))
        assert hasattr(options, name), struct
        assert hasattr(c, f"{struct}_default"), struct
assert len(results.OF) > 100

# ---- everything public has words and types ----
for name in mixt.__all__:
    thing = getattr(mixt, name)
    if inspect.isfunction(thing) or inspect.isclass(thing):
        assert thing.__doc__, f"mixt.{name} has no words"
    for function in (
        [thing]
        if inspect.isfunction(thing)
        else [f for f in vars(thing).values() if inspect.isfunction(f)] if inspect.isclass(thing) else []
    ):
        if function.__name__.startswith("_") or not function.__module__.startswith("mixt"):
            continue
        typed_names = set(function.__annotations__)
        wanted = {p for p in inspect.signature(function).parameters if p != "self" and p not in ("X", "y")} | {"return"}
        assert wanted <= typed_names | {"self"}, f"{name}.{function.__name__}: {wanted - typed_names} without a type"
assert os.path.exists(os.path.join(os.path.dirname(mixt.__file__), "py.typed"))
print(
    f"{len(symbols)} functions, {rows} rows of layouts, {documented} functions with words; import took {1000 * seconds:.0f} ms of CPU"
)
