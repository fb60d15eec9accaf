/* Rows of a table by INT32 index. The gradient adds rows into an FP32 table, in a fixed order. */
#include "ops/rules.h"

static mixt_status infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__value *table = mixt__in(graph, node, 0), *ids = mixt__in(graph, node, 1);
    mixt__shape out = ids->shape;
    if (table->shape.rank != 2 || ids->dtype != MIXT_DTYPE_INT32 || ids->shape.rank >= MIXT_MAX_RANK)
        return mixt__fail(MIXT_ERROR_SHAPE,
                          "embedding needs a table (rows, features) and INT32 indices, got %s indices",
                          mixt_dtype_name(ids->dtype));
    const mixt__embedding_attrs *at = node->attrs;
    out.dims[out.rank++] = table->shape.dims[1];
    bool pair = table->scales.kind != MIXT_SCALE_NONE;
    if (pair && (table->scales.kind != MIXT_SCALE_CHANNEL || !mixt__format_may(at->dtype, MIXT_MAY_HOLD)))
        return mixt__fail(MIXT_ERROR_DTYPE, "a table of %s needs a scale for each row and a format to give",
                          mixt_dtype_name(table->dtype));
    mixt__set_out(r, 0, &out, pair ? at->dtype : table->dtype);
    return MIXT_OK;
}

static mixt_status grad(mixt__gradients *g, const mixt__node *node)
{
    mixt__embedding_attrs at = {.count = g->graph->values[node->in[0]].shape.dims[0]};
    int32_t in[2] = {node->in[1], mixt__gradient_of(g, node->out[0])};
    return mixt__gradient_emit(g, &mixt__op_embedding_grad, &at, in, 2, node->in);
}

/** What `count` elements of a table take, at most the whole table: rows that are wanted again are touched once. */
static double touched_bytes(const mixt__value *table, int64_t count)
{
    double part = (double)count * (double)mixt_dtype_size(table->dtype), whole = mixt__value_bytes(table);
    return part < whole ? part : whole;
}

static double bytes(const mixt__graph *graph, const mixt__node *node)
{
    const mixt__value *out = &graph->values[node->out[0]];
    return touched_bytes(mixt__in(graph, node, 0), mixt__shape_count(&out->shape)) +
           mixt__value_bytes(mixt__in(graph, node, 1)) + mixt__value_bytes(out);
}

static void give(void *attrs, mixt_dtype dtype)
{
    ((mixt__embedding_attrs *)attrs)->dtype = dtype;
}

const mixt__op mixt__op_embedding = {
    .name = "embedding",
    .precision = MIXT_CLASS_LOW,
    .work = MIXT_WORK_OTHER,
    .attrs_size = sizeof(mixt__embedding_attrs),
    .pair_inputs = 1,
    .infer = infer,
    .grad = grad,
    .bytes = bytes,
    .give = give,
};

/** (ids, grad_dst) → grad_table */
static mixt_status grad_infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__embedding_attrs *at = node->attrs;
    mixt__shape out = {2, {at->count, mixt__last_dim(&mixt__in(graph, node, 1)->shape)}};
    mixt__set_out(r, 0, &out, MIXT_DTYPE_FP32);
    return MIXT_OK;
}

static double grad_flops(const mixt__graph *graph, const mixt__node *node)
{
    return (double)mixt__shape_count(&mixt__in(graph, node, 1)->shape);
}

/** Rows are added to in place; the first writer of a run writes the rows that nobody wanted as well. */
static double grad_bytes(const mixt__graph *graph, const mixt__node *node)
{
    const mixt__value *table = &graph->values[node->out[0]], *dy = mixt__in(graph, node, 1);
    double added = touched_bytes(table, mixt__shape_count(&dy->shape));
    return mixt__value_bytes(mixt__in(graph, node, 0)) + mixt__value_bytes(dy) +
           (node->accumulates & 1 ? 2 * added : mixt__value_bytes(table));
}

const mixt__op mixt__op_embedding_grad = {
    .name = "embedding_grad",
    .precision = MIXT_CLASS_INSIDE,
    .work = MIXT_WORK_OTHER,
    .attrs_size = sizeof(mixt__embedding_attrs),
    .accumulate_outputs = 1,
    .infer = grad_infer,
    .flops = grad_flops,
    .bytes = grad_bytes,
};

MIXT_PLAY(mixt_embedding_lookup, out[0] = mixt_embedding_lookup(b, in[0], in[1]))
mixt_value mixt_embedding_lookup(mixt_builder *b, mixt_value table, mixt_value ids)
{
    MIXT_RECORD(b, mixt_embedding_lookup, .in = {table, ids}, .in_count = 2);
    return mixt__builder_node(b, &mixt__op_embedding, NULL, &(mixt__embedding_attrs){0}, (mixt_value[]){table, ids}, 2);
}

MIXT_PLAY(mixt_embedding_positions, out[0] = mixt_embedding_positions(b, in[0], in[1]))
mixt_value mixt_embedding_positions(mixt_builder *b, mixt_value table, mixt_value ids)
{
    MIXT_RECORD(b, mixt_embedding_positions, .in = {table, ids}, .in_count = 2);
    if (mixt__builder_generating(b))
        return mixt_embedding_lookup(b, table, (mixt_value){b->graph->positions});
    return mixt_slice(b, table, 0, 0, mixt_value_dim(b, ids, -1));
}

MIXT_PLAY(mixt_embedding_with, out[0] = mixt_embedding_with(b, c->name, in[0], options))

mixt_value mixt_embedding_with(mixt_builder *b, const char *name, mixt_value ids, const mixt_embedding_options *given)
{
    mixt_embedding_options own = MIXT_OPTIONS(mixt_embedding_options), *o = &own;
    if (!mixt__builder_options(b, name, mixt_embedding_options, &own, given))
        return (mixt_value){0};
    MIXT_RECORD(b, mixt_embedding_with, .name = name, .in = {ids}, .in_count = 1, .options = &own,
                .options_size = sizeof own);
    if (!mixt__builder_number(b, name, ".init", o->init))
        return (mixt_value){0};
    mixt__param table = {.shape = {2, {o->count, o->features}},
                         .trainable = true,
                         .decay = true,
                         .init = o->init > 0 ? MIXT_INIT_NORMAL : MIXT_INIT_ZERO};
    table.init_scale = o->init;
    mixt_value in[2] = {mixt__builder_param(b, name, "weight", &table), ids};
    return mixt__builder_node(b, &mixt__op_embedding, name, &(mixt__embedding_attrs){0}, in, 2);
}
