/* Planning the memory of gradients that do not stay. */
#include "train/dist/stage.h"

#include <string.h>

/** The segment whose gradient a value is, or is a part of; -1: none. */
static int64_t segment_of(const mixt__graph *graph, const mixt__params *p, int32_t value)
{
    const mixt__value *v = &graph->values[mixt__value_base(graph, value)];
    return v->role == MIXT_ROLE_GRAD ? p->segment_of[v->param] : -1;
}

void mixt__stage_mark(mixt__stage *w, const mixt__graph *graph, const mixt__params *p, const mixt__owners *s)
{
    if (w->graph == graph)
        return;
    w->graph = graph;
    for (int64_t g = 0; g < s->groups; g++)
        w->first[g] = w->ready[g] = -1;
    for (int64_t i = 0; i < graph->node_count; i++) {
        const mixt__node *n = &graph->nodes[i];
        for (int k = 0; k < n->in_count + n->out_count; k++) {
            bool writes = k >= n->in_count;
            int64_t segment = segment_of(graph, p, writes ? n->out[k - n->in_count] : n->in[k]);
            if (segment < 0)
                continue;
            int64_t g = mixt__owners_group(s, segment);
            w->first[g] = w->first[g] < 0 ? i : w->first[g];
            w->ready[g] = i;
            w->written[segment] = w->written[segment] || writes;
        }
    }
}

/** Groups that have gradients, by the number of a node. */
static int64_t sort(int64_t *list, const int64_t *by, int64_t groups)
{
    int64_t count = 0;
    for (int64_t g = 0; g < groups; g++) { // insertion sort: they are nearly in reverse order
        int64_t k = count;
        if (by[g] < 0)
            continue;
        for (; k > 0 && by[list[k - 1]] > by[g]; k--)
            list[k] = list[k - 1];
        list[k] = g;
        count++;
    }
    return count;
}

static int64_t size_of(const mixt__owners *s, int64_t group)
{
    return s->begins[group + 1] - s->begins[group];
}

/** The first place for a group that is free from its first node on. @param until by group: the last node of its time;
 *  of groups that have no place yet, -1 */
static int64_t find_place(const mixt__stage *w, const mixt__owners *s, int64_t group, const int64_t *until)
{
    int64_t at = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (int64_t i = 0; i < w->count; i++) {
            int64_t other = w->takes[i];
            if (until[other] < w->first[group] || w->at[other] + size_of(s, other) <= at ||
                at + size_of(s, group) <= w->at[other])
                continue;
            at = w->at[other] + size_of(s, other);
            moved = true;
        }
    }
    return at;
}

/** Places groups as they are begun. @param until (groups) for the time of planning, all -1 */
static void place(mixt__stage *w, const mixt__owners *s, int64_t *until)
{
    for (int64_t i = 0; i < w->count; i++) {
        int64_t group = w->takes[i], position = 0;
        w->at[group] = find_place(w, s, group, until);
        while (w->order[position] != group)
            position++;
        until[group] = position + 1 < w->count ? w->ready[w->order[position + 1]] : INT64_MAX;
        if (w->at[group] + size_of(s, group) > w->total)
            w->total = w->at[group] + size_of(s, group);
    }
    for (int64_t i = 0; i < w->count; i++)
        for (int64_t k = 0; k < w->count; k++) {
            int64_t group = w->takes[i], other = w->order[k];
            bool shared =
                w->at[other] < w->at[group] + size_of(s, group) && w->at[group] < w->at[other] + size_of(s, other);
            if (shared && until[other] < w->first[group])
                w->needs[group] = k + 1;
        }
}

mixt_status mixt__stage_make(mixt__stage *w, const mixt__graph *graph, const mixt__params *p, const mixt__owners *s)
{
    enum { LISTS = 7 };
    size_t groups = (size_t)s->groups + 1;
    mixt__stage_free(w);
    w->first = mixt__alloc(LISTS * groups * sizeof *w->first);
    w->written = mixt__alloc((size_t)p->segment_count + 1);
    if (!w->first || !w->written) {
        mixt__stage_free(w);
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to plan the memory of gradients");
    }
    int64_t **const lists[] = {&w->ready, &w->at, &w->needs, &w->order, &w->takes};
    for (int i = 0; i < 5; i++)
        *lists[i] = w->first + (size_t)(i + 1) * groups;
    int64_t *until = w->first + (LISTS - 1) * groups;
    for (int64_t g = 0; g < s->groups; g++)
        until[g] = -1;
    mixt__stage_mark(w, graph, p, s);
    w->count = sort(w->order, w->ready, s->groups);
    (void)sort(w->takes, w->first, s->groups);
    place(w, s, until);
    return MIXT_OK;
}

void mixt__stage_free(mixt__stage *w)
{
    mixt__free(w->first);
    mixt__free(w->written);
    *w = (mixt__stage){0};
}
