/* Scaled dot-product attention over heads that lie side by side in the last dimension: q (B, T, C), k and v (B, S, G),
 * where G is C, or less where heads are grouped: head h of q then takes head h / (C / G) of k and v.
 *
 * Forward: (q, k, v[, lengths]) → (dst, lse), lse (B, heads, T) the logarithm of each row's softmax denominator, FP32.
 * Gradient: (q, k, v, dst, lse, grad_dst[, lengths]) → (grad_q, grad_k, grad_v). The scores are never kept. All of q,
 * k, v and their gradients may be strided views, so that one packed product makes and takes them.
 *
 * With a window a query of causal attention sees itself and the window - 1 keys before it. With a soft cap the scaled
 * scores become softcap · tanh(score / softcap).
 *
 * With positions, INT32 (B, T), in the place of lengths, a row holds several texts one behind the other, and a query
 * sees keys of its own text alone: as many before itself as its position says.
 *
 * With lengths, INT32 (B), only so many keys of an entry are there, from 0 to S: those behind are not read and have
 * gradients of 0. A row that sees no key at all is 0, and its lse minus infinity.
 */
#include "ops/cached.h"
#include "ops/rules.h"

#include <math.h>
#include <stdio.h>

mixt_status mixt__attention_check_heads(const mixt__attention_attrs *at, const mixt__shape *q, const mixt__shape *k,
                                        const char *op)
{
    char tq[128], tk[128];
    mixt__shape_text(q, tq, sizeof tq);
    mixt__shape_text(k, tk, sizeof tk);
    if (at->heads < 1 || q->dims[2] % at->heads)
        return mixt__fail(MIXT_ERROR_SHAPE, "%s: %lld heads do not divide the last dimension of %s", op,
                          (long long)at->heads, tq);
    int64_t dim = q->dims[2] / at->heads;
    if (q->dims[2] == k->dims[2])
        return MIXT_OK;
    if (!dim || !k->dims[2] || k->dims[2] % dim || at->heads % (k->dims[2] / dim))
        return mixt__fail(MIXT_ERROR_SHAPE,
                          "%s: %lld heads of q %s cannot share those of k and v %s: their last dimension must be a "
                          "number of heads of %lld that divides %lld",
                          op, (long long)at->heads, tq, tk, (long long)dim, (long long)at->heads);
    return MIXT_OK;
}

static mixt_status check_positions(const mixt__graph *graph, const mixt__node *node)
{
    const mixt__shape *q = &mixt__in(graph, node, 0)->shape;
    const mixt__value *p = mixt__in(graph, node, 3);
    char text[128];
    if (p->dtype == MIXT_DTYPE_INT32 && p->shape.rank == 2 && p->shape.dims[0] == q->dims[0] &&
        p->shape.dims[1] == q->dims[1])
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_SHAPE, "attention: positions must be int32 (%lld, %lld), got %s %s",
                      (long long)q->dims[0], (long long)q->dims[1], mixt_dtype_name(p->dtype),
                      mixt__shape_text(&p->shape, text, sizeof text));
}

static mixt_status check_lengths(const mixt__graph *graph, const mixt__node *node, int64_t batch)
{
    const mixt__value *lengths = node->in_count > 3 ? mixt__in(graph, node, 3) : NULL;
    char text[128];
    if (((const mixt__attention_attrs *)node->attrs)->packed)
        return check_positions(graph, node);
    if (!lengths || (lengths->dtype == MIXT_DTYPE_INT32 && lengths->shape.rank == 1 && lengths->shape.dims[0] == batch))
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_SHAPE, "attention: lengths must be int32 (%lld), got %s %s", (long long)batch,
                      mixt_dtype_name(lengths->dtype), mixt__shape_text(&lengths->shape, text, sizeof text));
}

static mixt_status infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__attention_attrs *at = node->attrs;
    const mixt__value *q = mixt__in(graph, node, 0), *k = mixt__in(graph, node, 1), *v = mixt__in(graph, node, 2);
    char tq[128], tk[128], tv[128];
    mixt__shape_text(&q->shape, tq, sizeof tq);
    mixt__shape_text(&k->shape, tk, sizeof tk);
    mixt__shape_text(&v->shape, tv, sizeof tv);
    const int64_t *dq = q->shape.dims, *dk = k->shape.dims;
    if (q->shape.rank != 3 || k->shape.rank != 3 || !mixt__shape_equal(&k->shape, &v->shape) || dq[0] != dk[0])
        return mixt__fail(MIXT_ERROR_SHAPE, "attention needs q (B, T, C) and k, v (B, S, C), got %s, %s, %s", tq, tk,
                          tv);
    MIXT_TRY(mixt__attention_check_heads(at, &q->shape, &k->shape, "attention"));
    if (at->causal && dq[1] != dk[1])
        return mixt__fail(MIXT_ERROR_SHAPE, "causal attention needs as many queries as keys, got %s and %s", tq, tk);
    if (q->dtype != k->dtype || q->dtype != v->dtype)
        return mixt__fail(MIXT_ERROR_DTYPE, "attention: q, k and v must have one format");
    MIXT_TRY(check_lengths(graph, node, dq[0]));
    mixt__shape lse = {3, {dq[0], at->heads, dq[1]}};
    mixt__set_out(r, 0, &q->shape, q->dtype);
    mixt__set_out(r, 1, &lse, MIXT_DTYPE_FP32);
    return MIXT_OK;
}

/** Two products of T·S·C each; half of them when causal, less with a window. */
static double forward_flops(const mixt__shape *q, const mixt__shape *k, const mixt__attention_attrs *at)
{
    double full = 4.0 * (double)mixt__shape_count(q) * (double)k->dims[1], keys = (double)k->dims[1];
    double window = (double)at->window;
    if (window > 0 && window < keys)
        return full * (window / keys) * (1 - window / keys / 2);
    return at->causal ? full / 2 : full;
}

static double flops(const mixt__graph *graph, const mixt__node *node)
{
    return forward_flops(&mixt__in(graph, node, 0)->shape, &mixt__in(graph, node, 1)->shape, node->attrs);
}

static double grad_flops(const mixt__graph *graph, const mixt__node *node)
{
    return 2.5 * flops(graph, node); // five products instead of two
}

static mixt_status grad(mixt__gradients *g, const mixt__node *node)
{
    bool lengths = node->in_count > 3;
    int32_t in[7] = {node->in[0],
                     node->in[1],
                     node->in[2],
                     node->out[0],
                     node->out[1],
                     mixt__gradient_of(g, node->out[0]),
                     lengths ? node->in[3] : 0};
    return mixt__gradient_emit(g, &mixt__op_attention_grad, node->attrs, in, lengths ? 7 : 6, node->in);
}

void mixt__attention_describe(const void *attrs, char *text, size_t size)
{
    const mixt__attention_attrs *at = attrs;
    char window[40] = "", cap[40] = "";
    const char *packed = at->packed ? ", packed" : "";
    if (at->window)
        snprintf(window, sizeof window, ", window %lld", (long long)at->window);
    if (at->softcap > 0)
        snprintf(cap, sizeof cap, ", soft cap %g", (double)at->softcap);
    snprintf(text, size, "%lld heads%s%s%s%s", (long long)at->heads, at->causal ? ", causal" : "", packed, window, cap);
}

const mixt__op mixt__op_attention = {
    .name = "attention",
    .precision = MIXT_CLASS_LOW,
    .work = MIXT_WORK_ATTENTION,
    .attrs_size = sizeof(mixt__attention_attrs),
    .strided_inputs = 7,
    .matrix_work = true,
    .infer = infer,
    .grad = grad,
    .flops = flops,
    .describe = mixt__attention_describe,
};

static mixt_status grad_infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    for (int i = 0; i < 3; i++)
        mixt__set_out(r, i, &mixt__in(graph, node, i)->shape, mixt__in(graph, node, i)->dtype);
    return MIXT_OK;
}

const mixt__op mixt__op_attention_grad = {
    .name = "attention_grad",
    .precision = MIXT_CLASS_LOW,
    .work = MIXT_WORK_ATTENTION,
    .attrs_size = sizeof(mixt__attention_attrs),
    .fp32_inputs = 1u << 4,
    .strided_inputs = 7,
    .strided_outputs = 7,
    .matrix_work = true,
    .infer = grad_infer,
    .flops = grad_flops,
    .describe = mixt__attention_describe,
};

/** Options with the positions of the graph that is built now. */
static mixt_value play_attention(mixt_builder *b, const mixt__kept_call *c, const mixt_value *in, const void *options)
{
    mixt_attention_options own = *(const mixt_attention_options *)options;
    own.positions = c->in_count > 3 ? in[3] : (mixt_value){0};
    return mixt_attention_with(b, in[0], in[1], in[2], &own);
}

MIXT_PLAY(mixt_attention_with, out[0] = play_attention(b, c, in, options))

/** What cannot be; NULL: nothing. */
static const char *packed_fault(const mixt_attention_options *o)
{
    return !o->positions.id ? NULL
           : !o->causal     ? "attention: positions of texts that share a row go with causal attention"
           : o->lengths.id  ? "attention: positions and lengths do not go together"
                            : NULL;
}

mixt_value mixt_attention_with(mixt_builder *b, mixt_value q, mixt_value k, mixt_value v,
                               const mixt_attention_options *given)
{
    mixt_attention_options own = MIXT_OPTIONS(mixt_attention_options), *o = &own;
    if (!mixt__builder_options(b, NULL, mixt_attention_options, &own, given))
        return (mixt_value){0};
    MIXT_RECORD(b, mixt_attention_with, .in = {q, k, v, o->positions}, .in_count = o->positions.id ? 4 : 3,
                .inside = offsetof(mixt_attention_options, lengths), .options = &own, .options_size = sizeof own);
    mixt__attention_attrs at = {
        .heads = o->heads, .causal = o->causal, .scale = o->scale, .window = o->window, .softcap = o->softcap};
    at.packed = o->positions.id != 0;
    if (packed_fault(o))
        return mixt__builder_error(b, MIXT_ERROR_ARGUMENT, NULL, "%s", packed_fault(o));
    if (at.heads < 1)
        return mixt__builder_error(b, MIXT_ERROR_ARGUMENT, NULL, "attention needs .heads of at least 1, got %lld",
                                   (long long)o->heads);
    if (at.window < 0 || (at.window && !at.causal))
        return mixt__builder_error(b, MIXT_ERROR_ARGUMENT, NULL,
                                   "attention: a window of %lld needs to be positive, and causal attention",
                                   (long long)at.window);
    if (!(at.softcap >= 0) || isinf(at.softcap))
        return mixt__builder_error(b, MIXT_ERROR_ARGUMENT, NULL,
                                   "attention: the soft cap of scores must be a number above 0, or 0 for none, got %g",
                                   (double)at.softcap);
    if (at.scale == MIXT_AUTO)
        at.scale = 1.0f / sqrtf((float)mixt_value_dim(b, q, -1) / (float)at.heads);
    bool grows = at.causal || !o->lengths.id; // else keys are those of a whole sentence, which was read before
    bool cached = mixt__builder_generating(b) && grows;
    if (at.causal && at.window >= (cached ? b->graph->cache_rows : mixt_value_dim(b, q, 1)))
        at.window = 0; // sees all there is: kernels that know no windows may run
    if (cached)
        return mixt__attention_cached(b, q, k, v, &at);
    mixt_value in[4] = {q, k, v, at.packed ? o->positions : o->lengths};
    return mixt__builder_node(b, &mixt__op_attention, NULL, &at, in, in[3].id ? 4 : 3);
}
