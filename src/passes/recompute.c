/* Copies forward nodes into the backward pass, so that the memory plan fits a budget.
 *
 * A copy stands right before the first node of the backward pass that needs it, after copies of what it reads itself;
 * readers in the backward pass are pointed at the copies, and views are copied with what they are views of. Nothing of
 * the forward pass changes. The pass runs behind `views`, so that originals keep their strides and copies get the same.
 *
 * The solver's figure of memory is live bytes; what counts is the arena of the real plan, which may be larger (gaps) or
 * smaller (takeovers). So the solver is asked with less and less until the plan fits. The amounts that it is asked with
 * stand on a fixed grid, whatever the budget: where its answers are proven, a larger budget never gives a slower step.
 */
#include "passes/passes.h"

#include "base/log.h"
#include "graph/op.h"
#include "passes/memory.h"

#include <math.h>
#include <string.h>

enum {
    GRID = 256, // amounts for a factor of 2
    TRIES = 64,
};

/* ---- copying ---- */

typedef struct copier {
    mixt__graph *graph;
    const bool *again; // by node
    int64_t late;      // first node of the backward pass
    int32_t *copy;     // by value of the graph as it was: its copy; 0: none yet
    mixt__node *nodes; // the new list
    int64_t count, capacity;
} copier;

static mixt_status no_memory(void)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory for copies of nodes");
}

static mixt_status append(copier *c, const mixt__node *n)
{
    if (!mixt__grow((void **)&c->nodes, &c->capacity, c->count, sizeof *c->nodes))
        return no_memory();
    c->nodes[c->count++] = *n;
    return MIXT_OK;
}

static mixt_status copy_value(copier *c, int32_t id, int32_t *copy)
{
    mixt__value like = c->graph->values[id]; // a copy: the array may move
    MIXT_TRY(mixt__graph_value(c->graph, like.role, like.dtype, &like.shape, like.name, copy));
    like.name = c->graph->values[*copy].name;
    c->graph->values[*copy] = like;
    return MIXT_OK;
}

/** Appends a copy of a node that reads `in`. */
static mixt_status copy_node(copier *c, const mixt__node *n, int32_t *in)
{
    mixt__node copy = *n;
    mixt__arena *arena = &c->graph->arena;
    copy.in = in;
    copy.out = mixt__arena_alloc(arena, MIXT_MAX_OUTPUTS * sizeof *copy.out);
    void *attrs = mixt__arena_alloc(arena, n->op->attrs_size + 1);
    if (!copy.out || !attrs)
        return no_memory();
    if (n->op->attrs_size)
        memcpy(attrs, n->attrs, n->op->attrs_size);
    if (n->op->repeat)
        n->op->repeat(attrs);
    copy.attrs = attrs;
    copy.backward = copy.recomputed = true;
    for (int o = 0; o < n->out_count; o++) {
        MIXT_TRY(copy_value(c, n->out[o], &copy.out[o]));
        c->copy[n->out[o]] = copy.out[o];
        if (n->alias)
            c->graph->values[copy.out[o]].base = in[0];
    }
    return append(c, &copy);
}

static mixt_status use(copier *c, int32_t id, int32_t *now);

/** The values that a node reads in the backward pass: its own, or the copies of those. */
static mixt_status use_inputs(copier *c, const mixt__node *n, int32_t **in)
{
    *in = mixt__arena_alloc(&c->graph->arena, (size_t)(n->in_count + 1) * sizeof **in);
    if (!*in)
        return no_memory();
    for (int k = 0; k < n->in_count; k++)
        MIXT_TRY(use(c, n->in[k], &(*in)[k]));
    return MIXT_OK;
}

/** Whether the memory behind a value is made again. */
static bool is_again(const copier *c, int32_t id)
{
    id = mixt__value_base(c->graph, id);
    int64_t producer = c->graph->values[id].producer;
    return c->graph->values[id].role == MIXT_ROLE_ACTIVATION && producer >= 0 && producer < c->late &&
           c->again[producer];
}

/** The value to read in place of `id`, which is made first where it has to be. */
static mixt_status use(copier *c, int32_t id, int32_t *now)
{
    *now = id;
    if (!is_again(c, id))
        return MIXT_OK;
    if (!c->copy[id]) {
        int32_t *in;
        mixt__node n = c->graph->nodes[c->graph->values[id].producer];
        MIXT_TRY(use_inputs(c, &n, &in));
        MIXT_TRY(copy_node(c, &n, in));
    }
    *now = c->copy[id];
    return MIXT_OK;
}

/** The whole list again, with copies where they are needed. */
static mixt_status copy_all(copier *c)
{
    for (int64_t i = 0; i < c->graph->node_count; i++) {
        mixt__node n = c->graph->nodes[i];
        if (i >= c->late) {
            MIXT_TRY(use_inputs(c, &c->graph->nodes[i], &n.in));
            for (int o = 0; n.alias && o < n.out_count; o++)
                if (c->graph->values[n.out[o]].base == c->graph->nodes[i].in[0])
                    c->graph->values[n.out[o]].base = n.in[0];
        }
        MIXT_TRY(append(c, &n));
    }
    return MIXT_OK;
}

/** A graph as it was before copies were put in: its lists, which share what they point at. */
typedef struct snapshot {
    mixt__node *nodes;
    mixt__value *values;
    int64_t node_count, node_capacity, value_count;
} snapshot;

static mixt_status take_snapshot(const mixt__graph *graph, snapshot *before)
{
    size_t bytes = (size_t)graph->value_count * sizeof *graph->values;
    *before = (snapshot){.nodes = graph->nodes,
                         .node_count = graph->node_count,
                         .node_capacity = graph->node_capacity,
                         .value_count = graph->value_count,
                         .values = mixt__alloc(bytes)};
    if (!before->values)
        return no_memory();
    memcpy(before->values, graph->values, bytes);
    return MIXT_OK;
}

/** Puts the lists of before back. */
static void restore(mixt__graph *graph, snapshot *before)
{
    if (graph->nodes != before->nodes)
        mixt__free(graph->nodes);
    graph->nodes = before->nodes;
    graph->node_count = before->node_count;
    graph->node_capacity = before->node_capacity;
    graph->value_count = before->value_count;
    memcpy(graph->values, before->values, (size_t)before->value_count * sizeof *graph->values);
    mixt__free(before->values);
}

/** Makes the copies good. */
static void forget(snapshot *before)
{
    mixt__free(before->nodes);
    mixt__free(before->values);
}

/** @param again by node */
static mixt_status put_copies(mixt__graph *graph, const bool *again, int64_t late)
{
    copier c = {.graph = graph, .again = again, .late = late};
    c.copy = mixt__alloc((size_t)graph->value_count * sizeof *c.copy);
    mixt_status status = c.copy ? copy_all(&c) : no_memory();
    mixt__free(c.copy);
    if (status != MIXT_OK) {
        mixt__free(c.nodes);
        return status;
    }
    graph->nodes = c.nodes; // the list of before is in the snapshot
    graph->node_count = c.count;
    graph->node_capacity = c.capacity;
    for (int64_t i = 0; i < c.count; i++)
        for (int o = 0; o < c.nodes[i].out_count; o++)
            if (graph->values[c.nodes[i].out[o]].role == MIXT_ROLE_ACTIVATION)
                graph->values[c.nodes[i].out[o]].producer = (int32_t)i;
    return MIXT_OK;
}

/* ---- choosing ---- */

/** A search for what fits. */
typedef struct fitting {
    mixt__graph *graph;
    mixt__recompute_problem problem;
    double *seconds; // by node
    bool *units, *nodes;
    size_t budget, arena; // the arena of the set tried last
    snapshot before;
} fitting;

static mixt_status arena_of(const mixt__graph *graph, size_t *bytes)
{
    mixt__memory_plan plan;
    MIXT_TRY(mixt__memory_plan_make(graph, &plan));
    *bytes = plan.arena_bytes;
    mixt__memory_plan_free(&plan);
    return MIXT_OK;
}

/** Puts in the copies of f->units and plans memory; takes them out again where that does not fit. */
static mixt_status try_units(fitting *f, bool *fits)
{
    const mixt__recompute_problem *p = &f->problem;
    memset(f->nodes, 0, (size_t)f->graph->node_count * sizeof *f->nodes);
    for (int64_t u = 0; u < p->unit_count; u++)
        f->nodes[p->units[u].node] = f->units[u];
    MIXT_TRY(take_snapshot(f->graph, &f->before));
    mixt_status status = put_copies(f->graph, f->nodes, p->late);
    if (status == MIXT_OK)
        status = arena_of(f->graph, &f->arena);
    *fits = status == MIXT_OK && f->arena <= f->budget;
    if (*fits)
        forget(&f->before);
    else
        restore(f->graph, &f->before);
    return status;
}

/** Amounts of the grid by number, and the number of the largest that is at most `bytes`. */
static size_t grid_amount(int number)
{
    return (size_t)exp2((double)number / GRID);
}

static int grid_number(size_t bytes)
{
    int number = (int)(log2((double)bytes + 1) * GRID) + 1;
    while (number > 0 && grid_amount(number) > bytes)
        number--;
    return number;
}

/** Asks the solver with less and less until the plan fits or nothing is found. */
static mixt_status walk_down(fitting *f, mixt__recompute_answer *answer, bool *fits)
{
    *fits = false;
    int number = grid_number(f->budget);
    for (int i = 0; i < TRIES && number > 0; i++) {
        MIXT_TRY(mixt__recompute_solve(&f->problem, grid_amount(number), false, f->units, answer));
        if (!answer->found)
            return MIXT_OK;
        MIXT_TRY(try_units(f, fits));
        MIXT_LOG(PLAN, "recompute: %zu bytes asked, %zu live, %zu planned, %.3f ms, %lld states", grid_amount(number),
                 answer->peak, f->arena, 1e3 * answer->seconds, (long long)answer->states);
        if (*fits)
            return MIXT_OK;
        int lower = grid_number(answer->peak - 1); // down to the peak the answer would be the same
        number = lower < number ? lower : number - 1;
    }
    return MIXT_OK;
}

/** The last resort: as little as a quick look finds, to the next amount of the grid. */
static mixt_status try_smallest(fitting *f, size_t most, mixt__recompute_answer *answer)
{
    bool fits;
    int none = 0, enough = grid_number(most) + 1;
    while (enough - none > 1) {
        int middle = (none + enough) / 2;
        MIXT_TRY(mixt__recompute_solve(&f->problem, grid_amount(middle), true, f->units, answer));
        if (answer->found)
            enough = middle;
        else
            none = middle;
    }
    MIXT_TRY(mixt__recompute_solve(&f->problem, grid_amount(enough), false, f->units, answer));
    MIXT_TRY(try_units(f, &fits));
    return fits ? MIXT_OK
                : mixt__fail(MIXT_ERROR_MEMORY,
                             "activations do not fit into %zu bytes even with full recomputation: the smallest "
                             "possible budget is %zu bytes",
                             f->budget, f->arena);
}

static mixt_status fit(fitting *f, mixt__recompute_choice *choice)
{
    mixt__recompute_answer answer;
    bool fits;
    MIXT_TRY(mixt__recompute_problem_make(f->graph, f->seconds, &f->problem));
    MIXT_TRY(walk_down(f, &answer, &fits));
    mixt_status status = fits ? MIXT_OK : try_smallest(f, choice->kept_all, &answer);
    if (status != MIXT_OK) {
        choice->least = f->arena;
        return status;
    }
    choice->seconds = answer.seconds;
    choice->lower = answer.lower;
    choice->states = answer.states;
    return MIXT_OK;
}

static void count_copies(const mixt__graph *graph, mixt__recompute_choice *choice)
{
    for (int64_t i = 0; i < graph->node_count; i++)
        if (graph->nodes[i].recomputed && !graph->nodes[i].alias) {
            choice->nodes++;
            choice->flops += mixt__node_flops(graph, &graph->nodes[i]);
        }
}

mixt_status mixt__pass_recompute(mixt__graph *graph, size_t budget, mixt__node_seconds *seconds, const void *device,
                                 mixt__recompute_choice *choice)
{
    fitting f = {.graph = graph, .budget = budget};
    *choice = (mixt__recompute_choice){.budget = budget};
    MIXT_TRY(arena_of(graph, &choice->kept_all));
    if (choice->kept_all <= budget)
        return MIXT_OK;
    size_t nodes = (size_t)graph->node_count + 1;
    f.seconds = mixt__alloc(nodes * sizeof *f.seconds);
    f.units = mixt__alloc(nodes * sizeof *f.units);
    f.nodes = mixt__alloc(nodes * sizeof *f.nodes);
    mixt_status status = f.seconds && f.units && f.nodes ? MIXT_OK : no_memory();
    for (int64_t i = 0; status == MIXT_OK && i < graph->node_count; i++)
        f.seconds[i] = seconds(device, graph, &graph->nodes[i]);
    if (status == MIXT_OK)
        status = fit(&f, choice);
    if (status == MIXT_OK)
        count_copies(graph, choice);
    mixt__recompute_problem_free(&f.problem);
    mixt__free(f.seconds);
    mixt__free(f.units);
    mixt__free(f.nodes);
    return status;
}
