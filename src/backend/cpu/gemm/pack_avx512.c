/* AVX-512 packing: 16 × 16 blocks of 32-bit units, widened or paired while loading, transposed in registers when the
 * source runs along K.
 *
 * Three panels are made here: FP32 units by lane (any source format), BF16 pairs by lane, and BF16 pairs by row (AMX's
 * A, where each of 16 rows holds 16 pairs). Loads are masked, so nothing outside the source is touched.
 */
#include "backend/cpu/gemm/kernel.h"
#include "backend/cpu/core/transpose_avx512.h"

enum { BLOCK = 16, ROWS_AT_ONCE = 8, LINES_AHEAD = 6 };

#define PACK_INLINE static inline __attribute__((always_inline))

PACK_INLINE __mmask32 low_mask(int64_t count)
{
    return count >= 32 ? 0xffffffffu : count <= 0 ? 0 : (1u << count) - 1;
}

/** 16 elements at `index` as FP32 units; those past `count` are zero. */
PACK_INLINE __m512i load_wide(const void *src, int64_t index, int64_t count, const mixt_dtype dtype)
{
    __mmask16 mask = (__mmask16)low_mask(count < BLOCK ? count : BLOCK);
    if (dtype == MIXT_DTYPE_FP32)
        return _mm512_maskz_loadu_epi32(mask, (const float *)src + index);
    __m256i half = _mm256_maskz_loadu_epi16(mask, (const uint16_t *)src + index);
    if (dtype == MIXT_DTYPE_BF16)
        return _mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16);
    return _mm512_castps_si512(_mm512_cvtph_ps(half));
}

/** 16 pairs along K (source runs along K): `count` elements from `index`. */
PACK_INLINE __m512i load_pairs(const void *src, int64_t index, int64_t count)
{
    return _mm512_maskz_loadu_epi16(low_mask(count), (const uint16_t *)src + index);
}

/** 16 lanes of one pair (source runs along lanes): elements at `index` and `index + k_stride`, if there are two. */
PACK_INLINE __m512i join_pair(const void *src, int64_t index, int64_t k_stride, int64_t lanes, bool two)
{
    __mmask16 mask = (__mmask16)low_mask(lanes < BLOCK ? lanes : BLOCK);
    const uint16_t *p = (const uint16_t *)src + index;
    __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, p));
    if (!two)
        return low;
    __m512i high = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, p + k_stride));
    return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}

/** One panel: where it goes, and its lanes of the source. */
typedef struct panel {
    int32_t *dst;
    int64_t first, lanes;
} panel;

static inline panel panel_at(const mixt__gemm_pack *p, int64_t first)
{
    int64_t lanes = p->lanes - first < p->used ? p->lanes - first : p->used;
    return (panel){(int32_t *)p->dst + first / p->used * p->units * p->width, first, lanes};
}

/** One block, 16 lanes × 16 units, of a source that runs along K: v[lane]. */
PACK_INLINE void load_along_k(const mixt__gemm_pack *p, panel to, int64_t lane, int64_t k, const mixt_dtype dtype,
                              const bool pairs, __m512i v[BLOCK])
{
#pragma GCC unroll 16
    for (int l = 0; l < BLOCK; l++) {
        int64_t index = (to.first + lane + l) * p->lane_stride + k;
        const char *at = (const char *)p->src + index * (dtype == MIXT_DTYPE_FP32 ? 4 : 2);
        if (lane + l >= to.lanes) {
            v[l] = _mm512_setzero_si512();
            continue;
        }
        _mm_prefetch(at + LINES_AHEAD * 64,
                     _MM_HINT_T0); // 16 rows at once are more streams than the CPU follows itself
        v[l] = pairs ? load_pairs(p->src, index, p->k - k) : load_wide(p->src, index, p->k - k, dtype);
    }
}

PACK_INLINE void pack_along_k(const mixt__gemm_pack *p, panel to, const mixt_dtype dtype, const bool pairs)
{
    const int64_t per_unit = pairs ? 2 : 1, units = (p->k + per_unit - 1) / per_unit;
    for (int64_t u = 0; u < units; u += BLOCK) {
        int64_t count = units - u < BLOCK ? units - u : BLOCK;
        for (int64_t lane = 0; lane < p->width; lane += BLOCK) {
            __m512i v[BLOCK];
            load_along_k(p, to, lane, u * per_unit, dtype, pairs, v);
            mixt__transpose16(v);
            int32_t *dst = to.dst + u * p->width + lane;
            if (count == BLOCK) {
#pragma GCC unroll 16
                for (int i = 0; i < BLOCK; i++)
                    _mm512_store_si512(dst + i * p->width, v[i]);
            } else {
                for (int64_t i = 0; i < count; i++)
                    _mm512_store_si512(dst + i * p->width, v[i]);
            }
        }
    }
}

PACK_INLINE void pack_along_lanes(const mixt__gemm_pack *p, panel to, int64_t k0, const mixt_dtype dtype,
                                  const bool pairs)
{
    const int64_t per_unit = pairs ? 2 : 1, end = k0 + ROWS_AT_ONCE < p->k ? k0 + ROWS_AT_ONCE : p->k;
    int32_t *dst = to.dst + k0 / per_unit * p->width;
    for (int64_t k = k0; k < end; k += per_unit, dst += p->width)
        for (int64_t lane = 0; lane < p->width; lane += BLOCK) {
            int64_t index = k * p->k_stride + to.first + lane, lanes = to.lanes - lane;
            int64_t ahead = index + ROWS_AT_ONCE * p->k_stride;
            _mm_prefetch((const char *)p->src + ahead * (dtype == MIXT_DTYPE_FP32 ? 4 : 2), _MM_HINT_T0);
            __m512i v = pairs ? join_pair(p->src, index, p->k_stride, lanes, k + 1 < p->k)
                              : load_wide(p->src, index, lanes, dtype);
            _mm512_store_si512(dst + lane, v);
        }
}

static bool runs_along_k(const mixt__gemm_pack *p)
{
    return p->k_stride == 1 && p->lane_stride != 1;
}

/** All panels. A source that runs along lanes is read some rows at a time through all panels: whole cache lines, few
 * pages. */
PACK_INLINE void pack_panels(const mixt__gemm_pack *p, const mixt_dtype dtype, const bool pairs)
{
    if (runs_along_k(p)) {
        for (int64_t first = 0; first < p->lanes; first += p->used)
            pack_along_k(p, panel_at(p, first), dtype, pairs);
        return;
    }
    for (int64_t k0 = 0; k0 < p->k; k0 += ROWS_AT_ONCE)
        for (int64_t first = 0; first < p->lanes; first += p->used)
            pack_along_lanes(p, panel_at(p, first), k0, dtype, pairs);
}

void mixt__gemm_pack_avx512(const mixt__gemm_pack *p)
{
    if (p->dtype == MIXT_DTYPE_FP32)
        pack_panels(p, MIXT_DTYPE_FP32, false);
    else if (p->dtype == MIXT_DTYPE_BF16)
        pack_panels(p, MIXT_DTYPE_BF16, false);
    else
        pack_panels(p, MIXT_DTYPE_FP16, false);
}

/** Zeroes the units after the source's end: AMX consumes 16 at once. */
static void pad_units(const mixt__gemm_pack *p)
{
    for (int64_t first = 0; first < p->lanes; first += p->used)
        for (int64_t i = (p->k + 1) / 2 * p->width; i < p->units * p->width; i += BLOCK)
            _mm512_store_si512(panel_at(p, first).dst + i, _mm512_setzero_si512());
}

void mixt__gemm_pack_pairs_avx512(const mixt__gemm_pack *p)
{
    pack_panels(p, MIXT_DTYPE_BF16, true);
    pad_units(p);
}

/** 16 rows × 16 pairs of a panel by row; the source runs either way. */
PACK_INLINE void pack_row_block(const mixt__gemm_pack *p, panel to, int64_t lane, int64_t k, bool along_k)
{
    __m512i v[BLOCK];
    if (along_k) {
        load_along_k(p, to, lane, k, MIXT_DTYPE_BF16, true, v);
    } else {
        for (int i = 0; i < BLOCK; i++) {
            int64_t at = k + 2 * i, index = at * p->k_stride + to.first + lane;
            v[i] = at < p->k ? join_pair(p->src, index, p->k_stride, to.lanes - lane, at + 1 < p->k)
                             : _mm512_setzero_si512();
        }
        mixt__transpose16(v);
    }
    int32_t *dst = to.dst + k / 2 * p->width + lane * BLOCK;
#pragma GCC unroll 16
    for (int i = 0; i < BLOCK; i++)
        _mm512_store_si512(dst + i * BLOCK, v[i]);
}

void mixt__gemm_pack_rows_avx512(const mixt__gemm_pack *p)
{
    bool along_k = runs_along_k(p);
    int64_t most = 2 * p->units, at_once = along_k ? most : 2 * BLOCK;
    for (int64_t k0 = 0; k0 < most; k0 += at_once)
        for (int64_t first = 0; first < p->lanes; first += p->used)
            for (int64_t k = k0; k < k0 + at_once; k += 2 * BLOCK)
                for (int64_t lane = 0; lane < p->width; lane += BLOCK)
                    pack_row_block(p, panel_at(p, first), lane, k, along_k);
}
