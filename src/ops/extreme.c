/* The largest or smallest element over neighbouring dimensions, or where the first of them is; and the gradient, which
 * equal ones share.
 *
 * extreme (src) → dst, or indices in INT32; extreme_grad (src, dst, grad_dst) → grad_src.
 */
#include "ops/rules.h"

#include "mixt/ops.h"

#include <stdio.h>

static mixt_status infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__extreme_attrs *at = node->attrs;
    const mixt__value *x = mixt__in(graph, node, 0);
    mixt__shape out = {0};
    int64_t reduced = 1;
    if (at->axis < 0 || at->count < 1 || at->axis + at->count > x->shape.rank)
        return mixt__fail(MIXT_ERROR_SHAPE, "extreme: dimensions %d to %d of a value with %d", at->axis,
                          at->axis + at->count - 1, x->shape.rank);
    for (int i = 0; i < x->shape.rank; i++) {
        bool gone = i >= at->axis && i < at->axis + at->count;
        reduced *= gone ? x->shape.dims[i] : 1;
        if (!gone || at->keep_dims)
            out.dims[out.rank++] = gone ? 1 : x->shape.dims[i];
    }
    if (reduced < 1 || (at->index && reduced > INT32_MAX))
        return mixt__fail(MIXT_ERROR_SHAPE, "the largest of %lld elements", (long long)reduced);
    mixt__set_out(r, 0, &out, at->index ? MIXT_DTYPE_INT32 : x->dtype);
    return MIXT_OK;
}

static mixt_status grad(mixt__gradients *g, const mixt__node *node)
{
    const mixt__extreme_attrs *at = node->attrs;
    if (at->index) // whole numbers: nothing flows through them
        return MIXT_OK;
    int32_t in[3] = {node->in[0], node->out[0], mixt__gradient_of(g, node->out[0])};
    return mixt__gradient_emit(g, &mixt__op_extreme_grad, at, in, 3, node->in);
}

static void describe(const void *attrs, char *text, size_t size)
{
    const mixt__extreme_attrs *at = attrs;
    snprintf(text, size, "%s%s over dimensions %d to %d", at->index ? "place of the " : "",
             at->smallest ? "smallest" : "largest", at->axis, at->axis + at->count - 1);
}

const mixt__op mixt__op_extreme = {
    .name = "extreme",
    .precision = MIXT_CLASS_FOLLOW,
    .work = MIXT_WORK_OTHER,
    .attrs_size = sizeof(mixt__extreme_attrs),
    .infer = infer,
    .grad = grad,
    .describe = describe,
};

static mixt_status grad_infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__value *x = mixt__in(graph, node, 0);
    mixt__set_out(r, 0, &x->shape, x->dtype);
    return MIXT_OK;
}

const mixt__op mixt__op_extreme_grad = {
    .name = "extreme_grad",
    .precision = MIXT_CLASS_FOLLOW,
    .work = MIXT_WORK_OTHER,
    .attrs_size = sizeof(mixt__extreme_attrs),
    .exact_inputs = 3,
    .infer = grad_infer,
    .describe = describe,
};

/* ---- the public functions ---- */

/** One bit for each dimension that the options name, or for all; false: an error has been recorded. */
static bool find_axes(mixt_builder *b, const mixt_reduce_options *o, int rank, uint32_t *axes)
{
    *axes = o->axis_count == MIXT_AUTO ? (1u << rank) - 1 : 0;
    for (int i = 0; i < o->axis_count && i < MIXT_MAX_RANK; i++) {
        int axis = o->axes[i] < 0 ? o->axes[i] + rank : o->axes[i];
        if (axis < 0 || axis >= rank || *axes >> axis & 1) {
            mixt__builder_error(b, MIXT_ERROR_SHAPE, NULL,
                                "cannot reduce dimension %d of a value with %d dimensions, or twice", o->axes[i], rank);
            return false;
        }
        *axes |= 1u << axis;
    }
    if (o->axis_count > rank) {
        mixt__builder_error(b, MIXT_ERROR_ARGUMENT, NULL, "cannot reduce %d dimensions of a value with %d",
                            o->axis_count, rank);
        return false;
    }
    return true;
}

/** Runs of neighbouring dimensions one after the other, the last first; then the reduced ones are left out. */
static mixt_value over_axes(mixt_builder *b, mixt_value x, uint32_t axes, bool smallest, bool keep_dims)
{
    mixt__shape left = b->graph->values[x.id].shape, shape = {0};
    for (int end = left.rank; end > 0; end--) {
        int begin = end;
        while (begin > 0 && axes >> (begin - 1) & 1)
            begin--;
        if (begin == end)
            continue;
        mixt__extreme_attrs at = {.axis = begin, .count = end - begin, .keep_dims = true, .smallest = smallest};
        x = mixt__builder_node(b, &mixt__op_extreme, NULL, &at, &x, 1);
        end = begin + 1;
    }
    for (int i = 0; i < left.rank; i++)
        if (!(axes >> i & 1))
            shape.dims[shape.rank++] = left.dims[i];
    return keep_dims || !axes ? x : mixt_reshape(b, x, shape.rank, shape.dims);
}

static mixt_value extreme(mixt_builder *b, mixt_value x, const mixt_reduce_options *given, bool smallest,
                          mixt__play *play)
{
    mixt_reduce_options own = MIXT_OPTIONS(mixt_reduce_options);
    uint32_t axes;
    if (!mixt__builder_ready(b, NULL, &x, 1) || !mixt__builder_options(b, NULL, mixt_reduce_options, &own, given))
        return (mixt_value){0};
    if (mixt__tape_on(b)) {
        mixt__kept_call call = {.play = play, .in = {x}, .in_count = 1, .options = &own, .options_size = sizeof own};
        return mixt__tape_call(b, &call, NULL);
    }
    if (!find_axes(b, &own, b->graph->values[x.id].shape.rank, &axes))
        return (mixt_value){0};
    return over_axes(b, x, axes, smallest, own.keep_dims);
}

MIXT_PLAY(mixt_reduce_max_with, out[0] = mixt_reduce_max_with(b, in[0], options))
mixt_value mixt_reduce_max_with(mixt_builder *b, mixt_value x, const mixt_reduce_options *o)
{
    return extreme(b, x, o, false, play_mixt_reduce_max_with);
}

MIXT_PLAY(mixt_reduce_min_with, out[0] = mixt_reduce_min_with(b, in[0], options))
mixt_value mixt_reduce_min_with(mixt_builder *b, mixt_value x, const mixt_reduce_options *o)
{
    return extreme(b, x, o, true, play_mixt_reduce_min_with);
}

MIXT_PLAY(mixt_reduce_l2_with, out[0] = mixt_reduce_l2_with(b, in[0], options))
mixt_value mixt_reduce_l2_with(mixt_builder *b, mixt_value x, const mixt_reduce_options *given)
{
    mixt_reduce_options own = MIXT_OPTIONS(mixt_reduce_options);
    if (!mixt__builder_options(b, NULL, mixt_reduce_options, &own, given))
        return (mixt_value){0};
    MIXT_RECORD(b, mixt_reduce_l2_with, .in = {x}, .in_count = 1, .options = &own, .options_size = sizeof own);
    return mixt_sqrt(b, mixt_sum_with(b, mixt_square(b, x), &own));
}

MIXT_PLAY(mixt_argmax, out[0] = mixt_argmax(b, in[0], (int)c->numbers[0], c->numbers[1] != 0))
mixt_value mixt_argmax(mixt_builder *b, mixt_value x, int axis, bool keep_dims)
{
    MIXT_RECORD(b, mixt_argmax, .in = {x}, .in_count = 1, .numbers = {axis, keep_dims});
    if (!mixt__builder_ready(b, NULL, &x, 1))
        return (mixt_value){0};
    int rank = b->graph->values[x.id].shape.rank;
    mixt__extreme_attrs at = {.axis = axis < 0 ? axis + rank : axis, .count = 1, .keep_dims = keep_dims, .index = true};
    return mixt__builder_node(b, &mixt__op_extreme, NULL, &at, &x, 1);
}

MIXT_PLAY(mixt_global_max_pool, out[0] = mixt_global_max_pool(b, in[0]))
mixt_value mixt_global_max_pool(mixt_builder *b, mixt_value x)
{
    MIXT_RECORD(b, mixt_global_max_pool, .in = {x}, .in_count = 1);
    if (!mixt__builder_ready(b, NULL, &x, 1))
        return (mixt_value){0};
    int rank = b->graph->values[x.id].shape.rank;
    if (rank != 4 && rank != 5)
        return mixt__builder_error(b, MIXT_ERROR_SHAPE, NULL,
                                   "global pooling needs (N, H, W, C) or (N, D, H, W, C), got %d dimensions", rank);
    return over_axes(b, x, rank == 5 ? 14 : 6, false, false);
}
