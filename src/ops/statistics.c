/* Statistics of a value, and how one value differs from another. Nodes that passes put beside others to look at them:
 * no model has them, nothing flows back through them, and what they look at has the bits that it has without them.
 *
 *   tensor_stats  src → numbers FP64 (MIXT_STATS_NUMBERS), counts INT64 (MIXT_STATS_COUNTS)
 *   tensor_error  reference, other[, weight] → numbers FP64 (MIXT_DIFF_NUMBERS), counts INT64 (MIXT_DIFF_COUNTS)
 */
#include "ops/rules.h"

#include <stdio.h>

static mixt_status check_float(const mixt__value *v, const char *op)
{
    return mixt_dtype_is_float(v->dtype) && v->dtype != MIXT_DTYPE_FP64
               ? MIXT_OK
               : mixt__fail(MIXT_ERROR_DTYPE, "%s of %s: float formats of up to 32 bits have statistics", op,
                            mixt_dtype_name(v->dtype));
}

static void set_outputs(mixt__inferred *r, int64_t numbers, int64_t counts)
{
    mixt__shape first = mixt__vector_shape(numbers), second = mixt__vector_shape(counts);
    mixt__set_out(r, 0, &first, MIXT_DTYPE_FP64);
    mixt__set_out(r, 1, &second, MIXT_DTYPE_INT64);
}

static mixt_status infer_stats(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    MIXT_TRY(check_float(mixt__in(graph, node, 0), "tensor_stats"));
    set_outputs(r, MIXT_STATS_NUMBERS, MIXT_STATS_COUNTS);
    return MIXT_OK;
}

static mixt_status infer_error(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__tensor_error_attrs *at = node->attrs;
    const mixt__value *reference = mixt__in(graph, node, 0);
    char here[128], there[128];
    if (node->in_count != 2 + at->weight)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "tensor_error takes %d values, got %d", 2 + at->weight, node->in_count);
    for (int i = 0; i < node->in_count; i++) {
        const mixt__value *v = mixt__in(graph, node, i);
        MIXT_TRY(check_float(v, "tensor_error"));
        if (!mixt__shape_equal(&v->shape, &reference->shape))
            return mixt__fail(MIXT_ERROR_SHAPE, "tensor_error of shapes %s and %s",
                              mixt__shape_text(&reference->shape, here, sizeof here),
                              mixt__shape_text(&v->shape, there, sizeof there));
    }
    set_outputs(r, MIXT_DIFF_NUMBERS, MIXT_DIFF_COUNTS);
    return MIXT_OK;
}

static double flops(const mixt__graph *graph, const mixt__node *node)
{
    return 4.0 * (double)mixt__shape_count(&mixt__in(graph, node, 0)->shape);
}

static void describe_stats(const void *attrs, char *text, size_t size)
{
    const mixt__tensor_stats_attrs *at = attrs;
    size_t used = (size_t)snprintf(text, size, "against");
    for (int i = 0; i < MIXT_STATS_TARGETS && used < size; i++)
        if (at->targets[i] != MIXT_DTYPE_NONE)
            used += (size_t)snprintf(text + used, size - used, " %s", mixt_dtype_name(at->targets[i]));
}

static void describe_error(const void *attrs, char *text, size_t size)
{
    const mixt__tensor_error_attrs *at = attrs;
    snprintf(text, size, "%s", at->weight ? "weighted" : "");
}

const mixt__op mixt__op_tensor_stats = {
    .name = "tensor_stats",
    .precision = MIXT_CLASS_INSIDE,
    .work = MIXT_WORK_OTHER,
    .attrs_size = sizeof(mixt__tensor_stats_attrs),
    .strided_inputs = 1,
    .infer = infer_stats,
    .flops = flops,
    .describe = describe_stats,
};

const mixt__op mixt__op_tensor_error = {
    .name = "tensor_error",
    .precision = MIXT_CLASS_INSIDE,
    .work = MIXT_WORK_OTHER,
    .attrs_size = sizeof(mixt__tensor_error_attrs),
    .strided_inputs = 7,
    .infer = infer_error,
    .flops = flops,
    .describe = describe_error,
};
