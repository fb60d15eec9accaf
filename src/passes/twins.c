/* Putting twins beside nodes.
 *
 * New nodes are appended to the graph and then moved behind the node that they belong to: a twin behind its node, a
 * weighed difference behind the node that makes the weight. So a twin's result lives no longer than it must.
 */
#include "passes/twins.h"

#include "graph/op.h"
#include "ops/attrs.h"
#include "ops/ops.h"

#include <string.h>

enum { INPUTS_MAX = 16 };

typedef struct work {
    mixt__graph *graph;
    const int32_t *gradients; // by value of the forward graph
    int64_t forward_values;   // how many of them there are
    mixt__twins *twins;
    int64_t first;                        // nodes before this one were there before
    int64_t *anchors, anchors_capacity;   // by new node: the old one that it stands behind
    int64_t anchor;                       // of nodes made now
    int32_t (*low_of)[MIXT_TWIN_FORMATS]; // by value of before: what it is where the node `root_of` is low; 0: the same
    int32_t (*root_of)[MIXT_TWIN_FORMATS]; // source of that node
    int32_t *stats_of;                     // by value of before: 1 + tag of its statistics; 0: none
} work;

static mixt_status no_memory(void)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the twins of a graph");
}

/** Appends a node that will stand behind w->anchor. */
static mixt_status append(work *w, const mixt__op *op, const mixt__node *like, const void *attrs, const int32_t *in,
                          int count, int64_t *index)
{
    MIXT_TRY(mixt__graph_node(w->graph, op, like->layer, attrs, in, count, index));
    if (!mixt__grow((void **)&w->anchors, &w->anchors_capacity, *index - w->first, sizeof *w->anchors))
        return no_memory();
    w->anchors[*index - w->first] = w->anchor;
    mixt__node *made = &w->graph->nodes[*index];
    made->backward = like->backward;
    made->why = "inspects a value";
    return MIXT_OK;
}

/* ---- statistics ---- */

/** Whether this is a value that a policy may give another format. */
static bool is_typed(const work *w, int32_t value)
{
    const mixt__value *v = &w->graph->values[value];
    return v->dtype == MIXT_DTYPE_FP32 &&
           (v->role == MIXT_ROLE_ACTIVATION || v->role == MIXT_ROLE_INPUT || v->role == MIXT_ROLE_PARAM);
}

/** The tag of a value's statistics, which are taken where it is first used. */
static mixt_status stats_of(work *w, const mixt__node *node, int32_t value, int32_t *tag)
{
    mixt__twins *t = w->twins;
    mixt__tensor_stats_attrs at = {.tag = (int32_t)t->stats_count};
    int64_t index;
    if (w->stats_of[value]) {
        *tag = w->stats_of[value] - 1;
        return MIXT_OK;
    }
    if (!mixt__grow((void **)&t->stats, &t->stats_capacity, t->stats_count, sizeof *t->stats))
        return no_memory();
    for (int f = 0; f < t->format_count; f++)
        at.targets[f] = t->formats[f];
    MIXT_TRY(append(w, &mixt__op_tensor_stats, node, &at, &value, 1, &index));
    const mixt__node *made = &w->graph->nodes[index];
    bool gradient =
        w->graph->values[value].role == MIXT_ROLE_ACTIVATION && node->backward && value >= w->forward_values;
    t->stats[t->stats_count] = (mixt__twin_stats){made->out[0], made->out[1], gradient};
    w->graph->values[made->out[0]].output = w->graph->values[made->out[1]].output = true;
    *tag = (int32_t)t->stats_count++;
    w->stats_of[value] = *tag + 1;
    return MIXT_OK;
}

/* ---- twins ---- */

static mixt_status cast(work *w, const mixt__node *node, int32_t value, mixt_dtype dtype, int32_t *out)
{
    mixt__pointwise_attrs at = {.in_count = 1, .instr_count = 1, .out_count = 1, .outs = {1}, .out_dtypes = {dtype}};
    int64_t index;
    at.instrs[0].code = MIXT_PW_COPY;
    MIXT_TRY(append(w, &mixt__op_pointwise, node, &at, &value, 1, &index));
    *out = w->graph->nodes[index].out[0];
    return MIXT_OK;
}

/** The attributes of a twin: those of its node, but that running statistics stay as they are, values that a loss
 *  compares with real numbers are made in FP32, and rows of a table of pairs in the twin's format. */
static const void *attrs_of(const work *w, const mixt__node *node, mixt_dtype stored)
{
    bool norm = node->op == &mixt__op_batch_norm, low = stored != MIXT_DTYPE_FP32;
    bool wide = low && w->graph->of_values && node->out[0] == w->graph->logits && node->op->widen;
    bool gives = low && node->op->give && mixt__graph_has_pair(w->graph, node->in, node->in_count);
    if (!norm && !wide && !gives)
        return node->attrs;
    void *own = mixt__arena_alloc(&w->graph->arena, node->op->attrs_size + 1);
    if (!own)
        return NULL;
    memcpy(own, node->attrs, node->op->attrs_size);
    if (norm)
        ((mixt__norm_attrs *)own)->momentum = 0;
    if (wide)
        node->op->widen(own);
    if (gives)
        node->op->give(own, stored);
    return own;
}

/** The node once more, on other inputs. */
static mixt_status repeat(work *w, const mixt__node *node, mixt_dtype format, const int32_t *in, int64_t *index)
{
    const void *attrs = attrs_of(w, node, mixt__dtype_carrier(format));
    if (node->op->attrs_size && !attrs)
        return no_memory();
    MIXT_TRY(append(w, node->op, node, attrs, in, node->in_count, index));
    mixt__node *made = &w->graph->nodes[*index];
    made->arithmetic = mixt__node_arithmetic(w->graph, made, node->backward ? mixt__format_backward(format) : format);
    for (int o = 0; o < made->out_count; o++)
        if (w->graph->values[node->out[o]].role == MIXT_ROLE_GRAD)
            w->graph->values[made->out[o]].dtype = MIXT_DTYPE_FP32; // as the gradient that it stands for
    return MIXT_OK;
}

/** The node once more, in a format. FP32: as it is, for a reference of its own. */
static mixt_status make_twin(work *w, const mixt__node *node, mixt_dtype format, int64_t *index)
{
    mixt_dtype stored = mixt__dtype_carrier(format);
    int32_t in[INPUTS_MAX];
    for (int k = 0; k < node->in_count; k++) {
        in[k] = node->in[k];
        if (stored != MIXT_DTYPE_FP32 && is_typed(w, in[k]) && !mixt__bit(node->op->fp32_inputs, k))
            MIXT_TRY(cast(w, node, in[k], stored, &in[k]));
    }
    return repeat(w, node, format, in, index);
}

static mixt_status compare(work *w, const mixt__node *node, const mixt__twin *twin, int32_t reference, int32_t other,
                           int32_t weight)
{
    mixt__twins *t = w->twins;
    mixt__tensor_error_attrs at = {.weight = weight != 0, .tag = (int32_t)t->count};
    const int32_t in[3] = {reference, other, weight};
    int64_t index;
    if (!mixt__grow((void **)&t->twins, &t->capacity, t->count, sizeof *t->twins))
        return no_memory();
    MIXT_TRY(append(w, &mixt__op_tensor_error, node, &at, in, 2 + at.weight, &index));
    const mixt__node *made = &w->graph->nodes[index];
    w->graph->values[made->out[0]].output = w->graph->values[made->out[1]].output = true;
    mixt__twin *own = &t->twins[t->count++];
    *own = *twin;
    own->numbers = made->out[0];
    own->counts = made->out[1];
    return MIXT_OK;
}

/** Notes a value that the twin has in its format. */
static mixt_status note_value(work *w, const mixt__node *node, int32_t value, mixt__twin *twin)
{
    if (!is_typed(w, value) || twin->value_count == MIXT_TWIN_VALUES)
        return MIXT_OK;
    return stats_of(w, node, value, &twin->values[twin->value_count++]);
}

/** The gradient of a value of the forward graph that has its shape and format; 0: none. */
static int32_t weight_of(const work *w, int32_t value)
{
    int32_t gradient = value < w->forward_values ? w->gradients[value] : 0;
    const mixt__value *v = &w->graph->values[value];
    if (!gradient || w->graph->values[gradient].dtype != MIXT_DTYPE_FP32 ||
        !mixt__shape_equal(&w->graph->values[gradient].shape, &v->shape))
        return 0;
    return gradient;
}

/** A difference that is weighed waits for its weight. */
static void anchor_at(work *w, int64_t node, int32_t weight)
{
    int64_t producer = weight ? w->graph->values[weight].producer : -1;
    w->anchor = producer > node ? producer : node;
}

static mixt_status forward_twin(work *w, int64_t i, int format)
{
    mixt__node node = w->graph->nodes[i]; // a copy: the array grows
    mixt__twin twin = {.kind = MIXT_TWIN_FORWARD, .format = format, .source = node.source, .param = -1};
    int32_t weight = weight_of(w, node.out[0]);
    int64_t made;
    w->anchor = i;
    for (int k = 0; k < node.in_count; k++)
        if (!mixt__bit(node.op->fp32_inputs, k))
            MIXT_TRY(note_value(w, &node, node.in[k], &twin));
    MIXT_TRY(note_value(w, &node, node.out[0], &twin));
    MIXT_TRY(make_twin(w, &node, w->twins->formats[format], &made));
    if (node.op->matrix_work || !w->low_of[node.out[0]][format]) {
        w->low_of[node.out[0]][format] = w->graph->nodes[made].out[0];
        w->root_of[node.out[0]][format] = node.source;
    }
    anchor_at(w, i, weight);
    return compare(w, &node, &twin, node.out[0], w->graph->nodes[made].out[0], weight);
}

/** What a node without matrix work gives where the node that made its input is low. Of several such inputs the one
 *  made last counts. */
static mixt_status follow(work *w, int64_t i, int format)
{
    mixt__node node = w->graph->nodes[i];
    int32_t in[INPUTS_MAX], last = -1;
    int64_t made;
    for (int k = 0; k < node.in_count; k++) {
        in[k] = node.in[k];
        bool low = in[k] < w->forward_values && w->low_of[in[k]][format];
        if (low && (last < 0 || w->graph->values[in[k]].producer > w->graph->values[in[last]].producer))
            last = k;
    }
    if (last < 0)
        return MIXT_OK;
    w->anchor = i;
    int32_t from = in[last];
    for (int k = 0; k < node.in_count; k++) // an op that reads one format gets one; a program reads any mixture
        if (node.in[k] == from)
            in[k] = w->low_of[from][format];
        else if (node.op != &mixt__op_pointwise && is_typed(w, in[k]) && !mixt__bit(node.op->fp32_inputs, k))
            return MIXT_OK;
    MIXT_TRY(repeat(w, &node, w->twins->formats[format], in, &made));
    for (int o = 0; o < node.out_count; o++) {
        w->low_of[node.out[o]][format] = w->graph->nodes[made].out[o];
        w->root_of[node.out[o]][format] = w->root_of[from][format];
    }
    return MIXT_OK;
}

/** The rounding of the parameters that matrix work reads. */
static mixt_status weight_twins(work *w, int64_t i, int format)
{
    mixt__node node = w->graph->nodes[i];
    mixt_dtype stored = mixt__dtype_carrier(w->twins->formats[format]);
    for (int k = 0; k < node.in_count && stored != MIXT_DTYPE_FP32; k++) {
        const mixt__value *v = &w->graph->values[node.in[k]];
        mixt__twin twin = {.kind = MIXT_TWIN_WEIGHT, .format = format, .source = node.source, .param = v->param};
        int32_t low, grad = v->role == MIXT_ROLE_PARAM ? w->graph->params[v->param].grad : 0;
        if (!grad || mixt__bit(node.op->fp32_inputs, k))
            continue;
        w->anchor = w->first - 1; // its gradient is whole at the end only
        MIXT_TRY(cast(w, &node, node.in[k], stored, &low));
        MIXT_TRY(compare(w, &node, &twin, node.in[k], low, grad));
    }
    return MIXT_OK;
}

static mixt_status rounded_twin(work *w, int64_t i, int format)
{
    mixt__node node = w->graph->nodes[i];
    mixt__twin twin = {.kind = MIXT_TWIN_ROUNDED, .format = format, .source = node.source, .param = -1};
    int32_t weight = weight_of(w, node.out[0]), low;
    if (mixt__dtype_carrier(w->twins->formats[format]) == MIXT_DTYPE_FP32)
        return MIXT_OK;
    w->anchor = i;
    MIXT_TRY(note_value(w, &node, node.out[0], &twin));
    MIXT_TRY(cast(w, &node, node.out[0], w->twins->formats[format], &low));
    anchor_at(w, i, weight);
    return compare(w, &node, &twin, node.out[0], low, weight);
}

/** One output of a backward node against its twin's. */
static mixt_status compare_gradient(work *w, const mixt__node *node, int64_t made, int o, mixt__twin twin)
{
    int32_t reference = node->out[o], low = w->graph->nodes[made].out[o];
    const mixt__value *v = &w->graph->values[reference];
    if (v->role == MIXT_ROLE_GRAD) {
        int64_t own;
        twin.kind = MIXT_TWIN_PARAM;
        twin.param = v->param;
        if (mixt__bit(node->accumulates, o)) { // that gradient has other parts too: this one's once more
            MIXT_TRY(make_twin(w, node, MIXT_DTYPE_FP32, &own));
            reference = w->graph->nodes[own].out[o];
        }
    } else if (!mixt_dtype_is_float(v->dtype) || (o > 0 && w->graph->values[low].dtype == MIXT_DTYPE_FP32)) {
        return MIXT_OK;
    }
    return compare(w, node, &twin, reference, low, 0);
}

static mixt_status backward_twin(work *w, int64_t i, int format)
{
    mixt__node node = w->graph->nodes[i];
    mixt__twin twin = {.kind = MIXT_TWIN_BACKWARD, .format = format, .source = node.source, .param = -1};
    int64_t made;
    w->anchor = i;
    for (int k = 0; k < node.in_count; k++)
        if (!mixt__bit(node.op->fp32_inputs, k))
            MIXT_TRY(note_value(w, &node, node.in[k], &twin));
    for (int o = 0; o < node.out_count; o++)
        MIXT_TRY(note_value(w, &node, node.out[o], &twin));
    MIXT_TRY(make_twin(w, &node, w->twins->formats[format], &made));
    for (int o = 0; o < node.out_count; o++)
        MIXT_TRY(compare_gradient(w, &node, made, o, twin));
    return MIXT_OK;
}

/** A backward node without matrix work, where what it saved from the forward pass is that of a low node. */
static mixt_status slope_twin(work *w, int64_t i, int format)
{
    mixt__node node = w->graph->nodes[i];
    int32_t in[INPUTS_MAX], root = -1;
    int64_t made;
    for (int k = 0; k < node.in_count; k++) {
        in[k] = node.in[k];
        bool low = in[k] < w->forward_values && w->low_of[in[k]][format];
        if (!low || (root >= 0 && w->root_of[in[k]][format] != root))
            continue;
        root = w->root_of[in[k]][format];
        in[k] = w->low_of[node.in[k]][format];
        if (w->graph->values[in[k]].dtype != MIXT_DTYPE_FP32 && node.op != &mixt__op_pointwise) {
            w->anchor = i;
            MIXT_TRY(cast(w, &node, in[k], MIXT_DTYPE_FP32, &in[k]));
        }
    }
    if (root < 0)
        return MIXT_OK;
    mixt__twin twin = {.kind = MIXT_TWIN_SLOPE, .format = format, .source = root, .param = -1};
    w->anchor = i;
    MIXT_TRY(repeat(w, &node, MIXT_DTYPE_FP32, in, &made));
    if (w->graph->values[w->graph->nodes[made].out[0]].dtype != w->graph->values[node.out[0]].dtype)
        return MIXT_OK;
    return compare(w, &node, &twin, node.out[0], w->graph->nodes[made].out[0], 0);
}

/** Whether a node computes something that a format changes. */
static bool has_twin(const mixt__graph *graph, const mixt__node *n)
{
    if (n->op->view || n->source < 0 || n->op->work == MIXT_WORK_LOSS || n->op == &mixt__op_accumulate ||
        n->in_count > INPUTS_MAX || n->op == &mixt__op_slice_grad)
        return false;
    return graph->values[n->out[0]].dtype == MIXT_DTYPE_FP32;
}

static mixt_status forward_twins(work *w, int64_t i, int f)
{
    bool matrix = w->graph->nodes[i].op->matrix_work;
    if (!matrix)
        MIXT_TRY(follow(w, i, f));
    if (!matrix && mixt__dtype_way(w->twins->formats[f]))
        return MIXT_OK;
    MIXT_TRY(forward_twin(w, i, f));
    if (matrix)
        MIXT_TRY(weight_twins(w, i, f));
    return rounded_twin(w, i, f);
}

static mixt_status backward_twins(work *w, int64_t i, int f)
{
    const mixt__node *n = &w->graph->nodes[i];
    if (!n->op->matrix_work)
        MIXT_TRY(slope_twin(w, i, f));
    n = &w->graph->nodes[i];
    if (n->op == &mixt__op_pointwise || (!n->op->matrix_work && mixt__dtype_way(w->twins->formats[f])))
        return MIXT_OK;
    return backward_twin(w, i, f);
}

static mixt_status twins_of(work *w, int64_t i)
{
    bool backward = w->graph->nodes[i].backward, view = w->graph->nodes[i].op->view != NULL;
    for (int f = 0; f < w->twins->format_count; f++) {
        if (!backward && view)
            MIXT_TRY(follow(w, i, f));
        else if (has_twin(w->graph, &w->graph->nodes[i]))
            MIXT_TRY(backward ? backward_twins(w, i, f) : forward_twins(w, i, f));
    }
    return MIXT_OK;
}

mixt_status mixt__pass_twins(mixt__graph *graph, const int32_t *gradients, mixt__twins *twins)
{
    work w = {.graph = graph, .gradients = gradients, .twins = twins, .first = graph->node_count};
    w.forward_values = graph->seed; // the first value that differentiation makes
    w.stats_of = mixt__alloc((size_t)graph->value_count * sizeof *w.stats_of);
    w.low_of = mixt__alloc((size_t)graph->value_count * sizeof *w.low_of);
    w.root_of = mixt__alloc((size_t)graph->value_count * sizeof *w.root_of);
    mixt_status status = w.stats_of && w.low_of && w.root_of ? MIXT_OK : no_memory();
    for (int64_t i = 0; status == MIXT_OK && i < w.first; i++)
        status = twins_of(&w, i);
    if (status == MIXT_OK)
        status = mixt__graph_insert(graph, w.first, w.anchors);
    mixt__free(w.stats_of);
    mixt__free(w.low_of);
    mixt__free(w.root_of);
    mixt__free(w.anchors);
    return status;
}

void mixt__twins_free(mixt__twins *twins)
{
    mixt__free(twins->twins);
    mixt__free(twins->stats);
    *twins = (mixt__twins){0};
}
