/* Ranking by what a group of layers loses in a format, over what it saves there.
 *
 * Losses come from the sensitivity analysis: one FP32 pass over some batches estimates what each layer loses, the worst
 * are measured directly. It is settled once: a search that goes on ranks as before. What is kept for the backward pass
 * is beyond it: such formats are ranked by what they save alone. Memory saved is exact, from plans with the group
 * raised; time saved is taken to go with the FLOPs.
 */
#include "choose/search_rank.h"

#include "base/status.h"
#include "mixt/sensitivity.h"
#include "store/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/** What a group loses, 0 (as FP32) to 1 (destroyed), and what it saves: bytes, or FLOPs of its matrix work. */
typedef struct score {
    double loss, saves;
} score;

/** Whether the first is to be raised before the second: more lost for what it saves. */
static bool is_worse(score a, score b)
{
    return a.loss * b.saves > b.loss * a.saves;
}

static bool pass_on(void *user, const mixt_progress *p)
{
    mixt__search *s = user;
    (void)p;
    mixt__search_tell(s, MIXT_PROGRESS_STEP, "");
    return !mixt__search_halted(s);
}

/** What a group loses is what the worst of its layers does. */
static double group_loss(const mixt_sensitivity *found, const mixt__search_group *group, mixt_dtype format)
{
    double loss = 0;
    for (int64_t i = 0; i < group->count; i++) {
        const mixt_sensitivity_row *row =
            mixt_sensitivity_find(found, group->layers[i], format, MIXT_SENSITIVITY_LOWERED);
        if (row)
            loss = fmax(loss, isfinite(row->score) ? 1 - row->score : 1);
    }
    return loss;
}

/** Losses of all groups as a list, settled under `name`. Where the search was halted, nothing is. */
static mixt_status settle_losses(mixt__search *s, const mixt__search_level *level, const char *name)
{
    mixt_policy *fp32;
    mixt_trainer *t = NULL;
    mixt_sensitivity *found = NULL;
    mixt_sensitivity_options options = MIXT_OPTIONS(mixt_sensitivity_options, .formats = mixt_dtype_name(level->format),
                                                    .progress = pass_on, .user = s);
    MIXT_TRY(mixt__search_policy(&s->groups, s->fp32->levels, &fp32));
    mixt_status status = mixt__search_trainer(s, fp32, 0, true, &t);
    mixt_policy_free(fp32);
    if (status == MIXT_OK)
        status = mixt_sensitivity_of(t, s->e.train, &options, &found);
    json_t *losses = json_array();
    for (int64_t g = 0; found && g < s->groups.count; g++)
        mixt__json_add_real(losses, group_loss(found, &s->groups.items[g], level->format));
    mixt_sensitivity_free(found);
    mixt__trainer_close(t);
    if (status == MIXT_OK)
        return mixt__search_state_settle(&s->state, name, losses);
    json_decref(losses);
    return mixt__search_halted(s) ? MIXT_OK : status; // ended by the one who watches: not a failure
}

/** Fills in losses: those settled, or 1 for all where nothing tells them apart. */
static mixt_status find_losses(mixt__search *s, const mixt__search_level *level, score *scores)
{
    char name[64];
    snprintf(name, sizeof name, "sensitivity_%s", level->name);
    if (!level->keep && !mixt__search_state_fact(&s->state, name))
        MIXT_TRY(settle_losses(s, level, name));
    const json_t *losses = mixt__search_state_fact(&s->state, name);
    for (int64_t g = 0; g < s->groups.count; g++)
        scores[g].loss = losses ? json_number_value(json_array_get(losses, (size_t)g)) : 1;
    return MIXT_OK;
}

/** Fills in what each group saves where all others are low. */
static mixt_status find_savings(mixt__search *s, char low, char safe, char *levels, score *scores)
{
    mixt__search_try *all, *raised;
    memset(levels, low, (size_t)s->groups.count);
    MIXT_TRY(mixt__search_get(s, levels, &all));
    for (int64_t g = 0; g < s->groups.count && !mixt__search_halted(s); g++) {
        scores[g].saves = s->groups.items[g].flops + 1e-3 * s->groups.flops + 1; // an embedding saves little, not 0
        if (s->options.goal == MIXT_SEARCH_TIME)
            continue;
        levels[g] = safe;
        MIXT_TRY(mixt__search_get(s, levels, &raised));
        MIXT_TRY(mixt__search_measure_cost(s, raised));
        levels[g] = low;
        scores[g].saves = fmax((double)(raised->memory - all->memory), 0) + 1e-4 * (double)all->memory;
    }
    return MIXT_OK;
}

static mixt_status rank(mixt__search *s, char low, char safe, int64_t *order, score *scores, char *levels)
{
    MIXT_TRY(find_losses(s, mixt__search_level_of(low), scores));
    MIXT_TRY(find_savings(s, low, safe, levels, scores));
    for (int64_t g = 0; g < s->groups.count; g++) {
        int64_t at = g; // insertion: groups are few
        for (; at > 0 && is_worse(scores[g], scores[order[at - 1]]); at--)
            order[at] = order[at - 1];
        order[at] = g;
    }
    return MIXT_OK;
}

mixt_status mixt__search_rank(mixt__search *s, char low, char safe, int64_t *order)
{
    char *levels = mixt__alloc((size_t)s->groups.count + 1);
    score *scores = mixt__alloc((size_t)s->groups.count * sizeof *scores);
    s->phase = "ranking layers";
    mixt_status status = levels && scores ? rank(s, low, safe, order, scores, levels)
                                          : mixt__fail(MIXT_ERROR_MEMORY, "no memory for a search");
    mixt__free(levels);
    mixt__free(scores);
    return status;
}
