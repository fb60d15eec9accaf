"""The code of docs/python.md, run in its order, beside small files of the names that it uses; what takes long is shortened."""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.environ["MIXT_ROOT"], "tests", "python"))
import support  # noqa: E402

import mixt  # noqa: E402

support.files()
page = open(os.path.join(os.environ["MIXT_ROOT"], "docs", "python.md"), encoding="utf-8").read()
blocks = list(re.finditer(r"^```python\n(.*?)^```$", page, re.M | re.S))
assert len(blocks) >= 9, len(blocks)

# configs/digits.yaml has 20000 samples: fewer here, by what every run is opened with
begin = mixt.policy.Config.__init__


def smaller(self, path=None, settings=None, /, **keys):
    begin(self, path, settings, **keys)
    if path is not None and os.fspath(path).endswith("digits.yaml"):
        for row in ("data.samples=640", "train.warmup=0"):
            self.set(row)
        if not any("train" in str(k) for k in {**(settings or {}), **keys}):
            self.set("train.epochs=1")


mixt.policy.Config.__init__ = smaller
names = {}
for block in blocks:
    line = page[: block.start()].count("\n") + 1
    code = compile("\n" * line + block.group(1), os.path.join("docs", "python.md"), "exec")
    exec(code, names)
    if "tune" in names and "adapter" not in names:
        assert os.path.exists("adapter/adapter_config.json")
        names["adapter"] = True
    if "model" in names and "scored" not in names:
        assert names["model"].score(names["X"], names["labels"]) > 0.9
        names["scored"] = True
print(f"{len(blocks)} blocks")
