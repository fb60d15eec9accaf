/* Kullback-Leibler divergence from a teacher's scores to a student's, alone or beside the cross-entropy with labels:
 * what a student learns from.
 *
 *   loss of a row = weight · KL(softmax(teacher / T) ‖ softmax(logits / T)) + task · cross-entropy(logits, label)
 *
 * Forward: (logits (rows, C), teacher (rows, C')[, labels INT32 (rows)]) → (loss (), metrics (3) = {sum of losses,
 * correct, rows that count}, lse (rows, 3)). Correct are rows whose largest logit is the label's; without labels none.
 * Of both, the first `classes` of a row count, the rest is padding; without padding C = C'. A negative label leaves its
 * row out. lse is kept for the gradient: log-sum-exp of logits / T, of teacher / T, and of the logits.
 * Gradient: (logits, teacher, lse, metrics, seed[, labels]) → grad_logits, in the logits' format. The teacher is taken
 * as given: nothing flows back to it.
 * Both at once: kl_step (logits, teacher, seed[, labels[, all]]) → (grad_logits, loss, metrics); with `all`, the labels
 * of the whole batch of which this is a part, loss and gradient are divided by how many of those count. The gradient
 * may lie in the place of the logits or of the teacher's. Both are read in the formats that they come in, which may
 * differ: a student in FP32 learns from a teacher in BF16 without a cast.
 */
#include "ops/rules.h"

#include <stdio.h>

static mixt_status refuse(const mixt__graph *graph, const mixt__node *node, const char *why)
{
    char x[128], t[128];
    return mixt__fail(MIXT_ERROR_SHAPE, "KL divergence of logits %s from %s: %s",
                      mixt__shape_text(&mixt__in(graph, node, 0)->shape, x, sizeof x),
                      mixt__shape_text(&mixt__in(graph, node, 1)->shape, t, sizeof t), why);
}

static mixt_status check(const mixt__graph *graph, const mixt__node *node, const mixt__value *labels)
{
    const mixt__kl_attrs *at = node->attrs;
    const mixt__value *x = mixt__in(graph, node, 0), *t = mixt__in(graph, node, 1);
    int64_t rows = mixt__row_count(&x->shape), width = mixt__last_dim(&x->shape), other = mixt__last_dim(&t->shape);
    if (x->shape.rank < 2 || t->shape.rank < 2 || mixt__row_count(&t->shape) != rows)
        return refuse(graph, node, "both must have rows of classes, as many of them");
    if (at->loss.classes ? width < at->loss.classes || other < at->loss.classes : width != other)
        return refuse(graph, node, "the classes differ");
    if (labels && (labels->dtype != MIXT_DTYPE_INT32 || mixt__shape_count(&labels->shape) != rows))
        return refuse(graph, node, "there must be one INT32 label per row");
    return MIXT_OK;
}

static mixt_status infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    mixt__shape scalar = mixt__scalar_shape(), three = mixt__vector_shape(3);
    mixt__shape lse = {2, {mixt__row_count(&mixt__in(graph, node, 0)->shape), 3}};
    MIXT_TRY(check(graph, node, node->in_count > 2 ? mixt__in(graph, node, 2) : NULL));
    mixt__set_out(r, 0, &scalar, MIXT_DTYPE_FP32);
    mixt__set_out(r, 1, &three, MIXT_DTYPE_FP32);
    mixt__set_out(r, 2, &lse, MIXT_DTYPE_FP32);
    return MIXT_OK;
}

static mixt_status grad_infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__value *x = mixt__in(graph, node, 0);
    MIXT_TRY(check(graph, node, node->in_count > 5 ? mixt__in(graph, node, 5) : NULL));
    mixt__set_out(r, 0, &x->shape, x->dtype);
    return MIXT_OK;
}

static mixt_status step_infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__value *x = mixt__in(graph, node, 0);
    mixt__shape scalar = mixt__scalar_shape(), three = mixt__vector_shape(3);
    MIXT_TRY(check(graph, node, node->in_count > 3 ? mixt__in(graph, node, 3) : NULL));
    mixt__set_out(r, 0, &x->shape, x->dtype);
    mixt__set_out(r, 1, &scalar, MIXT_DTYPE_FP32);
    mixt__set_out(r, 2, &three, MIXT_DTYPE_FP32);
    return MIXT_OK;
}

/** Two softmaxes and the difference of their logarithms. */
static double flops(const mixt__graph *graph, const mixt__node *node)
{
    return 12.0 * (double)mixt__shape_count(&mixt__in(graph, node, 0)->shape);
}

static mixt_status grad(mixt__gradients *g, const mixt__node *node)
{
    int32_t in[6] = {node->in[0], node->in[1], node->out[2], node->out[1], mixt__gradient_of(g, node->out[0])};
    if (node->in_count > 2)
        in[5] = node->in[2];
    return mixt__gradient_emit(g, &mixt__op_kl_grad, node->attrs, in, node->in_count + 3, node->in);
}

static void describe(const void *attrs, char *text, size_t size)
{
    const mixt__kl_attrs *at = attrs;
    int n = snprintf(text, size, "temperature %g", (double)at->temperature);
    if (at->task != 0 && n > 0 && (size_t)n < size)
        snprintf(text + n, size - (size_t)n, " %g kl + %g cross_entropy", (double)at->weight, (double)at->task);
}

#define KL(name_, infer_, ...)                                                                                         \
    const mixt__op mixt__op_##name_ = {.name = #name_,                                                                 \
                                       .precision = MIXT_CLASS_INSIDE,                                                 \
                                       .work = MIXT_WORK_LOSS,                                                         \
                                       .attrs_size = sizeof(mixt__kl_attrs),                                           \
                                       .given_inputs = 1u << 1,                                                        \
                                       .infer = infer_,                                                                \
                                       .flops = flops,                                                                 \
                                       .describe = describe,                                                           \
                                       __VA_ARGS__}

KL(kl, infer, .grad = grad);
KL(kl_grad, grad_infer, .fp32_inputs = 7u << 2, .in_place_inputs = 3);
KL(kl_step, step_infer, .fp32_inputs = 1u << 2, .in_place_inputs = 3);
