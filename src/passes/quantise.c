/* Products in FP8: which there are, and their operands as pairs of numbers and a scale.
 *
 *   x, w (BF16) → matmul, arithmetic FP8    becomes    scaled_cast(x), scaled_cast(w) → matmul (→ BF16)
 *
 * A scale is the power of two that brings a tensor's largest magnitude of this very step below the format's end: no
 * number overflows, none is judged by an older step, and of a tensor of zeros it is 1. What flows backwards is rounded
 * to the backward format (E5M2, which has a wider range), what the forward pass made always to the forward one. Each
 * value is rounded once a format, in front of the first product that reads it so.
 *
 * Only linear layers: of convolutions, attention and recurrent cells no device has faster kernels. The gradient of a
 * weight stays in the carrier, BF16: it is what the update sees, and its operands would have to be rounded and
 * transposed once more. So does a product whose sizes FP8 units cannot take, the first one of a model and the one that
 * makes its logits, unless a rule names them.
 */
#include "passes/quantise.h"

#include "ops/attrs.h"
#include "ops/ops.h"
#include "passes/passes.h"

#include <string.h>

enum { UNIT = 16 }; // bytes in which FP8 units read a row

static mixt_status no_memory(void)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory to round operands to FP8");
}

/* ---- which products ---- */

/** The value whose numbers a value has, through what only moves or changes them one by one. */
static int32_t origin(const mixt__graph *graph, int32_t value)
{
    int32_t at = value;
    while (at && graph->values[at].producer >= 0 && graph->nodes[graph->values[at].producer].op->view)
        at = graph->nodes[graph->values[at].producer].in[0];
    return at;
}

static bool makes_logits(const mixt__graph *graph, const mixt__node *node)
{
    int32_t logits = graph->logits ? origin(graph, graph->logits) : 0;
    return logits && node->out[0] == logits;
}

const char *mixt__quantise_refuses(const mixt__graph *source, const mixt__node *node, bool named)
{
    if (!node->op->matrix_work)
        return NULL;
    if (!node->op->scaled_inputs)
        return "no FP8 kernels of this op";
    const mixt__value *b = &source->values[node->in[1]];
    if (b->role != MIXT_ROLE_PARAM || b->shape.rank != 2)
        return "FP8 is for linear layers";
    if (source->params[b->param].frozen_in != MIXT_DTYPE_NONE)
        return "its weight is frozen in another format";
    if (b->shape.dims[0] % UNIT || b->shape.dims[1] % UNIT)
        return "FP8 units take inputs and outputs in multiples of 16";
    if (!named && makes_logits(source, node))
        return "the last layer is not in FP8 unless a rule says so";
    if (!named && source->values[origin(source, node->in[0])].role == MIXT_ROLE_INPUT)
        return "the first layer is not in FP8 unless a rule says so";
    return NULL;
}

/* ---- their operands ---- */

typedef struct quantiser {
    mixt__graph *graph;
    int64_t first;                      // nodes before this one were there before
    int64_t *anchors, anchors_capacity; // by new node: the old one that it stands behind
    int32_t (*pairs)[MIXT_DTYPE_COUNT]; // by value: what it was rounded to
} quantiser;

/** The operand as a pair in front of node i, made there or earlier. */
static mixt_status rounded(quantiser *q, int64_t i, int32_t value, mixt_dtype dtype, int32_t *pair)
{
    mixt__graph *g = q->graph;
    mixt__scaled_cast_attrs at = {.dtype = dtype, .flush = true};
    int64_t index;
    *pair = q->pairs[value][dtype];
    if (*pair)
        return MIXT_OK;
    MIXT_TRY(mixt__graph_node(g, &mixt__op_scaled_cast, g->nodes[i].layer, &at, &value, 1, &index));
    if (!mixt__grow((void **)&q->anchors, &q->anchors_capacity, index - q->first, sizeof *q->anchors))
        return no_memory();
    q->anchors[index - q->first] = i - 1;
    mixt__node *made = &g->nodes[index];
    made->backward = g->nodes[i].backward;
    made->teacher = g->nodes[i].teacher;
    made->source = g->nodes[i].source;
    made->why = mixt__arena_printf(&g->arena, "operand in %s of %s", mixt_dtype_name(dtype),
                                   g->nodes[i].layer[0] ? g->nodes[i].layer : g->nodes[i].op->name);
    *pair = q->pairs[value][dtype] = made->out[0];
    g->values[made->out[0]].scales = (mixt__scales){MIXT_SCALE_TENSOR, 0, made->out[1]};
    return made->why ? MIXT_OK : no_memory();
}

/** Whether a value flows backwards. */
static bool is_gradient(const mixt__graph *graph, int32_t value)
{
    int32_t producer = graph->values[value].producer;
    return value == graph->seed || (producer >= 0 && graph->nodes[producer].backward);
}

static bool makes_weight_gradient(const mixt__graph *graph, const mixt__node *node)
{
    return graph->values[node->out[0]].role == MIXT_ROLE_GRAD;
}

static mixt_status leave(mixt__graph *graph, mixt__node *node)
{
    node->arithmetic = mixt__dtype_carrier(node->arithmetic);
    node->why = mixt__arena_printf(&graph->arena, "%s; gradients of weights are not in FP8", node->why);
    return node->why ? MIXT_OK : no_memory();
}

static mixt_status quantise(quantiser *q, int64_t i)
{
    mixt__graph *g = q->graph;
    mixt_dtype arithmetic = g->nodes[i].arithmetic, made = g->values[g->nodes[i].out[0]].dtype;
    mixt__matmul_attrs *at = mixt__arena_alloc(&g->arena, g->nodes[i].op->attrs_size);
    int32_t pairs[2];
    for (int k = 0; k < 2; k++) {
        int32_t value = g->nodes[i].in[k];
        bool own = is_gradient(g, value) || !g->nodes[i].backward;
        MIXT_TRY(rounded(q, i, value, own ? arithmetic : MIXT_DTYPE_FP8_E4M3, &pairs[k]));
    }
    if (!at)
        return no_memory();
    mixt__node *node = &g->nodes[i];
    memcpy(at, node->attrs, sizeof *at);
    at->made = at->wide ? mixt__dtype_carrier(arithmetic) : made;
    node->attrs = at;
    memcpy(node->in, pairs, sizeof pairs);
    node->arithmetic = g->values[pairs[0]].dtype;
    return MIXT_OK;
}

mixt_status mixt__pass_quantise(mixt__graph *graph)
{
    quantiser q = {.graph = graph, .first = graph->node_count};
    q.pairs = mixt__alloc((size_t)graph->value_count * sizeof *q.pairs);
    mixt_status status = q.pairs ? MIXT_OK : no_memory();
    for (int64_t i = 0; status == MIXT_OK && i < q.first; i++) {
        mixt__node *node = &graph->nodes[i];
        if (!mixt__format_scales_operands(node->arithmetic))
            continue;
        status = makes_weight_gradient(graph, node) ? leave(graph, node) : quantise(&q, i);
    }
    if (status == MIXT_OK && graph->node_count > q.first)
        status = mixt__graph_insert(graph, q.first, q.anchors);
    mixt__free(q.pairs);
    mixt__free(q.anchors);
    return status;
}
