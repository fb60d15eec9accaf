/* Finding the value that is meant, and putting two nodes behind the one that makes it. */
#include "passes/inject.h"

#include "graph/op.h"
#include "ops/attrs.h"
#include "ops/ops.h"
#include "passes/passes.h"

#include <string.h>

// Far enough that no weight of a working net is on the other side, near enough that FP32 does not notice.
static const float too_large = 0x1p24f, too_small = 0x1p-36f, too_large_at_any_scale = 0x1p40f;

bool mixt__injection_covers(const char *layer, const char *path)
{
    size_t length = strlen(layer);
    return !strncmp(layer, path, length) && (!path[length] || path[length] == '.');
}

static bool is_plain(const mixt__graph *g, int32_t value)
{
    const mixt__value *v = &g->values[value];
    return v->role == MIXT_ROLE_ACTIVATION && mixt_dtype_is_float(v->dtype) && value != g->loss && value != g->metrics;
}

/** The layer's last product; without one its first node that makes numbers. -1: it has neither. */
static int64_t find_product(const mixt__graph *g, const char *layer)
{
    int64_t product = -1, other = -1;
    for (int64_t i = 0; i < g->node_count; i++) {
        const mixt__node *n = &g->nodes[i];
        if (n->backward || !mixt__injection_covers(layer, n->layer) || !is_plain(g, n->out[0]))
            continue;
        if (n->op->matrix_work)
            product = i;
        else if (other < 0)
            other = i;
    }
    return product >= 0 ? product : other;
}

/** The gradient that a layer's backward product reads: the input that a backward node makes. */
static int32_t find_gradient(const mixt__graph *g, const char *layer, int64_t *reader)
{
    for (int64_t i = 0; i < g->node_count; i++) {
        const mixt__node *n = &g->nodes[i];
        for (int k = 0; n->backward && n->op->matrix_work && mixt__injection_covers(layer, n->layer) && k < n->in_count;
             k++) {
            int32_t value = n->in[k];
            if (is_plain(g, value) && g->nodes[g->values[value].producer].backward) {
                *reader = i;
                return value;
            }
        }
    }
    return 0;
}

/** @param format of what comes out */
static mixt_status multiply(mixt__graph *g, const char *layer, int32_t value, float factor, mixt_dtype format,
                            bool backward, int64_t *made)
{
    mixt__pointwise_attrs at = {.in_count = 1, .instr_count = 1, .out_count = 1, .outs = {1}, .out_dtypes = {format}};
    at.instrs[0] = (mixt__pw_instr){.code = MIXT_PW_AFFINE, .imm = factor};
    at.cast_by_hand = true; // so that it is rounded here and not merged with its neighbours
    MIXT_TRY(mixt__graph_node(g, &mixt__op_pointwise, layer, &at, &value, 1, made));
    g->nodes[*made].backward = backward;
    g->nodes[*made].why = "injected by faults";
    return MIXT_OK;
}

/** Puts `count` products behind the node that makes `value`; all who read it read the last of them from then on. */
static mixt_status insert(mixt__graph *g, const char *layer, int32_t value, const float *factors,
                          const mixt_dtype *formats, int count)
{
    int64_t first = g->node_count, made = -1;
    const int64_t anchors[] = {g->values[value].producer, g->values[value].producer};
    bool backward = g->nodes[anchors[0]].backward;
    int32_t last = value;
    for (int i = 0; i < count; i++) {
        MIXT_TRY(multiply(g, layer, last, factors[i], formats[i], backward, &made));
        last = g->nodes[made].out[0];
        g->values[last].gradient = g->values[value].gradient;
    }
    for (int64_t i = 0; i < first; i++)
        for (int k = 0; k < g->nodes[i].in_count; k++)
            if (g->nodes[i].in[k] == value)
                g->nodes[i].in[k] = last;
    if (g->logits == value)
        g->logits = last;
    return mixt__graph_insert(g, first, anchors);
}

static mixt_status no_value(const char *layer)
{
    return mixt__fail(MIXT_ERROR_ARGUMENT, "faults: layer '%s' has no product to inject a fault in", layer);
}

/** To the format that the layer multiplies in and back. */
static mixt_status insert_pair(mixt__graph *g, const char *layer, int32_t value, mixt_dtype low, float factor)
{
    const float factors[] = {factor, 1 / factor};
    const mixt_dtype formats[] = {mixt__dtype_carrier(low), g->values[value].dtype};
    return insert(g, layer, value, factors, formats, 2);
}

static mixt_status inject_forward(mixt__graph *g, const mixt__injection *p)
{
    int64_t node = find_product(g, p->layer);
    if (node < 0)
        return no_value(p->layer);
    const mixt__node *n = &g->nodes[node];
    int32_t value = n->out[0];
    if (p->kind == MIXT_INJECT_DEAD)
        return insert(g, n->layer, value, &(float){0}, &g->values[value].dtype, 1);
    mixt_dtype low = n->op->matrix_work ? n->arithmetic : g->values[value].dtype;
    return insert_pair(g, n->layer, value, low, p->kind == MIXT_INJECT_OVERFLOW ? too_large : too_small);
}

static mixt_status inject_backward(mixt__graph *g, const mixt__injection *p)
{
    int64_t reader;
    int32_t value = find_gradient(g, p->layer, &reader);
    if (!value)
        return no_value(p->layer);
    const mixt__node *n = &g->nodes[reader];
    return insert_pair(g, n->layer, value, n->arithmetic, too_large_at_any_scale);
}

mixt_status mixt__pass_inject(mixt__graph *graph, const mixt__injections *injections, bool differentiated)
{
    for (int i = 0; injections && i < injections->count; i++) {
        const mixt__injection *p = &injections->items[i];
        if ((p->kind == MIXT_INJECT_DEAD) == differentiated)
            continue;
        MIXT_TRY(p->kind == MIXT_INJECT_GRADIENT ? inject_backward(graph, p) : inject_forward(graph, p));
    }
    return MIXT_OK;
}
