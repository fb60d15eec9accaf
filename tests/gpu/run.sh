#!/bin/bash
# `make test-gpu`: every test that needs a GPU. Without one it fails: a test that cannot run did not pass.
# Usage: run.sh BUILD; SANITIZE=1 adds compute-sanitizer's memcheck, racecheck and initcheck over the op tests (long);
# OPS narrows the op tests.
set -u
build=$(realpath "$1")
cd "$(dirname "$0")/../.." || exit 1
mixt=$build/mixt
if ! "$mixt" info --json | grep -q '"usable": true'; then
    echo "test-gpu cannot run here: GPU $("$mixt" info | sed -n 's/^GPU *//p')" >&2
    exit 1
fi
MIXT_CACHE=$(mktemp -d) # timed choices of these runs stay out of the user's
export MIXT_CACHE
trap 'rm -rf "$MIXT_CACHE"' EXIT
failed=""
attempt() {
    local name=$1
    shift
    echo "== $name"
    "$@" || failed="$failed $name"
}

"$mixt" info | sed -n '/^GPU/,/^device/p'
for program in "$build"/tests/gpu_*; do
    [ -x "$program" ] && attempt "$(basename "$program")" "$program"
done
attempt loads bash tests/gpu/loads.sh "$mixt" "$build/libmixt_cuda.so"
for op in ${OPS:-all}; do
    attempt "ops: $op" "$build/tests/ops_runner" "$op" --device cuda
done
attempt system bash tests/gpu/system.sh "$mixt"

if [ "${SANITIZE:-0}" = 1 ]; then
    if command -v compute-sanitizer >/dev/null; then
        for tool in memcheck racecheck initcheck; do
            for op in ${OPS:-all}; do
                attempt "$tool: $op" compute-sanitizer --tool $tool --error-exitcode 9 --print-limit 20 "$build/tests/ops_runner" "$op" --device cuda
            done
        done
    else
        echo "compute-sanitizer is not installed" >&2
        failed="$failed sanitize"
    fi
fi
[ -z "$failed" ] || { echo "test-gpu failed:$failed" >&2; exit 1; }
echo "test-gpu passed"
