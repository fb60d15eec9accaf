/* Ranking by the sensitivity analysis: one FP32 pass over some batches estimates what each layer loses in a format, the
 * worst are measured directly. Settled once: a search that goes on ranks as before. */
#include "choose/search_rank.h"

#include "base/status.h"
#include "mixt/sensitivity.h"

#include <math.h>
#include <stdio.h>

/** What a group loses, 0 (as FP32) to 1 (destroyed), and what it saves: FLOPs of its matrix work. */
typedef struct score {
    double loss, saves;
} score;

/** Whether the first is to be raised before the second: more lost for what it saves. */
static bool is_worse(score a, score b)
{
    return a.loss * b.saves > b.loss * a.saves;
}

static bool watch(void *user, const mixt_sensitivity_event *event)
{
    mixt__search *s = user;
    (void)event;
    mixt__search_tell(s, MIXT_SEARCH_STEP, NULL, "");
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
    mixt_sensitivity_options options = {.formats = level->name, .watch = watch, .user = s};
    MIXT_TRY(mixt__search_policy(&s->groups, s->fp32->levels, &fp32));
    mixt_status status = mixt__search_trainer(s, fp32, 0, true, &t);
    mixt_policy_free(fp32);
    if (status == MIXT_OK)
        status = mixt_sensitivity_of(t, s->e.train, &options, &found);
    json_t *losses = json_array();
    for (int64_t g = 0; found && g < s->groups.count; g++)
        json_array_append_new(losses, json_real(group_loss(found, &s->groups.items[g], level->format)));
    mixt_sensitivity_free(found);
    mixt__trainer_close(t);
    if (status == MIXT_OK)
        return mixt__search_state_settle(&s->state, name, losses);
    json_decref(losses);
    return mixt__search_halted(s) ? MIXT_OK : status; // ended by the one who watches: not a failure
}

mixt_status mixt__search_rank(mixt__search *s, char letter, int64_t *order)
{
    const mixt__search_level *level = mixt__search_level_of(letter);
    char name[64];
    snprintf(name, sizeof name, "sensitivity_%s", level->name);
    s->phase = "ranking layers";
    if (!mixt__search_state_fact(&s->state, name))
        MIXT_TRY(settle_losses(s, level, name));
    const json_t *losses = mixt__search_state_fact(&s->state, name);
    score *scores = mixt__alloc((size_t)s->groups.count * sizeof *scores);
    if (!scores)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a search");
    for (int64_t g = 0; g < s->groups.count; g++) {
        scores[g].loss = json_number_value(json_array_get(losses, (size_t)g));
        scores[g].saves = s->groups.items[g].flops + 1e-3 * s->groups.flops + 1; // an embedding saves little, not 0
        int64_t at = g;                                                          // insertion: groups are few
        for (; at > 0 && is_worse(scores[g], scores[order[at - 1]]); at--)
            order[at] = order[at - 1];
        order[at] = g;
    }
    mixt__free(scores);
    return MIXT_OK;
}
