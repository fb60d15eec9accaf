/* Choice of the row loops, and what several row-wise kernels share. */
#include "backend/cpu/core/rows.h"

#include <math.h>

const mixt__row_loops *mixt__row_loops_best(void)
{
    mixt__isa level = mixt__isa_level();
    return level >= MIXT_ISA_AVX512 ? &mixt__row_loops_avx512
           : level >= MIXT_ISA_AVX2 ? &mixt__row_loops_avx2
                                    : &mixt__row_loops_scalar;
}

const float *mixt__row_load(float *tile, const void *data, mixt_dtype dtype, int64_t index, int64_t count)
{
    const void *src = mixt__row_at(data, dtype, index);
    if (dtype == MIXT_DTYPE_FP32)
        return src;
    mixt__widen(dtype)(tile, src, count);
    return tile;
}

int64_t mixt__row_grain(int64_t columns)
{
    return 1 + 8192 / (columns > 0 ? columns : 1);
}

/* Each tile's terms are taken relative to the largest element so far; when a later tile has a larger one, the sum is
 * scaled down. A maximum of -infinity is replaced by 0, so that rows masked with -infinity give terms of 0, not NaN. */
mixt__row_peak mixt__row_peak_of(float *tile, const void *data, mixt_dtype dtype, int64_t index, int64_t count)
{
    const mixt__row_loops *loops = mixt__row_loops_best();
    mixt__row_peak peak = {.max = -INFINITY};
    for (int64_t c = 0; c < count; c += MIXT__ROW_TILE) {
        int64_t width = count - c < MIXT__ROW_TILE ? count - c : MIXT__ROW_TILE;
        const float *src = mixt__row_load(tile, data, dtype, index + c, width);
        float max = loops->max(src, width);
        if (max > peak.max) {
            if (peak.sum != 0)
                peak.sum *= exp((double)peak.max - (double)max);
            peak.max = max;
            peak.max_tile = c;
        }
        loops->exp_below(tile, src, peak.max == -INFINITY ? 0.0f : peak.max, width);
        peak.sum += (double)loops->sum(tile, width);
    }
    return peak;
}
