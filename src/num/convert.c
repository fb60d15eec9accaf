/* mixt_convert: any format to any other, on all threads.
 *
 * Between FP32 and one narrower format with default options, a thread's range is one call of an array kernel. Anything
 * else goes tile by tile through FP32 (or, for wide sources, double) in L1: load, unscale, scale, clamp, round, store.
 */
#include "mixt/num.h"

#include "base/options.h"
#include "base/rng.h"
#include "base/status.h"
#include "base/threads.h"
#include "num/format.h"
#include "num/kernels.h"
#include "num/stochastic.h"
#include "num/wide.h"

#include <math.h>
#include <unistd.h>

enum {
    TILE = 2048,  // 8 KiB of FP32 and 16 KiB of double: both and the elements fit into L1
    GRAIN = 16384 // elements worth a thread; a multiple of the tile
};

typedef struct job {
    char *dst;
    const char *src;
    mixt_dtype dst_dtype, src_dtype;
    size_t dst_size, src_size;
    mixt__widen_fn *widen;             // NULL for a wide source
    mixt__narrow_fn *narrow;           // NULL for a wide destination
    float src_scale, dst_scale, clamp; // clamp: infinity for none
    bool stochastic;
    uint64_t key;
} job;

/** Reading and writing this much would leave nothing else in the last cache level. */
static size_t stream_threshold(void)
{
    static size_t known;
    size_t threshold = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (!threshold) {
        long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
        threshold = cache > 0 ? (size_t)cache : (size_t)32 << 20;
        __atomic_store_n(&known, threshold, __ATOMIC_RELAXED);
    }
    return threshold;
}

static void copy_range(void *argument, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const job *j = argument;
    memcpy(j->dst + (size_t)begin * j->dst_size, j->src + (size_t)begin * j->src_size,
           (size_t)(end - begin) * j->src_size);
}

static void widen_range(void *argument, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const job *j = argument;
    j->widen((float *)(void *)(j->dst + (size_t)begin * 4), j->src + (size_t)begin * j->src_size, end - begin);
}

static void narrow_range(void *argument, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const job *j = argument;
    j->narrow(j->dst + (size_t)begin * j->dst_size, (const float *)(const void *)(j->src + (size_t)begin * 4),
              end - begin);
}

static void wide_range(void *argument, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const job *j = argument;
    mixt__wide_convert(j->dst + (size_t)begin * j->dst_size, j->dst_dtype, j->src + (size_t)begin * j->src_size,
                       j->src_dtype, end - begin);
}

/** Unscales, scales and clamps a tile in place. NaN passes through each step. */
static void adjust(const job *j, float *tile, int64_t count)
{
    if (j->src_scale != 1)
        for (int64_t i = 0; i < count; i++)
            tile[i] *= j->src_scale;
    if (j->dst_scale != 1)
        for (int64_t i = 0; i < count; i++)
            tile[i] /= j->dst_scale;
    if (j->clamp < INFINITY)
        for (int64_t i = 0; i < count; i++)
            tile[i] = tile[i] > j->clamp ? j->clamp : tile[i] < -j->clamp ? -j->clamp : tile[i];
}

static void adjust_wide(const job *j, double *tile, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        double value = tile[i] / (double)j->dst_scale;
        tile[i] = value > (double)j->clamp ? (double)j->clamp : value < -(double)j->clamp ? -(double)j->clamp : value;
    }
}

static void tile_from_wide(const job *j, char *dst, const char *src, int64_t count, int64_t first)
{
    double wide[TILE];
    float tile[TILE];
    mixt__wide_load(wide, src, j->src_dtype, count);
    adjust_wide(j, wide, count);
    if (j->stochastic) {
        mixt__stochastic_store(dst, j->dst_dtype, wide, count, j->key, first);
        return;
    }
    bool exact_last = j->dst_dtype == MIXT_DTYPE_FP32; // no second rounding follows
    for (int64_t i = 0; i < count; i++)
        tile[i] = exact_last ? (float)wide[i] : mixt__fp32_round_odd(wide[i]);
    j->narrow(dst, tile, count);
}

static void tile_from_narrow(const job *j, char *dst, const char *src, int64_t count, int64_t first)
{
    float tile[TILE];
    j->widen(tile, src, count);
    adjust(j, tile, count);
    if (j->stochastic) {
        double wide[TILE];
        for (int64_t i = 0; i < count; i++)
            wide[i] = (double)tile[i];
        mixt__stochastic_store(dst, j->dst_dtype, wide, count, j->key, first);
    } else if (j->narrow) {
        j->narrow(dst, tile, count);
    } else {
        mixt__wide_store(dst, j->dst_dtype, tile, count);
    }
}

static void tile_range(void *argument, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const job *j = argument;
    for (int64_t first = begin; first < end; first += TILE) {
        int64_t count = end - first < TILE ? end - first : TILE;
        char *dst = j->dst + (size_t)first * j->dst_size;
        const char *src = j->src + (size_t)first * j->src_size;
        if (j->widen)
            tile_from_narrow(j, dst, src, count, first);
        else
            tile_from_wide(j, dst, src, count, first);
    }
}

/** Which of the ranges above does the job; with kernels that stream where that pays. */
static mixt__range_fn *choose(job *j, int64_t count)
{
    bool plain = !j->stochastic && j->clamp == INFINITY && j->src_scale == 1 && j->dst_scale == 1;
    bool stored_as_fp32 = j->src_dtype == MIXT_DTYPE_TF32 && j->dst_dtype == MIXT_DTYPE_FP32;
    bool stream = (size_t)count > stream_threshold() / (j->src_size + j->dst_size) && j->dst != j->src &&
                  (uintptr_t)j->dst % j->dst_size == 0;
    if ((j->src_dtype == j->dst_dtype && j->clamp == INFINITY) || stored_as_fp32)
        return copy_range;
    if (!j->widen && !j->narrow)
        return wide_range;
    if (plain && j->dst_dtype == MIXT_DTYPE_FP32 && j->widen) {
        j->widen = mixt__widen_at(mixt__isa_level(), j->src_dtype, stream);
        return widen_range;
    }
    if (plain && j->narrow && (j->src_dtype == MIXT_DTYPE_FP32 || j->src_dtype == MIXT_DTYPE_TF32)) {
        j->narrow = mixt__narrow_at(mixt__isa_level(), j->dst_dtype, stream);
        return narrow_range;
    }
    return tile_range;
}

static mixt_status check_arguments(const job *j, int64_t count, float scale)
{
    if (!j->dst_size || !j->src_size)
        return mixt__fail(MIXT_ERROR_DTYPE, "convert: %s format is not one of mixt's (value %d)",
                          j->dst_size ? "source" : "destination", (int)(j->dst_size ? j->src_dtype : j->dst_dtype));
    for (int side = 0; side < 2; side++)
        if (mixt__format_of(side ? j->dst_dtype : j->src_dtype)->together)
            return mixt__fail(MIXT_ERROR_UNSUPPORTED, "convert: numbers of %s are not single elements",
                              mixt_dtype_name(side ? j->dst_dtype : j->src_dtype));
    if (count < 0 || (size_t)count > PTRDIFF_MAX / 8)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "convert: count %lld is not a possible number of elements",
                          (long long)count);
    if (!(scale > 0) || isinf(scale))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "convert: scale %g must be finite and above 0", (double)scale);
    if (count && (!j->dst || !j->src))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "convert: %s is NULL", j->dst ? "src" : "dst");
    uintptr_t dst = (uintptr_t)j->dst, src = (uintptr_t)j->src;
    bool in_place = dst == src && j->dst_size == j->src_size;
    if (!in_place && dst < src + (size_t)count * j->src_size && src < dst + (size_t)count * j->dst_size)
        return mixt__fail(MIXT_ERROR_ARGUMENT,
                          "convert: dst (%s) and src (%s) overlap; only dst == src of equal "
                          "element size is possible",
                          mixt_dtype_name(j->dst_dtype), mixt_dtype_name(j->src_dtype));
    return MIXT_OK;
}

mixt_status mixt_convert(void *dst, mixt_dtype dst_dtype, const void *src, mixt_dtype src_dtype, int64_t count,
                         const mixt_convert_options *given)
{
    mixt_convert_options own = MIXT_OPTIONS(mixt_convert_options), *o = &own;
    MIXT_TRY(mixt__options(mixt_convert_options, &own, given));
    float scale = o->scale;
    job j = {.dst = dst,
             .src = src,
             .dst_dtype = dst_dtype,
             .src_dtype = src_dtype,
             .dst_size = mixt_dtype_size(dst_dtype),
             .src_size = mixt_dtype_size(src_dtype),
             .src_scale = mixt__dtype_has_scale(src_dtype) ? scale : 1,
             .dst_scale = mixt__dtype_has_scale(dst_dtype) ? scale : 1,
             .clamp = o->saturate && mixt__format_narrow(dst_dtype) ? (float)mixt__dtype_max(dst_dtype) : INFINITY};
    MIXT_TRY(check_arguments(&j, count, scale));
    j.widen = mixt__widen(src_dtype);
    j.narrow = mixt__narrow(dst_dtype);
    j.stochastic = o->stochastic && mixt__stochastic_possible(dst_dtype);
    if (j.stochastic)
        j.key = mixt__rng_key(o->seed, 0, 0);
    mixt__range_fn *range = choose(&j, count);
    if (j.dst == j.src && range == copy_range)
        return MIXT_OK;
    mixt__parallel(count, GRAIN, range, &j);
    return MIXT_OK;
}
