/* Attention of one head, block by block: for attention_kernel.h.
 *
 * A thread holds one head's keys and values as packed FP32 panels (second cache) and walks over blocks of queries;
 * scores of a block of queries and a block of keys live in a buffer of their own, the softmax is corrected as its
 * maximum grows, and tiles that a causal mask leaves empty are not computed. Queries are scaled when they are packed.
 */
#include "backend/cpu/attention.h"
#include "backend/cpu/tile.h"
#include "backend/cpu/vecmath.h"
#include "num/num.h"

#include <math.h>

/* Blocks: 64 queries × 128 keys of scores are 32 KiB, and the panel of keys in use is 16 KiB at head size 64. */
enum {
    QUERIES = 64,
    KEYS = 128,
    // A row length that is no power of two: rows of a column must not meet in one set of the cache.
    SCORES_LD = KEYS + 16
};

/** One head of a (B, T, C) tensor in one batch entry: row t starts at data + t · stride elements. */
typedef struct head_tensor {
    void *data;
    int64_t stride;
} head_tensor;

typedef struct head {
    int64_t dim, dim_padded, queries, keys; // dim_padded: whole vectors
    float scale;
    bool causal;
    size_t element; // bytes of one number in the tensors
    mixt__widen_fn *widen;
    mixt__narrow_fn *narrow;
    head_tensor q, k, v, dst, grad_dst, grad_q, grad_k, grad_v;
    float *lse;
} head;

/** A thread's buffers, FP32. */
typedef struct scratch {
    float *k_panels, *v_panels;      // (dim_padded, keys), in panels
    float *k_rows, *v_rows;          // (keys, dim_padded)
    float *rows;                     // one panel's rows
    float *q_rows, *grad_rows, *out; // (QUERIES, dim_padded)
    float *scores, *grad_scores;     // (QUERIES, SCORES_LD)
    float *largest, *total;          // (QUERIES)
    float *grad_k, *grad_v;          // (keys, dim_padded)
} scratch;

_Static_assert(KEYS % TILE_COLS == 0, "whole panels");

/** Rows [t0, t0 + count) of a head as FP32 rows of `dim_padded`, zeros behind; `rows` of them, zeros below. */
static void load_rows(const head *h, const head_tensor *x, int64_t t0, int64_t count, int64_t rows, float *dst)
{
    for (int64_t t = 0; t < rows; t++) {
        float *row = dst + t * h->dim_padded;
        int64_t have = t < count ? h->dim : 0;
        if (have)
            h->widen(row, (const char *)x->data + (size_t)((t0 + t) * x->stride) * h->element, have);
        memset(row + have, 0, (size_t)(h->dim_padded - have) * sizeof(float));
    }
}

static void store_rows(const head *h, const head_tensor *x, int64_t t0, int64_t count, const float *src)
{
    for (int64_t t = 0; t < count; t++)
        h->narrow((char *)x->data + (size_t)((t0 + t) * x->stride) * h->element, src + t * h->dim_padded, h->dim);
}

/** From rows (TILE_COLS, dim_padded) to one panel (dim_padded, TILE_COLS). */
static void transpose_panel(const head *h, const float *rows, float *panel)
{
    for (int64_t d = 0; d < h->dim_padded; d += 8)
        for (int64_t c = 0; c < TILE_COLS; c += 8)
            tile_transpose8(rows + c * h->dim_padded + d, h->dim_padded, panel + d * TILE_COLS + c, TILE_COLS);
}

/** All rows of a head as transposed panels; `rows` receives the untransposed ones, or serves as scratch of one panel.
 */
static void load_panels(const head *h, const head_tensor *x, float *panels, float *rows, bool keep_rows)
{
    for (int64_t t = 0; t < h->keys; t += TILE_COLS) {
        int64_t count = h->keys - t < TILE_COLS ? h->keys - t : TILE_COLS;
        load_rows(h, x, t, count, TILE_COLS, rows);
        transpose_panel(h, rows, panels + t * h->dim_padded);
        rows += keep_rows ? TILE_COLS * h->dim_padded : 0;
    }
}

/** One block of queries against one block of keys. */
typedef struct block {
    int64_t q0, queries, k0, keys;
    int64_t visible; // keys of the block that the first query sees; one more for each further query when causal
} block;

static block block_of(const head *h, int64_t q0, int64_t queries, int64_t k0)
{
    block b = {.q0 = q0, .queries = queries, .k0 = k0, .keys = h->keys - k0 < KEYS ? h->keys - k0 : KEYS};
    b.visible = h->causal ? q0 + 1 - k0 : b.keys;
    if (h->causal && b.keys > b.visible + queries - 1)
        b.keys = b.visible + queries - 1;
    return b;
}

static int64_t block_visible(const head *h, const block *b, int64_t i)
{
    int64_t n = h->causal ? b->visible + i : b->keys;
    return n < 0 ? 0 : n < b->keys ? n : b->keys;
}

static int64_t vectors_up(int64_t n)
{
    return (n + VEC_LANES - 1) / VEC_LANES * VEC_LANES;
}

/** scores (queries, keys) = x · panelsᵀ: with the keys' panels the scores, with the values' the gradient of P. */
static void block_scores(const head *h, const block *b, const float *x, const float *panels, float *scores)
{
    tile_product p = {
        .m = b->queries, .n = vectors_up(b->keys), .k = h->dim, .a = x, .a_row = h->dim_padded, .a_depth = 1};
    p.b = panels + b->k0 * h->dim_padded;
    p.ldb = TILE_COLS;
    p.b_panel = TILE_COLS * h->dim_padded;
    p.c = scores;
    p.ldc = SCORES_LD;
    p.mask = h->causal ? TILE_COLUMNS : TILE_ALL;
    p.diagonal = b->visible - 1;
    tile_multiply(&p);
}

/** dst (queries, dim) += scores · rows. */
static void block_apply(const head *h, const block *b, const float *scores, const float *rows, float *dst, bool add)
{
    tile_product p = {.m = b->queries, .n = h->dim_padded, .k = b->keys, .a = scores, .a_row = SCORES_LD, .a_depth = 1};
    p.b = rows + b->k0 * h->dim_padded;
    p.ldb = h->dim_padded;
    p.b_panel = TILE_COLS;
    p.c = dst;
    p.ldc = h->dim_padded;
    p.add = add;
    p.mask = h->causal ? TILE_DEPTH_BELOW : TILE_ALL;
    p.diagonal = b->visible - 1;
    tile_multiply(&p);
}

/** dst (keys, dim) += scoresᵀ · rows of the block of queries. */
static void block_apply_transposed(const head *h, const block *b, const float *scores, const float *rows, float *dst)
{
    tile_product p = {.m = b->keys, .n = h->dim_padded, .k = b->queries, .a = scores, .a_row = 1, .a_depth = SCORES_LD};
    p.b = rows;
    p.ldb = h->dim_padded;
    p.b_panel = TILE_COLS;
    p.c = dst + b->k0 * h->dim_padded;
    p.ldc = h->dim_padded;
    p.add = true;
    p.mask = h->causal ? TILE_DEPTH_FROM : TILE_ALL;
    p.diagonal = 1 - b->visible;
    tile_multiply(&p);
}

/** exp(scores - offset) in place over the visible part of a row, zeros behind it; returns the sum. */
static float exp_row(float *row, int64_t visible, int64_t width, float offset)
{
    vec total = vec_zero(), shift = vec_set(offset), lowest = vec_set(-INFINITY);
    int64_t c = 0;
    for (; c < visible; c += VEC_LANES) {
        vec x = vec_sub(vec_load(row + c), shift);
        if (visible - c < VEC_LANES)
            x = vec_keep(x, visible - c, lowest);
        x = vec_exp(x);
        total = vec_add(total, x);
        vec_store(row + c, x);
    }
    for (; c < width; c += VEC_LANES)
        vec_store(row + c, vec_zero());
    return vec_sum(total);
}

static float largest_of(const float *row, int64_t visible, float start)
{
    vec best = vec_set(start);
    int64_t c = 0;
    for (; c + VEC_LANES <= visible; c += VEC_LANES)
        best = vec_max(best, vec_load(row + c));
    if (c < visible)
        best = vec_max(best, vec_keep(vec_load(row + c), visible - c, best));
    return vec_largest(best);
}

static void scale_row(float *row, int64_t width, float factor)
{
    for (int64_t c = 0; c < width; c += VEC_LANES)
        vec_store(row + c, vec_mul(vec_load(row + c), vec_set(factor)));
}

/** Turns scores into probabilities relative to the largest score so far; what is already in `out` is brought down to
 * it. */
static void block_softmax(const head *h, const block *b, const scratch *s)
{
    for (int64_t i = 0; i < b->queries; i++) {
        float *row = s->scores + i * SCORES_LD;
        int64_t visible = block_visible(h, b, i);
        float before = s->largest[i], now = largest_of(row, visible, before);
        float offset =
            now == -INFINITY ? 0 : now; // every score overflowed to -inf: keep exp(-inf) = 0, the sum says so
        float sum = exp_row(row, visible, vectors_up(b->keys), offset);
        float factor = before == now || b->k0 == 0 ? 1 : expf(before - offset);
        s->total[i] = (b->k0 == 0 ? 0 : s->total[i] * factor) + sum;
        s->largest[i] = now;
        if (factor != 1)
            scale_row(s->out + i * h->dim_padded, h->dim_padded, factor);
    }
}

static void forward_load(const head *h, const scratch *s)
{
    load_panels(h, &h->k, s->k_panels, s->rows, false);
    load_rows(h, &h->v, 0, h->keys, h->keys, s->v_rows);
}

static void forward_queries(const head *h, int64_t q0, const scratch *s)
{
    int64_t queries = h->queries - q0 < QUERIES ? h->queries - q0 : QUERIES;
    int64_t keys = h->causal ? q0 + queries : h->keys;
    load_rows(h, &h->q, q0, queries, queries, s->q_rows);
    scale_row(s->q_rows, queries * h->dim_padded, h->scale);
    for (int64_t i = 0; i < queries; i++)
        s->largest[i] = -INFINITY;
    for (int64_t k0 = 0; k0 < keys; k0 += KEYS) {
        block b = block_of(h, q0, queries, k0);
        block_scores(h, &b, s->q_rows, s->k_panels, s->scores);
        block_softmax(h, &b, s);
        block_apply(h, &b, s->scores, s->v_rows, s->out, k0 > 0);
    }
    for (int64_t i = 0; i < queries; i++) {
        float *row = s->out + i * h->dim_padded;
        if (keys == 0)
            memset(row, 0, (size_t)h->dim_padded * sizeof(float));
        else
            scale_row(row, h->dim_padded, 1 / s->total[i]);
        h->lse[q0 + i] = keys ? s->largest[i] + logf(s->total[i]) : -INFINITY;
    }
    store_rows(h, &h->dst, q0, queries, s->out);
}

/** Σ grad_dst · dst of each row: what the softmax's gradient subtracts. */
static void row_products(const head *h, int64_t queries, const float *a, const float *b, float *dst)
{
    for (int64_t i = 0; i < queries; i++) {
        vec sum = vec_zero();
        for (int64_t d = 0; d < h->dim_padded; d += VEC_LANES)
            sum = vec_fma(vec_load(a + i * h->dim_padded + d), vec_load(b + i * h->dim_padded + d), sum);
        dst[i] = vec_sum(sum);
    }
}

/** grad (in: gradient of the probabilities, out: of the scores) = p · (grad - product of the row). */
static void block_softmax_grad(const head *h, const block *b, const scratch *s, const float *products)
{
    for (int64_t i = 0; i < b->queries; i++) {
        float *row = s->scores + i * SCORES_LD, *grad = s->grad_scores + i * SCORES_LD;
        int64_t visible = block_visible(h, b, i), width = vectors_up(b->keys), c = 0;
        exp_row(row, visible, width, h->lse[b->q0 + i]);
        vec product = vec_set(products[i]);
        for (; c < visible; c += VEC_LANES) {
            vec g = vec_mul(vec_load(row + c), vec_sub(vec_load(grad + c), product));
            vec_store(grad + c, visible - c < VEC_LANES ? vec_keep(g, visible - c, vec_zero()) : g);
        }
        for (; c < width; c += VEC_LANES)
            vec_store(grad + c, vec_zero());
    }
}

static void backward_queries(const head *h, int64_t q0, const scratch *s)
{
    int64_t queries = h->queries - q0 < QUERIES ? h->queries - q0 : QUERIES;
    int64_t keys = h->causal ? q0 + queries : h->keys;
    load_rows(h, &h->grad_dst, q0, queries, queries, s->grad_rows);
    load_rows(h, &h->dst, q0, queries, queries, s->out);
    row_products(h, queries, s->grad_rows, s->out, s->total);
    load_rows(h, &h->q, q0, queries, queries, s->q_rows);
    scale_row(s->q_rows, queries * h->dim_padded, h->scale);
    memset(s->out, 0, (size_t)(queries * h->dim_padded) * sizeof(float));
    for (int64_t k0 = 0; k0 < keys; k0 += KEYS) {
        block b = block_of(h, q0, queries, k0);
        block_scores(h, &b, s->q_rows, s->k_panels, s->scores);
        block_scores(h, &b, s->grad_rows, s->v_panels, s->grad_scores);
        block_softmax_grad(h, &b, s, s->total);
        block_apply_transposed(h, &b, s->scores, s->grad_rows, s->grad_v);
        block_apply_transposed(h, &b, s->grad_scores, s->q_rows, s->grad_k);
        block_apply(h, &b, s->grad_scores, s->k_rows, s->out, true);
    }
    scale_row(s->out, queries * h->dim_padded, h->scale);
    store_rows(h, &h->grad_q, q0, queries, s->out);
}

static void backward(const head *h, const scratch *s)
{
    load_panels(h, &h->k, s->k_panels, s->k_rows, true);
    load_panels(h, &h->v, s->v_panels, s->rows, false);
    size_t bytes = (size_t)(h->keys * h->dim_padded) * sizeof(float);
    memset(s->grad_k, 0, bytes);
    memset(s->grad_v, 0, bytes);
    for (int64_t q0 = 0; q0 < h->queries; q0 += QUERIES)
        backward_queries(h, q0, s);
    store_rows(h, &h->grad_k, 0, h->keys, s->grad_k);
    store_rows(h, &h->grad_v, 0, h->keys, s->grad_v);
}
