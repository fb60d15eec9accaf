#!/bin/bash
# Messages of a rank that was stopped for longer than dist.timeout reach no memory that was given back.
# Usage: ranks_late.sh MIXT
. "$(dirname "$0")/../support/script.sh"
. "$(dirname "$0")/../support/ranks.sh"
cd "$work" || exit 1
need_ranks

export MIXT_MPI_LIBRARY=$(dirname "$mixt")/libmixt_mpi.so
for size in short long; do
    for when in before during; do
        [ "$size $when" = "short during" ] && continue # it is sent at once
        ranks 2 -x MIXT_MPI_LIBRARY "$(dirname "$mixt")/tests/ranks_late" $size $when >out 2>&1 && continue
        fail "$size, $when: $(cat out)"
    done
done

[ $failures = 0 ]
