/* Causal attention that goes on from a cache: the keys and values of the tokens before are there, those of these T
 * tokens are put there, and each token sees itself and all places before its own, or those in its window.
 *
 * (q (B, T, C), k, v (B, T, G), positions INT32 (T), cache_k, cache_v (B, S, G)) → dst (B, T, C), with G as in
 * attention.c. Positions count up
 * by 1 and lie in [0, S); places past the last one are never read, so a text is shortened by starting lower. The caches
 * are written in place. For generating only: it has no gradient.
 */
#include "ops/cached.h"
#include "ops/rules.h"

static mixt_status infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__attention_attrs *at = node->attrs;
    const mixt__value *q = mixt__in(graph, node, 0), *positions = mixt__in(graph, node, 3);
    const mixt__value *cache = mixt__in(graph, node, 4);
    const int64_t *dq = q->shape.dims, *dc = cache->shape.dims;
    char tq[128], tc[128];
    bool same = q->shape.rank == 3 && cache->shape.rank == 3 && dq[0] == dc[0] && dq[1] <= dc[1];
    mixt__shape fresh = {3, {dq[0], dq[1], dc[2]}};
    for (int i = 1; i < 3; i++)
        same = same && mixt__shape_equal(&mixt__in(graph, node, i)->shape, &fresh);
    same = same && mixt__shape_equal(&mixt__in(graph, node, 5)->shape, &cache->shape);
    if (!same || positions->shape.rank != 1 || positions->shape.dims[0] != dq[1])
        return mixt__fail(MIXT_ERROR_SHAPE,
                          "attention_cached needs q, k, v (B, T, C), positions (T) and caches (B, S, C) with S >= T, "
                          "got q %s and cache %s",
                          mixt__shape_text(&q->shape, tq, sizeof tq), mixt__shape_text(&cache->shape, tc, sizeof tc));
    MIXT_TRY(mixt__attention_check_heads(at, &q->shape, &cache->shape, "attention_cached"));
    for (int i = 1; i < 6; i++)
        if (mixt__in(graph, node, i)->dtype != (i == 3 ? MIXT_DTYPE_INT32 : q->dtype))
            return mixt__fail(MIXT_ERROR_DTYPE, "attention_cached: q, k, v and the caches must have one format");
    mixt__set_out(r, 0, &q->shape, q->dtype);
    return MIXT_OK;
}

/** With a full cache. */
static double flops(const mixt__graph *graph, const mixt__node *node)
{
    double queries = (double)mixt__shape_count(&mixt__in(graph, node, 0)->shape);
    return 4.0 * queries * (double)mixt__in(graph, node, 4)->shape.dims[1];
}

const mixt__op mixt__op_attention_cached = {
    .name = "attention_cached",
    .acts_as = "attention",
    .precision = MIXT_CLASS_LOW,
    .work = MIXT_WORK_ATTENTION,
    .attrs_size = sizeof(mixt__attention_attrs),
    .strided_inputs = 7,
    .written_inputs = 3u << 4,
    .matrix_work = true,
    .infer = infer,
    .flops = flops,
    .describe = mixt__attention_describe,
};

mixt_value mixt__attention_cached(mixt_builder *b, mixt_value q, mixt_value k, mixt_value v,
                                  const mixt__attention_attrs *attrs)
{
    if (!attrs->causal)
        return mixt__builder_error(b, MIXT_ERROR_UNSUPPORTED, NULL,
                                   "attention to later tokens cannot generate text: set .causal");
    mixt__shape shape = {3, {mixt_value_dim(b, k, 0), b->graph->cache_rows, mixt_value_dim(b, k, 2)}};
    mixt_value cache_k = mixt__builder_cache(b, &shape), cache_v = mixt__builder_cache(b, &shape);
    mixt_value in[6] = {q, k, v, {b->graph->positions}, cache_k, cache_v};
    return mixt__builder_node(b, &mixt__op_attention_cached, NULL, attrs, in, 6);
}
