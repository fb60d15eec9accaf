/* Losses: the mean over all targets that count, plus sums for evaluation; FP32 inside whatever the logits' format.
 *
 * Forward: (logits, target) → (loss (), metrics (3) = {sum of losses, correct, targets that count}[, lse (rows)]).
 * Gradient: (logits, target[, lse], metrics, seed) → grad_logits, in the logits' format; seed is the loss's gradient.
 * Both at once: cross_entropy_step (logits, target, seed[, all]) → (grad_logits, loss, metrics); with `all`, the
 * targets of the whole batch of which this is a part, loss and gradient are divided by how many of those count. Made
 * where the gradient follows at once and the backend has it fused. A negative label (cross-entropy) or a NaN target
 * (MSE, BCE) does not count: how a last, short batch is padded. Logits past attrs.classes are padding too: they take no
 * part in the loss and their gradient is 0. mean_loss is the mean of its elements themselves, for losses made from ops;
 * its targets, FP32 or INT32, only say what counts, and may be left out.
 */
#include "ops/rules.h"

static mixt_status check_labels(const mixt__graph *graph, const mixt__node *node)
{
    const mixt__value *x = mixt__in(graph, node, 0), *t = mixt__in(graph, node, 1);
    int64_t rows = mixt__row_count(&x->shape);
    if (x->shape.rank < 2 || t->dtype != MIXT_DTYPE_INT32 || mixt__shape_count(&t->shape) != rows) {
        char tx[128], tt[128];
        return mixt__fail(MIXT_ERROR_SHAPE,
                          "cross-entropy needs logits (rows, classes) and one INT32 label per row, got %s and %s %s",
                          mixt__shape_text(&x->shape, tx, sizeof tx), mixt_dtype_name(t->dtype),
                          mixt__shape_text(&t->shape, tt, sizeof tt));
    }
    return MIXT_OK;
}

static mixt_status class_infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    mixt__shape scalar = mixt__scalar_shape(), three = mixt__vector_shape(3);
    mixt__shape lse = mixt__vector_shape(mixt__row_count(&mixt__in(graph, node, 0)->shape));
    MIXT_TRY(check_labels(graph, node));
    mixt__set_out(r, 0, &scalar, MIXT_DTYPE_FP32);
    mixt__set_out(r, 1, &three, MIXT_DTYPE_FP32);
    mixt__set_out(r, 2, &lse, MIXT_DTYPE_FP32);
    return MIXT_OK;
}

static mixt_status step_infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__value *x = mixt__in(graph, node, 0);
    mixt__shape scalar = mixt__scalar_shape(), three = mixt__vector_shape(3);
    MIXT_TRY(check_labels(graph, node));
    mixt__set_out(r, 0, &x->shape, x->dtype);
    mixt__set_out(r, 1, &scalar, MIXT_DTYPE_FP32);
    mixt__set_out(r, 2, &three, MIXT_DTYPE_FP32);
    return MIXT_OK;
}

static mixt_status real_infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__value *x = mixt__in(graph, node, 0), *t = mixt__in(graph, node, 1);
    mixt__shape scalar = mixt__scalar_shape(), three = mixt__vector_shape(3);
    if (t->dtype != MIXT_DTYPE_FP32 || mixt__shape_count(&t->shape) != mixt__shape_count(&x->shape)) {
        char tx[128], tt[128];
        return mixt__fail(MIXT_ERROR_SHAPE, "%s needs one FP32 target per output, got outputs %s and targets %s %s",
                          node->op->name, mixt__shape_text(&x->shape, tx, sizeof tx), mixt_dtype_name(t->dtype),
                          mixt__shape_text(&t->shape, tt, sizeof tt));
    }
    mixt__set_out(r, 0, &scalar, MIXT_DTYPE_FP32);
    mixt__set_out(r, 1, &three, MIXT_DTYPE_FP32);
    return MIXT_OK;
}

/** Without targets every element counts. */
static mixt_status mean_infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__value *x = mixt__in(graph, node, 0), *t = node->in_count > 1 ? mixt__in(graph, node, 1) : NULL;
    mixt__shape scalar = mixt__scalar_shape(), three = mixt__vector_shape(3);
    if (t && ((t->dtype != MIXT_DTYPE_FP32 && t->dtype != MIXT_DTYPE_INT32) ||
              mixt__shape_count(&t->shape) != mixt__shape_count(&x->shape))) {
        char tx[128], tt[128];
        return mixt__fail(MIXT_ERROR_SHAPE, "a mean loss needs one FP32 or INT32 target per element, got %s and %s %s",
                          mixt__shape_text(&x->shape, tx, sizeof tx), mixt_dtype_name(t->dtype),
                          mixt__shape_text(&t->shape, tt, sizeof tt));
    }
    mixt__set_out(r, 0, &scalar, MIXT_DTYPE_FP32);
    mixt__set_out(r, 1, &three, MIXT_DTYPE_FP32);
    return MIXT_OK;
}

static mixt_status grad_infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__value *x = mixt__in(graph, node, 0);
    mixt__set_out(r, 0, &x->shape, x->dtype);
    return MIXT_OK;
}

static double flops(const mixt__graph *graph, const mixt__node *node)
{
    return 4.0 * (double)mixt__shape_count(&mixt__in(graph, node, 0)->shape);
}

static mixt_status class_grad(mixt__gradients *g, const mixt__node *node)
{
    int32_t in[5] = {node->in[0], node->in[1], node->out[2], node->out[1], mixt__gradient_of(g, node->out[0])};
    return mixt__gradient_emit(g, &mixt__op_cross_entropy_grad, node->attrs, in, 5, node->in);
}

static mixt_status real_grad(mixt__gradients *g, const mixt__node *node)
{
    const mixt__op *op = node->op == &mixt__op_mse   ? &mixt__op_mse_grad
                         : node->op == &mixt__op_bce ? &mixt__op_bce_grad
                                                     : &mixt__op_mean_loss_grad;
    int32_t in[4] = {node->in[0], node->in[1], node->out[1], mixt__gradient_of(g, node->out[0])};
    return mixt__gradient_emit(g, op, node->attrs, in, 4, node->in);
}

/** The same without targets: (x, metrics, seed). */
static mixt_status mean_grad(mixt__gradients *g, const mixt__node *node)
{
    int32_t in[3] = {node->in[0], node->out[1], mixt__gradient_of(g, node->out[0])};
    if (node->in_count > 1)
        return real_grad(g, node);
    return mixt__gradient_emit(g, &mixt__op_mean_loss_grad, node->attrs, in, 3, node->in);
}

#define LOSS(name_, infer_, grad_)                                                                                     \
    const mixt__op mixt__op_##name_ = {.name = #name_,                                                                 \
                                       .precision = MIXT_CLASS_INSIDE,                                                 \
                                       .work = MIXT_WORK_LOSS,                                                         \
                                       .attrs_size = sizeof(mixt__loss_attrs),                                         \
                                       .infer = infer_,                                                                \
                                       .grad = grad_,                                                                  \
                                       .flops = flops}
#define LOSS_GRAD(name_, infer_, fp32_)                                                                                \
    const mixt__op mixt__op_##name_ = {.name = #name_,                                                                 \
                                       .precision = MIXT_CLASS_INSIDE,                                                 \
                                       .work = MIXT_WORK_LOSS,                                                         \
                                       .attrs_size = sizeof(mixt__loss_attrs),                                         \
                                       .fp32_inputs = fp32_,                                                           \
                                       .in_place_inputs = 1,                                                           \
                                       .infer = infer_,                                                                \
                                       .flops = flops}

LOSS(cross_entropy, class_infer, class_grad);
LOSS(mse, real_infer, real_grad);
LOSS(bce, real_infer, real_grad);
LOSS(mean_loss, mean_infer, mean_grad);
LOSS_GRAD(cross_entropy_grad, grad_infer, 7u << 2);
LOSS_GRAD(cross_entropy_step, step_infer, 1u << 2);
LOSS_GRAD(mse_grad, grad_infer, 3u << 2);
LOSS_GRAD(bce_grad, grad_infer, 3u << 2);
LOSS_GRAD(mean_loss_grad, grad_infer, 7u << 1);
