/* The verifier: run after every pass, so that a defect is caught where it is made. */
#include "graph/graph.h"

#include "graph/op.h"

#include <stdio.h>

static mixt_status broken(const mixt__graph *graph, int64_t index, const char *pass, const char *what)
{
    const mixt__node *n = &graph->nodes[index];
    return mixt__fail(MIXT_ERROR_INTERNAL, "after pass '%s': node %lld (%s in layer '%s'): %s", pass, (long long)index,
                      n->op->name, n->layer, what);
}

static mixt_status verify_order(const mixt__graph *graph, int64_t index, const char *pass)
{
    const mixt__node *n = &graph->nodes[index];
    for (int i = 0; i < n->in_count; i++) {
        if (n->in[i] <= 0 || n->in[i] >= graph->value_count)
            return broken(graph, index, pass, "an input is not a value");
        const mixt__value *v = &graph->values[n->in[i]];
        if (v->role == MIXT_ROLE_ACTIVATION && (v->producer < 0 || v->producer >= index))
            return broken(graph, index, pass, "an input is used before it is made");
    }
    for (int o = 0; o < n->out_count; o++) {
        const mixt__value *v = &graph->values[n->out[o]];
        bool own = v->role == MIXT_ROLE_ACTIVATION || v->role == MIXT_ROLE_SIDE;
        if (own && v->producer != index)
            return broken(graph, index, pass, "an output belongs to another node");
        if (!own && v->role != MIXT_ROLE_GRAD)
            return broken(graph, index, pass, "an output is neither an activation nor a gradient");
    }
    return MIXT_OK;
}

/** What a node writes beside its outputs is memory that outlives the run. */
static mixt_status verify_written(const mixt__graph *graph, int64_t index, const char *pass)
{
    const mixt__node *n = &graph->nodes[index];
    for (int i = 0; i < n->in_count; i++) {
        mixt__role role = graph->values[n->in[i]].role;
        if (mixt__bit(n->op->written_inputs, i) && role != MIXT_ROLE_STATE && role != MIXT_ROLE_CACHE)
            return broken(graph, index, pass, "it writes an input that is neither a statistic nor a cache");
        if (mixt__bit(n->op->written_inputs, i) && role == MIXT_ROLE_STATE && !n->op->moves)
            return broken(graph, index, pass, "it writes a statistic, but has no rule for several ranks");
    }
    return MIXT_OK;
}

/** Pairs go only where kernels take them, and their scales have the shape that they say. */
static mixt_status verify_pairs(const mixt__graph *graph, int64_t index, const char *pass)
{
    const mixt__node *n = &graph->nodes[index];
    for (int i = 0; i < n->in_count; i++) {
        const mixt__value *v = &graph->values[n->in[i]];
        if (v->scales.kind == MIXT_SCALE_NONE)
            continue;
        uint32_t taken = v->scales.kind == MIXT_SCALE_TENSOR ? n->op->scaled_inputs : n->op->pair_inputs;
        if (!mixt__bit(taken, i) || !mixt__value_contiguous(v))
            return broken(graph, index, pass, "an input is a pair of numbers and scales");
        if (v->scales.value <= 0 || v->scales.value >= graph->value_count)
            return broken(graph, index, pass, "an input's scales are not a value");
        const mixt__value *scales = &graph->values[v->scales.value];
        mixt__shape shape = mixt__scale_shape(&v->shape, v->scales.kind, v->scales.block);
        if (scales->dtype != MIXT_DTYPE_FP32 || !mixt__shape_equal(&scales->shape, &shape))
            return broken(graph, index, pass, "an input's scales have another format or shape than it says");
    }
    return MIXT_OK;
}

static mixt_status verify_types(const mixt__graph *graph, int64_t index, const char *pass)
{
    const mixt__node *n = &graph->nodes[index];
    mixt__inferred inferred = {0};
    mixt_status status = n->op->infer(graph, n, &inferred);
    if (status != MIXT_OK)
        return mixt__fail_context(MIXT_ERROR_INTERNAL, "after pass '%s': node %lld (%s)", pass, (long long)index,
                                  n->op->name);
    if (inferred.count != n->out_count)
        return broken(graph, index, pass, "another number of outputs than the op infers");
    for (int o = 0; o < n->out_count; o++) {
        const mixt__value *v = &graph->values[n->out[o]];
        if (!mixt__shape_equal(&v->shape, &inferred.out[o].shape))
            return broken(graph, index, pass, "an output has another shape than the op infers");
        bool wide =
            v->dtype == MIXT_DTYPE_FP32 && mixt__bit(n->op->accumulate_outputs, o); // as a gradient, or beside one
        if (v->dtype != inferred.out[o].dtype && v->role != MIXT_ROLE_GRAD && !wide)
            return broken(graph, index, pass, "an output has another format than the op infers");
    }
    return MIXT_OK;
}

/** Matrix work multiplies in its operands' format, or in one that they are rounded to; all other nodes in FP32. */
static mixt_status verify_arithmetic(const mixt__graph *graph, int64_t index, const char *pass)
{
    const mixt__node *n = &graph->nodes[index];
    if (n->arithmetic != mixt__node_arithmetic(graph, n, n->arithmetic))
        return broken(graph, index, pass, "its operands are not multiplied in the format that they have");
    return MIXT_OK;
}

mixt_status mixt__graph_verify(const mixt__graph *graph, const char *after_pass)
{
    for (int64_t i = 0; i < graph->node_count; i++) {
        MIXT_TRY(verify_order(graph, i, after_pass));
        MIXT_TRY(verify_written(graph, i, after_pass));
        MIXT_TRY(verify_pairs(graph, i, after_pass));
        MIXT_TRY(verify_types(graph, i, after_pass));
        MIXT_TRY(verify_arithmetic(graph, i, after_pass));
    }
    return MIXT_OK;
}
