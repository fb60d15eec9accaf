# What the test scripts share; sourced first, with the command under test as the script's first argument.
# Leaves: $mixt (absolute), $work (a folder of its own, removed at the end), fail WORDS..., $failures, below LIMIT (the next random
# number, in $drawn; a script that draws sets $seed).
set -u
mixt=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
below() {
    seed=$(((seed * 1103515245 + 12345) % 2147483648))
    drawn=$((seed / 16 % $1))
}
