/* Attention that goes on from a cache: the plain candidate, one head at a time with sums in double, and the list. */
#include "backend/cpu/attention/cached.h"

#include "backend/cpu/kernels.h"
#include "num/num.h"

#include <math.h>

static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    (void)arena;
    call->workspace_bytes = (size_t)mixt__cached_heads_of(call).rows * sizeof(double);
    return MIXT_OK;
}

/** Token t of one head: `cache` is the first element of that head in the caches of this batch entry. */
static void token(const mixt__call *call, const mixt__cached_heads *s, int64_t b, int64_t head, int64_t t)
{
    const mixt__tensor *q = &call->in[0], *k = &call->in[4], *v = &call->in[5], *dst = &call->out[0];
    int64_t width = s->width, cache = b * s->rows * width + head / s->group * s->dim;
    int64_t query = b * q->strides[0] + t * q->strides[1] + head * s->dim;
    int64_t seen = ((const int32_t *)call->in[3].data)[t] + 1;
    int64_t first = mixt__cached_first(s, seen - 1);
    double *p = call->workspace, largest = -INFINITY, total = 0, cap = (double)s->softcap;
    for (int64_t j = first; j < seen; j++) {
        double sum = 0;
        for (int64_t d = 0; d < s->dim; d++)
            sum += (double)mixt__load(q->data, q->dtype, query + d) *
                   (double)mixt__load(k->data, k->dtype, cache + j * width + d);
        p[j] = (double)s->scale * sum;
        if (cap > 0)
            p[j] = cap * tanh(p[j] / cap);
        largest = fmax(largest, p[j]);
    }
    for (int64_t j = first; j < seen; j++)
        total += p[j] = exp(p[j] - largest);
    for (int64_t d = 0; d < s->dim; d++) {
        double sum = 0;
        for (int64_t j = first; j < seen; j++)
            sum += p[j] * (double)mixt__load(v->data, v->dtype, cache + j * width + d);
        mixt__store(dst->data, dst->dtype, ((b * s->tokens + t) * s->count + head) * s->dim + d, (float)(sum / total));
    }
}

static mixt_status run(const mixt__call *call)
{
    mixt__cached_heads s = mixt__cached_heads_of(call);
    for (int64_t b = 0; b < s.batch; b++)
        for (int64_t head = 0; head < s.count; head++) {
            if (head % s.group == 0)
                mixt__cache_fill(call, &s, b, head / s.group);
            for (int64_t t = 0; t < s.tokens; t++)
                token(call, &s, b, head, t);
        }
    return MIXT_OK;
}

static const mixt__kernel plain = {.name = "plain", .prepare = prepare, .run = run};

const mixt__kernel *const mixt__cpu_attention_cached_kernels[] = {&mixt__attention_cached_avx512,
                                                                  &mixt__attention_cached_avx2, &plain, NULL};
