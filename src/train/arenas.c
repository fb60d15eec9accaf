/* Slices of arenas, and the pieces of tensors that lie in them. */
#include "train/arenas.h"

#include "train/dist/local.h"
#include "train/trainer_inside.h"

enum { UNIT = 16 }; // elements: what a rank writes of an arena that all have begins at multiples of it

/** Whether everyone has other moments. The first rank's are written. */
static bool are_apart(const mixt__trainer *t, int which)
{
    mixt__compressor unused;
    return t->params->roles[which].counts == MIXT_COUNTS_MOMENTS && mixt__local_plan(t, &unused);
}

/** What this rank writes of an arena. @param one room for a slice */
static const mixt__param_slice *slices_of(const mixt__trainer *t, int which, mixt__param_slice *one, int64_t *count)
{
    const mixt__params *p = t->params;
    int64_t rank = t->ranks.group ? t->ranks.group->rank : 0, ranks = t->settings.ranks;
    int64_t total = p->roles[which].elements, units = total / UNIT;
    if (p->roles[which].owner == MIXT_OWNER_SHARD) {
        *count = p->shard.slice_count;
        return p->roles[which].slices;
    }
    if (are_apart(t, which)) {
        *one = (mixt__param_slice){.count = rank ? 0 : total};
        *count = 1;
        return one;
    }
    int64_t begin = units * rank / ranks * UNIT, end = units * (rank + 1) / ranks * UNIT;
    *one = (mixt__param_slice){.begin = begin, .count = (rank + 1 == ranks ? total : end) - begin};
    *count = 1;
    return one;
}

int64_t mixt__arena_copied(const mixt__trainer *t, int which, mixt__snapshot_kind kind, int64_t *from)
{
    mixt__param_slice one = {0};
    int64_t count;
    *from = 0;
    if (kind != MIXT_SNAPSHOT_WHOLE && t->params->roles[which].owner == MIXT_OWNER_SHARD)
        return t->params->roles[which].here;
    if (kind != MIXT_SNAPSHOT_PART)
        return t->params->roles[which].elements;
    (void)slices_of(t, which, &one, &count);
    *from = one.begin;
    return one.count;
}

int64_t mixt__arena_copied_most(const mixt__trainer *t, int which, mixt__snapshot_kind kind)
{
    int64_t from, total = t->params->roles[which].elements, ranks = t->settings.ranks;
    if (kind != MIXT_SNAPSHOT_PART || t->params->roles[which].owner == MIXT_OWNER_SHARD)
        return mixt__arena_copied(t, which, kind, &from);
    int64_t most = (total / UNIT / ranks + 2) * UNIT;
    return are_apart(t, which) || most > total ? total : most;
}

int mixt__arenas_saved(const mixt__params *p, int order[MIXT_PARAM_ROLES])
{
    int count = 0;
    for (int which = 0; which < MIXT_PARAM_ROLES; which++) { // insertion sort, by the size of an element
        int k = count;
        if (!mixt__role_saved(&p->roles[which]))
            continue;
        size_t size = mixt_dtype_size(p->roles[which].format);
        for (; k > 0 && mixt_dtype_size(p->roles[order[k - 1]].format) < size; k--)
            order[k] = order[k - 1];
        order[k] = which;
        count++;
    }
    return count;
}

int64_t mixt__arenas_pieces_most(const mixt__trainer *t)
{
    const mixt__params *p = t->params;
    int order[MIXT_PARAM_ROLES];
    return mixt__arenas_saved(p, order) * (p->count + (p->shard.slice_count ? p->shard.slice_count : 1));
}

/** A tensor, and where its elements lie: those of `slices`, one after the other from `base` on. */
typedef struct cutting {
    int64_t tensor, offset, elements;
    const mixt__param_slice *slices;
    int64_t slice_count, unit; // bytes of an element
    const char *base;
} cutting;

static int64_t cut(const cutting *c, mixt__checkpoint_piece *pieces)
{
    const int64_t unit = c->unit;
    int64_t count = 0;
    for (int64_t i = 0; i < c->slice_count; i++) {
        const mixt__param_slice *s = &c->slices[i];
        int64_t begin = s->begin > c->offset ? s->begin : c->offset, end = s->begin + s->count;
        end = end < c->offset + c->elements ? end : c->offset + c->elements;
        if (begin >= end)
            continue;
        if (pieces)
            pieces[count] =
                (mixt__checkpoint_piece){.tensor = c->tensor,
                                         .begin = (begin - c->offset) * unit,
                                         .bytes = (end - begin) * unit,
                                         .data = c->base ? c->base + (s->at + (begin - s->begin)) * unit : NULL};
        count++;
    }
    return count;
}

/** Where the first element lies that this rank writes of an arena; NULL: nowhere yet. */
static const char *base_of(const mixt__trainer *t, int which, char *const *blocks, mixt__snapshot_kind kind)
{
    const mixt__param_role *role = &t->params->roles[which];
    const char *block = blocks ? blocks[which] : NULL;
    int64_t from;
    (void)mixt__arena_copied(t, which, MIXT_SNAPSHOT_PART, &from);
    if (block && kind == MIXT_SNAPSHOT_PART)
        return block;
    block = block ? block : role->data;
    return block ? block + mixt__role_size(role, from) : NULL;
}

int64_t mixt__arenas_pieces(const mixt__trainer *t, char *const *blocks, mixt__snapshot_kind kind,
                            mixt__checkpoint_piece *pieces, int64_t *tensors)
{
    const mixt__params *p = t->params;
    int64_t used = 0;
    int order[MIXT_PARAM_ROLES], roles = mixt__arenas_saved(p, order);
    *tensors = 0;
    for (int r = 0; r < roles; r++) {
        mixt__param_slice one;
        int which = order[r];
        cutting c = {.unit = (int64_t)mixt_dtype_size(p->roles[which].format),
                     .base = pieces ? base_of(t, which, blocks, kind) : NULL};
        c.slices = slices_of(t, which, &one, &c.slice_count);
        for (int64_t i = 0; i < p->count; i++) {
            c.offset = mixt__params_offset(p, which, i);
            if (c.offset < 0)
                continue;
            c.tensor = (*tensors)++;
            c.elements = mixt__role_elements(&p->roles[which], p->table[i].count);
            used += cut(&c, pieces ? pieces + used : NULL);
        }
    }
    return used;
}
