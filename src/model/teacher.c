/* A teacher inside the training step of a model: its layers as they predict, with parameters of their own that nobody
 * trains, and one loss of both.
 *
 * Its nodes go in front of the model's: what they leave behind is one tensor of scores when the model's own activations
 * begin to pile up. Its parameters stand behind the model's in the table, so that who counts only those never meets
 * them: checkpoints, exports, evaluation. The model's own part of the graph is as without a teacher.
 */
#include "model/model.h"

#include "graph/builder.h"
#include "mixt/loss.h"

#include <string.h>

/** The nodes from `first` on go before the others. */
static mixt_status move_to_front(mixt__graph *graph, int64_t first)
{
    int64_t count = graph->node_count - first;
    mixt__node *moved = mixt__alloc((size_t)(count + 1) * sizeof *moved);
    if (!moved)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the layers of a teacher");
    memcpy(moved, graph->nodes + first, (size_t)count * sizeof *moved);
    memmove(graph->nodes + count, graph->nodes, (size_t)first * sizeof *moved);
    memcpy(graph->nodes, moved, (size_t)count * sizeof *moved);
    mixt__free(moved);
    for (int64_t i = 0; i < graph->node_count; i++)
        for (int o = 0; o < graph->nodes[i].out_count; o++)
            graph->values[graph->nodes[i].out[o]].producer = (int32_t)i;
    return MIXT_OK;
}

/** The layers of the teacher as they predict, in a scope of their own. */
static mixt_status build_layers(mixt__graph *graph, const mixt__teacher *teacher, mixt_value *scores)
{
    mixt_builder b;
    bool of_values = graph->of_values, counts_correct = graph->counts_correct;
    mixt__builder_start(&b, graph, teacher->user);
    graph->training = false;
    mixt_scope_push(&b, MIXT_TEACHER_SCOPE);
    *scores = teacher->fn(&b, (mixt_value){graph->input});
    mixt_scope_pop(&b);
    graph->training = true;
    graph->of_values = of_values; // a loss that it passed over has said so
    graph->counts_correct = counts_correct;
    return mixt__builder_finish(&b);
}

mixt_status mixt__teacher_build(mixt_builder *b, const mixt__model *model, mixt_value logits)
{
    const mixt__teacher *teacher = model->teacher;
    mixt__graph *graph = b->graph;
    int64_t nodes = graph->node_count, params = graph->param_count;
    mixt_value scores;
    if (model->loss != MIXT_LOSS_CROSS_ENTROPY)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "a teacher needs a classifier, and this model is not one");
    MIXT_TRY(build_layers(graph, teacher, &scores));
    for (int64_t i = params; i < graph->param_count; i++)
        graph->params[i].teacher = graph->params[i].frozen = true;
    for (int64_t i = nodes; i < graph->node_count; i++)
        graph->nodes[i].teacher = true;
    MIXT_TRY(move_to_front(graph, nodes));
    mixt_distill_options o =
        MIXT_OPTIONS(mixt_distill_options, .weight = teacher->weight, .temperature = teacher->temperature);
    o.smoothing = model->label_smoothing;
    o.classes = model->classes ? model->classes : teacher->classes;
    mixt_loss_add(b, mixt_loss_distill_with(b, logits, scores, mixt_target(b, NULL), &o), 1);
    return mixt__builder_finish(b);
}
