/* Choice of an array conversion by instruction set. */
#include "num/kernels.h"

static const mixt__num_kernels *const levels[MIXT_ISA_COUNT] = {
    [MIXT_ISA_SCALAR] = &mixt__num_kernels_scalar,
    [MIXT_ISA_AVX2] = &mixt__num_kernels_avx2,
    [MIXT_ISA_AVX512] = &mixt__num_kernels_avx512,
};

mixt__widen_fn *mixt__widen_at(mixt__isa level, mixt_dtype dtype, bool stream)
{
    if ((unsigned)dtype >= MIXT_DTYPE_COUNT)
        return NULL;
    for (int i = (int)level; i >= 0; i--) {
        if (levels[i] && stream && levels[i]->widen_stream[dtype])
            return levels[i]->widen_stream[dtype];
        if (levels[i] && levels[i]->widen[dtype])
            return levels[i]->widen[dtype];
    }
    return NULL;
}

mixt__narrow_fn *mixt__narrow_at(mixt__isa level, mixt_dtype dtype, bool stream)
{
    if ((unsigned)dtype >= MIXT_DTYPE_COUNT)
        return NULL;
    for (int i = (int)level; i >= 0; i--) {
        if (levels[i] && stream && levels[i]->narrow_stream[dtype])
            return levels[i]->narrow_stream[dtype];
        if (levels[i] && levels[i]->narrow[dtype])
            return levels[i]->narrow[dtype];
    }
    return NULL;
}

mixt__widen_fn *mixt__widen(mixt_dtype dtype)
{
    return mixt__widen_at(mixt__isa_level(), dtype, false);
}

mixt__narrow_fn *mixt__narrow(mixt_dtype dtype)
{
    return mixt__narrow_at(mixt__isa_level(), dtype, false);
}
