/* Pointwise instruction loops, level "scalar". */
#define LOOPS mixt__pw_loops_scalar
#include "backend/cpu/pointwise/loops.inc"
