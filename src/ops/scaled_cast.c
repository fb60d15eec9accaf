/* A value in a format of few bits, with one power of two that makes the best of them: dst · scale ≈ src.
 *
 * (src) → (dst in attrs.dtype, scale: one FP32 number). scale is the smallest power of two by which the largest finite
 * magnitude of src fits dst's range, 1 where src has none but 0: so nothing overflows, dividing by it rounds nothing,
 * and what is small beside the largest keeps as many bits as the format has. dst is src / scale to nearest even, with
 * two exceptions: what is not 0 does not become 0 but the smallest magnitude (ReLU's gradient asks whether a number is
 * above 0), and infinities are NaN where the format has none. NaN stays NaN.
 *
 * Emitted by passes only: dst is read by pointwise programs that multiply it by scale.
 */
#include "ops/rules.h"

#include <stdio.h>

static mixt_status infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__scaled_cast_attrs *at = node->attrs;
    mixt__shape scalar = mixt__scalar_shape();
    bool kept = mixt__format_may(at->dtype, MIXT_MAY_KEEP) && !at->flush;
    bool operand = mixt__format_scales_operands(at->dtype) && at->flush;
    if ((!kept && !operand) || !mixt__format_narrow(at->dtype))
        return mixt__fail(MIXT_ERROR_DTYPE,
                          "a scaled cast to %s: formats that end before fp32 does, to keep values or "
                          "multiply them in",
                          mixt_dtype_name(at->dtype));
    mixt__set_out(r, 0, &mixt__in(graph, node, 0)->shape, at->dtype);
    mixt__set_out(r, 1, &scalar, MIXT_DTYPE_FP32);
    return MIXT_OK;
}

static double flops(const mixt__graph *graph, const mixt__node *node)
{
    return 2.0 * (double)mixt__shape_count(&mixt__in(graph, node, 0)->shape);
}

/** The source is read twice: for its largest magnitude, then to be rounded. */
static double bytes(const mixt__graph *graph, const mixt__node *node)
{
    return 2 * mixt__value_bytes(mixt__in(graph, node, 0)) + mixt__value_bytes(&graph->values[node->out[0]]);
}

static void describe(const void *attrs, char *text, size_t size)
{
    const mixt__scaled_cast_attrs *at = attrs;
    snprintf(text, size, "%s", mixt_dtype_name(at->dtype));
}

const mixt__op mixt__op_scaled_cast = {
    .name = "scaled_cast",
    .precision = MIXT_CLASS_INSIDE,
    .work = MIXT_WORK_POINTWISE,
    .attrs_size = sizeof(mixt__scaled_cast_attrs),
    .infer = infer,
    .flops = flops,
    .bytes = bytes,
    .describe = describe,
};
