/* Views: a reshape, slice, split or transpose becomes a window on its input's memory, and a concat a set of windows
 * that its producers write into, wherever every neighbour can read or write strides. What cannot stays a copy.
 */
#include "passes/passes.h"

#include "graph/op.h"
#include "num/num.h"
#include "ops/attrs.h"
#include "ops/ops.h"

enum { WINDOW_ALIGNMENT = 256 };

/** Whether every reader of the value takes it strided, directly or through a further view of its own. */
static bool readers_take_strides(const mixt__graph *graph, int32_t value)
{
    for (int64_t i = 0; i < graph->node_count; i++) {
        const mixt__node *n = &graph->nodes[i];
        for (int k = 0; k < n->in_count; k++)
            if (n->in[k] == value && !mixt__bit(n->op->strided_inputs, k))
                return false;
    }
    return true;
}

static bool contiguous(const mixt__shape *shape, const int64_t *strides)
{
    int64_t expected = 1;
    for (int i = shape->rank - 1; i >= 0; i--) {
        if (shape->dims[i] != 1 && strides[i] != expected)
            return false;
        expected *= shape->dims[i];
    }
    return true;
}

/** How every output lies in the input's memory, if all of them can be windows. */
static bool windows(const mixt__graph *graph, const mixt__node *n, int64_t *offset, int64_t (*strides)[MIXT_MAX_RANK])
{
    for (int o = 0; o < n->out_count; o++) {
        const mixt__value *out = &graph->values[n->out[o]];
        if (out->output || !n->op->view(graph, n, o, &offset[o], strides[o]))
            return false;
        bool dense = contiguous(&out->shape, strides[o]);
        bool rows = out->shape.rank > 0 && strides[o][out->shape.rank - 1] == 1;
        if (!dense && !(rows && readers_take_strides(graph, n->out[o])))
            return false;
    }
    return true;
}

bool mixt__node_can_view(const mixt__graph *graph, const mixt__node *n)
{
    int64_t offset[MIXT_MAX_OUTPUTS], strides[MIXT_MAX_OUTPUTS][MIXT_MAX_RANK];
    return n->op->view && windows(graph, n, offset, strides);
}

/** Makes every output of a view node a window on its input, if all of them can be. */
static void try_view(mixt__graph *graph, mixt__node *n)
{
    int64_t offset[MIXT_MAX_OUTPUTS], strides[MIXT_MAX_OUTPUTS][MIXT_MAX_RANK];
    if (!windows(graph, n, offset, strides))
        return;
    for (int o = 0; o < n->out_count; o++) {
        mixt__value *out = &graph->values[n->out[o]];
        out->base = n->in[0];
        out->offset = offset[o];
        for (int i = 0; i < out->shape.rank; i++)
            out->strides[i] = strides[o][i];
    }
    n->alias = true;
}

/** Whether the producer of a concat's input can write it as a window, and nobody else minds.
 *  @param dense the window is one piece of memory, as aligned as memory of its own: any kernel can write it */
static bool input_can_be_window(const mixt__graph *graph, int32_t value, const int32_t *uses, bool dense)
{
    const mixt__value *v = &graph->values[value];
    if (v->role != MIXT_ROLE_ACTIVATION || v->base || v->output || uses[value] != 1 || v->producer < 0)
        return false;
    const mixt__node *p = &graph->nodes[v->producer];
    for (int o = 0; o < p->out_count; o++)
        if (p->out[o] == value)
            return dense || mixt__bit(p->op->strided_outputs, o);
    return false;
}

/** Whether each input is one piece of the output's memory that starts where memory of its own could. */
static bool dense_windows(const mixt__graph *graph, const mixt__node *n)
{
    const mixt__concat_attrs *at = n->attrs;
    const mixt__value *out = &graph->values[n->out[0]];
    bool dense = true;
    for (int d = 0; d < at->axis; d++)
        dense &= out->shape.dims[d] == 1;
    for (int i = 0; i < n->in_count; i++) {
        size_t bytes = (size_t)mixt__shape_count(&graph->values[n->in[i]].shape) * mixt_dtype_size(out->dtype);
        dense &= bytes % WINDOW_ALIGNMENT == 0;
    }
    return dense;
}

/** A concat whose inputs are all made inside its output. */
static void try_concat(mixt__graph *graph, mixt__node *n, const int32_t *uses)
{
    const mixt__concat_attrs *at = n->attrs;
    bool dense = dense_windows(graph, n);
    for (int i = 0; i < n->in_count; i++) {
        if (!input_can_be_window(graph, n->in[i], uses, dense))
            return;
        for (int j = 0; j < i; j++)
            if (n->in[j] == n->in[i])
                return;
    }
    const mixt__value *out = &graph->values[n->out[0]];
    int64_t position = 0;
    for (int i = 0; i < n->in_count; i++) {
        mixt__value *in = &graph->values[n->in[i]];
        in->base = n->out[0];
        in->offset = position * out->strides[at->axis];
        for (int d = 0; d < in->shape.rank; d++)
            in->strides[d] = out->strides[d];
        position += in->shape.dims[at->axis];
    }
    n->alias = true;
}

mixt_status mixt__pass_views(mixt__graph *graph)
{
    int32_t *uses = mixt__graph_use_counts(graph);
    if (!uses)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to find views");
    for (int64_t i = 0; i < graph->node_count; i++) {
        mixt__node *n = &graph->nodes[i];
        if (n->op->view)
            try_view(graph, n);
        else if (n->op == &mixt__op_concat)
            try_concat(graph, n, uses);
    }
    mixt__free(uses);
    return MIXT_OK;
}
