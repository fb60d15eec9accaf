#!/bin/bash
# A test of the Python package, with $PYTHON (python3). Usage: run.sh PACKAGE-FOLDER SCRIPT
set -u
package=$1 script=$2 python=${PYTHON:-python3}
command -v "$python" >/dev/null || { echo "SKIPPED: no $python"; exit 77; }
"$python" -c 'import numpy' 2>/dev/null || { echo "SKIPPED: $python has no NumPy"; exit 77; }
[ -e "$package/mixt/__init__.py" ] || { echo "FAILED: $package has no package mixt"; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$PWD
export PYTHONPATH=$package PYTHONDONTWRITEBYTECODE=1 MIXT_CACHE=$work/cache MIXT_ROOT=$root MIXT_THREADS=2
cd "$work" && "$python" "$root/${script#"$root"/}"
