/* Row loops, level "avx512". */
#define LOOPS mixt__row_loops_avx512
#include "backend/cpu/core/rows_loops.inc"
