/* Attention of one head, block by block: for kernel.c.
 *
 * A thread holds one head's keys and values as packed panels (second cache) and walks over blocks of queries; scores
 * of a block of queries and a block of keys live in a buffer of their own, the softmax is corrected as its maximum
 * grows, and tiles that a causal mask leaves empty are not computed, nor blocks of keys that lie before a window. Sums
 * and the softmax are FP32; where a row holds several texts, blocks before that of the first query are left out like
 * those before a window. Scores are scaled where they are read, so that queries go into products as they are.
 */
#include "backend/cpu/attention/pack.h"
#include "backend/cpu/core/vecmath.h"

#include <math.h>

/* Blocks: 64 queries × 128 keys of scores are 32 KiB, and the panel of keys in use is 16 KiB at head size 64. */
enum {
    QUERIES = 64,
    KEYS = 128,
    // A row length that is no power of two: rows of a column must not meet in one set of the cache.
    SCORES_LD = KEYS + 16
};

/** A thread's buffers: words for products and FP32. A matrix `_depth` has its depth along the rows (pack_depth). */
typedef struct scratch {
    float *k_panels, *v_panels;  // (words, keys), in panels
    float *k_rows, *v_rows;      // (keys, words)
    float *k_depth, *v_depth;    // (keys / TILE_PACK, dim_padded)
    float *rows;                 // one panel's rows
    float *q_rows, *grad_rows;   // (QUERIES, words)
    float *q_depth, *grad_depth; // (QUERIES / TILE_PACK, dim_padded)
    float *out, *wide;           // (QUERIES, dim_padded)
    float *scores, *grad_scores; // (QUERIES, SCORES_LD)
    float *scores_depth;         // (QUERIES / TILE_PACK, SCORES_LD)
    float *largest, *total;      // (QUERIES)
    float *grad_k, *grad_v;      // (keys, dim_padded)
} scratch;

_Static_assert(KEYS % TILE_COLS == 0, "whole panels");

/** One block of queries against one block of keys. */
typedef struct block {
    int64_t q0, queries, k0, keys;
    int64_t visible; // keys of the block that the first query sees; one more for each further query when causal
    bool first;      // of its block of queries
} block;

/** The first block of keys that a query from q0 on sees a part of. */
static int64_t first_block(const head *h, int64_t q0)
{
    return mixt__first_key(h->window, h->places, q0) / KEYS * KEYS;
}

static block block_of(const head *h, int64_t q0, int64_t queries, int64_t k0)
{
    block b = {.q0 = q0, .queries = queries, .k0 = k0, .keys = h->keys - k0 < KEYS ? h->keys - k0 : KEYS};
    b.first = k0 == first_block(h, q0);
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

/** Keys at the block's beginning that lie before the window of its query i, or before its text. */
static int64_t block_hidden(const head *h, const block *b, int64_t i)
{
    int64_t n = mixt__first_key(h->window, h->places, b->q0 + i) - b->k0;
    return n < 0 ? 0 : n < b->keys ? n : b->keys;
}

/** Numbers up to a whole row of C's tiles, as products leave and take them. */
static int64_t vectors_up(int64_t n)
{
    return (n + ROW_UNIT - 1) / ROW_UNIT * ROW_UNIT;
}

/** Words of a depth of n numbers. */
static int64_t words_up(int64_t n)
{
    return (n + DEPTH_UNIT - 1) / DEPTH_UNIT * TILE_DEPTH;
}

/** scores (queries, keys) = x · panelsᵀ: with the keys' panels the scores, with the values' the gradient of P. */
static void block_scores(const head *h, const block *b, const float *x, const float *panels, float *scores)
{
    tile_product p = {
        .m = b->queries, .n = vectors_up(b->keys), .k = words_up(h->dim), .a = x, .a_row = h->words, .a_depth = 1};
    p.b = panels + b->k0 * h->words;
    p.ldb = TILE_COLS;
    p.b_panel = TILE_COLS * h->words;
    p.c = scores;
    p.ldc = SCORES_LD;
    p.mask = h->causal ? TILE_COLUMNS : TILE_ALL;
    p.diagonal = b->visible - 1;
    tile_multiply(&p);
}

/** dst (queries, dim) += packed scores · rows. */
static void block_apply(const head *h, const block *b, const float *scores, const float *rows, float *dst, bool add)
{
    tile_product p = {
        .m = b->queries, .n = h->dim_padded, .k = words_up(b->keys), .a = scores, .a_row = SCORES_LD, .a_depth = 1};
    p.b = rows + b->k0 / TILE_PACK * h->dim_padded;
    p.ldb = h->dim_padded;
    p.b_panel = TILE_COLS;
    p.c = dst;
    p.ldc = h->dim_padded;
    p.add = add;
    p.mask = h->causal ? TILE_DEPTH_BELOW : TILE_ALL;
    p.diagonal = b->visible - 1;
    tile_multiply(&p);
}

/** dst (keys, dim) += packed scoresᵀ · rows of the block of queries; `depth` is a buffer for the scores. */
static void block_apply_transposed(const head *h, const block *b, const float *scores, float *depth, const float *rows,
                                   float *dst)
{
    tile_product p = {.m = b->keys, .n = h->dim_padded, .k = words_up(b->queries)};
    pack_turned(&p, scores, SCORES_LD, b->queries, vectors_up(b->keys), depth);
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

/** exp(scale · scores - offset), packed, over the visible part of a row, zeros behind it; returns the sum. */
static float exp_row(float *row, int64_t visible, int64_t width, float scale, float offset)
{
    vec total = vec_zero(), factor = vec_set(scale), shift = vec_set(offset), lowest = vec_set(-INFINITY);
    int64_t c = 0;
    for (; c < visible; c += VEC_LANES) {
        vec x = vec_sub(vec_mul(vec_load(row + c), factor), shift);
        if (visible - c < VEC_LANES)
            x = vec_keep(x, visible - c, lowest);
        x = vec_exp(x);
        total = vec_add(total, x);
        put_packed(row, c, x);
    }
    for (; c < width; c += VEC_LANES)
        put_packed(row, c, vec_zero());
    return vec_sum(total);
}

/** The largest of `start` and the scaled scores. */
static float largest_of(const float *row, int64_t visible, float scale, float start)
{
    vec best = vec_set(start), factor = vec_set(scale);
    int64_t c = 0;
    for (; c + VEC_LANES <= visible; c += VEC_LANES)
        best = vec_max(best, vec_mul(vec_load(row + c), factor));
    if (c < visible)
        best = vec_max(best, vec_keep(vec_mul(vec_load(row + c), factor), visible - c, best));
    return vec_largest(best);
}

static void scale_row(float *row, int64_t width, float factor)
{
    for (int64_t c = 0; c < width; c += VEC_LANES)
        vec_store(row + c, vec_mul(vec_load(row + c), vec_set(factor)));
}

/** Whether scores are more than scaled: they are then put in place before the softmax, which scales by 1. */
static bool special(const head *h)
{
    return h->window || h->places || h->softcap > 0;
}

/** Scales the visible part of a row, caps it, and puts minus infinity where keys lie before the window. */
static void settle_row(const head *h, float *row, int64_t hidden, int64_t visible)
{
    vec factor = vec_set(h->scale), lowest = vec_set(-INFINITY);
    vec cap = vec_set(h->softcap), inner = vec_set(h->softcap > 0 ? h->scale / h->softcap : 0);
    for (int64_t c = 0; c < visible; c += VEC_LANES) {
        vec x = vec_load(row + c);
        x = h->softcap > 0 ? vec_mul(cap, vec_tanh(vec_mul(x, inner))) : vec_mul(x, factor);
        if (c < hidden)
            x = vec_keep(lowest, hidden - c < VEC_LANES ? hidden - c : VEC_LANES, x);
        vec_store(row + c, x);
    }
}

/** Turns scores into probabilities relative to the largest score so far; what is already in `out` is brought down to
 * it. */
static void block_softmax(const head *h, const block *b, const scratch *s)
{
    for (int64_t i = 0; i < b->queries; i++) {
        float *row = s->scores + i * SCORES_LD;
        int64_t visible = block_visible(h, b, i);
        if (special(h))
            settle_row(h, row, block_hidden(h, b, i), visible);
        float scale = special(h) ? 1 : h->scale;
        float before = s->largest[i], now = largest_of(row, visible, scale, before);
        float offset =
            now == -INFINITY ? 0 : now; // every score overflowed to -inf: keep exp(-inf) = 0, the sum says so
        float sum = exp_row(row, visible, vectors_up(b->keys), scale, offset);
        float factor = before == now || b->first ? 1 : expf(before - offset);
        s->total[i] = (b->first ? 0 : s->total[i] * factor) + sum;
        s->largest[i] = now;
        if (factor != 1)
            scale_row(s->out + i * h->dim_padded, h->dim_padded, factor);
    }
}

/** Rows along which a product's depth runs: more rows, of zeros, are packed to fill its last words. */
static int64_t whole_words(int64_t rows)
{
    return words_up(rows) * TILE_PACK;
}

/** Packs keys and values; the values' rows with depth along the keys are returned. */
static const float *forward_load(const head *h, const scratch *s)
{
    pack_panels(h, &h->k, s->k_panels, s->rows, false);
    pack_rows(h, &h->v, 0, h->keys, whole_words(h->keys), s->v_rows);
    return pack_depth(s->v_rows, h->words, whole_words(h->keys), h->dim_padded, s->v_depth, h->dim_padded);
}

static void forward_queries(const head *h, int64_t q0, const float *values, const scratch *s)
{
    int64_t queries = h->queries - q0 < QUERIES ? h->queries - q0 : QUERIES;
    int64_t keys = h->causal && q0 + queries < h->keys ? q0 + queries : h->keys;
    pack_rows(h, &h->q, q0, queries, queries, s->q_rows);
    for (int64_t i = 0; i < queries; i++)
        s->largest[i] = -INFINITY;
    for (int64_t k0 = first_block(h, q0); k0 < keys; k0 += KEYS) {
        block b = block_of(h, q0, queries, k0);
        block_scores(h, &b, s->q_rows, s->k_panels, s->scores);
        block_softmax(h, &b, s);
        block_apply(h, &b, s->scores, values, s->out, !b.first);
    }
    for (int64_t i = 0; i < queries; i++) {
        float *row = s->out + i * h->dim_padded;
        bool seen = keys > mixt__first_key(h->window, h->places, q0 + i);
        if (!seen)
            memset(row, 0, (size_t)h->dim_padded * sizeof(float));
        else
            scale_row(row, h->dim_padded, 1 / s->total[i]);
        h->lse[q0 + i] = seen ? s->largest[i] + logf(s->total[i]) : -INFINITY;
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

/** One row of block_softmax_grad where scores are settled: numbers from `hidden` to `visible` are seen. */
static void special_row_grad(const head *h, float *row, float *grad, int64_t hidden, int64_t visible, float product,
                             float lse)
{
    vec zero = vec_zero(), one = vec_set(1), share = vec_set(h->softcap > 0 ? 1 / h->softcap : 0);
    settle_row(h, row, hidden, visible);
    for (int64_t c = 0; c < visible; c += VEC_LANES) {
        vec score = vec_load(row + c), part = vec_mul(score, share);
        vec x = vec_exp(vec_sub(score, vec_set(lse))), g = vec_sub(vec_load(grad + c), vec_set(product));
        if (h->softcap > 0)
            g = vec_mul(g, vec_fnma(part, part, one));
        if (visible - c < VEC_LANES) {
            x = vec_keep(x, visible - c, zero);
            g = vec_keep(g, visible - c, zero);
        }
        if (c < hidden) {
            int64_t front = hidden - c < VEC_LANES ? hidden - c : VEC_LANES;
            x = vec_keep(zero, front, x);
            g = vec_keep(zero, front, g);
        }
        put_packed(row, c, x);
        put_packed(grad, c, vec_mul(x, g));
    }
}

/** scores become probabilities and grad_scores, the gradient of the probabilities, that of the scores but for the
 * scale: p · (grad - product of the row). Both are packed, the second from a probability not yet rounded. */
static void block_softmax_grad(const head *h, const block *b, const scratch *s, const float *products)
{
    vec factor = vec_set(h->scale), lowest = vec_set(-INFINITY);
    for (int64_t i = 0; i < b->queries; i++) {
        float *row = s->scores + i * SCORES_LD, *grad = s->grad_scores + i * SCORES_LD;
        int64_t visible = block_visible(h, b, i), width = vectors_up(b->keys), c = 0;
        vec product = vec_set(products[i]), shift = vec_set(h->lse[b->q0 + i]);
        if (special(h)) {
            special_row_grad(h, row, grad, block_hidden(h, b, i), visible, products[i], h->lse[b->q0 + i]);
            c = (visible + VEC_LANES - 1) / VEC_LANES * VEC_LANES;
        }
        for (; c < visible; c += VEC_LANES) {
            vec x = vec_sub(vec_mul(vec_load(row + c), factor), shift), g = vec_sub(vec_load(grad + c), product);
            if (visible - c < VEC_LANES) {
                x = vec_keep(x, visible - c, lowest);
                g = vec_keep(g, visible - c, vec_zero());
            }
            x = vec_exp(x);
            put_packed(row, c, x);
            put_packed(grad, c, vec_mul(x, g));
        }
        for (; c < width; c += VEC_LANES) {
            put_packed(row, c, vec_zero());
            put_packed(grad, c, vec_zero());
        }
    }
}

/** `keys_depth`: the keys' rows with depth along the keys. */
static void backward_queries(const head *h, int64_t q0, const float *keys_depth, const scratch *s)
{
    int64_t queries = h->queries - q0 < QUERIES ? h->queries - q0 : QUERIES, dim = h->dim_padded;
    int64_t keys = h->causal && q0 + queries < h->keys ? q0 + queries : h->keys, rows = whole_words(queries);
    load_rows(h, &h->grad_dst, q0, queries, queries, s->wide);
    load_rows(h, &h->dst, q0, queries, queries, s->out);
    row_products(h, queries, s->wide, s->out, s->total);
    pack_rows(h, &h->grad_dst, q0, queries, rows, s->grad_rows);
    pack_rows(h, &h->q, q0, queries, rows, s->q_rows);
    const float *grad_depth = pack_depth(s->grad_rows, h->words, rows, dim, s->grad_depth, dim);
    const float *q_depth = pack_depth(s->q_rows, h->words, rows, dim, s->q_depth, dim);
    memset(s->out, 0, (size_t)(queries * dim) * sizeof(float));
    for (int64_t k0 = first_block(h, q0); k0 < keys; k0 += KEYS) {
        block b = block_of(h, q0, queries, k0);
        block_scores(h, &b, s->q_rows, s->k_panels, s->scores);
        block_scores(h, &b, s->grad_rows, s->v_panels, s->grad_scores);
        block_softmax_grad(h, &b, s, s->total);
        block_apply_transposed(h, &b, s->scores, s->scores_depth, grad_depth, s->grad_v);
        block_apply_transposed(h, &b, s->grad_scores, s->scores_depth, q_depth, s->grad_k);
        block_apply(h, &b, s->grad_scores, keys_depth, s->out, true);
    }
    scale_row(s->out, queries * dim, h->scale);
    store_rows(h, &h->grad_q, q0, queries, s->out);
}

/** Packs keys and values and clears their gradients; the keys' rows with depth along the keys are returned. */
static const float *backward_load(const head *h, const scratch *s)
{
    size_t bytes = (size_t)(h->keys * h->dim_padded) * sizeof(float);
    pack_panels(h, &h->k, s->k_panels, s->k_rows, true);
    pack_panels(h, &h->v, s->v_panels, s->rows, false);
    memset(s->grad_k, 0, bytes);
    memset(s->grad_v, 0, bytes);
    return pack_depth(s->k_rows, h->words, whole_words(h->keys), h->dim_padded, s->k_depth, h->dim_padded);
}

/** One head of queries. */
static void backward_add(const head *h, const float *keys_depth, const scratch *s)
{
    for (int64_t q0 = 0; q0 < h->queries; q0 += QUERIES)
        backward_queries(h, q0, keys_depth, s);
}

/** Zeros for keys that are not there, up to `keys`. */
static void backward_store(const head *h, int64_t keys, const scratch *s)
{
    size_t bytes = (size_t)((keys - h->keys) * h->dim_padded) * sizeof(float);
    scale_row(s->grad_k, h->keys * h->dim_padded, h->scale);
    memset(s->grad_k + h->keys * h->dim_padded, 0, bytes);
    memset(s->grad_v + h->keys * h->dim_padded, 0, bytes);
    store_rows(h, &h->grad_k, 0, keys, s->grad_k);
    store_rows(h, &h->grad_v, 0, keys, s->grad_v);
}
