/* The optimizers' inner loops, compiled for the baseline, AVX2 and AVX-512.
 *
 * Vectors are explicit, so that what is read and written is summed where it is, in registers: a pass that sums moves no
 * byte more than one that does not. Elements do not depend on each other: every level gives the same bits.
 */
#include "backend/cpu/update/loops.h"

#include "backend/cpu/update/squares.h"
#include "base/isa_at.h"
#include "num/num.h"

#include <math.h>
#include <string.h>

#if defined(__AVX512F__)
#include <immintrin.h>
enum { LANES = 16 };
#elif defined(__AVX2__)
#include <immintrin.h>
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif

#define INLINE static inline __attribute__((always_inline))

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef uint32_t bits __attribute__((vector_size(4 * LANES)));
typedef uint64_t words __attribute__((vector_size(4 * LANES)));
typedef uint16_t half __attribute__((vector_size(2 * LANES)));
typedef uint64_t half_words __attribute__((vector_size(2 * LANES)));

/* ---- what each level has in its own form ---- */

#if defined(__AVX512F__)
INLINE void take_root(vec *x)
{
    *x = (vec)_mm512_sqrt_ps((__m512)*x);
}

/** x > limit ? limit : x, and below -limit alike; NaN stays. */
INLINE void clip(vec *x, float limit)
{
    __m512 below = _mm512_min_ps(_mm512_set1_ps(limit), (__m512)*x);
    *x = (vec)_mm512_max_ps(_mm512_set1_ps(-limit), below);
}

INLINE void round_fp16(half *dst, const vec *src)
{
    *dst = (half)_mm512_cvtps_ph((__m512)*src, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
#elif defined(__AVX2__)
INLINE void take_root(vec *x)
{
    *x = (vec)_mm256_sqrt_ps((__m256)*x);
}

INLINE void clip(vec *x, float limit)
{
    __m256 below = _mm256_min_ps(_mm256_set1_ps(limit), (__m256)*x);
    *x = (vec)_mm256_max_ps(_mm256_set1_ps(-limit), below);
}

INLINE void round_fp16(half *dst, const vec *src)
{
    *dst = (half)_mm256_cvtps_ph((__m256)*src, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
#else
INLINE void take_root(vec *x)
{
    for (int i = 0; i < LANES; i++)
        (*x)[i] = sqrtf((*x)[i]);
}

INLINE void clip(vec *x, float limit)
{
    for (int i = 0; i < LANES; i++) {
        float below = (*x)[i] > limit ? limit : (*x)[i];
        (*x)[i] = below < -limit ? -limit : below;
    }
}

INLINE void round_fp16(half *dst, const vec *src)
{
    for (int i = 0; i < LANES; i++)
        (*dst)[i] = mixt_fp16_from_fp32((*src)[i]);
}
#endif

/** To the nearest, ties to even; NaN is made quiet. */
INLINE void round_bf16(half *dst, const vec *src)
{
    bits b = (bits)*src, rounded = b + 0x7fff + ((b >> 16) & 1);
    bits is_nan = (bits)((b & 0x7fffffff) > 0x7f800000);
    rounded = (rounded & ~is_nan) | ((b | 0x400000) & is_nan);
    rounded >>= 16;
#if defined(__AVX512F__)
    *dst = (half)_mm512_cvtepi32_epi16((__m512i)rounded);
#else
    *dst = __builtin_convertvector(rounded, half);
#endif
}

/* ---- the rules ---- */

/** One vector of each array, and what is read and written of them. */
typedef struct lane {
    vec w, g, m, v;
} lane;

typedef void rule_fn(const mixt__rule *r, lane *x);

/** Unscaled and clipped by norm, then by value. */
INLINE vec gradient(const mixt__rule *r, const lane *x)
{
    vec g = x->g * r->grad_factor;
    clip(&g, r->clip);
    return g;
}

INLINE void sgd(const mixt__rule *r, lane *x)
{
    x->w -= r->lr * (gradient(r, x) + r->weight_decay * x->w);
}

INLINE void momentum(const mixt__rule *r, lane *x)
{
    x->m = r->momentum * x->m + (gradient(r, x) + r->weight_decay * x->w);
    x->w -= r->lr * x->m;
}

INLINE void nesterov(const mixt__rule *r, lane *x)
{
    vec d = gradient(r, x) + r->weight_decay * x->w;
    x->m = r->momentum * x->m + d;
    x->w -= r->lr * (d + r->momentum * x->m);
}

/** m̂/(sqrt(v̂) + eps) from moments that are already those of this step. */
INLINE vec adam_direction(const mixt__rule *r, const lane *x)
{
    vec root = x->v;
    take_root(&root);
    return x->m * r->inv_bias1 / (root * r->inv_sqrt_bias2 + r->eps);
}

/** Both moments after gradient d. */
INLINE void adam_moments(const mixt__rule *r, lane *x, const vec *gradient)
{
    const vec d = *gradient;
    x->m = r->beta1 * x->m + r->one_minus_beta1 * d;
    if (r->others > 0) {
        vec mean = x->m * r->inv_bias1;
        x->v = r->beta2 * x->v + r->one_minus_beta2 * ((d * d + r->others * (mean * mean)) * r->share);
    } else {
        x->v = r->beta2 * x->v + r->one_minus_beta2 * d * d;
    }
}

INLINE void adam(const mixt__rule *r, lane *x)
{
    vec d = gradient(r, x) + r->weight_decay * x->w;
    adam_moments(r, x, &d);
    x->w -= r->lr * adam_direction(r, x);
}

INLINE void adamw(const mixt__rule *r, lane *x)
{
    vec d = gradient(r, x);
    adam_moments(r, x, &d);
    x->w = x->w - r->lr * r->weight_decay * x->w - r->lr * adam_direction(r, x);
}

INLINE void lamb_apply(const mixt__rule *r, lane *x)
{
    x->w -= r->lr * (adam_direction(r, x) + r->weight_decay * x->w);
}

/* ---- over a block ---- */

/** What a rule reads and writes; all of it is known where it is compiled. */
typedef struct shape {
    bool g, m, v;          // read
    bool weights, moments; // written
} shape;

typedef struct sums {
    words w[2], m[2], v[2]; // read, written
    half_words low[2];
} sums;

INLINE void load(vec *x, const float *src, words *sum, bool summed)
{
    memcpy(x, src, sizeof *x);
    if (summed)
        *sum += (words)*x;
}

INLINE void store(float *dst, const vec *x, words *sum, bool summed)
{
    memcpy(dst, x, sizeof *x);
    if (summed)
        *sum += (words)*x;
}

/** The copy of the weights. What stood there is read first: its line has to come anyway. */
INLINE void store_low(const mixt__update_block *b, int64_t i, const vec *w, sums *s, bool summed)
{
    half before, now;
    char *at = (char *)b->low + (int64_t)sizeof(uint16_t) * i;
    memcpy(&before, at, sizeof before);
    if (b->low_format == MIXT_DTYPE_BF16)
        round_bf16(&now, w);
    else
        round_fp16(&now, w);
    memcpy(at, &now, sizeof now);
    if (summed) {
        s->low[0] += (half_words)before;
        s->low[1] += (half_words)now;
    }
}

/** One vector of each array. @param x receives what they are then */
INLINE void one(const mixt__rule *r, const mixt__update_block *b, int64_t i, rule_fn *rule, shape a, bool summed,
                sums *s, lane *x)
{
    load(&x->w, b->w + i, &s->w[0], summed && a.weights);
    if (a.g)
        memcpy(&x->g, b->g + i, sizeof x->g);
    if (a.m)
        load(&x->m, b->m + i, &s->m[0], summed && a.moments);
    if (a.v)
        load(&x->v, b->v + i, &s->v[0], summed && a.moments);
    rule(r, x);
    if (a.weights)
        store(b->w + i, &x->w, &s->w[1], summed);
    if (a.m && a.moments)
        store(b->m + i, &x->m, &s->m[1], summed);
    if (a.v && a.moments)
        store(b->v + i, &x->v, &s->v[1], summed);
    if (a.weights && b->low)
        store_low(b, i, &x->w, s, summed);
}

INLINE void add(uint64_t *dst, const words *sum)
{
    words all;
    memcpy(&all, dst, sizeof all);
    all += *sum;
    memcpy(dst, &all, sizeof all);
}

INLINE void add_low(uint64_t *dst, const half_words *sum)
{
    half_words all;
    memcpy(&all, dst, sizeof all);
    all += *sum;
    memcpy(dst, &all, sizeof all);
}

INLINE void give(const sums *s, const mixt__update_block *b)
{
    for (int i = 0; i < 2; i++) {
        uint64_t(*to)[MIXT_SUM_PARTS] = i ? b->sums->written : b->sums->read;
        add(to[MIXT_SUMMED_WEIGHT], &s->w[i]);
        add_low(to[MIXT_SUMMED_COPY], &s->low[i]);
        if (!b->apart[0])
            add(to[MIXT_SUMMED_MOMENT1], &s->m[i]);
        if (!b->apart[1])
            add(to[MIXT_SUMMED_MOMENT2], &s->v[i]);
    }
}

/* ---- less than a vector: in arrays of its own, with zeros behind it ---- */

typedef struct rest {
    float w[LANES], g[LANES], m[LANES], v[LANES];
    uint16_t low[LANES];
    mixt__update_block block; // of these
} rest;

static void fetch(rest *x, const mixt__update_block *b, int64_t at)
{
    size_t bytes = (size_t)(b->count - at) * sizeof(float);
    memset(x, 0, sizeof *x);
    x->block = *b;
    x->block.low = NULL; // is rounded below, and its end cut off
    memcpy(x->w, b->w + at, bytes);
    x->block.w = x->w;
    x->block.g = x->g;
    x->block.m = x->m;
    x->block.v = x->v;
    if (b->g)
        memcpy(x->g, b->g + at, bytes);
    if (b->m)
        memcpy(x->m, b->m + at, bytes);
    if (b->v)
        memcpy(x->v, b->v + at, bytes);
    if (b->low)
        memcpy(x->low, (const uint16_t *)b->low + at, bytes / 2);
}

static void put(float *dst, float *src, size_t bytes, words *sum)
{
    vec x;
    memset((char *)src + bytes, 0, LANES * sizeof(float) - bytes); // where 0 divided by an epsilon of 0 may be NaN
    memcpy(&x, src, sizeof x);
    *sum += (words)x;
    memcpy(dst, src, bytes);
}

INLINE void read(const float *src, words *sum)
{
    vec x;
    memcpy(&x, src, sizeof x);
    *sum += (words)x;
}

INLINE void finish(const mixt__rule *r, const mixt__update_block *b, int64_t at, rule_fn *rule, shape a, sums *s,
                   lane *x)
{
    rest e;
    size_t bytes = (size_t)(b->count - at) * sizeof(float);
    fetch(&e, b, at);
    if (a.weights)
        read(e.w, &s->w[0]);
    if (a.moments && a.m)
        read(e.m, &s->m[0]);
    if (a.moments && a.v)
        read(e.v, &s->v[0]);
    one(r, &e.block, 0, rule, a, false, s, x);
    if (a.weights)
        put(b->w + at, e.w, bytes, &s->w[1]);
    if (a.moments && a.m)
        put(b->m + at, e.m, bytes, &s->m[1]);
    if (a.moments && a.v)
        put(b->v + at, e.v, bytes, &s->v[1]);
    if (!a.weights || !b->low)
        return;
    vec w;
    memcpy(&w, e.w, sizeof w);
    mixt__update_block low = {.low = e.low, .low_format = b->low_format};
    store_low(&low, 0, &w, s, true);
    memcpy((uint16_t *)b->low + at, e.low, bytes / 2);
}

/* ---- over a block ---- */

INLINE void run(const mixt__rule *rule, const mixt__update_block *block, rule_fn *fn, shape a, bool summed)
{
    const mixt__rule r = *rule;
    const mixt__update_block b = *block;
    lane x;
    sums s;
    memset(&s, 0, sizeof s);
    int64_t whole = b.count / LANES * LANES;
    for (int64_t i = 0; i < whole; i += LANES)
        one(&r, &b, i, fn, a, summed, &s, &x);
    if (whole < b.count)
        finish(&r, &b, whole, fn, a, &s, &x);
    if (summed)
        give(&s, &b);
}

/** A loop of a rule, with sums and without. */
#define LOOP(name, ...)                                                                                                \
    static void name##_loop(const mixt__rule *rule, const mixt__update_block *b)                                       \
    {                                                                                                                  \
        if (b->sums)                                                                                                   \
            run(rule, b, name, (shape){__VA_ARGS__}, true);                                                            \
        else                                                                                                           \
            run(rule, b, name, (shape){__VA_ARGS__}, false);                                                           \
    }

LOOP(sgd, .g = true, .weights = true)
LOOP(momentum, .g = true, .m = true, .weights = true, .moments = true)
LOOP(nesterov, .g = true, .m = true, .weights = true, .moments = true)
LOOP(adam, .g = true, .m = true, .v = true, .weights = true, .moments = true)
LOOP(adamw, .g = true, .m = true, .v = true, .weights = true, .moments = true)
LOOP(lamb_apply, .m = true, .v = true, .weights = true)

/* ---- LAMB's first pass ---- */

INLINE void lamb_moments(const mixt__rule *r, lane *x)
{
    vec d = gradient(r, x);
    adam_moments(r, x, &d);
    x->g = adam_direction(r, x) + r->weight_decay * x->w;
}

/** What one vector adds to the norms. Past the end there are zeros, which add nothing. */
INLINE void add_norms(const lane *x, float *old, float *update, int64_t count)
{
    memcpy(old, &x->w, sizeof x->w);
    memcpy(update, &x->g, sizeof x->g);
    for (int64_t i = count; i < LANES; i++)
        update[i] = 0;
}

INLINE void run_norms(const mixt__rule *rule, const mixt__update_block *block, bool summed, double *norms)
{
    const shape a = {.g = true, .m = true, .v = true, .moments = true};
    const mixt__rule r = *rule;
    const mixt__update_block b = *block;
    square_sum weights, updates;
    sums s;
    memset(&weights, 0, sizeof weights);
    memset(&updates, 0, sizeof updates);
    memset(&s, 0, sizeof s);
    for (int64_t at = 0; at < b.count; at += SUMS) {
        float old[SUMS] = {0}, update[SUMS] = {0};
        for (int64_t i = at; i < at + SUMS && i < b.count; i += LANES) {
            lane x;
            if (i + LANES <= b.count)
                one(&r, &b, i, lamb_moments, a, summed, &s, &x);
            else
                finish(&r, &b, i, lamb_moments, a, &s, &x);
            add_norms(&x, old + (i - at), update + (i - at), b.count - i);
        }
        add_squares(&weights, old);
        add_squares(&updates, update);
    }
    if (summed)
        give(&s, &b);
    norms[0] = total_squares(&weights);
    norms[1] = total_squares(&updates);
}

static void lamb_moments_loop(const mixt__rule *rule, const mixt__update_block *b, double *norms)
{
    if (b->sums)
        run_norms(rule, b, true, norms);
    else
        run_norms(rule, b, false, norms);
}

const mixt__optimizer_loops MIXT_AT(mixt__optimizer_loops) = {
    .sgd = sgd_loop,
    .momentum = momentum_loop,
    .nesterov = nesterov_loop,
    .adam = adam_loop,
    .adamw = adamw_loop,
    .lamb_moments = lamb_moments_loop,
    .lamb_apply = lamb_apply_loop,
};
