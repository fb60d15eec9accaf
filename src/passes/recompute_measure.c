/* What one set of units costs and how much memory it needs: the meaning of the problem, told in the plainest way. The
 * solver must agree with it. */
#include "passes/recompute.h"

#include <string.h>

/** When values are needed late, by the graph's own readers and by units that are computed again. */
typedef struct needs {
    int64_t *first, *last; // by value
    int64_t *change;       // by time: bytes more than at the time before
} needs;

static void add(needs *n, int64_t from, int64_t to, size_t bytes)
{
    if (from > to)
        return;
    n->change[from] += (int64_t)bytes;
    n->change[to + 1] -= (int64_t)bytes;
}

/** When a unit's values are first needed late; INT64_MAX: never. */
static int64_t first_need(const mixt__recompute_unit *u, const needs *n)
{
    int64_t first = INT64_MAX;
    for (int32_t v = u->first; v < u->first + u->count; v++)
        first = n->first[v] < first ? n->first[v] : first;
    return first;
}

static void run_again(const mixt__recompute_problem *p, const mixt__recompute_unit *u, int64_t when, needs *n)
{
    for (int32_t v = u->first; v < u->first + u->count; v++)
        add(n, when, n->last[v] < 0 ? when : mixt__recompute_end(&p->values[v], n->last[v]), p->values[v].bytes);
    for (int32_t k = 0; k < u->in_count; k++) {
        int32_t v = u->in[k];
        n->first[v] = when < n->first[v] ? when : n->first[v];
        n->last[v] = when > n->last[v] ? when : n->last[v];
    }
}

static void keep(const mixt__recompute_problem *p, const mixt__recompute_unit *u, needs *n)
{
    for (int32_t v = u->first; v < u->first + u->count; v++)
        if (n->last[v] >= 0)
            add(n, p->values[v].last_early + 1, mixt__recompute_end(&p->values[v], n->last[v]), p->values[v].bytes);
}

static void measure(const mixt__recompute_problem *p, const bool *again, needs *n, double *seconds, size_t *peak)
{
    *seconds = 0;
    *peak = 0;
    for (int64_t v = 0; v < p->value_count; v++) {
        n->first[v] = p->values[v].first_late;
        n->last[v] = p->values[v].last_late;
    }
    for (int64_t i = p->unit_count - 1; i >= 0; i--) { // readers come after what they read
        const mixt__recompute_unit *u = &p->units[i];
        int64_t when = first_need(u, n);
        if (when == INT64_MAX)
            continue;
        if (again[i] && u->may) {
            *seconds += u->seconds;
            run_again(p, u, when, n);
        } else {
            keep(p, u, n);
        }
    }
    int64_t load = 0;
    for (int64_t t = 0; t < p->times; t++) {
        load += n->change[t];
        if ((size_t)load + p->base[t] > *peak)
            *peak = (size_t)load + p->base[t];
    }
}

bool mixt__recompute_measure(const mixt__recompute_problem *p, const bool *again, double *seconds, size_t *peak)
{
    needs n = {.first = mixt__alloc((size_t)(p->value_count + 1) * sizeof *n.first),
               .last = mixt__alloc((size_t)(p->value_count + 1) * sizeof *n.last),
               .change = mixt__alloc((size_t)(p->times + 1) * sizeof *n.change)};
    bool enough = n.first && n.last && n.change;
    if (enough)
        measure(p, again, &n, seconds, peak);
    mixt__free(n.first);
    mixt__free(n.last);
    mixt__free(n.change);
    return enough;
}
