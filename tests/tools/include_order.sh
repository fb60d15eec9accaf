#!/bin/bash
# The include-order check must itself be able to fail: small trees with one include each, allowed or not.
set -u
check=$PWD/tools/include_order.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0

# expect pass|fail FILE INCLUDE-LINE
expect() {
    rm -rf "$tree"/*
    mkdir -p "$tree/$(dirname "$2")" "$tree/src" "$tree/include" "$tree/cli" "$tree/examples"
    printf '%s\n' "$3" > "$tree/$2"
    if "$check" "$tree" > "$tree/output" 2>&1; then result=pass; else result=fail; fi
    if [ "$result" != "$1" ]; then
        echo "expected $1, got $result: $2: $3"
        cat "$tree/output"
        failures=$((failures + 1))
    fi
}

expect pass src/num/a.c '#include "base/alloc.h"'
expect pass src/num/a.c '#include "num/num.h"'
expect pass src/num/a.c '#include "mixt/num.h"'
expect pass src/num/a.c '#include <yaml.h>'
expect pass src/train/a.c '#include "runtime/run.h"'
expect pass src/backend/cpu/a.c '#include "ops/attributes.h"'
expect pass src/backend/cpu/a.c '#include "ops/ops.def"'
expect pass src/backend/cpu/a.c '#include "local.h"'
expect pass cli/a.c '#include "cli/cli.h"'
expect pass cli/a.c '#include <mixt/run.h>'
expect pass cli/a.c '#include <jansson.h>'
expect fail cli/a.c '#include "train/trainer.h"'
expect fail cli/a.c '#include "run/run.h"'
expect pass examples/a.c '#include <mixt/mixt.h>'
expect fail src/base/a.c '#include "num/num.h"'
expect fail src/num/a.c '  #  include "graph/graph.h"'
expect fail src/graph/a.h '#include "ops/ops.h"'
expect fail src/backend/cpu/a.c '#include "ops/gradients.h"'
expect fail src/backend/cpu/a.c '#include "passes/plan.h"'
expect fail src/store/a.c '#include "data/data.h"'
expect fail src/config/a.c '#include "num/num.h"'
expect pass src/train/a.c '#include "train/trainer_inside.h"'
expect fail src/run/a.c '#include "train/trainer_inside.h"'
expect fail src/models/a.c '#include "train/trainer.h"'
expect fail src/base/a.c '#include "../num/num.h"'
expect fail src/num/a.c '#include "cli/cli.h"'
expect fail src/unheard/a.c '#include "base/alloc.h"'
expect fail include/mixt/a.h '#include "base/alloc.h"'
expect fail include/mixt/a.h '#include <vendor/library.h>'
expect fail examples/a.c '#include "base/alloc.h"'

[ "$failures" = 0 ] || { echo "$failures cases failed"; exit 1; }
