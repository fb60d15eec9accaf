/* AVX2 FP32 products: a 6 × 16 register tile (12 sums, two vectors of B, one broadcast of A) and 8 × 8 packing. */
#include "backend/cpu/gemm/kernel.h"

#include <immintrin.h>

enum { ROWS = 6, LANES = 8, COLS = 16, A_WIDTH = 8, ROWS_AT_ONCE = 8 };

#define AVX2_INLINE static inline __attribute__((always_inline))

/** The tile's end for whole vectors. */
AVX2_INLINE void store_whole(const mixt__gemm_tile *t, int64_t row, int column, __m256 sum)
{
    float *dst = t->c + row * t->ldc + column;
    sum = _mm256_mul_ps(sum, _mm256_set1_ps(t->alpha));
    if (t->bias)
        sum = _mm256_add_ps(sum, _mm256_loadu_ps(t->bias + column));
    if (t->add)
        sum = _mm256_add_ps(sum, _mm256_loadu_ps(dst));
    _mm256_storeu_ps(dst, sum);
}

/** The tile's end where columns are missing; the same operations one by one. */
static void store_cut(const mixt__gemm_tile *t, int64_t row, const float sum[COLS])
{
    float *dst = t->c + row * t->ldc;
    for (int c = 0; c < t->cols; c++) {
        float value = sum[c] * t->alpha;
        if (t->bias)
            value += t->bias[c];
        dst[c] = t->add ? value + dst[c] : value;
    }
}

AVX2_INLINE void tile_rows(const mixt__gemm_tile *t, const int rows)
{
    __m256 sum[ROWS][2];
    const float *a = t->a, *b = t->b;
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) {
        sum[r][0] = sum[r][1] = _mm256_setzero_ps();
        _mm_prefetch((const char *)(t->c + r * t->ldc), _MM_HINT_T0);
    }
#pragma GCC unroll 2
    for (int64_t k = t->k; k > 0; k--, a += A_WIDTH, b += COLS) {
        __m256 b0 = _mm256_load_ps(b), b1 = _mm256_load_ps(b + LANES);
#pragma GCC unroll 6
        for (int r = 0; r < rows; r++) {
            __m256 ar = _mm256_broadcast_ss(a + r);
            sum[r][0] = _mm256_fmadd_ps(ar, b0, sum[r][0]);
            sum[r][1] = _mm256_fmadd_ps(ar, b1, sum[r][1]);
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) {
        if (t->cols == COLS) {
            store_whole(t, r, 0, sum[r][0]);
            store_whole(t, r, LANES, sum[r][1]);
        } else {
            _Alignas(32) float row[COLS];
            _mm256_store_ps(row, sum[r][0]);
            _mm256_store_ps(row + LANES, sum[r][1]);
            store_cut(t, r, row);
        }
    }
}

#define TILE(rows)                                                                                                     \
    static void tile_##rows##x16(const mixt__gemm_tile *t)                                                             \
    {                                                                                                                  \
        tile_rows(t, rows);                                                                                            \
    }
TILE(1)
TILE(2)
TILE(3)
TILE(4)
TILE(5)
TILE(6)
#undef TILE

static void tile_any(const mixt__gemm_tile *t)
{
    static mixt__gemm_tile_fn *const variants[ROWS] = {tile_1x16, tile_2x16, tile_3x16,
                                                       tile_4x16, tile_5x16, tile_6x16};
    variants[t->rows - 1](t);
}

/** 8 elements as FP32; only `count` of them exist. */
AVX2_INLINE __m256 load_wide(const void *src, int64_t index, int64_t count, const mixt_dtype dtype)
{
    if (count <= 0)
        return _mm256_setzero_ps();
    if (dtype == MIXT_DTYPE_FP32) {
        const float *p = (const float *)src + index;
        if (count >= LANES)
            return _mm256_loadu_ps(p);
        __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        return _mm256_maskload_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), lane));
    }
    const uint16_t *p = (const uint16_t *)src + index;
    uint16_t part[LANES] = {0};
    if (count < LANES) {
        for (int64_t i = 0; i < count; i++)
            part[i] = p[i];
        p = part;
    }
    __m128i half = _mm_loadu_si128((const __m128i *)p);
    if (dtype == MIXT_DTYPE_BF16)
        return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
    return _mm256_cvtph_ps(half);
}

AVX2_INLINE void transpose(__m256 v[LANES])
{
    __m256 w[LANES];
#pragma GCC unroll 2
    for (int i = 0; i < LANES; i += 4) {
        __m256 t0 = _mm256_unpacklo_ps(v[i], v[i + 1]), t1 = _mm256_unpackhi_ps(v[i], v[i + 1]);
        __m256 t2 = _mm256_unpacklo_ps(v[i + 2], v[i + 3]), t3 = _mm256_unpackhi_ps(v[i + 2], v[i + 3]);
        w[i] = _mm256_shuffle_ps(t0, t2, 0x44);
        w[i + 1] = _mm256_shuffle_ps(t0, t2, 0xee);
        w[i + 2] = _mm256_shuffle_ps(t1, t3, 0x44);
        w[i + 3] = _mm256_shuffle_ps(t1, t3, 0xee);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        v[i] = _mm256_permute2f128_ps(w[i], w[i + 4], 0x20);
        v[i + 4] = _mm256_permute2f128_ps(w[i], w[i + 4], 0x31);
    }
}

AVX2_INLINE void pack_along_k(const mixt__gemm_pack *p, int64_t first, int64_t lanes, float *panel,
                              const mixt_dtype dtype)
{
    for (int64_t k = 0; k < p->k; k += LANES)
        for (int64_t lane = 0; lane < p->width; lane += LANES) {
            __m256 v[LANES];
#pragma GCC unroll 8
            for (int l = 0; l < LANES; l++)
                v[l] = lane + l < lanes ? load_wide(p->src, (first + lane + l) * p->lane_stride + k, p->k - k, dtype)
                                        : _mm256_setzero_ps();
            transpose(v);
            float *dst = panel + k * p->width + lane;
#pragma GCC unroll 8
            for (int i = 0; i < LANES; i++)
                if (k + i < p->k)
                    _mm256_store_ps(dst + i * p->width, v[i]);
        }
}

AVX2_INLINE void pack_along_lanes(const mixt__gemm_pack *p, int64_t first, int64_t lanes, int64_t k0, float *panel,
                                  const mixt_dtype dtype)
{
    int64_t end = k0 + ROWS_AT_ONCE < p->k ? k0 + ROWS_AT_ONCE : p->k;
    for (int64_t k = k0; k < end; k++)
        for (int64_t lane = 0; lane < p->width; lane += LANES)
            _mm256_store_ps(panel + k * p->width + lane,
                            load_wide(p->src, k * p->k_stride + first + lane, lanes - lane, dtype));
}

/** All panels. A source that runs along lanes is read some rows at a time through all panels: whole cache lines. */
AVX2_INLINE void pack_panels(const mixt__gemm_pack *p, const mixt_dtype dtype)
{
    bool along_k = p->k_stride == 1 && p->lane_stride != 1;
    for (int64_t k0 = 0; k0 < p->k; k0 += along_k ? p->k : ROWS_AT_ONCE) {
        float *panel = p->dst;
        for (int64_t first = 0; first < p->lanes; first += p->used, panel += p->units * p->width) {
            // Whole vectors are faster than exact ones; lanes past `used` then hold the next panel's first, and no tile
            // reads them.
            int64_t most = along_k ? p->used : p->width, lanes = p->lanes - first < most ? p->lanes - first : most;
            if (along_k)
                pack_along_k(p, first, lanes, panel, dtype);
            else
                pack_along_lanes(p, first, lanes, k0, panel, dtype);
        }
    }
}

static void pack_avx2(const mixt__gemm_pack *p)
{
    if (p->dtype == MIXT_DTYPE_FP32)
        pack_panels(p, MIXT_DTYPE_FP32);
    else if (p->dtype == MIXT_DTYPE_BF16)
        pack_panels(p, MIXT_DTYPE_BF16);
    else
        pack_panels(p, MIXT_DTYPE_FP16);
}

const mixt__gemm_kernel mixt__gemm_kernel_avx2 = {.name = "avx2",
                                                  .isa = MIXT_ISA_AVX2,
                                                  .mr = ROWS,
                                                  .nr = COLS,
                                                  .a_width = A_WIDTH,
                                                  .k_step = 1,
                                                  .m_grain = 1,
                                                  .kc_max = 384,
                                                  .a_block = 160 * 1024,
                                                  .macs = 16,
                                                  .tile = tile_any,
                                                  .pack_a = pack_avx2,
                                                  .pack_b = pack_avx2};
