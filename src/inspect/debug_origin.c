/* The op that made the first number that is not finite, apart from those that pass it on.
 *
 * Values come in the order in which they are made: all before the first bad one are finite. In the real step that one
 * may come out of a kernel that does the work of several ops. The pass with each op by itself has the same values under
 * the same numbers, and those between that the kernel keeps to itself: the first bad one among these is the answer.
 * Other values of that pass count for nothing here: it rounds where the kernel does not.
 */
#include "inspect/debug.h"

#include "graph/op.h"
#include "num/num.h"

#include <math.h>
#include <string.h>

const char *mixt_debug_cause_name(mixt_debug_cause cause)
{
    static const char *const names[] = {"op", "parameter", "input", "target", "scale"};
    return (unsigned)cause < sizeof names / sizeof names[0] ? names[cause] : "?";
}

/* ---- which node ---- */

typedef struct search {
    const mixt__sights *sights;
    const mixt__graph *low;  // each op by itself
    bool *in_real, *visited; // by value: a node of the step makes it; seen
    int32_t found;           // node of low; -1: none yet
} search;

/** Goes back from a value through values that exist in `low` alone. */
static void visit(search *f, int32_t value)
{
    const mixt__sight *s = &f->sights->plain_values[value];
    if (f->visited[value] || !s->made)
        return;
    f->visited[value] = true;
    const mixt__node *n = &f->low->nodes[s->node];
    if (mixt__sight_bad(s) && !n->alias && (f->found < 0 || s->node < f->found))
        f->found = s->node;
    for (int k = 0; k < n->in_count; k++)
        if (!f->in_real[n->in[k]])
            visit(f, n->in[k]);
}

/** The node of the real step that made its first bad value. */
static const mixt__node *real_maker(const mixt_debug *d, const mixt__graph *real)
{
    int32_t bad = d->ids[d->info.first_nonfinite];
    for (int64_t i = 0; i < real->node_count; i++)
        for (int o = 0; o < real->nodes[i].out_count; o++)
            if (real->nodes[i].out[o] == bad)
                return &real->nodes[i];
    return NULL;
}

/** The node of the graph with each op by itself that the step's first bad value comes from; -1: that one does not have
 *  it. */
static mixt_status find_inside(const mixt__sights *s, int32_t *found)
{
    const mixt__graph *step = s->low->executable->graph;
    search f = {.sights = s, .low = s->plain->executable->graph, .found = -1};
    const mixt__node *maker = &step->nodes[s->first_bad];
    f.in_real = mixt__alloc((size_t)f.low->value_count * sizeof *f.in_real);
    f.visited = mixt__alloc((size_t)f.low->value_count * sizeof *f.visited);
    mixt_status status = f.in_real && f.visited ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory to find an op");
    int64_t common = step->plain_values < f.low->plain_values ? step->plain_values : f.low->plain_values;
    for (int64_t i = 0; status == MIXT_OK && i < step->node_count; i++)
        for (int o = 0; o < step->nodes[i].out_count; o++)
            if (step->nodes[i].out[o] < common)
                f.in_real[step->nodes[i].out[o]] = true;
    for (int o = 0; status == MIXT_OK && o < maker->out_count; o++)
        if (maker->out[o] < common && mixt__sight_bad(&s->by_value[maker->out[o]]))
            visit(&f, maker->out[o]);
    *found = f.found;
    mixt__free(f.in_real);
    mixt__free(f.visited);
    return status;
}

/* ---- what it read ---- */

static const char *const outside_names[MIXT_ROLE_COUNT] = {
    [MIXT_ROLE_INPUT] = "input",     [MIXT_ROLE_TARGET] = "target", [MIXT_ROLE_PARAM] = "parameter",
    [MIXT_ROLE_STATE] = "parameter", [MIXT_ROLE_SEED] = "scale",
};

/** A value that the op reads or makes. */
static void describe(mixt_debug *d, const mixt__graph *g, const mixt__sight *s, int32_t id, mixt_debug_value *v)
{
    const mixt__value *value = &g->values[id];
    bool param = value->role == MIXT_ROLE_PARAM || value->role == MIXT_ROLE_STATE || value->role == MIXT_ROLE_GRAD;
    mixt__debug_fill(v, value->dtype, s->numbers, s->counts);
    v->layer = v->op = v->tensor = "";
    v->name = param ? mixt__debug_text(d, g->params[value->param].name) : "";
    if (s->made) {
        const mixt__node *n = &g->nodes[s->node];
        v->layer = mixt__debug_text(d, n->layer);
        v->op = mixt__debug_text(d, mixt__debug_op(g, n));
        v->backward = n->backward;
        v->compared = s->compared;
        v->reference = s->compared ? s->reference : NAN;
    } else if (outside_names[value->role]) {
        v->op = outside_names[value->role];
    }
}

/** Whether the master of a parameter is finite. */
static bool master_finite(const mixt__trainer *t, const char *name)
{
    int32_t index = mixt__params_find(mixt__trainer_params(t), name);
    bool finite = true;
    if (index < 0)
        return false;
    int64_t count = mixt__trainer_params(t)->table[index].count;
    float *values = mixt__alloc((size_t)count * sizeof *values + 1);
    if (!values || mixt__params_get(mixt__trainer_params(t), index, values) != MIXT_OK)
        count = 0;
    for (int64_t i = 0; i < count && finite; i++)
        finite = isfinite(values[i]);
    mixt__free(values);
    return finite;
}

/** Whether what comes from outside held the number already. */
static void find_cause(mixt_debug *d, const mixt__sights *s)
{
    mixt_debug_origin *o = &d->origin;
    for (int i = 0; i < o->input_count && o->cause == MIXT_DEBUG_CAUSE_OP; i++) {
        const mixt_debug_value *v = &o->inputs[i];
        bool target = !strcmp(v->op, "target");
        if (target ? !v->inf : !(v->nan + v->inf)) // losses of values leave out a NaN
            continue;
        if (!strcmp(v->op, "parameter")) {
            o->cause = MIXT_DEBUG_CAUSE_PARAMETER;
            o->source = v->name;
            o->rounded = master_finite(s->low->trainer, v->name);
        } else if (target || !strcmp(v->op, "input")) {
            o->cause = target ? MIXT_DEBUG_CAUSE_TARGET : MIXT_DEBUG_CAUSE_INPUT;
            o->sample = s->sample;
            o->place = s->place;
            o->rounded = s->rounded;
        } else if (!strcmp(v->op, "scale")) {
            o->cause = MIXT_DEBUG_CAUSE_SCALE;
        }
    }
}

/** Whether the real step computes this node by a kernel of its own. */
static bool is_alone(const mixt__graph *real, const mixt__node *n)
{
    for (int64_t i = 0; i < real->node_count; i++) {
        const mixt__node *r = &real->nodes[i];
        for (int o = 0; o < r->out_count; o++)
            if (r->out[o] == n->out[0])
                return r->op == n->op && r->in_count == n->in_count && r->out_count == n->out_count;
    }
    return false;
}

static void describe_node(mixt_debug *d, const mixt__sights *s, int32_t node)
{
    const mixt__graph *g = s->plain->executable->graph;
    const mixt__sight *sights = s->plain_values;
    const mixt__node *n = &g->nodes[node];
    mixt_debug_origin *o = &d->origin;
    o->layer = mixt__debug_text(d, n->layer);
    o->op = mixt__debug_text(d, mixt__debug_op(g, n));
    o->backward = n->backward;
    o->pass = s->pass;
    o->fused = !is_alone(s->low->executable->graph, n);
    for (int k = n->out_count - 1; k >= 0; k--)
        if (sights[n->out[k]].made && (mixt__sight_bad(&sights[n->out[k]]) || !k))
            describe(d, g, &sights[n->out[k]], n->out[k], &o->value);
    for (int k = 0; k < n->in_count && o->input_count < MIXT_DEBUG_INPUTS_MAX; k++)
        if (sights[n->in[k]].counts[MIXT_STATS_COUNT])
            describe(d, g, &sights[n->in[k]], n->in[k], &o->inputs[o->input_count++]);
    find_cause(d, s);
}

/** Without the pass that shows each op by itself: as the real step has it. */
static void describe_real(mixt_debug *d, const mixt__graph *real)
{
    mixt_debug_origin *o = &d->origin;
    const mixt__node *maker = real_maker(d, real);
    o->value = d->values[d->info.first_nonfinite];
    o->layer = o->value.layer;
    o->op = o->value.op;
    o->backward = o->value.backward;
    for (int k = 0; maker && k < maker->in_count && o->input_count < MIXT_DEBUG_INPUTS_MAX; k++) {
        const mixt__value *v = &real->values[maker->in[k]];
        for (int64_t i = 0; i < d->info.values; i++)
            if (d->ids[i] == maker->in[k])
                o->inputs[o->input_count++] = d->values[i];
        if (v->role == MIXT_ROLE_PARAM && !strcmp(real->params[v->param].name, d->info.source)) {
            o->cause = MIXT_DEBUG_CAUSE_PARAMETER;
            o->source = d->info.source;
        }
    }
}

mixt_status mixt__debug_find_origin(mixt_debug *d, const mixt__sights *s, const mixt__graph *real)
{
    int32_t node = -1;
    d->origin = (mixt_debug_origin){.sample = -1, .place = -1, .source = ""};
    if (d->info.first_nonfinite < 0)
        return MIXT_OK;
    if (s->plain && s->first_bad >= 0)
        MIXT_TRY(find_inside(s, &node));
    if (node >= 0)
        describe_node(d, s, node);
    else
        describe_real(d, real);
    return MIXT_OK;
}
