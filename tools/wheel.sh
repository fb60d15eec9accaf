#!/bin/sh
# Packs mixt for pip: dist/mixt-VERSION-py3-none-manylinux_*.whl, and mixt_cuda-*.whl where the CUDA backend is built.
# Usage: wheel.sh BUILD [CMAKE-OPTION...]
set -eu
build=$1
shift
cd "$(dirname "$0")/.."
targets=mixt_shared
cmake -S . -B "$build" -G Ninja -DMIXT_TESTS=OFF -DMIXT_MPI=OFF -DMIXT_PACKAGE=wheel -DCMAKE_INSTALL_LIBDIR=lib "$@" >"$build.log" 2>&1 ||
    { cat "$build.log" >&2; exit 1; }
grep -q 'libmixt_cuda.so:' "$build/build.ninja" && targets="$targets mixt_cuda"
# shellcheck disable=SC2086 # words
cmake --build "$build" --target $targets
rm -rf "$build/stage" "$build/python"
for component in library cuda; do
    cmake --install "$build" --prefix "$build/stage" --component $component --strip >>"$build.log"
done
rm -f "$build.log"
python3 tools/python_binding.py "$build/python"
python3 tools/wheel.py "$build/python" "$build/stage" dist
