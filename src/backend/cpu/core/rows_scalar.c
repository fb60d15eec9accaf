/* Row loops, level "scalar". */
#define LOOPS mixt__row_loops_scalar
#include "backend/cpu/core/rows_loops.inc"
