/* Which values are worth keeping in a lower format: those without which the step would need more memory.
 *
 * Memory in use is added up node by node from the lives of values; what keeping one changes is known exactly: the whole
 * value is gone between the passes, the rounded one is there instead, and near its backward readers the widened one is
 * there beside it. A value whose gradient is the largest moment of the step therefore costs memory when it is kept, as
 * the gates of a single LSTM do. Starting with all of them, the innermost first, those are left out that the largest
 * moment does not need. Not modelled: where blocks are placed, and pointwise chains that fusion merges later.
 */
#include "passes/keep.h"

#include "num/num.h"

enum { ROUNDS = 4 };

typedef struct profile {
    const mixt__keeper *k;
    double *bytes; // in use, by node
    int64_t *end;  // by value: the last node that reads it or a view of it; its producer when none does
} profile;

static bool has_memory(const mixt__value *v)
{
    return v->role == MIXT_ROLE_ACTIVATION && v->producer >= 0;
}

static void add(profile *p, int64_t first, int64_t last, double bytes)
{
    for (int64_t i = first; i <= last; i++)
        p->bytes[i] += bytes;
}

/** Whether a node only makes windows on its input, forward or backward. */
static bool is_view(const mixt__node *n)
{
    return n->op->view && n->in_count == 1;
}

static void find_ends(profile *p)
{
    const mixt__graph *g = p->k->graph;
    for (int32_t v = 0; v < p->k->value_count; v++)
        p->end[v] = g->values[v].output ? p->k->node_count - 1 : g->values[v].producer;
    for (int64_t i = p->k->node_count - 1; i >= 0; i--) {
        const mixt__node *n = &g->nodes[i];
        int64_t end = i;
        for (int o = 0; o < n->out_count && is_view(n); o++)
            end = p->end[n->out[o]] > end ? p->end[n->out[o]] : end;
        for (int j = 0; j < n->in_count; j++)
            p->end[n->in[j]] = end > p->end[n->in[j]] ? end : p->end[n->in[j]];
    }
}

/** Whether output 0 of a node takes the memory of an input that ends there. */
static bool takes_over(const profile *p, int64_t node)
{
    const mixt__graph *g = p->k->graph;
    const mixt__node *n = &g->nodes[node];
    for (int j = 0; j < n->in_count && j < 32; j++) {
        const mixt__value *in = &g->values[n->in[j]], *out = &g->values[n->out[0]];
        if (mixt__bit(n->op->in_place_inputs, j) && has_memory(in) && p->end[n->in[j]] == node &&
            in->dtype == out->dtype && mixt__shape_equal(&in->shape, &out->shape))
            return true;
    }
    return false;
}

/** Memory in use when nothing is kept in another format. */
static void add_values(profile *p)
{
    const mixt__graph *g = p->k->graph;
    for (int64_t i = 0; i < p->k->node_count; i++) {
        const mixt__node *n = &g->nodes[i];
        for (int o = 0; o < n->out_count && !is_view(n); o++)
            if (has_memory(&g->values[n->out[o]]))
                add(p, o == 0 && takes_over(p, i) ? i + 1 : i, p->end[n->out[o]],
                    mixt__value_bytes(&g->values[n->out[o]]));
    }
}

/** The widened value of a group of readers from `first` on, and what it makes last. */
typedef struct group {
    int64_t first, reader, last;
} group;

/** Adds what keeping a value changes; with sign -1 takes it away again. */
static void add_kept(profile *p, int32_t value, double sign)
{
    const mixt__graph *g = p->k->graph;
    const mixt__saved *s = &p->k->saved[value];
    const mixt__value *v = &g->values[value];
    double whole = mixt__value_bytes(v), rounded = whole / (double)mixt_dtype_size(v->dtype);
    rounded *= (double)mixt_dtype_size(s->wish.saves);
    int64_t last = s->first_backward;
    group near = {-1, -1, -1};
    for (int64_t i = s->first_backward; i < p->k->node_count; i++) {
        const mixt__node *n = &g->nodes[i];
        for (int j = 0; j < n->in_count && !p->k->forward[i]; j++) {
            if (p->k->root[n->in[j]] != value)
                continue;
            last = i;
            if (n->in[j] == value && mixt__keep_merges(p->k, i, value))
                continue;
            if (near.first < 0 || i - near.reader > MIXT_KEEP_NEAR) {
                if (near.first >= 0)
                    add(p, near.first, near.last, sign * whole);
                near = (group){i, i, i};
            }
            near.reader = i;
            for (int o = 0; o < n->out_count && is_view(n); o++)
                near.last = p->end[n->out[o]] > near.last ? p->end[n->out[o]] : near.last;
            near.last = i > near.last ? i : near.last;
        }
    }
    if (near.first >= 0)
        add(p, near.first, near.last, sign * whole);
    add(p, s->last_forward + 1, p->end[value], -sign * whole);
    add(p, s->last_forward, last, sign * rounded);
}

static double peak(const profile *p)
{
    double most = 0;
    for (int64_t i = 0; i < p->k->node_count; i++)
        most = p->bytes[i] > most ? p->bytes[i] : most;
    return most;
}

/** Leaves out what the peak does not need; whether there was anything. */
static bool leave_out(profile *p)
{
    bool any = false;
    double most = peak(p);
    for (int32_t v = p->k->value_count - 1; v > 0; v--) {
        mixt__saved *s = &p->k->saved[v];
        if (s->dtype == MIXT_DTYPE_NONE)
            continue;
        add_kept(p, v, -1);
        double without = peak(p);
        if (without > most) {
            add_kept(p, v, 1);
            continue;
        }
        s->dtype = MIXT_DTYPE_NONE;
        most = without;
        any = true;
    }
    return any;
}

static void choose(profile *p)
{
    find_ends(p);
    add_values(p);
    double as_it_is = peak(p);
    for (int32_t v = 1; v < p->k->value_count; v++)
        if (p->k->saved[v].dtype != MIXT_DTYPE_NONE)
            add_kept(p, v, 1);
    for (int round = 0; round < ROUNDS && leave_out(p); round++)
        ;
    bool useless = peak(p) >= as_it_is;
    for (int32_t v = 1; v < p->k->value_count && useless; v++)
        p->k->saved[v].dtype = MIXT_DTYPE_NONE;
}

mixt_status mixt__keep_choose(mixt__keeper *keeper)
{
    profile p = {.k = keeper};
    p.bytes = mixt__alloc((size_t)(keeper->node_count + 1) * sizeof *p.bytes);
    p.end = mixt__alloc((size_t)keeper->value_count * sizeof *p.end);
    mixt_status status = p.bytes && p.end ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for the keep pass");
    if (status == MIXT_OK)
        choose(&p);
    mixt__free(p.bytes);
    mixt__free(p.end);
    return status;
}
