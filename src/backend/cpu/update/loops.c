/* The loops that end a training step for any processor, and the choice among the levels. */
#define LOOPS mixt__update_loops_scalar
#include "backend/cpu/update/loops.inc"

#include "base/isa.h"

const mixt__update_loops *mixt__update_loops_get(void)
{
    mixt__isa level = mixt__isa_level();
    if (level >= MIXT_ISA_AVX512)
        return &mixt__update_loops_avx512;
    return level >= MIXT_ISA_AVX2 ? &mixt__update_loops_avx2 : &mixt__update_loops_scalar;
}
