/* Slices of arenas, and the pieces of tensors that lie in them. */
#include "train/arenas.h"

#include "train/local.h"
#include "train/trainer_inside.h"

enum {
    MASTER = MIXT_ARENA_MASTER,
    MOMENT1 = MIXT_ARENA_MOMENT1,
    MOMENT2 = MIXT_ARENA_MOMENT2,
    STATE = MIXT_ARENA_STATE
};

const char *const mixt__arena_prefixes[MIXT_ARENAS] = {MIXT_STATE_MASTER, "moment1/", "moment2/",
                                                       MIXT_STATE_STATISTICS};

float *mixt__arena_of(const mixt__params *p, int which)
{
    float *const arenas[MIXT_ARENAS] = {p->master, p->moment1, p->moment2, p->state};
    return arenas[which];
}

bool mixt__arena_exists(const mixt__params *p, int which)
{
    return which == MASTER || (which == MOMENT1 && p->moments >= 1) || (which == MOMENT2 && p->moments >= 2) ||
           (which == STATE && p->state_total > 0);
}

int64_t mixt__arena_elements(const mixt__params *p, int which)
{
    return which == STATE ? p->state_total : p->total;
}

bool mixt__arena_shared_out(const mixt__params *p, int which)
{
    bool moment = which == MOMENT1 || which == MOMENT2;
    return (moment && p->shard.moments) || (which == MASTER && p->shard.masters);
}

int64_t mixt__arena_offset(const mixt__params *p, int64_t param, int which)
{
    int32_t segment = p->segment_of[param];
    if (which == STATE)
        return p->state_offset[param];
    if (segment < 0 || (which == MOMENT1 && p->moments < 1) || (which == MOMENT2 && p->moments < 2))
        return -1;
    return p->segments[segment].offset;
}

enum { UNIT = 16 }; // elements: what a rank writes of an arena that all have begins at multiples of it

/** Whether everyone has other moments. The first rank's are written. */
static bool are_apart(const mixt__trainer *t, int which)
{
    mixt__compressor unused;
    return (which == MOMENT1 || which == MOMENT2) && mixt__local_plan(t, &unused);
}

/** What this rank writes of an arena. @param one room for a slice */
static const mixt__param_slice *slices_of(const mixt__trainer *t, int which, mixt__param_slice *one, int64_t *count)
{
    const mixt__params *p = t->params;
    int64_t rank = t->ranks.group ? t->ranks.group->rank : 0, ranks = t->settings.ranks;
    int64_t total = mixt__arena_elements(p, which), units = total / UNIT;
    if (mixt__arena_shared_out(p, which)) {
        *count = p->shard.slice_count;
        return p->shard.slices;
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
    if (kind != MIXT_SNAPSHOT_WHOLE && mixt__arena_shared_out(t->params, which))
        return t->params->shard.room;
    if (kind != MIXT_SNAPSHOT_PART)
        return mixt__arena_elements(t->params, which);
    (void)slices_of(t, which, &one, &count);
    *from = one.begin;
    return one.count;
}

int64_t mixt__arena_copied_most(const mixt__trainer *t, int which, mixt__snapshot_kind kind)
{
    int64_t from, total = mixt__arena_elements(t->params, which), ranks = t->settings.ranks;
    if (kind != MIXT_SNAPSHOT_PART || mixt__arena_shared_out(t->params, which))
        return mixt__arena_copied(t, which, kind, &from);
    int64_t most = (total / UNIT / ranks + 2) * UNIT;
    return are_apart(t, which) || most > total ? total : most;
}

int64_t mixt__arenas_pieces_most(const mixt__trainer *t)
{
    const mixt__params *p = t->params;
    return MIXT_ARENAS * (p->count + (p->shard.slice_count ? p->shard.slice_count : 1));
}

/** A tensor, and where its elements lie: those of `slices`, one after the other from `base` on. */
typedef struct cutting {
    int64_t tensor, offset, elements;
    const mixt__param_slice *slices;
    int64_t slice_count;
    const float *base;
} cutting;

static int64_t cut(const cutting *c, mixt__checkpoint_piece *pieces)
{
    const int64_t unit = sizeof *c->base;
    int64_t count = 0;
    for (int64_t i = 0; i < c->slice_count; i++) {
        const mixt__param_slice *s = &c->slices[i];
        int64_t begin = s->begin > c->offset ? s->begin : c->offset, end = s->begin + s->count;
        end = end < c->offset + c->elements ? end : c->offset + c->elements;
        if (begin >= end)
            continue;
        if (pieces)
            pieces[count] = (mixt__checkpoint_piece){c->tensor, (begin - c->offset) * unit, (end - begin) * unit,
                                                     c->base + s->at + (begin - s->begin)};
        count++;
    }
    return count;
}

/** Where the first element lies that this rank writes of an arena; NULL: nowhere yet. */
static const float *base_of(const mixt__trainer *t, int which, float *const *blocks, mixt__snapshot_kind kind)
{
    const float *block = blocks ? blocks[which] : NULL;
    int64_t from;
    (void)mixt__arena_copied(t, which, MIXT_SNAPSHOT_PART, &from);
    if (block && kind == MIXT_SNAPSHOT_PART)
        return block;
    block = block ? block : mixt__arena_of(t->params, which);
    return block ? block + from : NULL;
}

int64_t mixt__arenas_pieces(const mixt__trainer *t, float *const *blocks, mixt__snapshot_kind kind,
                            mixt__checkpoint_piece *pieces, int64_t *tensors)
{
    const mixt__params *p = t->params;
    int64_t used = 0;
    *tensors = 0;
    for (int which = 0; which < MIXT_ARENAS; which++) {
        mixt__param_slice one;
        cutting c = {.base = pieces ? base_of(t, which, blocks, kind) : NULL};
        c.slices = slices_of(t, which, &one, &c.slice_count);
        for (int64_t i = 0; i < p->count; i++) {
            c.offset = mixt__arena_offset(p, i, which);
            if (c.offset < 0)
                continue;
            c.tensor = (*tensors)++;
            c.elements = p->table[i].count;
            used += cut(&c, pieces ? pieces + used : NULL);
        }
    }
    return used;
}
