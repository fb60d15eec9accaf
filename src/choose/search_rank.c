/* Ranking by replay: each group lowered alone, all others in FP32, for one trial. */
#include "choose/search_rank.h"

#include "base/status.h"

#include <math.h>
#include <string.h>

/** What a group loses, and what it saves. */
typedef struct score {
    double loss, saves;
} score;

/** Whether the first is to be raised before the second: more lost for what it saves. */
static bool is_worse(score a, score b)
{
    if (isinf(a.loss) && isinf(b.loss))
        return a.saves < b.saves;
    return a.loss * b.saves > b.loss * a.saves;
}

/** Trains with one group lowered; halted: the loss is what is known, 0. */
static mixt_status score_group(mixt__search *s, char letter, int64_t group, char *levels, score *found)
{
    memset(levels, MIXT_SEARCH_FULL, (size_t)s->groups.count);
    levels[group] = letter;
    mixt__search_try *tried = mixt__search_state_find(&s->state, levels);
    if (tried && !tried->line)
        tried->line = mixt__search_line(&s->groups, levels);
    if (!tried || !tried->line)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a search");
    if (!tried->trials[MIXT_SEARCH_SEEN])
        MIXT_TRY(mixt__search_measure_first(s, tried));
    mixt__search_change change = mixt__search_change_of(tried, s->fp32, MIXT_SEARCH_SEEN);
    found->loss = change.mean > 0 ? change.mean : 0; // better than FP32 is luck; NaN: halted
    found->saves = s->groups.items[group].flops + 1e-6 * s->groups.flops + 1;
    return MIXT_OK;
}

static mixt_status rank(mixt__search *s, char letter, int64_t *order, char *levels, score *scores)
{
    for (int64_t g = 0; g < s->groups.count; g++) {
        MIXT_TRY(score_group(s, letter, g, levels, &scores[g]));
        int64_t at = g; // insertion: groups are few
        for (; at > 0 && is_worse(scores[g], scores[order[at - 1]]); at--)
            order[at] = order[at - 1];
        order[at] = g;
    }
    return MIXT_OK;
}

mixt_status mixt__search_rank(mixt__search *s, char letter, int64_t *order)
{
    char *levels = mixt__alloc((size_t)s->groups.count + 1);
    score *scores = mixt__alloc((size_t)s->groups.count * sizeof *scores);
    s->phase = "ranking layers";
    mixt_status status = levels && scores ? rank(s, letter, order, levels, scores)
                                          : mixt__fail(MIXT_ERROR_MEMORY, "no memory for a search");
    mixt__free(levels);
    mixt__free(scores);
    return status;
}
