#!/bin/bash
# Groups that are parts of all ranks, over MPI. Usage: ranks_grid.sh MIXT
. "$(dirname "$0")/../support/script.sh"
. "$(dirname "$0")/../support/ranks.sh"
need_ranks

export MIXT_MPI_LIBRARY=$(dirname "$mixt")/libmixt_mpi.so
ranks 4 -x MIXT_MPI_LIBRARY "$(dirname "$mixt")/tests/ranks_grid" >"$work/said" 2>&1 || fail "a grid of 4 ranks: $(cat "$work/said")"

[ $failures = 0 ]
