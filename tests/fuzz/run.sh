#!/bin/bash
# `make fuzz`: every fuzz target under libFuzzer, as many at once as there are processors. A finding is shown, its input
# kept in BUILD/findings, and the status is 1. The corpus that grows is kept in BUILD/corpus and used the next time.
# Usage: run.sh BUILD SECONDS [NAME…]
set -u
source=$(cd "$(dirname "$0")" && pwd)
build=$(realpath "$1") seconds=$2
shift 2
names=${*:-$(cd "$source" && ls fuzz_*.c | sed 's/^fuzz_\(.*\)\.c$/\1/')}
mkdir -p "$build/findings" "$build/log"
export TMPDIR
TMPDIR=$(mktemp -d -p "$([ -w /dev/shm ] && echo /dev/shm || echo /tmp)")
trap 'rm -rf "$TMPDIR"' EXIT

fuzz() {
    local name=$1 dictionary=() status
    [ -e "$source/dict/$name.dict" ] && dictionary=("-dict=$source/dict/$name.dict")
    mkdir -p "$build/corpus/$name"
    "$build/fuzz_$name" -max_total_time="$seconds" -timeout=5 -rss_limit_mb=2048 -malloc_limit_mb=64 -max_len=4096 \
        -print_final_stats=1 -artifact_prefix="$build/findings/$name-" "${dictionary[@]}" \
        "$build/corpus/$name" "$source/corpus/$name" >"$build/log/$name" 2>&1
    status=$?
    local runs coverage
    runs=$(sed -n 's/^stat::number_of_executed_units: //p' "$build/log/$name")
    coverage=$(grep -o 'cov: [0-9]*' "$build/log/$name" | tail -1)
    printf '%-14s %10s inputs  %-10s %s\n' "$name" "${runs:-?}" "$coverage" "$([ $status = 0 ] && echo 'no finding' || echo FINDING)"
    [ $status = 0 ] || grep -a -A 20 -E 'ERROR|runtime error|must hold' "$build/log/$name" | head -40
    return $status
}
export -f fuzz
export source build seconds
echo "each target $seconds s:"
printf '%s\n' $names | xargs -P "$(nproc)" -I {} bash -c 'fuzz {} || exit 255' || { echo "inputs of findings: $build/findings" >&2; exit 1; }
