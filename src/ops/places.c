/* The place of each sample in its batch, as a label: in a contrastive loss the right column of a row is its own.
 *
 * (targets INT32 (N)) → (places INT32 (N)): places[i] = i, and -1 where the target is negative: such a sample does not
 * count, as in every loss. Not differentiable.
 */
#include "mixt/loss.h"

#include "ops/rules.h"

static mixt_status infer(const mixt__graph *graph, const mixt__node *node, mixt__inferred *r)
{
    const mixt__value *t = mixt__in(graph, node, 0);
    if (t->dtype != MIXT_DTYPE_INT32 || t->shape.rank != 1) {
        char text[128];
        return mixt__fail(MIXT_ERROR_SHAPE, "places in a batch need one INT32 target per sample, got %s %s",
                          mixt_dtype_name(t->dtype), mixt__shape_text(&t->shape, text, sizeof text));
    }
    mixt__set_out(r, 0, &t->shape, MIXT_DTYPE_INT32);
    return MIXT_OK;
}

const mixt__op mixt__op_places = {
    .name = "places", .precision = MIXT_CLASS_INSIDE, .work = MIXT_WORK_LOSS, .in_place_inputs = 1, .infer = infer};

MIXT_PLAY(mixt_places, out[0] = mixt_places(b, in[0]))
mixt_value mixt_places(mixt_builder *b, mixt_value targets)
{
    MIXT_RECORD(b, mixt_places, .in = {targets}, .in_count = 1);
    return mixt__builder_node(b, &mixt__op_places, NULL, NULL, &targets, 1);
}
