/* Pointwise instruction loops, level "avx2". */
#define LOOPS mixt__pw_loops_avx2
#include "backend/cpu/pointwise/loops.inc"
