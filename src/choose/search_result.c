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
    *point = (mixt_search_point){.ms = t->ms, .memory = (size_t)t->memory, .safe = mixt__search_judge(s, t)};
    point->policy = mixt__arena_strdup(arena, t->line);
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

/** Of the policies that were shown to lose, the last whose final word was asked for, or else the cheapest. */
static mixt_status fill_refused(const mixt__search *s, mixt_search_result *r)
{
    const mixt__search_try *found = NULL;
    for (int64_t i = 0; i < s->state.count; i++) {
        const mixt__search_try *t = s->state.tries[i];
        bool cheaper = mixt__search_cost(s, t) < (found ? mixt__search_cost(s, found) : (double)INFINITY);
        if (mixt__search_judge(s, t).verdict == MIXT_VERDICT_NO &&
            (!found || t->finalist > found->finalist || (t->finalist == found->finalist && cheaper)))
            found = t;
    }
    r->info.refused = found ? mixt__arena_strdup(&r->arena, found->line) : "";
    if (found)
        r->info.refused_safe = mixt__search_judge(s, found);
    return r->info.refused ? MIXT_OK : no_memory();
}

static mixt_status fill(const mixt__search *s, mixt_search_result *r)
{
    mixt_search_info *i = &r->info;
    *i = (mixt_search_info){.ms = s->best->ms, .memory = (size_t)s->best->memory, .fp32_ms = s->fp32->ms};
    i->safe = mixt__search_judge(s, s->best);
    i->worth = mixt__search_worth(s, s->best);
    i->lower = s->best != s->fp32;
    i->complete = s->complete;
    i->stopped = s->stopped;
    i->fp32_memory = (size_t)s->fp32->memory;
    i->steps = s->steps[MIXT_SEARCH_SEEN];
    i->fresh_steps = s->steps[MIXT_SEARCH_FRESH];
    i->trials = s->trials;
    i->tried = s->state.count;
    i->groups = s->groups.count;
    i->finalists = s->finalists;
    i->policy = mixt__arena_strdup(&r->arena, s->state.path);
    i->line = mixt__arena_strdup(&r->arena, s->best->line);
    i->folder = mixt__arena_strdup(&r->arena, s->state.folder);
    if (!i->policy || !i->line || !i->folder)
        return no_memory();
    MIXT_TRY(fill_refused(s, r));
    return fill_front(s, r);
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
