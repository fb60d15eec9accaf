#!/bin/sh
# `make check`: formatting, include order, static analysis. Each tool that is not installed is named and left out.
# With --strict, a missing tool is a failure.
set -u
cd "$(dirname "$0")/.."
strict=${1:-}
failed=""

begin() { printf '%-14s ' "$1"; }
pass() { echo ok; }
fail() { echo FAILED; failed="$failed $1"; }
absent() {
    echo "not installed: left out"
    [ "$strict" = --strict ] && failed="$failed $1"
    return 0
}
# Runs a check quietly; its output is shown only when it fails.
attempt() {
    name=$1
    shift
    if output=$("$@" 2>&1); then
        pass
    else
        fail "$name"
        printf '%s\n' "$output" | head -60
    fi
}
sources() { git ls-files --cached --others --exclude-standard -- 'include/*.h' 'src/*.[ch]' 'src/*.cu' 'src/*.cuh' 'cli/*.[ch]' 'tests/*.[ch]' 'examples/*.[ch]' 'bench/*.[ch]'; }

begin include-order
attempt include-order tools/include_order.sh

begin sizes
attempt sizes tools/sizes.sh

begin words
attempt words tools/words.py

begin interface
attempt interface tools/interface.sh

begin clang-format
if command -v clang-format >/dev/null; then
    attempt clang-format sh -c 'clang-format --dry-run -Werror "$@" 2>&1 | grep -E "error:" && exit 1; exit 0' sh $(sources)
else
    absent clang-format
fi

begin cppcheck
if command -v cppcheck >/dev/null; then
    attempt cppcheck cppcheck --quiet --suppress=invalidPointerCast --suppress=CastIntegerToAddressAtReturn --std=c11 --error-exitcode=1 --enable=warning,portability --inline-suppr \
        --suppress=missingIncludeSystem --suppress=unknownMacro --suppress=normalCheckLevelMaxBranches \
        -D__x86_64__ -D_GNU_SOURCE -DMIXT_ISA_SUFFIX=avx2 -Iinclude -Isrc -I. src cli
else
    absent cppcheck
fi

begin clang-tidy
if ! command -v clang-tidy >/dev/null; then
    absent clang-tidy
elif [ ! -f build/compile_commands.json ]; then
    echo "no build/compile_commands.json: run 'make build' first"
    failed="$failed clang-tidy"
else
    # Of the CUDA backend what was built: without the toolkit its headers are not there.
    grep -q backend/cuda build/compile_commands.json && absent_parts='^$' || absent_parts='^src/backend/cuda/'
    # Sources for instruction sets are left out: intrinsics take long to look at.
    for_sets=$(sed -n 's|^ *"\(.*\.c\) .*|-e ^src/\1$|p' cmake/isa.cmake)
    attempt clang-tidy sh -c 'clang-tidy -p build --quiet "$@" 2>/dev/null' sh \
        $(sources | grep -E '^(src|cli)/.*\.c$' | grep -v -e '_\(avx2\|avx512\|avx512bf16\|amx\)\.c$' $for_sets | grep -v -E "$absent_parts")
fi

if [ -n "$failed" ]; then
    echo "check failed:$failed" >&2
    exit 1
fi
