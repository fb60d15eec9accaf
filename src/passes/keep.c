/* Activations that the backward pass reads again are kept in a lower format meanwhile, where the policy says so (keep).
 *
 *   … y = f(x) … last forward reader of y;  kept = round(y)      y dies here
 *   …  y' = widen(kept);  first backward reader of y'
 *
 * The forward pass reads y, never y': its results do not change by a bit. All backward readers read y', so a value is
 * left as it is where one of them must have it whole: a statistic (fp32_inputs), what is compared (exact_inputs) and
 * cannot be made anew, what a loss reads, or a reader whose own rule says less. So are integers and what is small.
 * Which pass a node belongs to is decided by what it is for: what leads to the loss is forward, whatever joined it with
 * its gradient.
 *
 * BF16 has FP32's range: a cast does. FP16 and FP8 have a scaled_cast, whose scale y' is multiplied by. Either widening
 * is a pointwise program: each pointwise reader gets one of its own, which fusion then merges into it, so that y' is
 * not even written. Others share one with those that read close to them. Views of y (q, k and v of a packed product)
 * become views of y'.
 */
#include "passes/keep.h"

#include "num/num.h"
#include "ops/attrs.h"
#include "ops/ops.h"
#include "passes/passes.h"

#include <string.h>

enum { LEAST_BYTES = 16384 }; // a value below that is not worth two passes over it

typedef struct mixt__keeper keeper;

/** New nodes, which stand behind all old ones until they are put in order. */
typedef struct inserter {
    mixt__graph *graph;
    int64_t node_count; // of old ones
    int64_t *before;    // by new node: the old one in front of which it belongs
    int64_t capacity;
} inserter;

static mixt_status no_memory(void)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the keep pass");
}

/* ---- new nodes ---- */

/** Appends a node that belongs in front of old node `before`; its outputs in *out. */
static mixt_status emit(inserter *to, int64_t before, const mixt__node *like, const mixt__op *op, const void *attrs,
                        const int32_t *in, int in_count, const int32_t **out)
{
    int64_t index;
    MIXT_TRY(mixt__graph_node(to->graph, op, like->layer, attrs, in, in_count, &index));
    if (!mixt__grow((void **)&to->before, &to->capacity, index - to->node_count, sizeof *to->before))
        return no_memory();
    mixt__node *node = &to->graph->nodes[index];
    to->before[index - to->node_count] = before;
    node->backward = like->backward;
    node->saves = like->saves;
    node->saves_why = like->saves_why;
    node->why = like->why;
    *out = node->out;
    return MIXT_OK;
}

/** Puts the new nodes where they belong; those that belong in front of one node stay in the order they were made. Nodes
 *  without an op go. */
static mixt_status put_in_order(inserter *to)
{
    mixt__graph *g = to->graph;
    int64_t made = g->node_count - to->node_count, next = 0;
    mixt__node *order = mixt__alloc((size_t)(g->node_count + 1) * sizeof *order);
    int64_t *start = mixt__alloc((size_t)(to->node_count + 2) * sizeof *start);
    if (order && start) {
        for (int64_t m = 0; m < made; m++) // how many stand in front of each old node or of one before it
            start[to->before[m] + 1]++;
        for (int64_t i = 0; i <= to->node_count; i++)
            start[i + 1] += start[i];
        for (int64_t m = 0; m < made; m++) {
            int64_t before = to->before[m];
            order[before + start[before]++] = g->nodes[to->node_count + m];
        }
        for (int64_t i = 0; i < to->node_count; i++)
            order[i + start[i]] = g->nodes[i];
        for (int64_t i = 0; i < g->node_count; i++)
            if (order[i].op)
                g->nodes[next++] = order[i];
        g->node_count = next;
    }
    for (int64_t i = 0; i < next; i++)
        for (int o = 0; o < g->nodes[i].out_count; o++)
            if (g->values[g->nodes[i].out[o]].role == MIXT_ROLE_ACTIVATION)
                g->values[g->nodes[i].out[o]].producer = (int32_t)i;
    mixt_status status = order && start ? MIXT_OK : no_memory();
    mixt__free(order);
    mixt__free(start);
    return status;
}

/* ---- what is compared ---- */

/** Whether a gradient compares what its forward node made with what it made that from, and that node can do it again:
 *  numbers that are rounded alike are still equal where the whole ones were. */
static bool can_remake(const mixt__graph *graph, const mixt__node *n, bool all)
{
    const mixt__value *src = &graph->values[n->in[0]];
    if (n->op->exact_inputs != 3 || graph->values[n->in[1]].producer < 0 || src->role != MIXT_ROLE_ACTIVATION)
        return false;
    const mixt__node *f = &graph->nodes[graph->values[n->in[1]].producer];
    return !f->backward && f->in_count == 1 && f->out_count == 1 && f->in[0] == n->in[0] &&
           n->saves != MIXT_DTYPE_NONE && mixt_dtype_size(n->saves) < mixt_dtype_size(src->dtype) &&
           (all || mixt__value_bytes(src) >= LEAST_BYTES);
}

static bool is_remade(const mixt__graph *graph, const mixt__node *n)
{
    if (n->op->exact_inputs != 3) // it has two inputs at least
        return false;
    int32_t producer = graph->values[n->in[1]].producer;
    return producer >= 0 && graph->nodes[producer].backward && graph->nodes[producer].in[0] == n->in[0];
}

/** Makes anew in the backward pass what a gradient compares: the maxima of a pooling. */
static mixt_status remake_compared(mixt__graph *graph, bool all)
{
    inserter to = {.graph = graph, .node_count = graph->node_count};
    mixt_status status = MIXT_OK;
    for (int64_t i = 0; i < to.node_count && status == MIXT_OK; i++) {
        const mixt__node n = graph->nodes[i];
        if (!n.op->exact_inputs || !can_remake(graph, &n, all))
            continue;
        const mixt__node f = graph->nodes[graph->values[n.in[1]].producer];
        mixt__node like = {.layer = f.layer, .backward = true, .saves = n.saves, .saves_why = n.saves_why};
        const int32_t *out;
        like.why = "made again from what is kept";
        status = emit(&to, i, &like, f.op, f.attrs, f.in, 1, &out);
        if (status == MIXT_OK)
            graph->nodes[i].in[1] = out[0];
    }
    if (status == MIXT_OK && graph->node_count > to.node_count)
        status = put_in_order(&to);
    mixt__free(to.before);
    return status;
}

/** The output of the forward node that a remade one repeats. */
static int32_t original(const keeper *k, const mixt__node *remade)
{
    for (int64_t i = 0; i < k->node_count; i++) {
        const mixt__node *f = &k->graph->nodes[i];
        if (k->forward[i] && f->op == remade->op && f->in[0] == remade->in[0] &&
            !memcmp(f->attrs, remade->attrs, f->op->attrs_size))
            return f->out[0];
    }
    return 0;
}

/** Takes back what was made anew for nothing: both what is compared and what it is compared with are there. */
static void undo_remade(keeper *k)
{
    for (int64_t i = 0; i < k->node_count; i++) {
        mixt__node *n = &k->graph->nodes[i];
        if (!n->op || !n->op->exact_inputs || !is_remade(k->graph, n))
            continue;
        mixt__node *remade = &k->graph->nodes[k->graph->values[n->in[1]].producer];
        int32_t dst = original(k, remade);
        if (!dst || k->saved[k->root[remade->in[0]]].dtype != MIXT_DTYPE_NONE ||
            k->saved[k->root[dst]].dtype != MIXT_DTYPE_NONE)
            continue;
        n->in[1] = dst;
        remade->op = NULL;
    }
}

/* ---- what is saved ---- */

/** Forward is what leads to the loss or to a value that is read from outside. */
static mixt_status find_forward(keeper *k)
{
    const mixt__graph *g = k->graph;
    bool *needed = mixt__alloc((size_t)k->value_count * sizeof *needed);
    if (!needed)
        return no_memory();
    for (int32_t v = 1; v < k->value_count; v++)
        needed[v] = g->values[v].output || v == g->loss || v == g->metrics;
    for (int64_t i = k->node_count - 1; i >= 0; i--) {
        const mixt__node *n = &g->nodes[i];
        k->forward[i] = !n->backward;
        for (int o = 0; o < n->out_count; o++)
            k->forward[i] |= needed[n->out[o]];
        for (int j = 0; j < n->in_count && k->forward[i]; j++)
            needed[n->in[j]] = true;
    }
    mixt__free(needed);
    return MIXT_OK;
}

static void find_roots(keeper *k)
{
    for (int32_t v = 0; v < k->value_count; v++)
        k->root[v] = v;
    for (int64_t i = 0; i < k->node_count; i++) {
        const mixt__node *n = &k->graph->nodes[i];
        if (!k->forward[i] || n->in_count != 1 || !mixt__node_can_view(k->graph, n))
            continue;
        for (int o = 0; o < n->out_count; o++)
            k->root[n->out[o]] = k->root[n->in[0]];
    }
}

/** Notes that a backward node reads a value as its input j. */
static void note_backward(keeper *k, int64_t node, int j)
{
    const mixt__node *n = &k->graph->nodes[node];
    mixt__saved *s = &k->saved[k->root[n->in[j]]];
    bool product = n->op == &mixt__op_matmul; // whose FP32 input is a bias; without one, others stand in its place
    uint32_t bits = (product ? 0 : n->op->fp32_inputs) | (is_remade(k->graph, n) ? 0 : n->op->exact_inputs);
    s->whole |= bits >> j & 1 || n->op->work == MIXT_WORK_LOSS || k->graph->values[n->in[j]].output;
    if (s->first_backward < 0) {
        s->first_backward = node;
        s->wish = *n;
    } else {
        mixt__node_saves_join(&s->wish, n);
    }
}

static void find_saved(keeper *k)
{
    for (int32_t v = 0; v < k->value_count; v++)
        k->saved[v].last_forward = k->saved[v].first_backward = -1;
    for (int64_t i = 0; i < k->node_count; i++) {
        const mixt__node *n = &k->graph->nodes[i];
        for (int o = 0; o < n->out_count && k->forward[i]; o++)
            k->saved[k->root[n->out[o]]].last_forward = i;
        for (int j = 0; j < n->in_count; j++)
            if (!k->forward[i])
                note_backward(k, i, j);
            else
                k->saved[k->root[n->in[j]]].last_forward = i;
    }
}

/** The format in which a value is kept; NONE: as it is. */
static mixt_dtype kept_dtype(const keeper *k, int32_t value)
{
    const mixt__value *v = &k->graph->values[value];
    const mixt__saved *s = &k->saved[value];
    if (v->role != MIXT_ROLE_ACTIVATION || v->output || k->root[value] != value || s->whole || s->first_backward < 0 ||
        s->last_forward < 0 || s->last_forward >= s->first_backward || !k->forward[v->producer])
        return MIXT_DTYPE_NONE;
    bool lower = s->wish.saves != MIXT_DTYPE_NONE && mixt_dtype_size(s->wish.saves) < mixt_dtype_size(v->dtype);
    bool large = k->all || mixt__value_bytes(v) >= LEAST_BYTES;
    return lower && large && mixt_dtype_is_float(v->dtype) ? s->wish.saves : MIXT_DTYPE_NONE;
}

/* ---- rounding and widening ---- */

/** A value that is kept: what lies in memory between the passes. */
typedef struct kept {
    inserter *to;
    int32_t value;     // as the forward pass made it
    int32_t stored[2]; // rounded, and its scale; 0: it has none
    mixt__node like;   // layer and reason of the nodes that are made for it
    int64_t last;      // backward node that last read the widened value of the current group; -1: none
} kept;

static mixt_status emit_program(const kept *p, int64_t before, mixt__pw_code code, mixt_dtype dtype, const int32_t *in,
                                int32_t *out)
{
    int count = mixt__pw_operands[code];
    mixt__pointwise_attrs at = {.in_count = count, .instr_count = 1, .out_count = 1, .outs = {count}};
    const int32_t *made;
    at.instrs[0] = (mixt__pw_instr){.code = code, .a = 0, .b = count > 1};
    at.out_dtypes[0] = dtype;
    MIXT_TRY(emit(p->to, before, &p->like, &mixt__op_pointwise, &at, in, count, &made));
    *out = made[0];
    return MIXT_OK;
}

/** Rounds a value when the forward pass has read it for the last time. A cast stands right behind a pointwise producer
 *  instead, which then writes both. */
static mixt_status emit_kept(const keeper *k, kept *p, mixt_dtype dtype)
{
    const mixt__value *v = &k->graph->values[p->value];
    const mixt__node *producer = &k->graph->nodes[v->producer];
    int64_t before = k->saved[p->value].last_forward + 1;
    p->like.backward = false;
    if (!mixt__format_narrow(dtype)) { // a cast loses no large number and no small one
        before = producer->op == &mixt__op_pointwise ? v->producer + 1 : before;
        return emit_program(p, before, MIXT_PW_COPY, dtype, &p->value, &p->stored[0]);
    }
    mixt__scaled_cast_attrs at = {.dtype = dtype};
    const int32_t *out;
    MIXT_TRY(emit(p->to, before, &p->like, &mixt__op_scaled_cast, &at, &p->value, 1, &out));
    memcpy(p->stored, out, sizeof p->stored);
    return MIXT_OK;
}

/** Widens what was kept, in front of a backward reader. */
static mixt_status emit_widened(const keeper *k, kept *p, int64_t before, int32_t *out)
{
    mixt_dtype dtype = k->graph->values[p->value].dtype;
    p->like.backward = true;
    return emit_program(p, before, p->stored[1] ? MIXT_PW_MUL : MIXT_PW_COPY, dtype, p->stored, out);
}

/** What backward readers of the current group read in place of a value: the widened one, or the same view of it. */
static mixt_status widened(keeper *k, const kept *p, int64_t before, int32_t value, int32_t *out)
{
    if (!k->widened[value]) {
        const mixt__node view = k->graph->nodes[k->graph->values[value].producer];
        mixt__node like = {.layer = view.layer, .why = view.why, .backward = true};
        const int32_t *made;
        int32_t from;
        MIXT_TRY(widened(k, p, before, view.in[0], &from));
        MIXT_TRY(emit(p->to, before, &like, view.op, view.attrs, &from, 1, &made));
        for (int o = 0; o < view.out_count; o++)
            k->widened[view.out[o]] = made[o];
    }
    *out = k->widened[value];
    return MIXT_OK;
}

/* ---- readers ---- */

bool mixt__keep_merges(const mixt__keeper *k, int64_t reader, int32_t value)
{
    const mixt__graph *g = k->graph;
    const mixt__node *n = &g->nodes[reader];
    return k->fusion && n->op == &mixt__op_pointwise && !((const mixt__pointwise_attrs *)n->attrs)->cast_by_hand &&
           mixt__shape_equal(&g->values[n->out[0]].shape, &g->values[value].shape);
}

/** Lets input j of a backward node read what was kept. */
static mixt_status rewire(keeper *k, kept *p, int64_t node, int j)
{
    int32_t value = k->graph->nodes[node].in[j], replaced;
    if (value == p->value && mixt__keep_merges(k, node, value)) {
        MIXT_TRY(emit_widened(k, p, node, &replaced));
    } else {
        if (p->last < 0 || node - p->last > MIXT_KEEP_NEAR) {
            memset(k->widened, 0, (size_t)k->value_count * sizeof *k->widened);
            MIXT_TRY(emit_widened(k, p, node, &k->widened[p->value]));
        }
        MIXT_TRY(widened(k, p, node, value, &replaced));
        p->last = node;
    }
    k->graph->nodes[node].in[j] = replaced;
    return MIXT_OK;
}

static mixt_status keep_value(keeper *k, inserter *to, int32_t value)
{
    const mixt__saved *s = &k->saved[value];
    const mixt__node *producer = &k->graph->nodes[k->graph->values[value].producer];
    kept p = {.to = to, .value = value, .like = {.layer = producer->layer}, .last = -1};
    p.like.why = mixt__arena_printf(&k->graph->arena, "kept in %s for the backward pass: %s", mixt_dtype_name(s->dtype),
                                    s->wish.saves_why);
    if (!p.like.why)
        return no_memory();
    MIXT_TRY(emit_kept(k, &p, s->dtype));
    for (int64_t i = s->first_backward; i < k->node_count; i++)
        for (int j = 0; j < k->graph->nodes[i].in_count && !k->forward[i]; j++) {
            int32_t in = k->graph->nodes[i].in[j];
            if (in < k->value_count && k->root[in] == value)
                MIXT_TRY(rewire(k, &p, i, j));
        }
    return MIXT_OK;
}

static mixt_status run(keeper *k, inserter *to)
{
    MIXT_TRY(find_forward(k));
    find_roots(k);
    find_saved(k);
    for (int32_t v = 1; v < k->value_count; v++)
        k->saved[v].dtype = kept_dtype(k, v);
    if (!k->all)
        MIXT_TRY(mixt__keep_choose(k));
    undo_remade(k);
    for (int32_t v = 1; v < k->value_count; v++)
        if (k->saved[v].dtype != MIXT_DTYPE_NONE)
            MIXT_TRY(keep_value(k, to, v));
    return put_in_order(to);
}

static bool asked_for(const mixt__graph *graph)
{
    for (int64_t i = 0; i < graph->node_count; i++)
        if (graph->nodes[i].saves != MIXT_DTYPE_NONE)
            return true;
    return false;
}

mixt_status mixt__pass_keep(mixt__graph *graph, bool fusion, bool all)
{
    if (!asked_for(graph))
        return MIXT_OK;
    MIXT_TRY(remake_compared(graph, all));
    size_t values = (size_t)graph->value_count;
    inserter to = {.graph = graph, .node_count = graph->node_count};
    keeper k = {.graph = graph,
                .fusion = fusion,
                .all = all,
                .node_count = graph->node_count,
                .value_count = (int32_t)graph->value_count};
    k.forward = mixt__alloc((size_t)(graph->node_count + 1) * sizeof *k.forward);
    k.root = mixt__alloc(values * sizeof *k.root);
    k.saved = mixt__alloc(values * sizeof *k.saved);
    k.widened = mixt__alloc(values * sizeof *k.widened);
    mixt_status status = k.forward && k.root && k.saved && k.widened ? run(&k, &to) : no_memory();
    mixt__free(k.forward);
    mixt__free(k.root);
    mixt__free(k.saved);
    mixt__free(k.widened);
    mixt__free(to.before);
    return status;
}
