/* What a search has found, as a value of its own: the search, with its data and its lock on the folder, is over. */
#include "choose/search.h"

#include "base/status.h"

#include <math.h>

struct mixt_search_result {
    mixt__arena arena; // of all texts
    mixt_search_info info;
    mixt_search_point *points;
};

static mixt_status no_memory(void)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the result of a search");
}

static mixt_status fill_point(const mixt__search *s, const mixt__search_try *t, mixt__arena *arena,
                              mixt_search_point *point)
{
    mixt__search_change c = mixt__search_change_of(t, s->fp32, MIXT_SEARCH_SEEN);
    *point = (mixt_search_point){.ms = t->ms, .memory = (size_t)t->memory, .loss_change = c.mean, .spread = c.error};
    if (t == s->fp32)
        point->loss_change = point->spread = 0;
    point->policy = mixt__arena_strdup(arena, t->line);
    point->trials = c.trials;
    point->within = mixt__search_within(s, t, MIXT_SEARCH_SEEN);
    point->chosen = t == s->best;
    return point->policy ? MIXT_OK : no_memory();
}

static mixt_status fill_front(const mixt__search *s, mixt_search_result *r)
{
    mixt__search_try **front;
    MIXT_TRY(mixt__search_front(s, &front, &r->info.points));
    mixt_status status = MIXT_OK;
    r->points = mixt__arena_alloc(&r->arena, (size_t)(r->info.points + 1) * sizeof *r->points);
    if (!r->points)
        status = no_memory();
    for (int64_t i = 0; status == MIXT_OK && i < r->info.points; i++)
        status = fill_point(s, front[i], &r->arena, &r->points[i]);
    mixt__free((void *)front);
    return status;
}

static mixt_status fill(const mixt__search *s, mixt_search_result *r)
{
    mixt__search_part part = s->validated ? MIXT_SEARCH_HELD_OUT : MIXT_SEARCH_SEEN;
    mixt__search_change c = mixt__search_change_of(s->best, s->fp32, part);
    mixt_search_info *i = &r->info;
    *i = (mixt_search_info){.ms = s->best->ms, .memory = (size_t)s->best->memory, .fp32_ms = s->fp32->ms};
    i->loss_change = s->best == s->fp32 ? 0 : c.mean;
    i->spread = s->best == s->fp32 ? 0 : c.error;
    i->validated = s->validated;
    i->complete = s->complete;
    i->stopped = s->stopped;
    i->fp32_memory = (size_t)s->fp32->memory;
    i->steps = s->steps[MIXT_SEARCH_SEEN];
    i->held_out_steps = s->steps[MIXT_SEARCH_HELD_OUT];
    i->trials = s->trials;
    i->tried = s->state.count;
    i->groups = s->groups.count;
    i->policy = mixt__arena_strdup(&r->arena, s->state.path);
    i->folder = mixt__arena_strdup(&r->arena, s->state.folder);
    return i->policy && i->folder ? fill_front(s, r) : no_memory();
}

mixt_status mixt_search_with(const mixt_config *config, const mixt_search_options *options, mixt_search_result **result)
{
    MIXT_TRY(mixt__need(result));
    *result = NULL;
    MIXT_TRY(mixt__need(config));
    MIXT_TRY(mixt__need(options));
    mixt__search *s = mixt__alloc(sizeof *s);
    mixt_search_result *r = mixt__alloc(sizeof *r);
    mixt_status status = s && r ? mixt__search_run(s, config, options) : no_memory();
    if (status == MIXT_OK)
        status = fill(s, r);
    if (s)
        mixt__search_close(s);
    mixt__free(s);
    if (status == MIXT_OK)
        *result = r;
    else
        mixt_search_free(r);
    return status;
}

void mixt_search_free(mixt_search_result *r)
{
    if (!r)
        return;
    mixt__arena_free(&r->arena);
    mixt__free(r);
}

mixt_search_info mixt_search_describe(const mixt_search_result *r)
{
    return r->info;
}

const mixt_search_point *mixt_search_front(const mixt_search_result *r, int64_t index)
{
    return index >= 0 && index < r->info.points ? &r->points[index] : NULL;
}
