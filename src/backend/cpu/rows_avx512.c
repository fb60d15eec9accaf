/* Row loops, level "avx512". */
#define LOOPS mixt__row_loops_avx512
#include "backend/cpu/rows_loops.inc"
