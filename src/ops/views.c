/* Shape ops that move no data where the consumers can read strides: reshape, transpose, slice, split, concat. */
#include "ops/rules.h"

#include <stdio.h>
#include <string.h>

/* ---- reshape ---- */

static mixt_status reshape_infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__reshape_attrs *at = node->attrs;
    const mixt__value *x = mixt__in(graph, node, 0);
    MIXT_TRY(mixt__shape_check(&at->shape));
    if (mixt__shape_count(&at->shape) != mixt__shape_count(&x->shape)) {
        char from[128], to[128];
        return mixt__fail(MIXT_ERROR_SHAPE, "cannot reshape %s to %s: another number of elements",
                          mixt__shape_text(&x->shape, from, sizeof from), mixt__shape_text(&at->shape, to, sizeof to));
    }
    mixt__set_out(r, 0, &at->shape, x->dtype);
    return MIXT_OK;
}

mixt_status mixt__gradient_reshape(mixt__gradients *g, int32_t value, const mixt__shape *shape, int32_t *out)
{
    *out = value;
    if (mixt__shape_equal(&g->graph->values[value].shape, shape))
        return MIXT_OK;
    mixt__reshape_attrs at = {.shape = *shape};
    return mixt__gradient_node(g, &mixt__op_reshape, &at, &value, 1, out);
}

static mixt_status reshape_grad(mixt__gradients *g, const mixt__node *node)
{
    int32_t x = node->in[0], dx;
    mixt__shape shape = g->graph->values[x].shape;
    MIXT_TRY(mixt__gradient_reshape(g, mixt__gradient_of(g, node->out[0]), &shape, &dx));
    return mixt__gradient_add(g, x, dx);
}

static bool reshape_view(const mixt__graph *graph, const mixt__node *node, int o, int64_t *offset, int64_t *strides)
{
    *offset = 0;
    mixt__shape_strides(&graph->values[node->out[o]].shape, strides);
    return mixt__value_contiguous(mixt__in(graph, node, 0));
}

const mixt__op mixt__op_reshape = {
    .name = "reshape",
    .precision = MIXT_CLASS_FOLLOW,
    .work = MIXT_WORK_OTHER,
    .attrs_size = sizeof(mixt__reshape_attrs),
    .infer = reshape_infer,
    .grad = reshape_grad,
    .view = reshape_view,
};

MIXT_PLAY(mixt_reshape, out[0] = mixt_reshape(b, in[0], c->number_count, c->numbers))

mixt_value mixt_reshape(mixt_builder *b, mixt_value x, int rank, const int64_t *dims)
{
    if (!mixt__builder_ready(b, NULL, &x, 1))
        return (mixt_value){0};
    if (rank < 0 || rank > MIXT_MAX_RANK)
        return mixt__builder_error(b, MIXT_ERROR_SHAPE, NULL, "reshape to %d dimensions: 0 to %d", rank, MIXT_MAX_RANK);
    if (rank && !mixt__builder_ok(b, NULL, mixt__need(dims)))
        return (mixt_value){0};
    if (mixt__tape_on(b)) {
        mixt__kept_call call = {.play = play_mixt_reshape, .in = {x}, .in_count = 1, .number_count = rank};
        for (int i = 0; i < rank; i++)
            call.numbers[i] = dims[i];
        return mixt__tape_call(b, &call, NULL);
    }
    mixt__reshape_attrs at = {.shape = mixt__shape_of(rank, dims)};
    int64_t left = mixt__shape_count(&b->graph->values[x.id].shape);
    int open = -1;
    for (int i = 0; i < rank; i++) {
        if (dims[i] == -1)
            open = i;
        else if (dims[i] > 0)
            left /= dims[i];
    }
    if (open >= 0)
        at.shape.dims[open] = left;
    return mixt__builder_node(b, &mixt__op_reshape, NULL, &at, &x, 1);
}

MIXT_PLAY(mixt_flatten, out[0] = mixt_flatten(b, in[0]))
mixt_value mixt_flatten(mixt_builder *b, mixt_value x)
{
    MIXT_RECORD(b, mixt_flatten, .in = {x}, .in_count = 1);
    int64_t n = mixt_value_dim(b, x, 0);
    return mixt_reshape(b, x, 2, (int64_t[]){n, -1});
}

/* ---- transpose ---- */

static mixt_status transpose_infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__transpose_attrs *at = node->attrs;
    const mixt__value *x = mixt__in(graph, node, 0);
    mixt__shape out = {.rank = x->shape.rank};
    unsigned seen = 0;
    for (int i = 0; i < out.rank; i++) {
        if (at->order[i] < 0 || at->order[i] >= out.rank || seen >> at->order[i] & 1)
            return mixt__fail(MIXT_ERROR_SHAPE, "transpose: the order is not a permutation of %d dimensions", out.rank);
        seen |= 1u << at->order[i];
        out.dims[i] = x->shape.dims[at->order[i]];
    }
    mixt__set_out(r, 0, &out, x->dtype);
    return MIXT_OK;
}

static mixt_status transpose_grad(mixt__gradients *g, const mixt__node *node)
{
    const mixt__transpose_attrs *at = node->attrs;
    mixt__transpose_attrs inverse = {{0}};
    int32_t x = node->in[0], dy = mixt__gradient_of(g, node->out[0]);
    for (int i = 0; i < g->graph->values[x].shape.rank; i++)
        inverse.order[at->order[i]] = i;
    return mixt__gradient_emit(g, &mixt__op_transpose, &inverse, &dy, 1, &x);
}

static bool transpose_view(const mixt__graph *graph, const mixt__node *node, int o, int64_t *offset, int64_t *strides)
{
    const mixt__transpose_attrs *at = node->attrs;
    const mixt__value *x = mixt__in(graph, node, 0);
    (void)o;
    *offset = 0;
    for (int i = 0; i < x->shape.rank; i++)
        strides[i] = x->strides[at->order[i]];
    return true;
}

const mixt__op mixt__op_transpose = {
    .name = "transpose",
    .precision = MIXT_CLASS_FOLLOW,
    .work = MIXT_WORK_OTHER,
    .attrs_size = sizeof(mixt__transpose_attrs),
    .infer = transpose_infer,
    .grad = transpose_grad,
    .view = transpose_view,
};

static void play_mixt_transpose(mixt_builder *b, const mixt__kept_call *c, const mixt_value *in, const void *options,
                                mixt_value *out)
{
    int order[MIXT_MAX_RANK];
    (void)options;
    for (int i = 0; i < MIXT_MAX_RANK; i++)
        order[i] = (int)c->numbers[i];
    out[0] = mixt_transpose(b, in[0], order);
}

mixt_value mixt_transpose(mixt_builder *b, mixt_value x, const int *order)
{
    mixt__transpose_attrs at = {{0}};
    if (!mixt__builder_ok(b, NULL, mixt__need(order)))
        return (mixt_value){0};
    for (int i = 0; i < mixt_value_rank(b, x); i++)
        at.order[i] = order[i];
    if (mixt__tape_on(b)) {
        mixt__kept_call call = {.play = play_mixt_transpose, .in = {x}, .in_count = 1};
        for (int i = 0; i < mixt_value_rank(b, x); i++)
            call.numbers[i] = order[i];
        return mixt__tape_call(b, &call, NULL);
    }
    return mixt__builder_node(b, &mixt__op_transpose, NULL, &at, &x, 1);
}

/* ---- slice and its gradient ---- */

static mixt_status slice_infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__slice_attrs *at = node->attrs;
    const mixt__value *x = mixt__in(graph, node, 0);
    mixt__shape out = x->shape;
    if (at->axis < 0 || at->axis >= out.rank || at->begin < 0 || at->begin >= at->end || at->end > out.dims[at->axis]) {
        char text[128];
        return mixt__fail(MIXT_ERROR_SHAPE, "slice [%lld, %lld) of dimension %d does not fit %s", (long long)at->begin,
                          (long long)at->end, at->axis, mixt__shape_text(&x->shape, text, sizeof text));
    }
    out.dims[at->axis] = at->end - at->begin;
    mixt__set_out(r, 0, &out, x->dtype);
    return MIXT_OK;
}

static mixt_status slice_grad(mixt__gradients *g, const mixt__node *node)
{
    int32_t x = node->in[0], dy = mixt__gradient_of(g, node->out[0]);
    return mixt__gradient_emit(g, &mixt__op_slice_grad, node->attrs, &dy, 1, &x);
}

static bool slice_view(const mixt__graph *graph, const mixt__node *node, int o, int64_t *offset, int64_t *strides)
{
    const mixt__slice_attrs *at = node->attrs;
    const mixt__value *x = mixt__in(graph, node, 0);
    (void)o;
    *offset = at->begin * x->strides[at->axis];
    for (int i = 0; i < x->shape.rank; i++)
        strides[i] = x->strides[i];
    return true;
}

const mixt__op mixt__op_slice = {
    .name = "slice",
    .precision = MIXT_CLASS_FOLLOW,
    .work = MIXT_WORK_OTHER,
    .attrs_size = sizeof(mixt__slice_attrs),
    .infer = slice_infer,
    .grad = slice_grad,
    .view = slice_view,
};

static mixt_status slice_grad_infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__slice_attrs *at = node->attrs;
    const mixt__value *dy = mixt__in(graph, node, 0);
    mixt__shape out = dy->shape;
    out.dims[at->axis] = at->full;
    mixt__set_out(r, 0, &out, dy->dtype);
    return MIXT_OK;
}

/** Padding with zeros is this op in a forward pass. */
static mixt_status pad_grad(mixt__gradients *g, const mixt__node *node)
{
    int32_t x = node->in[0], dy = mixt__gradient_of(g, node->out[0]);
    return mixt__gradient_emit(g, &mixt__op_slice, node->attrs, &dy, 1, &x);
}

/** Zeros but for the slice. */
const mixt__op mixt__op_slice_grad = {
    .name = "slice_grad",
    .precision = MIXT_CLASS_FOLLOW,
    .work = MIXT_WORK_OTHER,
    .attrs_size = sizeof(mixt__slice_attrs),
    .accumulate_outputs = 1,
    .infer = slice_grad_infer,
    .grad = pad_grad,
};

MIXT_PLAY(mixt_slice, out[0] = mixt_slice(b, in[0], (int)c->numbers[0], c->numbers[1], c->numbers[2]))
mixt_value mixt_slice(mixt_builder *b, mixt_value x, int axis, int64_t begin, int64_t end)
{
    MIXT_RECORD(b, mixt_slice, .in = {x}, .in_count = 1, .numbers = {axis, begin, end});
    int rank = mixt_value_rank(b, x);
    mixt__slice_attrs at = {
        .axis = axis < 0 ? axis + rank : axis, .begin = begin, .end = end, .full = mixt_value_dim(b, x, axis)};
    return mixt__builder_node(b, &mixt__op_slice, NULL, &at, &x, 1);
}

/* ---- split ---- */

static mixt_status split_infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__split_attrs *at = node->attrs;
    const mixt__value *x = mixt__in(graph, node, 0);
    int64_t last = mixt__last_dim(&x->shape), sum = 0;
    bool chosen = false, positive = true;
    for (int o = 0; o < at->parts && o < MIXT_MAX_OUTPUTS; o++) {
        chosen |= at->sizes[o] != 0;
        positive &= at->sizes[o] > 0 && at->sizes[o] <= last;
        sum += positive ? at->sizes[o] : 0;
    }
    if (at->parts < 1 || at->parts > MIXT_MAX_OUTPUTS || x->shape.rank < 1 || (!chosen && last % at->parts))
        return mixt__fail(MIXT_ERROR_SHAPE, "cannot split a last dimension of %lld into %d equal parts (at most %d)",
                          (long long)last, at->parts, MIXT_MAX_OUTPUTS);
    if (chosen && (!positive || sum != last))
        return mixt__fail(MIXT_ERROR_SHAPE,
                          "cannot split a last dimension of %lld into parts of %lld in all, each above 0",
                          (long long)last, (long long)sum);
    mixt__shape out = x->shape;
    for (int o = 0; o < at->parts; o++) {
        out.dims[out.rank - 1] = chosen ? at->sizes[o] : last / at->parts;
        mixt__set_out(r, o, &out, x->dtype);
    }
    return MIXT_OK;
}

static mixt_status split_grad(mixt__gradients *g, const mixt__node *node)
{
    const mixt__split_attrs *at = node->attrs;
    int32_t x = node->in[0], parts[MIXT_MAX_OUTPUTS];
    mixt__concat_attrs concat = {.axis = g->graph->values[x].shape.rank - 1};
    for (int o = 0; o < at->parts; o++) {
        parts[o] = mixt__gradient_of(g, node->out[o]);
        if (!parts[o]) // an unused part has gradient zero
            MIXT_TRY(mixt__gradient_pointwise(g, (mixt__pw_instr){.code = MIXT_PW_AFFINE}, &node->out[o], 1,
                                              MIXT_DTYPE_NONE, &parts[o]));
    }
    return mixt__gradient_emit(g, &mixt__op_concat, &concat, parts, at->parts, &x);
}

static bool split_view(const mixt__graph *graph, const mixt__node *node, int o, int64_t *offset, int64_t *strides)
{
    const mixt__value *x = mixt__in(graph, node, 0);
    int64_t before = 0;
    for (int i = 0; i < o; i++)
        before += mixt__last_dim(&graph->values[node->out[i]].shape);
    *offset = before * x->strides[x->shape.rank - 1];
    for (int i = 0; i < x->shape.rank; i++)
        strides[i] = x->strides[i];
    return true;
}

const mixt__op mixt__op_split = {
    .name = "split",
    .precision = MIXT_CLASS_FOLLOW,
    .work = MIXT_WORK_OTHER,
    .attrs_size = sizeof(mixt__split_attrs),
    .infer = split_infer,
    .grad = split_grad,
    .view = split_view,
};

/** sizes NULL: equal parts. */
static void split(mixt_builder *b, mixt_value x, int parts, const int64_t *sizes, mixt_value *result)
{
    mixt__split_attrs at = {.parts = parts};
    for (int i = 0; sizes && i < parts && i < MIXT_MAX_OUTPUTS; i++)
        at.sizes[i] = sizes[i];
    for (int i = 0; i < parts && i < MIXT_MAX_OUTPUTS; i++) // who asks for more may have no room for them
        result[i] = (mixt_value){0};
    if (parts > MIXT_MAX_OUTPUTS) {
        mixt__builder_error(b, MIXT_ERROR_ARGUMENT, NULL, "split into %d parts: at most %d", parts, MIXT_MAX_OUTPUTS);
        return;
    }
    mixt__builder_node_outputs(b, &mixt__op_split, NULL, &at, &x, 1, result);
}

MIXT_PLAY(mixt_split, mixt_split(b, in[0], c->out_count, out))

void mixt_split(mixt_builder *b, mixt_value x, int parts, mixt_value *result)
{
    if (!mixt__builder_ok(b, NULL, mixt__need(result)))
        return;
    if (parts <= MIXT_MAX_OUTPUTS)
        MIXT_RECORD_VOID(b, mixt_split, result, .in = {x}, .in_count = 1, .out_count = parts);
    split(b, x, parts, NULL, result);
}

MIXT_PLAY(mixt_split_at, mixt_split_at(b, in[0], c->out_count, c->numbers, out))

void mixt_split_at(mixt_builder *b, mixt_value x, int parts, const int64_t *sizes, mixt_value *result)
{
    if (!mixt__builder_ok(b, NULL, mixt__need(sizes)) || !mixt__builder_ok(b, NULL, mixt__need(result)))
        return;
    if (mixt__tape_on(b) && parts <= MIXT_MAX_OUTPUTS) {
        mixt__kept_call call = {.play = play_mixt_split_at, .in = {x}, .in_count = 1, .out_count = parts};
        for (int i = 0; i < parts; i++)
            call.numbers[i] = sizes[i];
        mixt__tape_call(b, &call, result);
        return;
    }
    split(b, x, parts, sizes, result);
}

/* ---- concat ---- */

static mixt_status concat_infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__concat_attrs *at = node->attrs;
    const mixt__value *first = mixt__in(graph, node, 0);
    mixt__shape out = first->shape;
    if (at->axis < 0 || at->axis >= out.rank)
        return mixt__fail(MIXT_ERROR_SHAPE, "concat along dimension %d of values with %d dimensions", at->axis,
                          out.rank);
    for (int i = 1; i < node->in_count; i++) {
        const mixt__value *v = mixt__in(graph, node, i);
        mixt__shape same = v->shape;
        char ta[128], tb[128];
        if (same.rank == out.rank)
            same.dims[at->axis] = out.dims[at->axis];
        if (!mixt__shape_equal(&same, &out) || v->dtype != first->dtype)
            return mixt__fail(MIXT_ERROR_SHAPE, "concat along dimension %d: %s %s and %s %s do not fit", at->axis,
                              mixt_dtype_name(first->dtype), mixt__shape_text(&first->shape, ta, sizeof ta),
                              mixt_dtype_name(v->dtype), mixt__shape_text(&v->shape, tb, sizeof tb));
        out.dims[at->axis] += v->shape.dims[at->axis];
    }
    mixt__set_out(r, 0, &out, first->dtype);
    return MIXT_OK;
}

static mixt_status concat_grad(mixt__gradients *g, const mixt__node *node)
{
    const mixt__concat_attrs *at = node->attrs;
    int32_t dy = mixt__gradient_of(g, node->out[0]);
    int64_t begin = 0, full = g->graph->values[dy].shape.dims[at->axis];
    for (int i = 0; i < node->in_count; i++) {
        int32_t x = node->in[i];
        int64_t size = g->graph->values[x].shape.dims[at->axis];
        mixt__slice_attrs slice = {.axis = at->axis, .begin = begin, .end = begin + size, .full = full};
        if (mixt__gradient_wanted(g, x))
            MIXT_TRY(mixt__gradient_emit(g, &mixt__op_slice, &slice, &dy, 1, &x));
        begin += size;
    }
    return MIXT_OK;
}

/** As a view it runs backwards: its inputs are made inside its output (passes/views.c). */
const mixt__op mixt__op_concat = {
    .name = "concat",
    .precision = MIXT_CLASS_FOLLOW,
    .work = MIXT_WORK_OTHER,
    .attrs_size = sizeof(mixt__concat_attrs),
    .infer = concat_infer,
    .grad = concat_grad,
};

MIXT_PLAY(mixt_concat, out[0] = mixt_concat(b, in, c->in_count, (int)c->numbers[0]))

mixt_value mixt_concat(mixt_builder *b, const mixt_value *parts, int count, int axis)
{
    if (count < 1)
        return mixt__builder_error(b, MIXT_ERROR_ARGUMENT, NULL, "concat of %d values: needs at least one", count);
    if (!mixt__builder_ok(b, NULL, mixt__need(parts)))
        return (mixt_value){0};
    if (mixt__tape_on(b) && count <= MIXT_CALL_VALUES) {
        mixt__kept_call call = {.play = play_mixt_concat, .in_count = count, .numbers = {axis}};
        memcpy(call.in, parts, (size_t)count * sizeof *parts);
        return mixt__tape_call(b, &call, NULL);
    }
    int rank = mixt_value_rank(b, parts[0]);
    mixt__concat_attrs at = {.axis = axis < 0 ? axis + rank : axis};
    return mixt__builder_node(b, &mixt__op_concat, NULL, &at, parts, count);
}
