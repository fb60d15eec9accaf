/* Cumulative sums along a dimension, and what lies on one side of a diagonal. Both are their own gradients: of a sum up
 * to each position one from each position on. */
#include "ops/rules.h"

#include "mixt/ops.h"

#include <stdio.h>

static mixt_status cumsum_infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__cumsum_attrs *at = node->attrs;
    const mixt__value *x = mixt__in(graph, node, 0);
    if (at->axis < 0 || at->axis >= x->shape.rank)
        return mixt__fail(MIXT_ERROR_SHAPE, "cumsum along dimension %d of a value with %d dimensions", at->axis,
                          x->shape.rank);
    mixt__set_out(r, 0, &x->shape, x->dtype);
    return MIXT_OK;
}

static mixt_status cumsum_grad(mixt__gradients *g, const mixt__node *node)
{
    mixt__cumsum_attrs at = *(const mixt__cumsum_attrs *)node->attrs;
    int32_t dy = mixt__gradient_of(g, node->out[0]);
    at.reverse = !at.reverse;
    return mixt__gradient_emit(g, &mixt__op_cumsum, &at, &dy, 1, node->in);
}

static void cumsum_describe(const void *attrs, char *text, size_t size)
{
    const mixt__cumsum_attrs *at = attrs;
    snprintf(text, size, "dimension %d%s%s", at->axis, at->exclusive ? " exclusive" : "",
             at->reverse ? " reverse" : "");
}

const mixt__op mixt__op_cumsum = {
    .name = "cumsum",
    .precision = MIXT_CLASS_INSIDE,
    .work = MIXT_WORK_OTHER,
    .attrs_size = sizeof(mixt__cumsum_attrs),
    .infer = cumsum_infer,
    .grad = cumsum_grad,
    .describe = cumsum_describe,
};

MIXT_PLAY(mixt_cumsum, out[0] = mixt_cumsum(b, in[0], (int)c->numbers[0], c->numbers[1] != 0, c->numbers[2] != 0))
mixt_value mixt_cumsum(mixt_builder *b, mixt_value x, int axis, bool exclusive, bool reverse)
{
    MIXT_RECORD(b, mixt_cumsum, .in = {x}, .in_count = 1, .numbers = {axis, exclusive, reverse});
    mixt__cumsum_attrs at = {
        .axis = axis < 0 ? axis + mixt_value_rank(b, x) : axis, .exclusive = exclusive, .reverse = reverse};
    return mixt__builder_node(b, &mixt__op_cumsum, NULL, &at, &x, 1);
}

static mixt_status trilu_infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__value *x = mixt__in(graph, node, 0);
    if (x->shape.rank < 2)
        return mixt__fail(MIXT_ERROR_SHAPE, "trilu of a value with %d dimensions: needs 2", x->shape.rank);
    mixt__set_out(r, 0, &x->shape, x->dtype);
    return MIXT_OK;
}

static mixt_status trilu_grad(mixt__gradients *g, const mixt__node *node)
{
    int32_t dy = mixt__gradient_of(g, node->out[0]);
    return mixt__gradient_emit(g, &mixt__op_trilu, node->attrs, &dy, 1, node->in);
}

static void trilu_describe(const void *attrs, char *text, size_t size)
{
    const mixt__trilu_attrs *at = attrs;
    snprintf(text, size, "%s diagonal %lld", at->upper ? "upper" : "lower", (long long)at->diagonal);
}

const mixt__op mixt__op_trilu = {
    .name = "trilu",
    .precision = MIXT_CLASS_FOLLOW,
    .work = MIXT_WORK_OTHER,
    .attrs_size = sizeof(mixt__trilu_attrs),
    .infer = trilu_infer,
    .grad = trilu_grad,
    .describe = trilu_describe,
};

MIXT_PLAY(mixt_trilu, out[0] = mixt_trilu(b, in[0], c->numbers[0] != 0, c->numbers[1]))
mixt_value mixt_trilu(mixt_builder *b, mixt_value x, bool upper, int64_t diagonal)
{
    MIXT_RECORD(b, mixt_trilu, .in = {x}, .in_count = 1, .numbers = {upper, diagonal});
    int64_t most = MIXT_ELEMENTS_MAX;
    mixt__trilu_attrs at = {.upper = upper, .diagonal = diagonal > most ? most : diagonal < -most ? -most : diagonal};
    return mixt__builder_node(b, &mixt__op_trilu, NULL, &at, &x, 1);
}
