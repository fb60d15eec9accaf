/* The array conversions of each instruction-set level, in tables. A missing entry means: take the level below. */
#ifndef MIXT_NUM_KERNELS_H
#define MIXT_NUM_KERNELS_H

#include "base/isa.h"
#include "num/num.h"

/** One level's conversions, by the narrower format. */
typedef struct mixt__num_kernels {
    mixt__widen_fn *widen[MIXT_DTYPE_COUNT];
    mixt__narrow_fn *narrow[MIXT_DTYPE_COUNT];
    /** The same bits, stored past the caches: for arrays that would only push everything else out of them. */
    mixt__widen_fn *widen_stream[MIXT_DTYPE_COUNT];
    mixt__narrow_fn *narrow_stream[MIXT_DTYPE_COUNT];
} mixt__num_kernels;

extern const mixt__num_kernels mixt__num_kernels_scalar, mixt__num_kernels_avx2, mixt__num_kernels_avx512;

/** The conversion used at a level. With `stream`, the streaming one where there is one. NULL: no such format. */
mixt__widen_fn *mixt__widen_at(mixt__isa level, mixt_dtype dtype, bool stream);
mixt__narrow_fn *mixt__narrow_at(mixt__isa level, mixt_dtype dtype, bool stream);

#endif
