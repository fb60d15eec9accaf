/* Which of the loops that end a training step this CPU runs. */
#include "backend/cpu/update/loops.h"

#include "base/isa.h"

const mixt__update_loops *mixt__update_loops_get(void)
{
    mixt__isa level = mixt__isa_level();
    if (level >= MIXT_ISA_AVX512)
        return &mixt__update_loops_avx512;
    return level >= MIXT_ISA_AVX2 ? &mixt__update_loops_avx2 : &mixt__update_loops_scalar;
}

const mixt__optimizer_loops *mixt__optimizer_loops_get(void)
{
    mixt__isa level = mixt__isa_level();
    if (level >= MIXT_ISA_AVX512)
        return &mixt__optimizer_loops_avx512;
    return level >= MIXT_ISA_AVX2 ? &mixt__optimizer_loops_avx2 : &mixt__optimizer_loops_scalar;
}
