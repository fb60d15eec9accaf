/* Names of values, by which a user asks for them: layer, op and pass, a number behind what would come twice. Gradients
 * of parameters are "PARAMETER.grad". Both graphs of a step, with statistics and without, give the same names. */
#include "inspect/debug.h"

#include "graph/op.h"
#include "ops/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** A name and where it is, to find those that are the same. */
typedef struct entry {
    char *name;
    int64_t order;
    int32_t value;
} entry;

static int by_name(const void *x, const void *y)
{
    const entry *a = x, *b = y;
    int order = strcmp(a->name, b->name);
    return order ? order : (a->order > b->order) - (a->order < b->order);
}

static char *make_name(const mixt__graph *g, const mixt__node *n, int32_t value, mixt__arena *arena)
{
    const mixt__value *v = &g->values[value];
    char *name = v->role == MIXT_ROLE_GRAD ? mixt__arena_printf(arena, "%s.grad", g->params[v->param].name)
                                           : mixt__arena_printf(arena, "%s.%s.%s", n->layer, mixt__debug_op(g, n),
                                                                n->backward ? "backward" : "forward");
    for (char *at = name; at && *at; at++) // names of files are made of them
        if (*at == '/')
            *at = '_';
    return name;
}

/** Puts numbers behind names that come more than once: the first stays as it is. */
static bool number_names(entry *entries, int64_t count, mixt__arena *arena, const char **names)
{
    qsort(entries, (size_t)count, sizeof *entries, by_name);
    for (int64_t i = 0, same = 1; i < count; i++) {
        same = i && !strcmp(entries[i].name, entries[i - 1].name) ? same + 1 : 1;
        names[entries[i].value] =
            same > 1 ? mixt__arena_printf(arena, "%s.%lld", entries[i].name, (long long)same) : entries[i].name;
        if (!names[entries[i].value])
            return false;
    }
    return true;
}

mixt_status mixt__debug_name(const mixt__graph *g, mixt__arena *arena, const char ***names)
{
    entry *entries = mixt__alloc((size_t)g->value_count * sizeof *entries);
    int64_t count = 0;
    bool good = entries;
    *names = mixt__alloc((size_t)g->value_count * sizeof **names);
    for (int64_t i = 0; good && *names && i < g->node_count; i++) {
        const mixt__node *n = &g->nodes[i];
        for (int o = 0; o < n->out_count && !n->alias && n->op != &mixt__op_tensor_stats; o++) {
            int32_t value = n->out[o];
            if ((*names)[value])
                continue; // a gradient that several nodes add to
            (*names)[value] = entries[count].name = make_name(g, n, value, arena);
            entries[count].value = value;
            entries[count].order = count;
            good = good && entries[count++].name;
        }
    }
    good = good && *names && number_names(entries, count, arena, *names);
    mixt__free(entries);
    return good ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for the names of values");
}
