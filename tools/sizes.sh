#!/bin/sh
# Fails where a file of src/, cli/ or include/ has more than 600 lines, or a function more than 60 between its braces.
# A function begins and ends with a brace in column 1, as clang-format puts it.
# Usage: tools/sizes.sh [ROOT]
set -eu
root=${1:-$(dirname "$0")/..}
cd "$root"

find src cli include \( -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' \) | sort | xargs awk '
    FNR == 1 { start = 0 }
    FNR == 601 { print FILENAME ": more than 600 lines"; bad = 1 }
    /^[{]/ { start = FNR }
    /^[}]/ {
        if (start && FNR - start - 1 > 60) {
            print FILENAME ":" start ": " FNR - start - 1 " lines between the braces, more than 60"
            bad = 1
        }
        start = 0
    }
    END { exit bad }'
