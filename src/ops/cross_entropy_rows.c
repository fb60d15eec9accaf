/* Cross-entropy of each row for itself: what losses are made from that weigh rows, or compare sums of them.
 *
 * Forward: (logits, labels) → (losses, in the labels' shape, lse (rows)), both FP32 whatever the logits' format. A
 * negative label has the loss 0. Logits past attrs.classes are padding: they take no part, and their gradient is 0.
 * Gradient: (logits, labels, lse, grad of the losses) → grad_logits, in the logits' format.
 */
#include "mixt/loss.h"

#include "ops/rules.h"

static mixt_status infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__value *x = mixt__in(graph, node, 0), *t = mixt__in(graph, node, 1);
    int64_t rows = mixt__row_count(&x->shape);
    mixt__shape lse = mixt__vector_shape(rows);
    if (x->shape.rank < 2 || t->dtype != MIXT_DTYPE_INT32 || mixt__shape_count(&t->shape) != rows) {
        char tx[128], tt[128];
        return mixt__fail(MIXT_ERROR_SHAPE,
                          "cross-entropy of rows needs logits (rows, classes) and one INT32 label per row, got %s and "
                          "%s %s",
                          mixt__shape_text(&x->shape, tx, sizeof tx), mixt_dtype_name(t->dtype),
                          mixt__shape_text(&t->shape, tt, sizeof tt));
    }
    mixt__set_out(r, 0, &t->shape, MIXT_DTYPE_FP32);
    mixt__set_out(r, 1, &lse, MIXT_DTYPE_FP32);
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

static mixt_status grad(mixt__gradients *g, const mixt__node *node)
{
    int32_t in[4] = {node->in[0], node->in[1], node->out[1], mixt__gradient_of(g, node->out[0])};
    return mixt__gradient_emit(g, &mixt__op_cross_entropy_rows_grad, node->attrs, in, 4, node->in);
}

const mixt__op mixt__op_cross_entropy_rows = {.name = "cross_entropy_rows",
                                              .precision = MIXT_CLASS_INSIDE,
                                              .work = MIXT_WORK_LOSS,
                                              .attrs_size = sizeof(mixt__loss_attrs),
                                              .infer = infer,
                                              .grad = grad,
                                              .flops = flops};
const mixt__op mixt__op_cross_entropy_rows_grad = {.name = "cross_entropy_rows_grad",
                                                   .precision = MIXT_CLASS_INSIDE,
                                                   .work = MIXT_WORK_LOSS,
                                                   .attrs_size = sizeof(mixt__loss_attrs),
                                                   .fp32_inputs = 3u << 2,
                                                   .in_place_inputs = 1,
                                                   .infer = grad_infer,
                                                   .flops = flops};

MIXT_PLAY(mixt_loss_cross_entropy_rows, out[0] = mixt_loss_cross_entropy_rows(b, in[0], in[1], c->numbers[0]))

mixt_value mixt_loss_cross_entropy_rows(mixt_builder *b, mixt_value logits, mixt_value labels, int64_t classes)
{
    MIXT_RECORD(b, mixt_loss_cross_entropy_rows, .in = {logits, labels}, .in_count = 2, .numbers = {classes});
    if (classes < 0)
        return mixt__builder_error(b, MIXT_ERROR_ARGUMENT, "loss", "%lld classes: must not be below 0",
                                   (long long)classes);
    mixt__loss_attrs at = {.classes = classes};
    return mixt__builder_node(b, &mixt__op_cross_entropy_rows, "loss", &at, (mixt_value[]){logits, labels}, 2);
}
