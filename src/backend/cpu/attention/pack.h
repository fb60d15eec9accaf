/* What attention's products read, packed into the words of tile.h: for block.h.
 *
 * FP32 words: any format is widened, and a matrix with depth along its rows is the same as one with depth along its
 * columns. BF16 words: numbers are copied, rows give the pairs of a product over the head size (scores), and two rows
 * woven into one give the pairs of a product over keys or queries; what a kernel computed (probabilities and their
 * gradients) is rounded to BF16 once, here.
 */
#include "backend/cpu/attention/attention.h"
#include "backend/cpu/core/tile.h"
#include "num/num.h"
#if MIXT_AT_AMX
#include "backend/cpu/core/transpose_avx512.h"
#endif

enum {
    DEPTH_UNIT = TILE_PACK * TILE_DEPTH,                        // numbers of depth that a product takes at once
    ROW_UNIT = DEPTH_UNIT > VEC_LANES ? DEPTH_UNIT : VEC_LANES, // rows of numbers come in multiples of this
};

/** One head of a (B, T, C) tensor in one batch entry: row t starts at data + t · stride elements. */
typedef struct head_tensor {
    void *data;
    int64_t stride;
} head_tensor;

typedef struct head {
    int64_t dim, dim_padded, queries, keys; // dim_padded: a multiple of ROW_UNIT
    int64_t words;                          // of a packed row: dim_padded numbers
    float scale, softcap;
    bool causal;
    int64_t window;
    const int32_t *places; // (queries) of texts that share a row; NULL: a row is one
    size_t element;        // bytes of one number in the tensors
    mixt__widen_fn *widen;
    mixt__narrow_fn *narrow;
    head_tensor q, k, v, dst, grad_dst, grad_q, grad_k, grad_v;
    float *lse;
} head;

static const char *row_of(const head *h, const head_tensor *x, int64_t t)
{
    return (const char *)x->data + (size_t)(t * x->stride) * h->element;
}

/** Rows [t0, t0 + count) of a head as FP32 rows of `dim_padded`, zeros behind; `rows` of them, zeros below. */
static void load_rows(const head *h, const head_tensor *x, int64_t t0, int64_t count, int64_t rows, float *dst)
{
    for (int64_t t = 0; t < rows; t++) {
        float *row = dst + t * h->dim_padded;
        int64_t have = t < count ? h->dim : 0;
        if (have)
            h->widen(row, row_of(h, x, t0 + t), have);
        memset(row + have, 0, (size_t)(h->dim_padded - have) * sizeof(float));
    }
}

static void store_rows(const head *h, const head_tensor *x, int64_t t0, int64_t count, const float *src)
{
    for (int64_t t = 0; t < count; t++)
        h->narrow((char *)x->data + (size_t)((t0 + t) * x->stride) * h->element, src + t * h->dim_padded, h->dim);
}

#if defined(__AVX512BF16__)

/** The same rows as words, `h->words` a row. */
static void pack_rows(const head *h, const head_tensor *x, int64_t t0, int64_t count, int64_t rows, float *dst)
{
    for (int64_t t = 0; t < rows; t++) {
        char *row = (char *)(dst + t * h->words);
        size_t have = t < count ? (size_t)h->dim * h->element : 0;
        if (have)
            memcpy(row, row_of(h, x, t0 + t), have);
        memset(row + have, 0, (size_t)h->words * sizeof(float) - have);
    }
}

/** `rows` packed rows, `src_ld` words from one to the next, as a matrix with depth along the rows: `width` words for
 * every two rows, into `dst`, which is returned. */
static const float *pack_depth(const float *src, int64_t src_ld, int64_t rows, int64_t width, float *dst,
                               int64_t dst_ld)
{
    for (int64_t t = 0; t < rows; t += 2) {
        const __m256i *low = (const void *)(src + t * src_ld), *high = (const void *)(src + (t + 1) * src_ld);
        for (int64_t c = 0; c < width; c += VEC_LANES) {
            __m512i word = _mm512_cvtepu16_epi32(_mm256_loadu_si256(low++));
            if (t + 1 < rows)
                word = _mm512_or_si512(word, _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(high++)), 16));
            _mm512_storeu_si512(dst + t / 2 * dst_ld + c, word);
        }
    }
    return dst;
}

/** The transpose of packed scores (rows, width), `ld` words a row, as A of a product over the rows; made in `dst`. */
#if MIXT_AT_AMX
static void pack_turned(tile_product *p, const float *scores, int64_t ld, int64_t rows, int64_t width, float *dst)
{
    p->a = dst;
    p->a_row = p->k;
    p->a_depth = 1;
    for (int64_t c = 0; c < width; c += VEC_LANES)
        for (int64_t t = 0; t < TILE_PACK * p->k; t += DEPTH_UNIT) {
            __m512i v[VEC_LANES];
#pragma GCC unroll 16
            for (int i = 0; i < VEC_LANES; i++) {
                const float *row = scores + (t + 2 * i) * ld + c / 2;
                v[i] = _mm512_setzero_si512();
                if (t + 2 * i < rows)
                    v[i] = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)row));
                if (t + 2 * i + 1 < rows)
                    v[i] = _mm512_or_si512(
                        v[i],
                        _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)(row + ld))), 16));
            }
            mixt__transpose16(v);
#pragma GCC unroll 16
            for (int i = 0; i < VEC_LANES; i++)
                _mm512_storeu_si512(dst + (c + i) * p->a_row + t / TILE_PACK, v[i]);
        }
}
#else
static void pack_turned(tile_product *p, const float *scores, int64_t ld, int64_t rows, int64_t width, float *dst)
{
    p->a = pack_depth(scores, ld, rows, width, dst, ld);
    p->a_row = 1;
    p->a_depth = ld;
}
#endif

/** Packs numbers [c, c + lanes) of a row of scores in place: words never overtake the FP32 numbers still to be read. */
VEC_INLINE void put_packed(float *row, int64_t c, vec x)
{
    _mm256_storeu_si256((__m256i *)(void *)(row + c / 2), (__m256i)_mm512_cvtneps_pbh(x));
}

#else

static void pack_rows(const head *h, const head_tensor *x, int64_t t0, int64_t count, int64_t rows, float *dst)
{
    load_rows(h, x, t0, count, rows, dst);
}

static const float *pack_depth(const float *src, int64_t src_ld, int64_t rows, int64_t width, float *dst,
                               int64_t dst_ld)
{
    (void)src_ld, (void)rows, (void)width, (void)dst, (void)dst_ld;
    return src;
}

static void pack_turned(tile_product *p, const float *scores, int64_t ld, int64_t rows, int64_t width, float *dst)
{
    (void)rows, (void)width, (void)dst;
    p->a = scores;
    p->a_row = 1;
    p->a_depth = ld;
}

VEC_INLINE void put_packed(float *row, int64_t c, vec x)
{
    vec_store(row + c, x);
}

#endif

/** From packed rows (TILE_COLS, words) to one panel (words, TILE_COLS). */
static void transpose_panel(const head *h, const float *rows, float *panel)
{
    for (int64_t d = 0; d < h->words; d += 8)
        for (int64_t c = 0; c < TILE_COLS; c += 8)
            tile_transpose8(rows + c * h->words + d, h->words, panel + d * TILE_COLS + c, TILE_COLS);
}

/** All packed rows of a head as transposed panels; `rows` receives the untransposed ones, or serves as scratch of one
 * panel. */
static void pack_panels(const head *h, const head_tensor *x, float *panels, float *rows, bool keep_rows)
{
    for (int64_t t = 0; t < h->keys; t += TILE_COLS) {
        int64_t count = h->keys - t < TILE_COLS ? h->keys - t : TILE_COLS;
        pack_rows(h, x, t, count, TILE_COLS, rows);
        transpose_panel(h, rows, panels + t * h->words);
        rows += keep_rows ? TILE_COLS * h->words : 0;
    }
}
