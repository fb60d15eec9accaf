/* Learning which of two answers is better (DPO, Rafailov et al. 2023): a row holds a prompt with the chosen answer and
 * the prompt with the rejected one, and what counts is by how much more than the reference the model prefers the first.
 *
 *   margin = (log p(chosen) - log p(rejected)) - (the same of the reference)
 *   loss   = -log sigmoid(beta · margin), the mean over rows; a row is right where its margin is above 0
 *
 * The model's output is the margin, one number a row; with a reference of 0 it is the model's own score.
 */
#include "models/models.h"

#include "data/data.h"
#include "graph/builder.h"
#include "mixt/loss.h"

#include <string.h>

bool mixt__model_prefers(const mixt_data_info *data)
{
    return data->array_count == 6 && !strcmp(data->arrays[3].name, MIXT_SIDE_INPUT);
}

/** Loss, accuracy and the sum of rewards' margins, which metrics have behind their three figures. */
static void add_loss(mixt_builder *b, mixt_value margins, float beta)
{
    mixt_value rewards = mixt_affine(b, margins, beta, 0);
    mixt_loss_add(b, mixt_loss_bce(b, rewards, mixt_target(b, "target")), 1);
    if (b->status != MIXT_OK)
        return;
    mixt_value parts[2] = {{b->graph->metrics}, mixt_reshape(b, mixt_sum(b, rewards), 1, (int64_t[]){1})};
    b->graph->metrics = mixt_concat(b, parts, 2, 0).id;
}

mixt_value mixt__model_margins(mixt_builder *b, const mixt__model_sizes *s, mixt_value logits)
{
    if (!mixt_builder_has_input(b, MIXT_SIDE_INPUT))
        return logits;
    mixt_value losses =
        mixt_loss_cross_entropy_rows(b, logits, mixt_input(b, MIXT_NEXT_INPUT), s->rows > s->vocab ? s->vocab : 0);
    mixt_value sides = mixt_mul(b, losses, mixt_input(b, MIXT_SIDE_INPUT)); // (B, T)
    mixt_value score = mixt_affine(b, mixt_sum(b, sides, .axes = {1}, .axis_count = 1, .keep_dims = true), -1, 0);
    mixt_value margins = mixt_sub(b, score, mixt_input(b, MIXT_REFERENCE_INPUT)); // (B, 1)
    if (mixt_builder_has_loss(b))
        add_loss(b, margins, s->beta);
    return margins;
}
