/* Sums of squares in FP64, in an order of additions that every instruction set keeps. For the loops of this folder,
 * which are compiled once for each.
 */
#ifndef MIXT_BACKEND_CPU_UPDATE_SQUARES_H
#define MIXT_BACKEND_CPU_UPDATE_SQUARES_H

#include <string.h>

#if defined(__AVX512F__)
#include <immintrin.h>
enum { WIDE = 8 };
#else
enum { WIDE = 4 };
#endif
enum { SUMS = 16, PARTS = SUMS / WIDE };

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

static inline double total_squares(const square_sum *sum)
{
    double lanes[SUMS], halves[2] = {0, 0};
    memcpy(lanes, sum->part, sizeof lanes);
    for (int i = 0; i < SUMS; i++)
        halves[i / (SUMS / 2)] += lanes[i];
    return halves[0] + halves[1];
}

#endif
