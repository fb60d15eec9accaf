/* The loops that end a training step, compiled for AVX2. */
#define LOOPS mixt__update_loops_avx2
#include "backend/cpu/update/loops.inc"
