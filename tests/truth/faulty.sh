#!/bin/bash
# Faults in whole runs that look after themselves: faulty.py says which, and how it is counted. Usage: faulty.sh MIXT [ARGUMENT OF
# faulty.py...]. Shared data: MIXT_TEST_DATA, or ../shared/data
. "$(dirname "$0")/../support/script.sh"
need python3
python3 "$(dirname "$0")/faulty.py" "$mixt" "${@:2}"
