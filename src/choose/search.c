/* The search itself: what is tried, in which order, what is taken, when it ends.
 *
 *   1. FP32, which is always within the tolerance, and every lower format for all layers at once.
 *   2. The cheapest format that is cheaper than what is within the tolerance so far: the sensitivity analysis says how
 *      much each group of layers loses in it; the worst are raised again, as few as will do (bisection over the
 * ranking).
 *   3. What is raised is lowered back where the tolerance allows it, in halves and then one by one, and put into the
 *      other formats where those are cheaper.
 *   4. The cheapest that was not shown to lose gets the final word, on fresh pairs. Where they show that it loses, the
 *      search goes on without it; where it stays undecided, it is offered as such. Where screening has left nothing,
 *      formats that it has set aside get the final word all the same: FP32 alone is left only where that is shown.
 *
 * Every decision follows from figures that are on disk (see search.h), so that a search that goes on finds its way.
 */
#include "choose/search.h"

#include "base/progress.h"
#include "base/status.h"
#include "base/threads.h"
#include "choose/search_rank.h"
#include "store/json.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LEVELS_MAX = 8 };

static const double less = 0.995; // below this share of another a cost counts as less: no layer is raised for a hair

/* ---- telling ---- */

static const char *cost_text(const mixt__search *s, const mixt__search_try *t, char text[32])
{
    double cost = t ? mixt__search_cost(s, t) : (double)NAN;
    if (isnan(cost))
        snprintf(text, 32, "-");
    else if (s->options.goal == MIXT_SEARCH_MEMORY)
        mixt__progress_bytes(text, cost);
    else
        snprintf(text, 32, "%.2f ms", cost);
    return text;
}

void mixt__search_tell(mixt__search *s, mixt_progress_kind kind, const char *text)
{
    char best[32], fp32[32], costs[80];
    if (!s->e.teller.progress)
        return;
    mixt_progress p = mixt__progress(kind, s->phase ? s->phase : "");
    snprintf(costs, sizeof costs, "best %s (fp32 %s)", cost_text(s, s->best, best), cost_text(s, s->fp32, fp32));
    p.unit = "policies";
    p.done = s->state.count;
    p.seconds = mixt__time_now() - s->started;
    p.budget = s->budget;
    p.text = kind == MIXT_PROGRESS_STEP ? costs : text;
    if (!mixt__tell_on(s->e.teller, &p))
        s->stopped = true;
}

/** A sentence of any length. */
static void tell_line(mixt__search *s, mixt_progress_kind kind, const char *begins, const char *policy)
{
    size_t size = strlen(begins) + strlen(policy) + 1;
    char *text = mixt__alloc(size);
    if (text)
        snprintf(text, size, "%s%s", begins, policy);
    mixt__search_tell(s, kind, text ? text : begins);
    mixt__free(text);
}

/** What a policy costs and loses, now that it is measured. */
static void tell_tried(mixt__search *s, const mixt__search_try *t)
{
    char cost[32], change[100] = "", begins[160];
    mixt_judgement j = mixt__search_judge_part(s, t, MIXT_SEARCH_SEEN);
    if (t != s->fp32 && isinf(j.value))
        snprintf(change, sizeof change, ", diverged");
    else if (t != s->fp32 && isnan(j.low))
        snprintf(change, sizeof change, ", loss %+.3f%%", 100 * j.value);
    else if (t != s->fp32)
        snprintf(change, sizeof change, ", loss %+.3f%% (%+.3f%% to %+.3f%%)", 100 * j.value, 100 * j.low,
                 100 * j.high);
    snprintf(begins, sizeof begins, "tried %s%s: ", cost_text(s, t, cost), change);
    tell_line(s, MIXT_PROGRESS_PART, begins, t->line);
}

static void tell_best(mixt__search *s)
{
    char cost[32], begins[64];
    snprintf(begins, sizeof begins, "best so far %s: ", cost_text(s, s->best, cost));
    tell_line(s, MIXT_PROGRESS_NOTE, begins, s->best->line);
}

/** A line about the weights that training begins with. */
static void note(void *user, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    mixt__search_tell(user, MIXT_PROGRESS_NOTE, text);
}

bool mixt__search_halted(const mixt__search *s)
{
    double kept = s->finishing ? 0 : fmin(0.4 * s->budget, 2.2 * (double)s->reserved * s->trial_seconds);
    return s->stopped || mixt__time_now() - s->started > s->budget - kept;
}

/* ---- tries ---- */

static mixt_status no_memory(void)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a search");
}

mixt_status mixt__search_get(mixt__search *s, const char *levels, mixt__search_try **tried)
{
    *tried = mixt__search_state_find(&s->state, levels);
    if (*tried && !(*tried)->line)
        (*tried)->line = mixt__search_line(&s->groups, levels);
    return *tried && (*tried)->line ? MIXT_OK : no_memory();
}

mixt_status mixt__search_save(const mixt__search *s, const mixt__search_try *t)
{
    json_t *derived = json_object();
    mixt_judgement seen = mixt__search_judge_part(s, t, MIXT_SEARCH_SEEN);
    mixt__json_set(derived, "loss_change", isfinite(seen.value) ? json_real(seen.value) : json_null());
    mixt__json_set(derived, "judgement", mixt__judgement_object(&seen));
    if (t->finalist) {
        mixt_judgement word = mixt__search_judge(s, t);
        mixt__json_set(derived, "final", mixt__judgement_object(&word));
    }
    return mixt__search_state_save(&s->state, t, derived);
}

static bool is_cheaper(const mixt__search *s, const mixt__search_try *a, const mixt__search_try *b)
{
    return mixt__search_cost(s, a) < less * mixt__search_cost(s, b);
}

/** Not shown to lose: by its final word, or else by what it was screened by. */
static bool holds(const mixt__search *s, const mixt__search_try *t)
{
    if (t->finalist && mixt__search_has_word(t))
        return mixt__search_judge(s, t).verdict != MIXT_VERDICT_NO;
    return mixt__search_screen(s, t) == MIXT_VERDICT_YES;
}

/** How much speaks for a policy: 2 where it seems to lose less than the tolerance, 1 where it was not shown to lose
 *  more, 0 where it was or nothing is gained by it. */
static int standing(const mixt__search *s, const mixt__search_try *t)
{
    if (!is_cheaper(s, t, s->fp32) || !holds(s, t))
        return 0;
    return mixt__search_judge(s, t).value < s->options.lose ? 2 : 1;
}

/** FLOPs of the matrix work that a try leaves in FP32. */
static double full_flops(const mixt__search *s, const mixt__search_try *t)
{
    double flops = 0;
    for (int64_t g = 0; g < s->groups.count; g++)
        flops += t->levels[g] == MIXT_SEARCH_FULL ? s->groups.items[g].flops : 0;
    return flops;
}

/** The cheapest of the highest standing; of those that cost as good as the same, the one that leaves least in FP32. */
static mixt__search_try *find_best(const mixt__search *s)
{
    mixt__search_try *best = s->fp32;
    double least = INFINITY;
    int highest = 1;
    for (int64_t i = 0; i < s->state.count; i++) {
        int at = standing(s, s->state.tries[i]);
        double cost = mixt__search_cost(s, s->state.tries[i]);
        if (at < highest)
            continue;
        least = at > highest ? cost : fmin(least, cost);
        highest = at;
    }
    for (int64_t i = 0; i < s->state.count; i++) {
        mixt__search_try *t = s->state.tries[i];
        if (standing(s, t) >= highest && less * mixt__search_cost(s, t) <= least &&
            (best == s->fp32 || full_flops(s, t) < full_flops(s, best)))
            best = t;
    }
    return best;
}

/** Puts the best so far on disk where it is another one now. */
static mixt_status refresh_best(mixt__search *s)
{
    mixt__search_try *best = find_best(s);
    s->reserved = mixt__search_planned(s, best);
    if (best == s->best)
        return MIXT_OK;
    s->best = best;
    MIXT_TRY(mixt__search_write_policy(s, best));
    tell_best(s);
    return MIXT_OK;
}

/** Measures cost and loss. *within: it was not shown to lose; false also where the search was halted. */
static mixt_status consider(mixt__search *s, const char *levels, mixt__search_try **tried, bool *within)
{
    *within = false;
    MIXT_TRY(mixt__search_get(s, levels, tried));
    int64_t before = (*tried)->losses[MIXT_SEARCH_SEEN].count;
    MIXT_TRY(mixt__search_measure_cost(s, *tried));
    if (mixt__search_halted(s))
        return MIXT_OK;
    MIXT_TRY(mixt__search_measure_loss(s, *tried));
    *within = holds(s, *tried);
    MIXT_TRY(refresh_best(s));
    if ((*tried)->losses[MIXT_SEARCH_SEEN].count == before)
        return MIXT_OK;
    tell_tried(s, *tried);
    return mixt__search_write_front(s);
}

/* ---- refining one format ---- */

/** A format under way: groups in the order in which they are raised, and what is raised so far. */
typedef struct refine {
    mixt__search *s;
    char low, safe;  // letters: what all groups had, what they are raised to
    int64_t *order;  // of groups, the worst first
    int64_t raised;  // so many of them are, from the front of `order`
    char *levels;    // as decided so far
    char *candidate; // room to try another
} refine;

/** Raises the first `count` groups of the ranking. */
static void raise_first(const refine *r, int64_t count, char *levels)
{
    memset(levels, r->low, (size_t)r->s->groups.count);
    for (int64_t i = 0; i < count; i++)
        levels[r->order[i]] = r->safe;
}

/** The fewest of the ranking that will do. None do not, all do. */
static mixt_status bisect(refine *r)
{
    int64_t few = 0, enough = r->s->groups.count;
    r->s->phase = "raising layers";
    while (enough - few > 1) {
        int64_t middle = few + (enough - few) / 2;
        mixt__search_try *tried;
        bool within;
        raise_first(r, middle, r->candidate);
        MIXT_TRY(consider(r->s, r->candidate, &tried, &within));
        if (mixt__search_halted(r->s))
            return MIXT_OK;
        *(within ? &enough : &few) = middle;
    }
    r->raised = enough;
    raise_first(r, enough, r->levels);
    return MIXT_OK;
}

/** Lowers groups [first, first + count) of those that are raised where that is not shown to lose. */
static mixt_status lower(refine *r, int64_t first, int64_t count, bool *within)
{
    mixt__search_try *tried;
    memcpy(r->candidate, r->levels, (size_t)r->s->groups.count);
    for (int64_t i = first; i < first + count; i++)
        r->candidate[r->order[i]] = r->low;
    MIXT_TRY(consider(r->s, r->candidate, &tried, within));
    if (!*within)
        return MIXT_OK;
    memcpy(r->levels, r->candidate, (size_t)r->s->groups.count);
    memmove(r->order + first, r->order + first + count, (size_t)(r->raised - first - count) * sizeof *r->order);
    r->raised -= count;
    return MIXT_OK;
}

/** Lowers back what need not be raised: in halves, then one by one, the least fragile first. */
static mixt_status lower_back(refine *r)
{
    r->s->phase = "lowering layers again";
    for (int64_t size = r->raised / 2; size >= 1; size /= 2)
        for (int64_t first = r->raised - size; first > -size; first -= size) {
            int64_t begin = first > 0 ? first : 0, count = first > 0 ? size : size + first;
            bool within;
            if (count == r->raised)
                continue; // none raised: known not to do
            MIXT_TRY(lower(r, begin, count, &within));
            if (mixt__search_halted(r->s))
                return MIXT_OK;
        }
    return MIXT_OK;
}

/** Puts groups that stay raised into other formats, where that is cheaper. */
static mixt_status try_others(refine *r, const char *letters)
{
    mixt__search *s = r->s;
    s->phase = "trying other formats";
    for (int64_t i = 0; i < r->raised; i++)
        for (const char *letter = letters; *letter; letter++) {
            mixt__search_try *tried, *now;
            bool within;
            if (*letter == r->low || *letter == r->safe)
                continue;
            memcpy(r->candidate, r->levels, (size_t)s->groups.count);
            r->candidate[r->order[i]] = *letter;
            MIXT_TRY(mixt__search_get(s, r->candidate, &tried));
            MIXT_TRY(mixt__search_get(s, r->levels, &now));
            MIXT_TRY(mixt__search_measure_cost(s, tried));
            if (mixt__search_halted(s))
                return MIXT_OK;
            if (!is_cheaper(s, tried, now))
                continue;
            MIXT_TRY(consider(s, r->candidate, &tried, &within));
            if (within)
                memcpy(r->levels, r->candidate, (size_t)s->groups.count);
            if (mixt__search_halted(s))
                return MIXT_OK;
        }
    return MIXT_OK;
}

static mixt_status refine_steps(refine *r, const char *letters)
{
    MIXT_TRY(mixt__search_rank(r->s, r->low, r->safe, r->order));
    if (!mixt__search_halted(r->s))
        MIXT_TRY(bisect(r));
    if (!mixt__search_halted(r->s))
        MIXT_TRY(lower_back(r));
    if (!mixt__search_halted(r->s))
        MIXT_TRY(try_others(r, letters));
    return MIXT_OK;
}

static mixt_status refine_level(mixt__search *s, char low, char safe, const char *letters)
{
    size_t groups = (size_t)s->groups.count;
    refine r = {.s = s, .low = low, .safe = safe};
    r.order = mixt__alloc(groups * sizeof *r.order);
    r.levels = mixt__alloc(groups + 1);
    r.candidate = mixt__alloc(groups + 1);
    mixt_status status = r.order && r.levels && r.candidate ? refine_steps(&r, letters) : no_memory();
    mixt__free(r.order);
    mixt__free(r.levels);
    mixt__free(r.candidate);
    return status;
}

/* ---- all formats ---- */

/** Formats that are cheaper than FP32 for all layers at once, the cheapest first, as letters. */
typedef struct formats {
    char letters[LEVELS_MAX];
    mixt__search_try *all[LEVELS_MAX]; // all groups in it
    int count;
} formats;

/** Without a list: all, those that keep activations in another format only where memory is what counts. */
static bool is_asked_for(const mixt__search *s, const mixt__search_level *level)
{
    const char *name = level->name, *list = s->options.formats;
    size_t length = strlen(name);
    if (!list)
        return !level->keep || s->options.goal == MIXT_SEARCH_MEMORY;
    for (const char *at = list; *at; at += strcspn(at, ", ")) {
        at += strspn(at, ", ");
        if (!strncmp(at, name, length) && (!at[length] || strchr(", ", at[length])))
            return true;
    }
    return false;
}

static mixt_status all_groups(mixt__search *s, char letter, mixt__search_try **tried)
{
    char *levels = mixt__alloc((size_t)s->groups.count + 1);
    *tried = NULL;
    if (!levels)
        return no_memory();
    memset(levels, letter, (size_t)s->groups.count);
    mixt_status status = mixt__search_get(s, levels, tried);
    mixt__free(levels);
    return status;
}

static mixt_status find_formats(mixt__search *s, formats *f)
{
    const mixt__search_level *level;
    s->phase = "measuring formats";
    for (int i = 0; (level = mixt__search_level_at(i)) && !mixt__search_halted(s); i++) {
        mixt__search_try *tried;
        bool same = mixt__dtype_way(level->format) && s->e.context->device->backend->host_memory; // as FP32 on a CPU
        if (same || !is_asked_for(s, level))
            continue;
        MIXT_TRY(all_groups(s, level->letter, &tried));
        MIXT_TRY(mixt__search_measure_cost(s, tried));
        if (mixt__search_halted(s) || !is_cheaper(s, tried, s->fp32))
            continue;
        int at = f->count++;
        for (; at > 0 && mixt__search_cost(s, f->all[at - 1]) > mixt__search_cost(s, tried); at--) {
            f->all[at] = f->all[at - 1];
            f->letters[at] = f->letters[at - 1];
        }
        f->all[at] = tried;
        f->letters[at] = level->letter;
    }
    return MIXT_OK;
}

/** Everything up to the final word. *complete: nothing is left to try. */
static mixt_status try_all(mixt__search *s, bool *complete)
{
    formats f = {.count = 0};
    char safe = MIXT_SEARCH_FULL;
    int first = 0; // of the formats that are not within the tolerance for all layers: how many there are
    bool within = false;
    *complete = false;
    MIXT_TRY(find_formats(s, &f));
    if (!f.count && !mixt__search_halted(s))
        note(s, "no format for all layers is cheaper than fp32 here");
    s->phase = "all layers in one format";
    *complete = !mixt__search_halted(s);
    for (; first < f.count && !mixt__search_halted(s); first++) {
        MIXT_TRY(consider(s, f.all[first]->levels, &f.all[first], &within));
        if (within) {
            safe = f.letters[first];
            break;
        }
    }
    for (int i = 0; i < first && !mixt__search_halted(s); i++)
        if (is_cheaper(s, f.all[i], s->best))
            MIXT_TRY(refine_level(s, f.letters[i], safe, f.letters));
    *complete = *complete && (within || first == f.count) && (!first || !mixt__search_halted(s));
    return MIXT_OK;
}

/* ---- the whole ---- */

/** Of the formats for all layers that screening has set aside, the cheapest whose final word is still to come; NULL:
 *  none. One that diverged needs none. */
static mixt__search_try *set_aside(const mixt__search *s)
{
    mixt__search_try *found = NULL;
    for (int64_t i = 0; i < s->state.count; i++) {
        mixt__search_try *t = s->state.tries[i];
        bool one = strspn(t->levels, (char[]){t->levels[0], '\0'}) == strlen(t->levels);
        if (one && !t->finalist && isfinite(mixt__search_judge(s, t).value) && is_cheaper(s, t, s->fp32) &&
            (!found || is_cheaper(s, t, found)))
            found = t;
    }
    return found;
}

/** Asks for the final word on a policy. */
static mixt_status finish(mixt__search *s, mixt__search_try *t)
{
    s->phase = "final test on new pairs";
    s->finishing = true;
    if (!t->finalist && s->finalists >= MIXT_SEARCH_FINALISTS_MAX)
        return MIXT_OK;
    MIXT_TRY(mixt__search_finish(s, t));
    mixt_judgement j = mixt__search_judge(s, t);
    char *text = NULL, line[500];
    if (mixt_judgement_text(&j, &text) == MIXT_OK) {
        snprintf(line, sizeof line, "%.400s: ", text);
        tell_line(s, MIXT_PROGRESS_NOTE, line, t->line);
    }
    mixt_free(text);
    return refresh_best(s);
}

/** Whether nothing more can be learned of a policy: its final word is there and stays. */
static bool is_final(const mixt__search *s, const mixt__search_try *t)
{
    mixt_judgement j = mixt__search_judge(s, t);
    if (t == s->fp32 || (mixt__search_has_word(t) && j.verdict != MIXT_VERDICT_UNDECIDED))
        return true;
    if (!mixt__search_has_word(t))
        return false;
    if (s->options.pairs || t->look_count == MIXT_SEARCH_LOOKS_MAX)
        return j.pairs >= s->options.pairs;
    return j.needs == MIXT_JUDGE_NEVER || j.pairs + j.needs > MIXT_SEARCH_PAIRS_MAX;
}

/** Screens and asks for the final word in turn: what is shown to lose is out, and the search goes on without it. */
static mixt_status run(mixt__search *s)
{
    bool complete;
    mixt__search_try *judged;
    MIXT_TRY(mixt__search_settle_seen(s));
    MIXT_TRY(mixt__search_measure_cost(s, s->fp32));
    do {
        complete = s->finishing = false;
        if (!mixt__search_halted(s))
            MIXT_TRY(try_all(s, &complete));
        judged = s->best != s->fp32 ? s->best : complete ? set_aside(s) : NULL;
        s->finishing = true;
        if (judged && !mixt__search_halted(s) && !is_final(s, judged))
            MIXT_TRY(finish(s, judged));
    } while (judged && s->best != judged && !mixt__search_halted(s));
    s->complete = complete && is_final(s, s->best);
    MIXT_TRY(mixt__search_write_policy(s, s->best));
    return mixt__search_write_front(s);
}

/** From here on there is a policy in the file: the best that is known, FP32 at the beginning. */
static mixt_status begin(mixt__search *s)
{
    MIXT_TRY(all_groups(s, MIXT_SEARCH_FULL, &s->fp32));
    for (int64_t i = 0; i < s->state.count; i++) // lines are not read, they are made
        MIXT_TRY(mixt__search_get(s, s->state.tries[i]->levels, &s->state.tries[i]));
    for (int64_t i = 0; i < s->state.count; i++)
        if (s->state.tries[i]->finalist > s->finalists)
            s->finalists = s->state.tries[i]->finalist;
    s->best = find_best(s);
    return mixt__search_write_policy(s, s->best);
}

mixt_status mixt__search_run(mixt__search *s, const mixt_config *config, const mixt_search_options *options)
{
    MIXT_TRY(mixt__search_open(s, config, options));
    MIXT_TRY(begin(s));
    return run(s);
}
