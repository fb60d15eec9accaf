/* Attention in obvious C: one head at a time, whole rows of scores, sums in double. */
#include "backend/cpu/attention/attention.h"
#include "num/num.h"

#include <math.h>
#include <string.h>

/** Element d of head `head` at position t of batch entry b. */
static float at(const mixt__tensor *x, const mixt__heads *s, int64_t b, int64_t t, int64_t head, int64_t d)
{
    return mixt__load(x->data, x->dtype, b * x->strides[0] + t * x->strides[1] + head * s->dim + d);
}

static void put(const mixt__tensor *x, const mixt__heads *s, int64_t b, int64_t t, int64_t head, int64_t d,
                double value)
{
    mixt__store(x->data, x->dtype, b * x->strides[0] + t * x->strides[1] + head * s->dim + d, (float)value);
}

/** The query's side x at position i times the keys' side y at position j. */
static double dot(const mixt__tensor *x, const mixt__tensor *y, const mixt__heads *s, int64_t b, int64_t head,
                  int64_t i, int64_t j)
{
    double sum = 0;
    for (int64_t d = 0; d < s->dim; d++)
        sum += (double)at(x, s, b, i, head, d) * (double)at(y, s, b, j, head / s->group, d);
    return sum;
}

/** The end of the keys that query i of batch entry b sees. */
static int64_t visible(const mixt__heads *s, int64_t b, int64_t i)
{
    int64_t keys = mixt__heads_keys(s, b);
    return s->causal && i + 1 < keys ? i + 1 : keys;
}

/** The score of query i and key j. */
static double score_of(const mixt__call *call, const mixt__heads *s, int64_t b, int64_t head, int64_t i, int64_t j)
{
    double score = (double)s->scale * dot(&call->in[0], &call->in[1], s, b, head, i, j), cap = (double)s->softcap;
    return cap > 0 ? cap * tanh(score / cap) : score;
}

static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    (void)arena;
    call->workspace_bytes = (size_t)call->in[1].shape.dims[1] * sizeof(double);
    return MIXT_OK;
}

static void forward_row(const mixt__call *call, const mixt__heads *s, int64_t b, int64_t head, int64_t i)
{
    const mixt__tensor *v = &call->in[2];
    double *p = call->workspace, largest = -INFINITY, total = 0;
    int64_t keys = visible(s, b, i), first = mixt__heads_first(s, b, i);
    for (int64_t j = first; j < keys; j++) {
        p[j] = score_of(call, s, b, head, i, j);
        if (p[j] > largest)
            largest = p[j];
    }
    for (int64_t j = first; j < keys; j++) {
        p[j] = exp(p[j] - largest);
        total += p[j];
    }
    for (int64_t d = 0; d < s->dim; d++) {
        double sum = 0;
        for (int64_t j = first; j < keys; j++)
            sum += p[j] * (double)at(v, s, b, j, head / s->group, d);
        put(&call->out[0], s, b, i, head, d, first < keys ? sum / total : 0);
    }
    ((float *)call->out[1].data)[(b * s->count + head) * s->queries + i] = (float)(largest + log(total));
}

static mixt_status run(const mixt__call *call)
{
    mixt__heads s = mixt__heads_of(call);
    for (int64_t b = 0; b < s.batch; b++)
        for (int64_t head = 0; head < s.count; head++)
            for (int64_t i = 0; i < s.queries; i++)
                forward_row(call, &s, b, head, i);
    return MIXT_OK;
}

static mixt_status grad_prepare(mixt__call *call, mixt__arena *arena)
{
    (void)arena;
    mixt__heads s = mixt__heads_of(call);
    call->workspace_bytes = (size_t)(2 * s.group * s.queries * s.keys + 2 * s.keys) * sizeof(double);
    return MIXT_OK;
}

/** What the soft cap makes of a change of the score. */
static double slope_of(const mixt__call *call, const mixt__heads *s, int64_t b, int64_t head, int64_t i, int64_t j)
{
    if (!(s->softcap > 0))
        return 1;
    double part = score_of(call, s, b, head, i, j) / (double)s->softcap;
    return 1 - part * part;
}

/** The probabilities of one head and the gradient of its scaled scores, both (queries, keys). */
static void scores_grad(const mixt__call *call, const mixt__heads *s, int64_t b, int64_t head, double *p, double *grad)
{
    const mixt__tensor *v = &call->in[2], *grad_dst = &call->in[5];
    const float *lse = (const float *)call->in[4].data + (b * s->count + head) * s->queries;
    for (int64_t i = 0; i < s->queries; i++) {
        double *pi = p + i * s->keys, *gi = grad + i * s->keys, mean = 0;
        for (int64_t j = 0; j < s->keys; j++) {
            bool seen = j >= mixt__heads_first(s, b, i) && j < visible(s, b, i);
            double score = seen ? score_of(call, s, b, head, i, j) : 0;
            pi[j] = seen ? exp(score - (double)lse[i]) : 0;
            gi[j] = seen ? dot(grad_dst, v, s, b, head, i, j) : 0;
            mean += pi[j] * gi[j];
        }
        for (int64_t j = 0; j < s->keys; j++)
            gi[j] = pi[j] * (gi[j] - mean) * (double)s->scale * slope_of(call, s, b, head, i, j);
    }
}

/** Adds one head's part of column d of grad_k and grad_v to `sums`, (keys) each, and stores its grad_q. */
static void column_grad(const mixt__call *call, const mixt__heads *s, int64_t b, int64_t head, int64_t d,
                        const double *p, const double *grad, double *sums)
{
    const mixt__tensor *q = &call->in[0], *k = &call->in[1], *grad_dst = &call->in[5];
    for (int64_t i = 0; i < s->queries; i++) {
        double sum = 0;
        for (int64_t j = 0; j < visible(s, b, i); j++)
            sum += grad[i * s->keys + j] * (double)at(k, s, b, j, head / s->group, d);
        put(&call->out[0], s, b, i, head, d, sum);
    }
    for (int64_t j = 0; j < s->keys; j++)
        for (int64_t i = s->causal ? j : 0; i < s->queries; i++) {
            sums[j] += grad[i * s->keys + j] * (double)at(q, s, b, i, head, d);
            sums[s->keys + j] += p[i * s->keys + j] * (double)at(grad_dst, s, b, i, head, d);
        }
}

/** The heads of q that share one of k and v. */
static void group_grad(const mixt__call *call, const mixt__heads *s, int64_t b, int64_t shared)
{
    int64_t scores = s->queries * s->keys;
    double *p = call->workspace, *sums = p + 2 * s->group * scores;
    for (int64_t m = 0; m < s->group; m++)
        scores_grad(call, s, b, shared * s->group + m, p + 2 * m * scores, p + (2 * m + 1) * scores);
    for (int64_t d = 0; d < s->dim; d++) {
        memset(sums, 0, (size_t)(2 * s->keys) * sizeof *sums);
        for (int64_t m = 0; m < s->group; m++)
            column_grad(call, s, b, shared * s->group + m, d, p + 2 * m * scores, p + (2 * m + 1) * scores, sums);
        for (int64_t j = 0; j < s->keys; j++) {
            put(&call->out[1], s, b, j, shared, d, sums[j]);
            put(&call->out[2], s, b, j, shared, d, sums[s->keys + j]);
        }
    }
}

static mixt_status grad_run(const mixt__call *call)
{
    mixt__heads s = mixt__heads_of(call);
    for (int64_t n = 0; n < s.batch * s.count / s.group; n++)
        group_grad(call, &s, n / (s.count / s.group), n % (s.count / s.group));
    return MIXT_OK;
}

const mixt__kernel mixt__attention_plain = {.name = "plain", .prepare = prepare, .run = run};
const mixt__kernel mixt__attention_grad_plain = {.name = "plain", .prepare = grad_prepare, .run = grad_run};
