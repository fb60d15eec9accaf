#!/bin/bash
# Healthy runs about which nothing may be decided: regressions in raw units, runs resumed under other settings; resumed.py says which.
# Usage: resumed.sh MIXT [ARGUMENT OF resumed.py...]. Shared data: MIXT_TEST_DATA, or ../shared/data
. "$(dirname "$0")/../support/script.sh"
need python3
python3 "$(dirname "$0")/resumed.py" "$mixt" "${@:2}"
