#!/bin/bash
# Cases whose right answers are known, through all tools that judge precision: run.py says how it is counted, cases.txt what the cases are.
# Usage: run.sh MIXT [ARGUMENT OF run.py...], as in run.sh build/mixt --seed 7 loud-mlp-fp16. Shared data: MIXT_TEST_DATA, or ../shared/data
. "$(dirname "$0")/../support/script.sh"
need python3
python3 "$(dirname "$0")/run.py" "$mixt" "${@:2}"
