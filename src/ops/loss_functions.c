/* Losses as functions of the builder, and how several become one: what mixt/loss.h offers.
 *
 * A single loss of weight 1 is the node itself, so that the passes find a classifier's head as they always did. Only a
 * sum has nodes of its own: scalars, FP32 like the losses.
 */
#include "mixt/loss.h"

#include "ops/rules.h"

#include <math.h>

/** @param in outputs and targets */
static mixt_value loss_node(mixt_builder *b, const mixt__op *op, const mixt__loss_attrs *attrs, const mixt_value *in,
                            int in_count)
{
    mixt__loss_attrs at = attrs ? *attrs : (mixt__loss_attrs){0};
    return mixt__builder_node(b, op, "loss", &at, in, in_count);
}

MIXT_PLAY(mixt_loss_cross_entropy_with, out[0] = mixt_loss_cross_entropy_with(b, in[0], in[1], options))

mixt_value mixt_loss_cross_entropy_with(mixt_builder *b, mixt_value logits, mixt_value labels,
                                        const mixt_cross_entropy_options *given)
{
    mixt_cross_entropy_options own = MIXT_OPTIONS(mixt_cross_entropy_options), *o = &own;
    if (!mixt__builder_options(b, "loss", mixt_cross_entropy_options, &own, given))
        return (mixt_value){0};
    MIXT_RECORD(b, mixt_loss_cross_entropy_with, .in = {logits, labels}, .in_count = 2, .options = &own,
                .options_size = sizeof own);
    if (!mixt__builder_number(b, "loss", ".smoothing", o->smoothing))
        return (mixt_value){0};
    if (o->smoothing >= 1 || o->classes < 0)
        return mixt__builder_error(b, MIXT_ERROR_ARGUMENT, "loss",
                                   ".smoothing %g must be below 1, .classes %lld not below 0", (double)o->smoothing,
                                   (long long)o->classes);
    mixt__loss_attrs at = {.smoothing = mixt_builder_training(b) ? o->smoothing : 0, .classes = o->classes};
    return loss_node(b, &mixt__op_cross_entropy, &at, (mixt_value[]){logits, labels}, 2);
}

MIXT_PLAY(mixt_loss_mse, out[0] = mixt_loss_mse(b, in[0], in[1]))
mixt_value mixt_loss_mse(mixt_builder *b, mixt_value outputs, mixt_value values)
{
    MIXT_RECORD(b, mixt_loss_mse, .in = {outputs, values}, .in_count = 2);
    return loss_node(b, &mixt__op_mse, NULL, (mixt_value[]){outputs, values}, 2);
}

MIXT_PLAY(mixt_loss_bce, out[0] = mixt_loss_bce(b, in[0], in[1]))
mixt_value mixt_loss_bce(mixt_builder *b, mixt_value logits, mixt_value values)
{
    MIXT_RECORD(b, mixt_loss_bce, .in = {logits, values}, .in_count = 2);
    return loss_node(b, &mixt__op_bce, NULL, (mixt_value[]){logits, values}, 2);
}

MIXT_PLAY(mixt_loss_ctc_with, out[0] = mixt_loss_ctc_with(b, in[0], in[1], in[2], options))

mixt_value mixt_loss_ctc_with(mixt_builder *b, mixt_value logits, mixt_value labels, mixt_value lengths,
                              const mixt_ctc_options *given)
{
    mixt_ctc_options own = MIXT_OPTIONS(mixt_ctc_options), *o = &own;
    if (!mixt__builder_options(b, "loss", mixt_ctc_options, &own, given))
        return (mixt_value){0};
    MIXT_RECORD(b, mixt_loss_ctc_with, .in = {logits, labels, lengths}, .in_count = 3,
                .inside = offsetof(mixt_ctc_options, frames), .options = &own, .options_size = sizeof own);
    if (o->stride < 1 || o->window < 1)
        return mixt__builder_error(b, MIXT_ERROR_ARGUMENT, "loss", ".stride %lld, .window %lld must be at least 1",
                                   (long long)o->stride, (long long)o->window);
    mixt__ctc_attrs at = {.blank = o->blank, .stride = o->stride, .window = o->window};
    mixt_value in[4] = {logits, labels, lengths, o->frames};
    return mixt__builder_node(b, &mixt__op_ctc, "loss", &at, in, o->frames.id ? 4 : 3);
}

/** Scores of a teacher, with what its builder functions have in common. */
static mixt_value kl_node(mixt_builder *b, const mixt__kl_attrs *at, const mixt_value *in, int in_count)
{
    if (!(at->temperature > 0) || isinf(at->temperature))
        return mixt__builder_error(b, MIXT_ERROR_ARGUMENT, "loss", ".temperature %g: must be finite and above 0",
                                   (double)at->temperature);
    if (!mixt__builder_number(b, "loss", ".smoothing", at->loss.smoothing))
        return (mixt_value){0};
    if (at->loss.smoothing >= 1 || at->loss.classes < 0)
        return mixt__builder_error(b, MIXT_ERROR_ARGUMENT, "loss",
                                   ".smoothing %g must be below 1, .classes %lld not below 0",
                                   (double)at->loss.smoothing, (long long)at->loss.classes);
    return mixt__builder_node(b, &mixt__op_kl, "loss", at, in, in_count);
}

MIXT_PLAY(mixt_loss_kl_with, out[0] = mixt_loss_kl_with(b, in[0], in[1], options))

mixt_value mixt_loss_kl_with(mixt_builder *b, mixt_value logits, mixt_value teacher, const mixt_kl_options *given)
{
    mixt_kl_options own = MIXT_OPTIONS(mixt_kl_options), *o = &own;
    if (!mixt__builder_options(b, "loss", mixt_kl_options, &own, given))
        return (mixt_value){0};
    MIXT_RECORD(b, mixt_loss_kl_with, .in = {logits, teacher}, .in_count = 2,
                .inside = offsetof(mixt_kl_options, labels), .options = &own, .options_size = sizeof own);
    mixt__kl_attrs at = {.loss.classes = o->classes, .weight = 1, .temperature = o->temperature};
    return kl_node(b, &at, (mixt_value[]){logits, teacher, o->labels}, o->labels.id ? 3 : 2);
}

MIXT_PLAY(mixt_loss_distill_with, out[0] = mixt_loss_distill_with(b, in[0], in[1], in[2], options))

mixt_value mixt_loss_distill_with(mixt_builder *b, mixt_value logits, mixt_value teacher, mixt_value labels,
                                  const mixt_distill_options *given)
{
    mixt_distill_options own = MIXT_OPTIONS(mixt_distill_options), *o = &own;
    if (!mixt__builder_options(b, "loss", mixt_distill_options, &own, given))
        return (mixt_value){0};
    MIXT_RECORD(b, mixt_loss_distill_with, .in = {logits, teacher, labels}, .in_count = 3, .options = &own,
                .options_size = sizeof own);
    float weight = o->weight, temperature = o->temperature;
    if (!(weight > 0 && weight <= 1))
        return mixt__builder_error(b, MIXT_ERROR_ARGUMENT, "loss", ".weight %g must be above 0 and at most 1",
                                   (double)o->weight);
    mixt__kl_attrs at = {.loss.classes = o->classes, .temperature = temperature};
    at.loss.smoothing = mixt_builder_training(b) ? o->smoothing : 0;
    at.weight = weight * temperature * temperature;
    at.task = 1 - weight;
    return kl_node(b, &at, (mixt_value[]){logits, teacher, labels}, 3);
}

MIXT_PLAY(mixt_loss_mean, out[0] = mixt_loss_mean(b, in[0], in[1]))
mixt_value mixt_loss_mean(mixt_builder *b, mixt_value each, mixt_value targets)
{
    MIXT_RECORD(b, mixt_loss_mean, .in = {each, targets}, .in_count = 2);
    return loss_node(b, &mixt__op_mean_loss, NULL, (mixt_value[]){each, targets}, targets.id ? 2 : 1);
}

/** The node that made a loss; NULL: it was made from ops. */
static const mixt__node *loss_maker(const mixt__graph *graph, int32_t loss)
{
    int32_t producer = graph->values[loss].producer;
    const mixt__node *node = producer >= 0 ? &graph->nodes[producer] : NULL;
    return node && node->op->work == MIXT_WORK_LOSS && node->out[0] == loss && node->out_count > 1 ? node : NULL;
}

/** The first loss says what outputs are and what is counted. @return the loss, or what stands for it. */
static mixt_value add_first(mixt_builder *b, mixt_value loss)
{
    if (!loss_maker(b->graph, loss.id))
        loss = mixt_loss_mean(b, loss, (mixt_value){0});
    if (b->status != MIXT_OK)
        return loss;
    const mixt__node *node = loss_maker(b->graph, loss.id);
    b->counted = node->out[1];
    b->graph->of_values = node->op == &mixt__op_mse || node->op == &mixt__op_bce || node->op == &mixt__op_mean_loss;
    b->graph->counts_correct = node->op == &mixt__op_cross_entropy || node->op == &mixt__op_bce ||
                               node->op == &mixt__op_ctc || (node->op == &mixt__op_kl && node->in_count > 2);
    return loss;
}

/** {sum of losses, correct, targets} of a sum: the last two of the first loss, the sum to go with them. */
static mixt_value metrics_of(mixt_builder *b, mixt_value total)
{
    mixt_value first = {b->counted};
    mixt_value count = mixt_slice(b, first, 0, 2, 3);
    mixt_value sum = mixt_mul(b, mixt_reshape(b, total, 1, (int64_t[]){1}), count);
    mixt_value parts[2] = {sum, mixt_slice(b, first, 0, 1, 3)};
    return mixt_concat(b, parts, 2, 0);
}

MIXT_PLAY(mixt_loss_add, mixt_loss_add(b, in[0], c->reals[0]))

void mixt_loss_add(mixt_builder *b, mixt_value loss, float weight)
{
    MIXT_RECORD_VOID(b, mixt_loss_add, NULL, .in = {loss}, .in_count = 1, .reals = {weight});
    if (!mixt__builder_ready(b, "loss", &loss, 1))
        return;
    if (!isfinite(weight) || mixt__shape_count(&b->graph->values[loss.id].shape) != 1) {
        mixt__builder_error(b, MIXT_ERROR_ARGUMENT, "loss",
                            "mixt_loss_add takes a loss of one number and a finite weight, got %lld and %g",
                            (long long)mixt__shape_count(&b->graph->values[loss.id].shape), (double)weight);
        return;
    }
    bool first = !b->counted;
    if (first)
        loss = add_first(b, loss);
    if (b->status != MIXT_OK || !b->has_loss)
        return;
    int32_t metrics = b->counted;
    mixt_value total = weight == 1 ? loss : mixt_affine(b, loss, weight, 0);
    if (!first)
        total = mixt_add(b, (mixt_value){b->graph->loss}, mixt_reshape(b, total, 0, NULL));
    if (!first || weight != 1)
        metrics = metrics_of(b, total).id;
    b->graph->loss = total.id;
    b->graph->metrics = metrics;
}
