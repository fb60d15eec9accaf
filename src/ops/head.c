/* A classifier's head as one op: the product that makes the logits, cross-entropy, and the gradients of both.
 *
 *   (x (rows, K), w (N, K)[, bias], labels, seed) → (grad_x, loss (), metrics (3), grad_w[, grad_bias])
 *
 * The logits and their gradient are never stored, and are FP32 whatever the format. Loss, metrics and labels as in
 * ops/losses.c.
 */
#include "ops/rules.h"

#include <stdio.h>

static mixt_status misfit(const mixt__shape *x, const mixt__shape *w, const char *why)
{
    char tx[128], tw[128];
    return mixt__fail(MIXT_ERROR_SHAPE, "no head of inputs %s and weight %s: %s", mixt__shape_text(x, tx, sizeof tx),
                      mixt__shape_text(w, tw, sizeof tw), why);
}

static mixt_status infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__head_attrs *at = node->attrs;
    const mixt__value *x = mixt__in(graph, node, 0), *w = mixt__in(graph, node, 1);
    const mixt__value *labels = mixt__in(graph, node, 2 + at->bias);
    if (x->shape.rank != 2 || w->shape.rank != 2)
        return misfit(&x->shape, &w->shape, "both must be plain matrices");
    if (x->dtype != w->dtype)
        return mixt__fail(MIXT_ERROR_DTYPE, "inputs are %s, the weight %s: both must have one format",
                          mixt_dtype_name(x->dtype), mixt_dtype_name(w->dtype));
    int64_t rows = x->shape.dims[0], n = w->shape.dims[0];
    if (w->shape.dims[1] != x->shape.dims[1])
        return misfit(&x->shape, &w->shape, "the inner sizes differ");
    if (at->bias && mixt__shape_count(&mixt__in(graph, node, 2)->shape) != n)
        return misfit(&x->shape, &w->shape, "the bias has another size than the classes");
    if (labels->dtype != MIXT_DTYPE_INT32 || mixt__shape_count(&labels->shape) != rows)
        return misfit(&x->shape, &w->shape, "there must be one INT32 label per row");
    mixt__shape scalar = mixt__scalar_shape(), three = mixt__vector_shape(3), bias = mixt__vector_shape(n);
    mixt__set_out(r, 0, &x->shape, x->dtype);
    mixt__set_out(r, 1, &scalar, MIXT_DTYPE_FP32);
    mixt__set_out(r, 2, &three, MIXT_DTYPE_FP32);
    mixt__set_out(r, 3, &w->shape, MIXT_DTYPE_FP32);
    if (at->bias)
        mixt__set_out(r, 4, &bias, MIXT_DTYPE_FP32);
    return MIXT_OK;
}

static double flops(const mixt__graph *graph, const mixt__node *node)
{
    const mixt__shape *x = &mixt__in(graph, node, 0)->shape, *w = &mixt__in(graph, node, 1)->shape;
    return (6.0 * (double)x->dims[1] + 4.0) * (double)(x->dims[0] * w->dims[0]);
}

static void describe(const void *attrs, char *text, size_t size)
{
    const mixt__head_attrs *at = attrs;
    snprintf(text, size, "%s%s", at->bias ? "+bias" : "", at->relu ? " relu_grad" : "");
}

const mixt__op mixt__op_head_step = {
    .name = "head_step",
    .precision = MIXT_CLASS_INSIDE,
    .work = MIXT_WORK_LOSS,
    .attrs_size = sizeof(mixt__head_attrs),
    .accumulate_outputs = 3u << 3,
    .matrix_work = true,
    .infer = infer,
    .flops = flops,
    .describe = describe,
};
