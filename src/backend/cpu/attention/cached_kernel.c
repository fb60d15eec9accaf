/* Attention that goes on from a cache, compiled for AVX2 and AVX-512.
 *
 * Threads split the heads that the caches have, of all batch entries: a head's columns of the caches are filled and
 * read by one thread alone, for all heads of q that share it. A token costs one pass over the keys seen so far (scores
 * into scratch), one over the scores, one over the values, in blocks of columns that stay in registers. Caches are read
 * once, in their own format; all arithmetic is FP32.
 */
#include "backend/cpu/attention/cached.h"
#include "backend/cpu/core/vecmath.h"
#include "base/threads.h"
#include "num/num.h"

#include <math.h>

enum { BLOCK = 4 }; // vectors of columns held in registers

typedef struct task {
    const mixt__call *call;
    mixt__cached_heads s;
    int64_t scratch; // floats a head
} task;

static int64_t whole_vectors(int64_t count)
{
    return (count + VEC_LANES - 1) / VEC_LANES * VEC_LANES;
}

/** Scores, then the query in FP32, both padded to whole vectors. */
static int64_t scratch_floats(const mixt__cached_heads *s)
{
    return whole_vectors(s->rows) + whole_vectors(s->dim);
}

static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    (void)arena;
    mixt__cached_heads s = mixt__cached_heads_of(call);
    call->workspace_bytes = (size_t)(s.batch * s.count / s.group * scratch_floats(&s)) * sizeof(float);
    return MIXT_OK;
}

/** query · key; the query is padded with zeros. */
VEC_INLINE float dot(mixt_dtype dtype, const float *query, const void *keys, int64_t at, int64_t dim)
{
    vec sum = vec_zero();
    int64_t d = 0;
    for (; d + VEC_LANES <= dim; d += VEC_LANES)
        sum = vec_fma(vec_load(query + d), vec_get(keys, dtype, at + d), sum);
    if (d < dim)
        sum = vec_fma(vec_load(query + d), vec_get_part(keys, dtype, at + d, dim - d), sum);
    return vec_sum(sum);
}

static void cap_scores(float *score, int64_t seen, float softcap)
{
    vec cap = vec_set(softcap), inner = vec_set(1 / softcap);
    for (int64_t j = 0; j < whole_vectors(seen); j += VEC_LANES)
        vec_store(score + j, vec_mul(cap, vec_tanh(vec_mul(vec_load(score + j), inner))));
}

/** Turns `seen` scores into weights; returns their sum. Scores behind them up to whole vectors become 0. */
static float weigh(float *score, int64_t seen)
{
    vec largest = vec_set(-INFINITY), total = vec_zero();
    int64_t whole = whole_vectors(seen);
    for (int64_t j = seen; j < whole; j++)
        score[j] = -INFINITY;
    for (int64_t j = 0; j < whole; j += VEC_LANES)
        largest = vec_max(largest, vec_load(score + j));
    vec base = vec_set(vec_largest(largest));
    for (int64_t j = 0; j < whole; j += VEC_LANES) {
        int64_t real = seen - j < VEC_LANES ? seen - j : VEC_LANES;
        vec weight = vec_keep(vec_exp(vec_sub(vec_load(score + j), base)), real, vec_zero());
        vec_store(score + j, weight);
        total = vec_add(total, weight);
    }
    return vec_sum(total);
}

/** `blocks` vectors of columns from d on, the last with `last` columns, of the weighted sum of value rows. */
VEC_INLINE void add_values(mixt_dtype dtype, int blocks, int64_t last, const float *weight, int64_t seen,
                           const void *values, int64_t at, int64_t width, float factor, void *dst, int64_t to)
{
    vec sum[BLOCK];
    for (int i = 0; i < blocks; i++)
        sum[i] = vec_zero();
    for (int64_t j = 0; j < seen; j++) {
        vec w = vec_set(weight[j]);
        for (int i = 0; i < blocks; i++) {
            int64_t column = at + j * width + (int64_t)i * VEC_LANES;
            vec v = i + 1 < blocks ? vec_get(values, dtype, column) : vec_get_part(values, dtype, column, last);
            sum[i] = vec_fma(w, v, sum[i]);
        }
    }
    for (int i = 0; i < blocks; i++)
        vec_put_part(dst, dtype, to + (int64_t)i * VEC_LANES, i + 1 < blocks ? VEC_LANES : last,
                     vec_mul(sum[i], vec_set(factor)));
}

VEC_INLINE void token(mixt_dtype dtype, const task *k, int64_t b, int64_t head, int64_t t, float *score)
{
    const mixt__call *call = k->call;
    const mixt__cached_heads *s = &k->s;
    const mixt__tensor *q = &call->in[0];
    int64_t width = s->width, cache = b * s->rows * width + head / s->group * s->dim;
    int64_t from = b * q->strides[0] + t * q->strides[1] + head * s->dim;
    int64_t to = ((b * s->tokens + t) * s->count + head) * s->dim, last = ((const int32_t *)call->in[3].data)[t];
    int64_t first = mixt__cached_first(s, last), seen = last + 1 - first;
    float *query = score + whole_vectors(s->rows);
    for (int64_t d = 0; d < s->dim; d += VEC_LANES) {
        int64_t real = s->dim - d < VEC_LANES ? s->dim - d : VEC_LANES;
        vec_store(query + d, vec_mul(vec_get_part(q->data, dtype, from + d, real), vec_set(s->scale)));
    }
    cache += first * width;
    for (int64_t j = 0; j < seen; j++)
        score[j] = dot(dtype, query, call->in[4].data, cache + j * width, s->dim);
    if (s->softcap > 0)
        cap_scores(score, seen, s->softcap);
    float factor = 1.0f / weigh(score, seen);
    int64_t d = 0;
    for (; d + BLOCK * VEC_LANES <= s->dim; d += BLOCK * VEC_LANES)
        add_values(dtype, BLOCK, VEC_LANES, score, seen, call->in[5].data, cache + d, width, factor, call->out[0].data,
                   to + d);
    for (; d < s->dim; d += VEC_LANES)
        add_values(dtype, 1, s->dim - d < VEC_LANES ? s->dim - d : VEC_LANES, score, seen, call->in[5].data, cache + d,
                   width, factor, call->out[0].data, to + d);
}

VEC_INLINE void heads(mixt_dtype dtype, const task *k, int64_t begin, int64_t end)
{
    int64_t shared = k->s.count / k->s.group;
    for (int64_t i = begin; i < end; i++) {
        float *score = (float *)k->call->workspace + i * k->scratch;
        mixt__cache_fill(k->call, &k->s, i / shared, i % shared);
        for (int64_t n = 0; n < k->s.tokens * k->s.group; n++)
            token(dtype, k, i / shared, i % shared * k->s.group + n % k->s.group, n / k->s.group, score);
    }
}

static void range(void *argument, int64_t begin, int64_t end, int thread)
{
    const task *k = argument;
    (void)thread;
    switch (k->call->in[0].dtype) {
    case MIXT_DTYPE_FP32:
        heads(MIXT_DTYPE_FP32, k, begin, end);
        break;
    case MIXT_DTYPE_BF16:
        heads(MIXT_DTYPE_BF16, k, begin, end);
        break;
    default:
        heads(MIXT_DTYPE_FP16, k, begin, end);
    }
}

static mixt_status run(const mixt__call *call)
{
    task k = {.call = call, .s = mixt__cached_heads_of(call)};
    k.scratch = scratch_floats(&k.s);
    mixt__parallel(k.s.batch * k.s.count / k.s.group, 1, range, &k);
    return MIXT_OK;
}

const mixt__kernel MIXT_AT(mixt__attention_cached) = {
    .name = MIXT_AT_NAME, .supports = vec_supports, .prepare = prepare, .run = run};
