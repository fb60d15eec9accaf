/* From a compiled graph to the problem that the solver sees: which nodes may run twice, what they write, who reads that
 * when, and what memory is in use whatever is chosen.
 *
 * Views are no units: a value stands for the memory that it owns and all windows on it. Memory that several nodes write
 * (a concat's) and whatever is read from outside is kept.
 */
#include "passes/recompute.h"

#include "graph/op.h"
#include "num/num.h"
#include "passes/memory.h"

typedef struct reader {
    const mixt__graph *graph;
    mixt__recompute_problem *problem;
    int32_t *value_of; // by value id of the graph: index of the problem's value; -1: none
    int64_t *first;    // by value of the problem: first node that touches it
    bool *taken;       // by value id of the graph: see mixt__memory_loads
} reader;

static mixt_status no_memory(void)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory to choose what is computed again");
}

static int64_t first_backward(const mixt__graph *graph)
{
    int64_t i = 0;
    while (i < graph->node_count && !graph->nodes[i].backward)
        i++;
    return i;
}

/** The problem's value behind a value of the graph, through views; -1: it is not of the forward pass's planned memory.
 */
static int32_t value_of(const reader *r, int32_t id)
{
    return r->value_of[mixt__value_base(r->graph, id)];
}

static bool from_outside(const mixt__graph *graph, int32_t id)
{
    return graph->values[id].output || id == graph->loss || id == graph->metrics;
}

/** Whether running the node twice gives the same bits and changes nothing else. */
static bool may_repeat(const mixt__graph *graph, const mixt__node *n)
{
    if (n->alias || (n->op->written_inputs && !n->op->repeat))
        return false;
    for (int o = 0; o < n->out_count; o++) {
        const mixt__value *v = &graph->values[n->out[o]];
        if (v->role != MIXT_ROLE_ACTIVATION || v->base || from_outside(graph, n->out[o]))
            return false;
    }
    return true;
}

static void add_unit(reader *r, int64_t node, double seconds)
{
    const mixt__node *n = &r->graph->nodes[node];
    mixt__recompute_problem *p = r->problem;
    mixt__recompute_unit unit = {
        .seconds = seconds, .may = may_repeat(r->graph, n), .first = (int32_t)p->value_count, .node = node};
    for (int o = 0; o < n->out_count; o++) {
        const mixt__value *v = &r->graph->values[n->out[o]];
        if (v->role != MIXT_ROLE_ACTIVATION || v->base)
            continue;
        r->value_of[n->out[o]] = (int32_t)p->value_count;
        r->first[p->value_count] = node;
        p->values[p->value_count++] = (mixt__recompute_value){.unit = (int32_t)p->unit_count,
                                                              .bytes = mixt__memory_bytes(v),
                                                              .last_early = node,
                                                              .first_late = INT64_MAX,
                                                              .last_late = -1};
    }
    unit.count = (int32_t)p->value_count - unit.first;
    if (unit.count)
        p->units[p->unit_count++] = unit;
}

static void touch(reader *r, int32_t id, int64_t node)
{
    int32_t index = value_of(r, id);
    if (index < 0)
        return;
    mixt__recompute_value *v = &r->problem->values[index];
    if (node < r->first[index])
        r->first[index] = node; // a window that is written before the whole
    if (node < r->problem->late) {
        v->last_early = node > v->last_early ? node : v->last_early;
    } else {
        v->first_late = node < v->first_late ? node : v->first_late;
        v->last_late = node > v->last_late ? node : v->last_late;
    }
}

static void find_readers(reader *r)
{
    const mixt__graph *g = r->graph;
    for (int64_t i = 0; i < g->node_count; i++) {
        const mixt__node *n = &g->nodes[i];
        for (int o = 0; o < n->out_count; o++)
            touch(r, n->out[o], i);
        for (int k = 0; k < n->in_count; k++)
            touch(r, n->in[k], i);
    }
    for (int32_t v = 1; v < g->value_count; v++)
        if (from_outside(g, v))
            touch(r, v, g->node_count - 1);
}

/** The values that a unit's node reads, each once. */
static bool find_inputs(reader *r, mixt__recompute_unit *u)
{
    const mixt__node *n = &r->graph->nodes[u->node];
    int32_t *in = mixt__arena_alloc(&r->problem->arena, (size_t)(n->in_count + 1) * sizeof *in);
    if (!in)
        return false;
    for (int k = 0; k < n->in_count; k++) {
        int32_t index = value_of(r, n->in[k]);
        bool new = index >= 0 && index < u->first;
        for (int32_t j = 0; j < u->in_count; j++)
            new = new &&in[j] != index;
        if (new)
            in[u->in_count++] = index;
    }
    u->in = in;
    return true;
}

/** Its last reader writes into its memory: in the forward pass that counts as the result's already, unless the value is
 *  kept for someone who is computed again. */
static void hand_over(mixt__recompute_value *v)
{
    if (v->last_late >= 0)
        v->taken = true;
    else
        v->last_early--;
}

static mixt_status read_graph(reader *r, const double *seconds)
{
    mixt__recompute_problem *p = r->problem;
    for (int64_t i = 0; i < p->late; i++)
        add_unit(r, i, seconds[i]);
    find_readers(r);
    for (int64_t u = 0; u < p->unit_count; u++)
        if (!find_inputs(r, &p->units[u]))
            return no_memory();
    MIXT_TRY(mixt__memory_loads(r->graph, p->late, p->base, r->taken));
    for (int32_t v = 1; v < r->graph->value_count; v++)
        if (r->taken[v] && r->value_of[v] >= 0)
            hand_over(&p->values[r->value_of[v]]);
    for (int64_t v = 0; v < p->value_count; v++)
        for (int64_t t = r->first[v]; t <= p->values[v].last_early; t++)
            p->base[t] += p->values[v].bytes;
    return MIXT_OK;
}

mixt_status mixt__recompute_problem_make(const mixt__graph *graph, const double *seconds, mixt__recompute_problem *p)
{
    size_t values = (size_t)graph->value_count, nodes = (size_t)graph->node_count + 1;
    reader r = {.graph = graph, .problem = p};
    *p = (mixt__recompute_problem){.times = graph->node_count, .late = first_backward(graph)};
    p->units = mixt__alloc(nodes * sizeof *p->units);
    p->values = mixt__alloc(values * sizeof *p->values);
    p->base = mixt__alloc(nodes * sizeof *p->base);
    r.value_of = mixt__alloc(values * sizeof *r.value_of);
    r.first = mixt__alloc(values * sizeof *r.first);
    r.taken = mixt__alloc(values * sizeof *r.taken);
    mixt_status status = p->units && p->values && p->base && r.value_of && r.first && r.taken ? MIXT_OK : no_memory();
    for (int64_t v = 0; status == MIXT_OK && v < graph->value_count; v++)
        r.value_of[v] = -1;
    if (status == MIXT_OK)
        status = read_graph(&r, seconds);
    mixt__free(r.value_of);
    mixt__free(r.first);
    mixt__free(r.taken);
    if (status != MIXT_OK)
        mixt__recompute_problem_free(p);
    return status;
}

void mixt__recompute_problem_free(mixt__recompute_problem *p)
{
    mixt__free(p->units);
    mixt__free(p->values);
    mixt__free(p->base);
    mixt__arena_free(&p->arena);
    *p = (mixt__recompute_problem){0};
}
