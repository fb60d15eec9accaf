/* Losses are found by comparing what was to be stored with what is: a difference of more than a rounding means that the
 * value did not fit. */
#include "num/losses.h"

#include "base/threads.h"
#include "num/num.h"

#include <math.h>

enum { TILE = 512, GRAIN = 64 * TILE };

typedef struct comparison {
    const char *dst, *src;
    mixt_dtype dst_dtype, src_dtype;
    double factor; // from a stored source to what is stored
    double step;   // largest rounding, relative to the value (floating point) or absolute (integers)
    mixt__losses *losses;
} comparison;

static void compare(const comparison *c, double wanted, double stored, mixt__losses *found)
{
    bool is_float = mixt_dtype_is_float(c->dst_dtype);
    if (isnan(wanted)) {
        found->nan += !isnan(stored);
        return;
    }
    double allowed = is_float ? c->step * fabs(wanted) + mixt__dtype_min_subnormal(c->dst_dtype) : c->step;
    if (isinf(wanted) ? stored != wanted : !(fabs(wanted - stored) <= allowed))
        ++*(isfinite(stored) ? &found->clamped : &found->overflowed);
    else if (is_float && wanted != 0 && stored == 0)
        found->vanished++;
}

static void compare_range(void *argument, int64_t begin, int64_t end, int thread)
{
    const comparison *c = argument;
    double wanted[TILE], stored[TILE];
    mixt__losses found = {0};
    (void)thread;
    for (int64_t at = begin; at < end; at += TILE) {
        int64_t count = end - at < TILE ? end - at : TILE;
        mixt_convert(wanted, MIXT_DTYPE_FP64, c->src + (size_t)at * mixt_dtype_size(c->src_dtype), c->src_dtype, count,
                     NULL);
        mixt_convert(stored, MIXT_DTYPE_FP64, c->dst + (size_t)at * mixt_dtype_size(c->dst_dtype), c->dst_dtype, count,
                     NULL);
        for (int64_t i = 0; i < count; i++)
            compare(c, wanted[i] * c->factor, stored[i], &found);
    }
    __atomic_add_fetch(&c->losses->overflowed, found.overflowed, __ATOMIC_RELAXED);
    __atomic_add_fetch(&c->losses->clamped, found.clamped, __ATOMIC_RELAXED);
    __atomic_add_fetch(&c->losses->vanished, found.vanished, __ATOMIC_RELAXED);
    __atomic_add_fetch(&c->losses->nan, found.nan, __ATOMIC_RELAXED);
}

void mixt__losses_add(mixt__losses *losses, const void *dst, mixt_dtype dst_dtype, const void *src,
                      mixt_dtype src_dtype, int64_t count, const mixt_convert_options *options)
{
    static const double SLACK = 1.001; // scales are applied in FP32, here in FP64
    bool stochastic = options && options->stochastic;
    double scale = options && options->scale != 0 ? (double)options->scale : 1;
    comparison c = {dst, src, dst_dtype, src_dtype, 1, 0, losses};
    c.factor = (mixt__dtype_has_scale(src_dtype) ? scale : 1) / (mixt__dtype_has_scale(dst_dtype) ? scale : 1);
    c.step = SLACK * (stochastic ? 2 : 1) * mixt__dtype_roundoff(dst_dtype);
    mixt__parallel(count, GRAIN, compare_range, &c);
}
