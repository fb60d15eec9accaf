/* The loops that end a training step, compiled for AVX-512. */
#define LOOPS mixt__update_loops_avx512
#include "backend/cpu/update/loops.inc"
