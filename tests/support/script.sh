# What the test scripts share; sourced first, with the command under test as the script's first argument.
# Leaves: $mixt (absolute), $work (a folder of its own, removed at the end), fail WORDS..., $failures.
set -u
mixt=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
