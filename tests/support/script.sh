# What the test scripts share; sourced first, with the command under test as the script's first argument.
# Leaves: $mixt (absolute), $work (a folder of its own, removed at the end), fail WORDS..., $failures, below LIMIT (the next random
# number, in $drawn; a script that draws sets $seed), signalled SIGNAL@PLACE:N COMMAND... (which gets it there: base/signal_at.h), await COMMAND... (until it succeeds), catches PROCESS SIGNAL,
# skip REASON (ends the test here), need PROGRAM... (skips where one is missing).
set -u
mixt=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
# What cannot be tested is told to the runner, by status 77. What failed before counts.
skip() {
    echo "SKIPPED: $*"
    [ $failures = 0 ] && exit 77
    exit 1
}
need() {
    local program
    for program; do command -v "$program" >/dev/null || skip "no $program"; done
}
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
# Gives up after some minutes, with status 1: a busy machine is slow, and a failure is rare.
await() {
    local i
    for i in $(seq 6000); do "$@" && return; sleep 0.02; done
    return 1
}
# Whether the process has begun to handle the signal: sent before, it would just end it.
catches() { [ $((0x$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status") >> ($(kill -l "$2") - 1) & 1)) = 1 ]; }
signalled() { MIXT_SIGNAL=$1 "${@:2}"; }
below() {
    seed=$(((seed * 1103515245 + 12345) % 2147483648))
    drawn=$((seed / 16 % $1))
}
