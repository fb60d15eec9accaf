/* The loops that loops.h declares, compiled for the baseline, AVX2 and AVX-512.
 *
 * Lanes are explicit (whatever the register width), so that every level adds in the same order.
 */
#include "backend/cpu/update/loops.h"

#include "base/isa_at.h"

#include <math.h>
#include <string.h>

#if defined(__AVX512F__)
#include <immintrin.h>
enum { LANES = 16 };
#else
enum { LANES = 8 };
#endif
enum { SUMS = 16, WIDE = LANES / 2, PARTS = SUMS / WIDE, SETS = SUMS / LANES };

typedef int32_t lanes_i32 __attribute__((vector_size(4 * LANES)));
typedef float wide_f32 __attribute__((vector_size(4 * WIDE)));
typedef double wide_f64 __attribute__((vector_size(8 * WIDE)));

static inline void widen(wide_f64 *dst, const float *src)
{
    wide_f32 x;
    memcpy(&x, src, sizeof x);
#if defined(__AVX512F__)
    *dst = (wide_f64)_mm512_cvtps_pd((__m256)x); // of the other form the compiler makes two halves
#else
    *dst = __builtin_convertvector(x, wide_f64);
#endif
}

/** SUMS sums: element i belongs to number i % SUMS. */
typedef struct square_sum {
    wide_f64 part[PARTS];
} square_sum;

/** SUMS more. The product of two FP32 numbers is exact in FP64: only the additions round, fused or not. */
static inline void add_squares(square_sum *sum, const float *x)
{
#pragma GCC unroll 4
    for (int p = 0; p < PARTS; p++) {
        wide_f64 d;
        widen(&d, x + p * WIDE);
#if defined(__AVX512F__)
        sum->part[p] = (wide_f64)_mm512_fmadd_pd((__m512d)d, (__m512d)d, (__m512d)sum->part[p]);
#else
        sum->part[p] += d * d;
#endif
    }
}

static inline double total(const square_sum *sum)
{
    double lanes[SUMS], halves[2] = {0, 0};
    memcpy(lanes, sum->part, sizeof lanes);
    for (int i = 0; i < SUMS; i++)
        halves[i / (SUMS / 2)] += lanes[i];
    return halves[0] + halves[1];
}

typedef struct stat_lanes {
    square_sum squares;
    lanes_i32 amax[SETS]; // the bits of a magnitude, which order like the magnitudes; NaN and Inf are largest
    lanes_i32 zeros[SETS];
} stat_lanes;

/** SUMS more. */
static inline void add_stats(stat_lanes *s, const float *x)
{
#pragma GCC unroll 2
    for (int set = 0; set < SETS; set++) {
        lanes_i32 bits;
        memcpy(&bits, x + set * LANES, sizeof bits);
        bits &= 0x7fffffff;
#if defined(__AVX512F__)
        __m512i zeros = (__m512i)s->zeros[set];
        __mmask16 where = _mm512_testn_epi32_mask((__m512i)bits, (__m512i)bits);
        s->zeros[set] = (lanes_i32)_mm512_mask_add_epi32(zeros, where, zeros, _mm512_set1_epi32(1));
#else
        s->zeros[set] -= bits == 0; // -1 where true
#endif
        for (int i = 0; i < LANES; i++)
            s->amax[set][i] = bits[i] > s->amax[set][i] ? bits[i] : s->amax[set][i];
    }
    add_squares(&s->squares, x);
}

/** Where some are NaN or Inf, which is rare: their count, and the largest of the others. */
static void count_nonfinite(const float *g, int64_t count, mixt__chunk_stats *result)
{
    result->amax = 0;
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(g[i]))
            result->nonfinite++;
        else if (fabsf(g[i]) > result->amax)
            result->amax = fabsf(g[i]);
}

static void stats(const float *g, int64_t count, mixt__chunk_stats *result)
{
    stat_lanes s;
    memset(&s, 0, sizeof s);
    int64_t whole = count / SUMS * SUMS;
    for (int64_t i = 0; i < whole; i += SUMS)
        add_stats(&s, g + i);
    float rest[SUMS] = {0};
    memcpy(rest, g + whole, (size_t)(count - whole) * sizeof(float));
    add_stats(&s, rest);
    int32_t amax = 0, zeros = (int32_t)(count - whole) - SUMS; // the padding of the rest is not counted
    for (int i = 0; i < SUMS; i++) {
        int32_t largest = s.amax[i / LANES][i % LANES];
        zeros += s.zeros[i / LANES][i % LANES];
        amax = largest > amax ? largest : amax;
    }
    *result = (mixt__chunk_stats){.sum_squares = total(&s.squares), .zeros = (uint16_t)zeros};
    memcpy(&result->amax, &amax, sizeof amax);
    if (!isfinite(result->amax))
        count_nonfinite(g, count, result);
}

/** Unscaled and clipped by norm, then by value. */
static inline float gradient(const mixt__rule *r, float g)
{
    g *= r->grad_factor;
    g = g > r->clip ? r->clip : g;
    return g < -r->clip ? -r->clip : g;
}

static void sgd(const mixt__rule *rule, float *restrict w, const float *restrict g, float *restrict m,
                float *restrict v, int64_t count)
{
    const mixt__rule r = *rule;
    (void)m;
    (void)v;
    for (int64_t i = 0; i < count; i++)
        w[i] -= r.lr * (gradient(&r, g[i]) + r.weight_decay * w[i]);
}

static void momentum(const mixt__rule *rule, float *restrict w, const float *restrict g, float *restrict m,
                     float *restrict v, int64_t count)
{
    const mixt__rule r = *rule;
    (void)v;
    for (int64_t i = 0; i < count; i++) {
        m[i] = r.momentum * m[i] + (gradient(&r, g[i]) + r.weight_decay * w[i]);
        w[i] -= r.lr * m[i];
    }
}

static void nesterov(const mixt__rule *rule, float *restrict w, const float *restrict g, float *restrict m,
                     float *restrict v, int64_t count)
{
    const mixt__rule r = *rule;
    (void)v;
    for (int64_t i = 0; i < count; i++) {
        float d = gradient(&r, g[i]) + r.weight_decay * w[i];
        m[i] = r.momentum * m[i] + d;
        w[i] -= r.lr * (d + r.momentum * m[i]);
    }
}

/** m̂/(sqrt(v̂) + eps) from moments that are already those of this step. */
static inline float adam_direction(const mixt__rule *r, float m, float v)
{
    return m * r->inv_bias1 / (sqrtf(v) * r->inv_sqrt_bias2 + r->eps);
}

/** The second moment after gradient d, the first being that of this step. */
static inline float second_moment(const mixt__rule *r, float m, float v, float d)
{
    float mean = m * r->inv_bias1;
    if (r->others > 0)
        return r->beta2 * v + r->one_minus_beta2 * ((d * d + r->others * (mean * mean)) * r->share);
    return r->beta2 * v + r->one_minus_beta2 * d * d;
}

static void adam(const mixt__rule *rule, float *restrict w, const float *restrict g, float *restrict m,
                 float *restrict v, int64_t count)
{
    const mixt__rule r = *rule;
    for (int64_t i = 0; i < count; i++) {
        float d = gradient(&r, g[i]) + r.weight_decay * w[i];
        m[i] = r.beta1 * m[i] + r.one_minus_beta1 * d;
        v[i] = second_moment(&r, m[i], v[i], d);
        w[i] -= r.lr * adam_direction(&r, m[i], v[i]);
    }
}

static void adamw(const mixt__rule *rule, float *restrict w, const float *restrict g, float *restrict m,
                  float *restrict v, int64_t count)
{
    const mixt__rule r = *rule;
    const float keep = r.lr * r.weight_decay;
    for (int64_t i = 0; i < count; i++) {
        float d = gradient(&r, g[i]);
        m[i] = r.beta1 * m[i] + r.one_minus_beta1 * d;
        v[i] = second_moment(&r, m[i], v[i], d);
        w[i] = w[i] - keep * w[i] - r.lr * adam_direction(&r, m[i], v[i]);
    }
}

static inline float lamb_update(const mixt__rule *r, float w, float m, float v)
{
    return adam_direction(r, m, v) + r->weight_decay * w;
}

static void lamb_moments(const mixt__rule *rule, const float *restrict w, const float *restrict g, float *restrict m,
                         float *restrict v, int64_t count, double *restrict sums)
{
    enum { BLOCK = 256 };
    const mixt__rule r = *rule;
    square_sum weights, updates;
    memset(&weights, 0, sizeof weights);
    memset(&updates, 0, sizeof updates);
    for (int64_t at = 0; at < count; at += BLOCK) {
        int64_t n = count - at < BLOCK ? count - at : BLOCK;
        float old[BLOCK] = {0}, u[BLOCK] = {0}; // zeros past the end add nothing
        for (int64_t i = 0; i < n; i++) {
            float d = gradient(&r, g[at + i]);
            m[at + i] = r.beta1 * m[at + i] + r.one_minus_beta1 * d;
            v[at + i] = second_moment(&r, m[at + i], v[at + i], d);
            old[i] = w[at + i];
            u[i] = lamb_update(&r, old[i], m[at + i], v[at + i]);
        }
        for (int i = 0; i < BLOCK; i += SUMS) {
            add_squares(&weights, old + i);
            add_squares(&updates, u + i);
        }
    }
    sums[0] = total(&weights);
    sums[1] = total(&updates);
}

static void lamb_apply(const mixt__rule *rule, float *restrict w, const float *restrict g, float *restrict m,
                       float *restrict v, int64_t count)
{
    const mixt__rule r = *rule;
    (void)g;
    for (int64_t i = 0; i < count; i++)
        w[i] -= r.lr * lamb_update(&r, w[i], m[i], v[i]);
}

typedef uint32_t lanes_u32 __attribute__((vector_size(4 * LANES)));

/** Upper halves are summed apart, and all of the words modulo 2^32: the lower halves are what is left. */
static uint64_t words(const void *src, int64_t count)
{
    const uint32_t *w = src;
    lanes_u32 all[2] = {0}, upper[2] = {0};
    int64_t i = 0;
    for (; i + 2 * LANES <= count; i += 2 * LANES)
        for (int k = 0; k < 2; k++) {
            lanes_u32 x;
            memcpy(&x, w + i + k * LANES, sizeof x);
            all[k] += x;
            upper[k] += x >> 16;
        }
    uint32_t low = 0, high = 0;
    for (int k = 0; k < LANES; k++) {
        low += all[0][k] + all[1][k];
        high += upper[0][k] + upper[1][k];
    }
    for (; i < count; i++) {
        low += w[i];
        high += w[i] >> 16;
    }
    return ((uint64_t)high << 16) + (uint32_t)(low - (high << 16));
}

const mixt__update_loops MIXT_AT(mixt__update_loops) = {
    .stats = stats,
    .sgd = sgd,
    .momentum = momentum,
    .nesterov = nesterov,
    .adam = adam,
    .adamw = adamw,
    .lamb_moments = lamb_moments,
    .lamb_apply = lamb_apply,
    .words = words,
};
