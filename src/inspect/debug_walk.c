/* A pass from the side, node by node, with FP32 beside it.
 *
 * A value is looked at right behind the node that makes it, before its memory is taken by others: so a pass needs no
 * more memory than it needs to run. FP32 runs as far as the values go that it is held against; those that are wanted
 * later wait on the host.
 */
#include "inspect/debug.h"

#include "graph/op.h"
#include "ops/ops.h"

#include <math.h>

static mixt_status no_memory(void)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory to inspect a step");
}

typedef struct walk {
    const mixt__walk_options *o;
    mixt__executable *pass, *full;
    mixt__run run, full_run;
    int32_t *last;      // by value of the pass: its last writer; -1: it comes from outside
    int32_t *full_last; // the same of FP32
    int32_t *wanted;    // by value of FP32: values that will be held against it
    float **waiting;    // by value of FP32: its numbers; NULL: not made yet, or not wanted any more
    int64_t next_full;  // the first FP32 node that has not run
    void *raw;          // room for the largest value, as it lies on the device
    float *numbers;     // and as FP32
} walk;

/** Whether statistics can be taken of it. */
static bool is_numbers(const mixt__value *v)
{
    return mixt_dtype_is_float(v->dtype) && v->dtype != MIXT_DTYPE_FP64;
}

/* ---- FP32 ---- */

/** Keeps the numbers of FP32's node that are wanted. */
static mixt_status keep_wanted(walk *w, int64_t node)
{
    const mixt__node *n = &w->full->graph->nodes[node];
    for (int o = 0; o < n->out_count; o++) {
        int32_t value = n->out[o];
        const mixt__tensor *t = &w->full->calls[node].out[o];
        if (!w->wanted[value] || w->full_last[value] != node || !t->data) // a view of the batch, which is alike in both
            continue;
        int64_t count = mixt__shape_count(&w->full->graph->values[value].shape);
        w->waiting[value] = mixt__alloc_uninit((size_t)count * sizeof(float) + 1);
        if (!w->waiting[value])
            return no_memory();
        MIXT_TRY(mixt__debug_read(w->full->device, t, w->raw, w->waiting[value]));
        for (int64_t i = 0; i < count; i++)
            if (!isfinite(w->waiting[value][i])) {
                w->o->found->full_bad++;
                break;
            }
    }
    return MIXT_OK;
}

/** Holds value number `value` of the pass, which lies in w->numbers, against FP32. */
static mixt_status look_beside(walk *w, int32_t value)
{
    int32_t partner = w->o->partner[value];
    const mixt__value *v = &w->pass->graph->values[value];
    while (w->next_full <= w->full_last[partner]) {
        MIXT_TRY(mixt__executable_run_node(w->full, &w->full_run, w->next_full));
        MIXT_TRY(keep_wanted(w, w->next_full++));
    }
    if (!w->waiting[partner])
        return MIXT_OK;
    mixt__debug_compare(&w->o->sights[value], v->dtype, w->numbers, w->waiting[partner], mixt__shape_count(&v->shape));
    if (--w->wanted[partner] == 0) {
        mixt__free(w->waiting[partner]);
        w->waiting[partner] = NULL;
    }
    return MIXT_OK;
}

/* ---- a node ---- */

/** A view has the statistics of what it looks at. */
static void follow_view(walk *w, const mixt__node *n, int64_t node)
{
    for (int o = 0; o < n->out_count; o++) {
        mixt__sight *s = &w->o->sights[n->out[o]];
        *s = w->o->sights[n->in[0]];
        s->node = (int32_t)node;
    }
}

/** The mean square of what is summed up for output o of a node: by a reduction, or for the gradient of a bias, which
 *  many kernels make on the way. 0: it is no such sum. */
static double size_of_term(const walk *w, const mixt__node *n, int o)
{
    const mixt__graph *g = w->pass->graph;
    const mixt__value *v = &g->values[n->out[o]];
    bool bias = v->role == MIXT_ROLE_GRAD && v->shape.rank == 1;
    for (int k = 0; k < n->in_count && (bias || (n->op == &mixt__op_reduce && k == 0)); k++) {
        const mixt__sight *in = &w->o->sights[n->in[k]];
        if (in->made && in->counts[MIXT_STATS_COUNT] && (!bias || g->nodes[in->node].backward))
            return in->numbers[MIXT_STATS_SQUARES] / (double)in->counts[MIXT_STATS_COUNT];
    }
    return 0;
}

static mixt_status look_at(walk *w, int64_t i)
{
    const mixt__node *n = &w->pass->graph->nodes[i];
    for (int o = 0; o < n->out_count; o++) {
        const mixt__value *v = &w->pass->graph->values[n->out[o]];
        mixt__sight *s = &w->o->sights[n->out[o]];
        if (!is_numbers(v))
            continue;
        int64_t count = mixt__shape_count(&v->shape);
        bool bad_before = s->made && mixt__sight_bad(s); // a parameter's gradient, which several nodes add to
        *s = (mixt__sight){.made = true, .node = bad_before ? s->node : (int32_t)i};
        MIXT_TRY(mixt__debug_read(w->pass->device, &w->pass->calls[i].out[o], w->raw, w->numbers));
        mixt__debug_count(w->numbers, count, s->numbers, s->counts);
        s->floor = size_of_term(w, n, o) * (double)count;
        if (mixt__sight_bad(s) && w->o->found->first_bad < 0)
            w->o->found->first_bad = (int32_t)i;
        if (w->last[n->out[o]] != i)
            continue;
        if (w->full && w->o->partner[n->out[o]])
            MIXT_TRY(look_beside(w, n->out[o]));
        if (w->o->see)
            MIXT_TRY(w->o->see(w->o->user, n->out[o], w->numbers));
    }
    return MIXT_OK;
}

/** Statistics of what the nodes read from outside, while the batch is there. */
static mixt_status look_outside(walk *w)
{
    const mixt__graph *g = w->pass->graph;
    for (int64_t i = 0; i < g->node_count; i++)
        for (int k = 0; k < g->nodes[i].in_count; k++) {
            const mixt__value *v = &g->values[g->nodes[i].in[k]];
            const mixt__tensor *t = &w->pass->calls[i].in[k];
            mixt__sight *s = &w->o->sights[g->nodes[i].in[k]];
            if (s->made || s->counts[MIXT_STATS_COUNT] || !is_numbers(v) || !t->data)
                continue;
            MIXT_TRY(mixt__debug_read(w->pass->device, t, w->raw, w->numbers));
            mixt__debug_count(w->numbers, mixt__shape_count(&v->shape), s->numbers, s->counts);
        }
    return MIXT_OK;
}

/** FP32's loss, where it has come that far. */
static mixt_status read_loss(walk *w)
{
    int32_t loss = w->full->graph->loss;
    float value;
    if (w->next_full <= w->full_last[loss])
        return MIXT_OK;
    MIXT_TRY(mixt__device_download(w->full->device, &value, mixt__executable_address(w->full, loss), sizeof value));
    w->o->found->full_loss = (double)value;
    return MIXT_OK;
}

static mixt_status walk_nodes(walk *w)
{
    for (int64_t i = 0; i < w->pass->graph->node_count; i++) {
        const mixt__node *n = &w->pass->graph->nodes[i];
        if (n->alias) {
            follow_view(w, n, i);
            continue;
        }
        MIXT_TRY(mixt__executable_run_node(w->pass, &w->run, i));
        MIXT_TRY(look_at(w, i));
    }
    if (w->full)
        MIXT_TRY(read_loss(w));
    return w->o->found->first_bad >= 0 ? look_outside(w) : MIXT_OK;
}

/* ---- room ---- */

static void raise_to(const mixt__tensor *t, size_t *bytes, int64_t *count)
{
    int64_t elements = mixt__shape_count(&t->shape), span = t->contiguous ? elements : mixt__debug_span(t);
    size_t size = (size_t)span * mixt_dtype_size(t->dtype);
    *bytes = size > *bytes ? size : *bytes;
    *count = elements > *count ? elements : *count;
}

/** Bytes and elements of the largest value of a graph. */
static void largest(const mixt__executable *e, size_t *bytes, int64_t *count)
{
    for (int64_t i = 0; e && i < e->graph->node_count; i++) {
        for (int k = 0; k < e->graph->nodes[i].in_count; k++)
            raise_to(&e->calls[i].in[k], bytes, count);
        for (int o = 0; o < e->graph->nodes[i].out_count; o++)
            raise_to(&e->calls[i].out[o], bytes, count);
    }
}

static mixt_status take_room(walk *w)
{
    size_t bytes = 1;
    int64_t count = 1;
    largest(w->pass, &bytes, &count);
    largest(w->full, &bytes, &count);
    w->raw = mixt__alloc_uninit(bytes);
    w->numbers = mixt__alloc_uninit((size_t)count * sizeof *w->numbers);
    if (!w->raw || !w->numbers)
        return no_memory();
    MIXT_TRY(mixt__debug_writers(w->pass->graph, &w->last));
    if (!w->full)
        return MIXT_OK;
    size_t values = (size_t)w->full->graph->value_count;
    w->wanted = mixt__alloc(values * sizeof *w->wanted);
    w->waiting = mixt__alloc(values * sizeof *w->waiting);
    if (!w->wanted || !w->waiting)
        return no_memory();
    for (int32_t v = 1; v < w->pass->graph->value_count; v++)
        if (w->last[v] >= 0 && !w->pass->graph->nodes[w->last[v]].alias && is_numbers(&w->pass->graph->values[v]))
            w->wanted[w->o->partner[v]] += w->o->partner[v] > 0;
    return mixt__debug_writers(w->full->graph, &w->full_last);
}

static void free_room(walk *w)
{
    for (int64_t v = 0; w->waiting && v < w->full->graph->value_count; v++)
        mixt__free(w->waiting[v]);
    mixt__free(w->waiting);
    mixt__free(w->wanted);
    mixt__free(w->raw);
    mixt__free(w->numbers);
    mixt__free(w->last);
    mixt__free(w->full_last);
}

mixt_status mixt__debug_walk(mixt__shadow *pass, mixt__shadow *full, const mixt__shadow_batch *batch,
                             const mixt__walk_options *options)
{
    walk w = {.o = options, .pass = pass->executable, .full = full ? full->executable : NULL};
    *options->found = (mixt__walk_found){.first_bad = -1, .full_loss = NAN};
    for (int64_t v = 0; v < w.pass->graph->value_count; v++)
        options->sights[v] = (mixt__sight){0};
    mixt_status status = mixt__shadow_begin(pass, batch, &w.run);
    if (status == MIXT_OK && full)
        status = mixt__shadow_begin(full, batch, &w.full_run);
    if (status == MIXT_OK)
        status = take_room(&w);
    if (status == MIXT_OK)
        status = walk_nodes(&w);
    free_room(&w);
    return status;
}
