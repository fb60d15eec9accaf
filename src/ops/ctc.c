/* Connectionist temporal classification (Graves et al. 2006): how likely a row of labels is, over all ways to place it
 * on the frames of a longer row of outputs.
 *
 * Forward: (logits (B, T, C), labels INT32 (B, S), lengths INT32 (B)[, frames INT32 (B)]) → (loss (), metrics (3),
 * alpha (B, T, 2S + 1)). Sample b has lengths[b] of the S labels and frames[b] of the T frames, without `frames` all of
 * them; frames may be counted in a finer measure, of which `stride` are one of the logits' frames, which has seen
 * `window` of them: of n there are ceil((n - window + 1) / stride) of the logits'. Its loss is -log of the probability
 * of its labels; the loss is the mean over samples that count. A negative length does not count: how a last, short
 * batch is padded. Nor do samples that cannot be: labels that need more frames than there are (one each, and one more
 * between two that are the same), or that are no classes, or the blank; their loss would be infinite, and like
 * zero_infinity of others they give 0 and no gradient. An empty row of labels can be: all frames are blank. metrics =
 * {sum of losses, samples whose most likely frames spell the labels, samples that count}.
 *
 * alpha is kept for the gradient: the logarithm of how likely the first frames end at state s (2i: the blank before
 * label i, 2i + 1: label i), less the largest of its frame, so that long rows lose no bits. FP32 whatever the logits
 * are; MIXT_CTC_NEVER where the probability is 0 or nobody looks.
 * Gradient: (logits, labels, lengths, alpha, metrics, seed[, frames]) → grad_logits: softmax less the share of each
 * class's states, 0 in frames past the sample's.
 */
#include "ops/rules.h"

#include <stdio.h>

static mixt_status refuse(const mixt__graph *graph, const mixt__node *node)
{
    char text[640] = "";
    size_t used = 0;
    for (int i = 0; i < node->in_count; i++) {
        const mixt__value *v = mixt__in(graph, node, i);
        char shape[128];
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s %s", i ? ", " : "", mixt_dtype_name(v->dtype),
                                 mixt__shape_text(&v->shape, shape, sizeof shape));
    }
    return mixt__fail(MIXT_ERROR_SHAPE,
                      "CTC needs logits (batch, frames, classes), INT32 labels (batch, labels), and one INT32 per "
                      "sample for each length; got %s",
                      text);
}

static mixt_status infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__value *x = mixt__in(graph, node, 0), *labels = mixt__in(graph, node, 1);
    const mixt__ctc_attrs *at = node->attrs;
    int64_t batch = x->shape.dims[0];
    bool fits = x->shape.rank == 3 && labels->shape.rank == 2 && labels->shape.dims[0] == batch;
    for (int i = 1; i < node->in_count; i++)
        fits = fits && mixt__in(graph, node, i)->dtype == MIXT_DTYPE_INT32;
    for (int i = 2; i < node->in_count; i++)
        fits = fits && mixt__shape_count(&mixt__in(graph, node, i)->shape) == batch;
    if (!fits)
        return refuse(graph, node);
    if (at->blank < 0 || at->blank >= x->shape.dims[2])
        return mixt__fail(MIXT_ERROR_SHAPE, "CTC: class %lld for blanks, but there are %lld", (long long)at->blank,
                          (long long)x->shape.dims[2]);
    mixt__shape scalar = mixt__scalar_shape(), three = mixt__vector_shape(3);
    mixt__shape alpha = {3, {batch, x->shape.dims[1], 2 * labels->shape.dims[1] + 1}};
    mixt__set_out(r, 0, &scalar, MIXT_DTYPE_FP32);
    mixt__set_out(r, 1, &three, MIXT_DTYPE_FP32);
    mixt__set_out(r, 2, &alpha, MIXT_DTYPE_FP32);
    return MIXT_OK;
}

static mixt_status grad_infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__value *x = mixt__in(graph, node, 0);
    mixt__set_out(r, 0, &x->shape, x->dtype);
    return MIXT_OK;
}

/** An exponential for each logit, and about three for each state of each frame. */
static double flops(const mixt__graph *graph, const mixt__node *node)
{
    const mixt__shape *x = &mixt__in(graph, node, 0)->shape, *labels = &mixt__in(graph, node, 1)->shape;
    return 4.0 * (double)mixt__shape_count(x) +
           12.0 * (double)(x->dims[0] * x->dims[1]) * (double)(2 * labels->dims[1] + 1);
}

static mixt_status grad(mixt__gradients *g, const mixt__node *node)
{
    int32_t in[7] = {node->in[0], node->in[1], node->in[2], node->out[2], node->out[1]};
    in[5] = mixt__gradient_of(g, node->out[0]);
    if (node->in_count > 3)
        in[6] = node->in[3];
    return mixt__gradient_emit(g, &mixt__op_ctc_grad, node->attrs, in, node->in_count + 3, node->in);
}

const mixt__op mixt__op_ctc = {.name = "ctc",
                               .precision = MIXT_CLASS_INSIDE,
                               .work = MIXT_WORK_LOSS,
                               .attrs_size = sizeof(mixt__ctc_attrs),
                               .infer = infer,
                               .grad = grad,
                               .flops = flops};

const mixt__op mixt__op_ctc_grad = {.name = "ctc_grad",
                                    .precision = MIXT_CLASS_INSIDE,
                                    .work = MIXT_WORK_LOSS,
                                    .attrs_size = sizeof(mixt__ctc_attrs),
                                    .fp32_inputs = 7u << 3,
                                    .in_place_inputs = 1,
                                    .infer = grad_infer,
                                    .flops = flops};
