#!/bin/bash
# The public headers keep what bindings rely on: each says in its first words which question it answers; functions return a
# status and give objects behind their last argument; structs of options begin with their size, have their defaults as a macro and as
# a function; texts are `const char *` of an object, or `char *` for mixt_free, never arrays nor buffers to be filled; progress is
# told by one type; no FILE *. Usage: interface.sh [FOLDER], of headers; default include/mixt.
set -u
folder=${1:-include/mixt}
headers=$(find "$folder" -name '*.h' 2>/dev/null | LC_ALL=C sort)
[ -n "$headers" ] || { echo "$folder: no headers"; exit 1; }
# shellcheck disable=SC2086 # names of headers have no spaces
faults=$(awk -f "$(dirname "$0")/interface.awk" $headers) || { echo "the headers cannot be read"; exit 1; }
[ -z "$faults" ] || { printf '%s\n' "$faults"; exit 1; }
