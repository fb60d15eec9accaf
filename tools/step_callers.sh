#!/bin/sh
# Updates are made in one place: fails where a file of src/ outside src/train and the public src/api makes one by
# itself instead of through train/engine.h. Usage: tools/step_callers.sh [ROOT]
set -eu
root=${1:-$(dirname "$0")/..}
cd "$root"

found=$(grep -rnE 'mixt_(_trainer|trainer|_resident)_step(_on)?\(' src --include=*.c | grep -vE '^src/(train|api)/') || true
loops=$(grep -lE 'mixt_(_trainer|_resident)_step(_on)?\(' src/train/*.c | grep -vE '/(step|engine|resident)\.c$') || true
# What happens around them is asked of run/hooks.h: the loop knows no controller.
known=$(grep -nE 'mixt__(steer|good_states)_|->steer\b|"run/auto/(steer|good_states)' src/run/*.c) || true
[ -z "$known" ] || { printf '%s\n' "$known" "src/run asks through run/hooks.h; the controller is src/run/auto's"; exit 1; }
[ -z "$found$loops" ] || { printf '%s\n' "$found" "$loops" "updates are made by train/engine.h"; exit 1; }
