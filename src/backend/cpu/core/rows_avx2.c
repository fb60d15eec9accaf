/* Row loops, level "avx2". */
#define LOOPS mixt__row_loops_avx2
#include "backend/cpu/core/rows_loops.inc"
