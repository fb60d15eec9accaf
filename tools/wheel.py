#!/usr/bin/env python3
"""Packs wheels out of a made package and an installed library. Usage: wheel.py PYTHON STAGE DIST"""

import base64
import hashlib
import pathlib
import re
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What a Linux that manylinux speaks of has; all else lies in the wheel, or, of the CUDA backend, in NVIDIA's own packages.
SYSTEM = {
    "libc.so.6",
    "libm.so.6",
    "libpthread.so.0",
    "libdl.so.2",
    "librt.so.1",
    "libgcc_s.so.1",
    "libstdc++.so.6",
    "ld-linux-x86-64.so.2",
}
NVIDIA = ("libcudnn", "libcublas", "libnvrtc", "libcuda")
WHEN = (2020, 1, 1, 0, 0, 0)  # the same files make the same wheel


def dynamic(path):
    """What a library needs, and the newest glibc that it asks for."""
    text = subprocess.run(["objdump", "-p", str(path)], check=True, capture_output=True, text=True).stdout
    needs = re.findall(r"^ *NEEDED +(\S+)", text, re.M)
    versions = [tuple(map(int, v.split("."))) for v in re.findall(r"\bGLIBC_(\d+\.\d+)", text)]
    return needs, max(versions, default=(2, 17))


def tag_of(paths, others=()):
    """The platform of libraries; an error where one needs what is neither there nor beside it."""
    there = {p.name for p in paths}
    newest = (2, 17)
    for path in paths:
        needs, version = dynamic(path)
        newest = max(newest, version)
        for need in needs:
            if need not in there and need not in SYSTEM and not need.startswith(tuple(others)):
                sys.exit(f"wheel: {path.name} needs {need}, which is not packed")
    return f"py3-none-manylinux_{newest[0]}_{newest[1]}_x86_64"


def pack(dist, name, version, tag, files, metadata):
    """Writes a wheel: its files, what it is, and the list of all with their sums."""
    info = f"{name}-{version}.dist-info"
    wheel = f"Wheel-Version: 1.0\nGenerator: mixt\nRoot-Is-Purelib: false\nTag: {tag}\n"
    files = list(files) + [(f"{info}/METADATA", metadata.encode()), (f"{info}/WHEEL", wheel.encode())]
    rows = []
    path = dist / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for where, content in files + [(f"{info}/RECORD", None)]:
            if content is None:
                content = "".join(f"{row}\n" for row in rows + [f"{where},,"]).encode()
            sum_ = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            rows.append(f"{where},sha256={sum_},{len(content)}")
            entry = zipfile.ZipInfo(where, WHEN)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if ".so" in where else 0o644) << 16
            archive.writestr(entry, content)
    print(f"{path} {path.stat().st_size} bytes")


def metadata(name, version, summary, more=""):
    words = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: {summary}\nLicense: MIT\nRequires-Python: >=3.9\n"
    words += "Classifier: Operating System :: POSIX :: Linux\nClassifier: Programming Language :: Python :: 3\n" + more
    return words + "Description-Content-Type: text/markdown\n\n"


def main():
    python, stage, dist = (pathlib.Path(p) for p in sys.argv[1:4])
    dist.mkdir(exist_ok=True)
    version = re.search(r'"(.*)"', (python / "mixt" / "_version.py").read_text()).group(1)
    for old in list(dist.glob("mixt-*.whl")) + list(dist.glob("mixt_cuda-*.whl")):
        old.unlink()
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    licence = ("LICENSE", (ROOT / "LICENSE").read_bytes())
    modules = [(f"mixt/{p.name}", p.read_bytes()) for p in sorted((python / "mixt").iterdir()) if p.is_file()]
    libraries = [p for p in sorted((stage / "lib").iterdir()) if p.is_file() and not p.is_symlink()]
    named = {p: "libmixt.so.0" if p.name.startswith("libmixt.so") else p.name for p in libraries}
    info = f"mixt-{version}.dist-info"
    files = modules + [(f"mixt/lib/{name}", p.read_bytes()) for p, name in named.items()]
    files += [(f"{info}/licenses/{licence[0]}", licence[1])]
    files += [(f"{info}/licenses/{p.name}", p.read_bytes()) for p in sorted((stage / "share" / "licences").iterdir())]
    summary = "Mixed-precision training of neural networks"
    more = (
        "Requires-Dist: numpy>=1.22\nProvides-Extra: cuda\n" + f'Requires-Dist: mixt_cuda=={version}; extra == "cuda"\n'
    )
    pack(dist, "mixt", version, tag_of(libraries), files, metadata("mixt", version, summary, more) + page)
    cuda = stage / "lib" / "mixt" / "libmixt_cuda.so"
    if cuda.exists():
        info = f"mixt_cuda-{version}.dist-info"
        words = b'"""The CUDA backend of mixt, which loads it where a GPU is."""\n'
        files = [
            ("mixt_cuda/__init__.py", words),
            ("mixt_cuda/libmixt_cuda.so", cuda.read_bytes()),
            (f"{info}/licenses/LICENSE", licence[1]),
        ]
        needs = subprocess.run(["objdump", "-p", str(cuda)], check=True, capture_output=True, text=True).stdout
        major = re.search(r"libnvrtc\.so\.(\d+)", needs).group(1)
        old = f"-cu{major}" if int(major) < 13 else ""  # from CUDA 13 on only cuDNN's name says which
        parts = (f"cublas{old}", f"cudnn-cu{major}", f"cuda-nvrtc{old}")
        more = f"Requires-Dist: mixt=={version}\nProvides-Extra: libraries\n"
        more += "".join(f'Requires-Dist: nvidia-{p}; extra == "libraries"\n' for p in parts)
        pack(
            dist,
            "mixt_cuda",
            version,
            tag_of([cuda], NVIDIA),
            files,
            metadata("mixt_cuda", version, "The CUDA backend of mixt", more),
        )


if __name__ == "__main__":
    main()
