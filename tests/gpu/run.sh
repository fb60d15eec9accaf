#!/bin/bash
# `make test-gpu`: every test that needs a GPU. Without one it fails: a test that cannot run did not pass.
# Usage: run.sh BUILD; SANITIZE=1 adds compute-sanitizer's memcheck, racecheck and initcheck over the op tests (long);
# OPS narrows the op tests.
set -u
build=$(realpath "$1")
cd "$(dirname "$0")/../.." || exit 1
mixt=$build/mixt

# sanitize TOOL OP: its op tests without a finding in mixt's kernels. Racecheck also reports NVIDIA's (it does not follow their
# asynchronous copies): those are counted and left. It and initcheck are slow, and see each problem in one variant.
sanitize() {
    local tool=$1 op=$2 narrow="" log=$MIXT_CACHE/sanitize.log status
    [ "$tool" = memcheck ] || narrow="--variant plain"
    compute-sanitizer --tool "$tool" --error-exitcode 9 --print-limit 100000 "$build/tests/ops_runner" "$op" $narrow --device cuda >"$log" 2>&1
    status=$?
    tail -2 "$log"
    if [ $status = 9 ] && [ "$tool" = racecheck ]; then
        local all own
        all=$(grep -a 'Race reported' "$log")
        own=$(echo "$all" | grep -av 'access at \(cudnn\|[a-z0-9_]*xmma\|[a-z0-9_]*cutlass\|void cutlass\|nvjet\)')
        [ -z "$own" ] && { echo "$(echo "$all" | wc -l) reports in NVIDIA's kernels"; return 0; }
        echo "$own" | head -5
    fi
    return $status
}

if ! "$mixt" info --json | grep -q '"usable": true'; then
    echo "test-gpu cannot run here: GPU $("$mixt" info | sed -n 's/^GPU *//p')" >&2
    exit 1
fi
MIXT_CACHE=$(mktemp -d) # timed choices of these runs stay out of the user's
export MIXT_CACHE
trap 'rm -rf "$MIXT_CACHE"' EXIT
failed="" skipped=""
attempt() {
    local name=$1 status
    shift
    echo "== $name"
    "$@"
    status=$?
    case $status in
    0) ;;
    77) skipped="$skipped $name" ;;
    *) failed="$failed $name" ;;
    esac
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
attempt diagnosis env DEVICE=cuda bash tests/cli/diagnosis.sh "$mixt"
attempt advise bash tests/gpu/advise.sh "$mixt"
attempt "largest batch" bash tests/gpu/largest_batch.sh "$mixt"
[ ! -e "$build/libmixt_mpi.so" ] || attempt ranks bash tests/gpu/ranks.sh "$mixt"
[ ! -e "$build/libmixt_nccl.so" ] || attempt nccl bash tests/gpu/nccl.sh "$mixt"

if [ "${SANITIZE:-0}" = 1 ]; then
    if command -v compute-sanitizer >/dev/null; then
        for tool in memcheck initcheck racecheck; do
            for op in ${OPS:-$(cd tests/cases && ls | sed 's/\.txt$//')}; do
                attempt "$tool: $op" sanitize $tool "$op"
            done
        done
    else
        echo "compute-sanitizer is not installed" >&2
        failed="$failed sanitize"
    fi
fi
[ -z "$skipped" ] || echo "SKIPPED:$skipped"
[ -z "$failed" ] || { echo "test-gpu failed:$failed" >&2; exit 1; }
echo "test-gpu passed"
