#!/bin/bash
# The wheel in an environment of its own: how large it is and how long it takes to install, what its libraries need, that the
# code of docs/python.md runs from it, and that the CUDA backend's wheel is found beside it. Usage: wheel.sh DIST [WHEELHOUSE], where
# NumPy's wheel lies if it cannot be fetched
set -u
dist=$(realpath "$1") house=${2:+$(realpath "$2")} root=$PWD python=${PYTHON:-python3} failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
wheel=$(ls "$dist"/mixt-*.whl) || { echo "FAILED: no wheel in $dist: make wheel"; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -m venv "$work/venv" 2>/dev/null || { echo "SKIPPED: $python makes no venv"; exit 77; }
pip() { "$work/venv/bin/pip" -q --disable-pip-version-check "$@"; }
pip install ${house:+--no-index --find-links "$house"} numpy || { echo "SKIPPED: no NumPy to be had"; exit 77; }

size=$(stat -c %s "$wheel")
[ "$size" -le $((15 << 20)) ] || fail "$size bytes: over 15 MiB"
began=$(date +%s%N)
TIMEFORMAT='%U %S'
{ time pip install --no-index "$wheel" || fail "it does not install"; } 2>"$work/time"
took=$((($(date +%s%N) - began) / 1000000))
[ $took -le 10000 ] || fail "installing took $took ms"
echo "$size bytes, installed in $took ms (CPU: $(tail -1 "$work/time") s)"
installed=$("$work/venv/bin/python" -c 'import mixt, os; print(os.path.dirname(mixt.__file__))') || fail "import mixt"
for library in "$installed"/lib/*.so*; do
    ldd "$library" | grep 'not found' && fail "$library lacks a library"
    file=$(objdump -h "$library" 2>/dev/null | grep -c '\.debug_info')
    [ "$file" = 0 ] || fail "$library is not stripped"
done
ldd "$installed/lib/libmixt.so.0" | grep -E 'jansson|yaml|jpeg' | grep -vq "$installed" && fail "a library comes from the system"
if command -v auditwheel >/dev/null; then
    auditwheel show "$wheel" >"$work/audit" 2>&1 || fail "auditwheel: $(cat "$work/audit")"
    grep -q 'manylinux' "$work/audit" || fail "auditwheel: $(cat "$work/audit")"
else
    echo "auditwheel is not installed: not asked"
fi
PYTHON=$work/venv/bin/python MIXT_ROOT=$root MIXT_CACHE=$work/cache bash -c \
    'cd "$0" && mkdir run && cd run && "$PYTHON" "$MIXT_ROOT/tests/python/test_page.py"' "$work" >"$work/page" 2>&1 ||
    { fail "docs/python.md, from the wheel"; tail -20 "$work/page"; }
cuda=$(ls "$dist"/mixt_cuda-*.whl 2>/dev/null)
if [ -n "$cuda" ]; then
    pip install --no-index --no-deps "$cuda" || fail "the CUDA backend's wheel does not install"
    "$work/venv/bin/python" -c '
import os, mixt
path = os.environ["MIXT_CUDA_LIBRARY"]
assert path.endswith("mixt_cuda/libmixt_cuda.so") and os.path.exists(path), path
print(mixt.info()["device"], mixt.info()["gpu_reason"])' || fail "the CUDA backend is not found"
fi
[ $failures = 0 ]
