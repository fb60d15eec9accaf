/* Pointwise instruction loops, level "avx512". */
#define LOOPS mixt__pw_loops_avx512
#include "backend/cpu/pointwise/loops.inc"
