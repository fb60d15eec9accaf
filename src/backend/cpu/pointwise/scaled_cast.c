/* Scaled casts: one pass for the largest magnitude, one that divides and rounds, tile by tile in FP32.
 *
 * The largest of all is the same whichever thread finds it, so the bits do not depend on how threads split the tensor.
 * The second pass mostly reads what the first left in the cache. Bytes: the source twice, the result once.
 */
#include "backend/cpu/kernels.h"
#include "base/threads.h"
#include "num/num.h"

#include <math.h>

enum { TILE = 1024, GRAIN = 16384, FINITE_END = 0x7f800000, MAGNITUDE = 0x7fffffff };

typedef struct job {
    const mixt__tensor *src, *dst;
    uint32_t largest; // bits of a magnitude
    float factor;     // 1 / scale
    float least;      // what is not 0 becomes at least this; 0: it may become 0
} job;

static uint32_t scale_bits(const mixt__call *call, uint32_t largest)
{
    const mixt__scaled_cast_attrs *at = call->attrs;
    return mixt__cast_scale_bits(largest, at->dtype);
}

static float least_of(const mixt__call *call)
{
    const mixt__scaled_cast_attrs *at = call->attrs;
    return at->flush ? 0.0f : (float)mixt__dtype_min_subnormal(at->dtype);
}

/** The reciprocal of a power of two, which is one too: scales are at least 2^-126. */
static float reciprocal(uint32_t scale)
{
    return mixt__fp32_of_bits(((uint32_t)254 << 23) - scale);
}

/* ---- the largest magnitude ---- */

static void raise_to(uint32_t *largest, uint32_t found)
{
    uint32_t known = __atomic_load_n(largest, __ATOMIC_RELAXED);
    while (known < found &&
           !__atomic_compare_exchange_n(largest, &known, found, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

/** Elements [begin, end) as FP32: where they lie, or widened into the tile. */
static const float *elements(const mixt__tensor *t, float *tile, int64_t begin, int64_t count)
{
    const char *from = (const char *)t->data + (size_t)begin * mixt_dtype_size(t->dtype);
    if (t->dtype == MIXT_DTYPE_FP32)
        return (const float *)(const void *)from;
    mixt__widen(t->dtype)(tile, from, count);
    return tile;
}

static void find_range(void *argument, int64_t begin, int64_t end, int thread)
{
    job *j = argument;
    float tile[TILE];
    int32_t largest = 0; // magnitudes are positive as signed numbers too, which vector units compare
    (void)thread;
    for (int64_t i = begin; i < end; i += TILE) {
        int64_t count = end - i < TILE ? end - i : TILE;
        const float *x = elements(j->src, tile, i, count);
        for (int64_t k = 0; k < count; k++) {
            int32_t bits = (int32_t)(mixt__fp32_bits(x[k]) & MAGNITUDE);
            bits = bits < FINITE_END ? bits : 0;
            largest = bits > largest ? bits : largest;
        }
    }
    raise_to(&j->largest, (uint32_t)largest);
}

/* ---- rounding ---- */

static void cast_range(void *argument, int64_t begin, int64_t end, int thread)
{
    const job *j = argument;
    mixt__narrow_fn *narrow = mixt__narrow(j->dst->dtype);
    float tile[TILE];
    (void)thread;
    for (int64_t i = begin; i < end; i += TILE) {
        int64_t count = end - i < TILE ? end - i : TILE;
        const float *x = elements(j->src, tile, i, count);
        for (int64_t k = 0; k < count; k++) {
            float y = x[k] * j->factor, small = x[k] > 0 ? j->least : -j->least;
            tile[k] = fabsf(y) < j->least && x[k] != 0 ? small : y;
        }
        narrow((char *)j->dst->data + (size_t)i * mixt_dtype_size(j->dst->dtype), tile, count);
    }
}

static mixt_status run(const mixt__call *call)
{
    job j = {.src = &call->in[0], .dst = &call->out[0]};
    int64_t count = mixt__shape_count(&j.src->shape);
    mixt__parallel(count, GRAIN, find_range, &j);
    uint32_t scale = scale_bits(call, j.largest);
    j.factor = reciprocal(scale);
    j.least = least_of(call);
    *(float *)call->out[1].data = mixt__fp32_of_bits(scale);
    mixt__parallel(count, GRAIN, cast_range, &j);
    return MIXT_OK;
}

/* ---- plain ---- */

static mixt_status plain_run(const mixt__call *call)
{
    const mixt__tensor *src = &call->in[0], *dst = &call->out[0];
    int64_t count = mixt__shape_count(&src->shape);
    float largest = 0, least = least_of(call);
    for (int64_t i = 0; i < count; i++) {
        float x = fabsf(mixt__load(src->data, src->dtype, i));
        largest = isfinite(x) && x > largest ? x : largest;
    }
    float scale = mixt__fp32_of_bits(scale_bits(call, mixt__fp32_bits(largest)));
    for (int64_t i = 0; i < count; i++) {
        float x = mixt__load(src->data, src->dtype, i), y = x / scale;
        mixt__store(dst->data, dst->dtype, i, x != 0 && fabsf(y) < least ? copysignf(least, x) : y);
    }
    *(float *)call->out[1].data = scale;
    return MIXT_OK;
}

static const mixt__kernel tiled = {.name = "tiled", .run = run}, plain = {.name = "plain", .run = plain_run};

const mixt__kernel *const mixt__cpu_scaled_cast_kernels[] = {&tiled, &plain, NULL};
