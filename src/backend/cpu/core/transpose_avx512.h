/* A 16 × 16 transpose in registers, for files compiled for AVX-512. */
#ifndef MIXT_BACKEND_CPU_CORE_TRANSPOSE_AVX512_H
#define MIXT_BACKEND_CPU_CORE_TRANSPOSE_AVX512_H

#include <immintrin.h>

/** Transposes 16 × 16 units: 4 × 4 inside each 128-bit lane, then the lanes themselves. */
static inline __attribute__((always_inline)) void mixt__transpose16(__m512i v[16])
{
    __m512i w[16];
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) {
        __m512i t0 = _mm512_unpacklo_epi32(v[i], v[i + 1]), t1 = _mm512_unpackhi_epi32(v[i], v[i + 1]);
        __m512i t2 = _mm512_unpacklo_epi32(v[i + 2], v[i + 3]), t3 = _mm512_unpackhi_epi32(v[i + 2], v[i + 3]);
        w[i] = _mm512_unpacklo_epi64(t0, t2);
        w[i + 1] = _mm512_unpackhi_epi64(t0, t2);
        w[i + 2] = _mm512_unpacklo_epi64(t1, t3);
        w[i + 3] = _mm512_unpackhi_epi64(t1, t3);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        __m512i t0 = _mm512_shuffle_i32x4(w[i], w[i + 4], 0x88), t1 = _mm512_shuffle_i32x4(w[i], w[i + 4], 0xdd);
        __m512i t2 = _mm512_shuffle_i32x4(w[i + 8], w[i + 12], 0x88);
        __m512i t3 = _mm512_shuffle_i32x4(w[i + 8], w[i + 12], 0xdd);
        v[i] = _mm512_shuffle_i32x4(t0, t2, 0x88);
        v[i + 8] = _mm512_shuffle_i32x4(t0, t2, 0xdd);
        v[i + 4] = _mm512_shuffle_i32x4(t1, t3, 0x88);
        v[i + 12] = _mm512_shuffle_i32x4(t1, t3, 0xdd);
    }
}

#endif
