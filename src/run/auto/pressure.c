/* Looking at the budget, and the two tiers. Plans are compiled beside the trainer that trains, which takes no memory of
 * its own but for graphs, and counted to the byte; the run changes only when the loop acts on the decision. */
#include "run/auto/pressure.h"

#include "base/memory.h"
#include "base/sizes.h"
#include "base/threads.h"
#include "run/open/fit.h"
#include "run/open/memory.h"
#include "run/ranks.h"
#include "run/run.h"
#include "train/fit.h"
#include "train/instrument.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LOOKS = 3, PLANS = 4 };     // a tier is found so often before it is acted on; plans of the second tier at most
enum { MAY_RECOMPUTE, MAY_SPLIT }; // positions of the words of train.memory_may

static const double LOW = 0.7, HIGH = 0.9; // shares of the budget
static const double SHRUNK = 0.95;         // of the largest budget: less is pressure
static const double WORTH = 0.98;          // of what the run holds: a plan that saves less is none
static const double INTERVAL = 1;          // seconds from look to look

/* ---- the budget ---- */

static size_t held(const mixt_run *run)
{
    const mixt_run_memory *m = &run->result.run_memory;
    return run->experiment.context->device->backend->host_memory ? m->total.host : m->total.device;
}

size_t mixt__pressure_budget(const mixt_run *run)
{
    mixt__device *device = run->experiment.context->device;
    size_t limit = (size_t)mixt__config_int(run->config, MIXT_KEY_TRAIN_MEMORY);
    size_t free = mixt__device_available(device), taken = device->backend->host_memory ? 0 : mixt__memory_withheld();
    size_t room = free ? held(run) + (free > taken ? free - taken : 0) : 0;
    if (run->pressure.squeezed)
        return run->pressure.squeezed;
    return limit && (!room || limit < room) ? limit : room;
}

/** The tier that the budget asks for: 0 where it is what it was. */
static int wanted_tier(const mixt__pressure *p, size_t budget, size_t bytes)
{
    if (!budget || (double)budget > SHRUNK * (double)p->most)
        return 0;
    return (double)bytes > HIGH * (double)budget ? 2 : (double)bytes > LOW * (double)budget ? 1 : 0;
}

/* ---- plans ---- */

/** Counts a plan of the step as if the run had it. */
typedef struct counter {
    const mixt_run *run;
    size_t beside; // bytes of the run that are not of its step, nor of its batches
} counter;

static size_t step_bytes(const mixt_run *run, const mixt__trainer *t)
{
    size_t step = mixt__trainer_memory(t).total;
    return mixt__trainer_device(t)->backend->host_memory
               ? step + mixt__trainer_batches_ahead(t, run->experiment.train) +
                     mixt__feed_host_bytes(mixt__trainer_settings_of(t)->accumulate) +
                     mixt__trainer_layer_slots_bytes(t)
               : step;
}

static mixt_status measure(void *user, mixt__trainer *t, size_t budget, size_t *bytes, double *seconds)
{
    const counter *c = user;
    (void)budget;
    *bytes = c->beside + step_bytes(c->run, t);
    *seconds = 0;
    return MIXT_OK;
}

/** A trainer to plan with, which never takes the memory of a step. For mixt__trainer_free. */
static mixt_status open_planner(const mixt_run *run, mixt__trainer **planner, counter *c)
{
    *c = (counter){run, (size_t)(run->pressure.view.held - run->pressure.view.step)};
    return mixt__trainer_new_planner(run->experiment.trainer->inner, planner);
}

/* ---- decisions ---- */

static mixt_status ask(mixt_run *run, mixt__config_key key, const char *from, const char *to, size_t budget)
{
    char text[256], has[MIXT_SIZE_TEXT], limit[MIXT_SIZE_TEXT], most[MIXT_SIZE_TEXT];
    mixt_decision d = {.back = -1, .action = MIXT_ACTION_MEMORY, .severity = MIXT_SEVERITY_WARNING};
    d.cause = MIXT_CAUSE_MEMORY_WARNING;
    d.key = mixt__config_table[key].name;
    d.from = from;
    d.to = to;
    d.text = text;
    snprintf(text, sizeof text, "the run uses %s, and could use %s; at its start it was %s",
             mixt__size_text((size_t)run->pressure.view.held, has), mixt__size_text(budget, limit),
             mixt__size_text((size_t)run->pressure.view.most, most));
    return mixt_run_ask_decision(run, &d);
}

static mixt_status ask_number(mixt_run *run, mixt__config_key key, int64_t to, size_t budget)
{
    char before[32], after[32];
    snprintf(before, sizeof before, "%lld", (long long)mixt__config_int(run->config, key));
    snprintf(after, sizeof after, "%lld", (long long)to);
    return strcmp(before, after) ? ask(run, key, before, after, budget) : MIXT_OK;
}

/** The first tier: the widest format that is enough, else the narrowest. What the policy or the configuration says of
 *  it stays. */
static mixt_status lower(mixt_run *run, size_t budget)
{
    mixt__trainer *planner;
    counter c;
    size_t bytes = (size_t)run->pressure.view.held;
    double seconds;
    mixt_dtype chosen = MIXT_DTYPE_NONE;
    if (mixt__trainer_settings_of(run->experiment.trainer->inner)->policy.keep != MIXT_DTYPE_NONE)
        return MIXT_OK;
    mixt_status status = open_planner(run, &planner, &c);
    for (size_t size = 2; status == MIXT_OK && size && (double)bytes > LOW * (double)budget; size /= 2) {
        size_t before = bytes;
        mixt__trainer_settings settings = *mixt__trainer_settings_of(planner);
        settings.policy.keep = mixt__format_keep(size);
        settings.policy.keep_origin = "auto.steer";
        mixt__trainer_set(planner, &settings);
        status = mixt__trainer_recompile(planner);
        if (status == MIXT_OK)
            status = measure(&c, planner, budget, &bytes, &seconds);
        if (status == MIXT_OK && bytes < before)
            chosen = settings.policy.keep;
    }
    mixt__trainer_free(planner);
    if (status != MIXT_OK || chosen == MIXT_DTYPE_NONE)
        return status;
    return ask(run, MIXT_KEY_TRAIN_ACTIVATIONS, mixt__config_string(run->config, MIXT_KEY_TRAIN_ACTIVATIONS),
               mixt_dtype_name(chosen), budget);
}

/** The second tier: the cheapest plan within the budget, else the smallest. */
static mixt_status fit(mixt_run *run, size_t budget)
{
    mixt__trainer *planner;
    counter c;
    mixt__fit_choice choice;
    mixt__fit_request request = {.budget = (size_t)(HIGH * (double)budget), .measure = measure, .user = &c};
    request.may_recompute = mixt__config_lists(run->config, MIXT_KEY_TRAIN_MEMORY_MAY, MAY_RECOMPUTE);
    request.may_split = mixt__fit_may_split(run);
    mixt_status status = open_planner(run, &planner, &c);
    if (status == MIXT_OK)
        status = mixt__trainer_fit(planner, &request, &choice);
    mixt__trainer_free(planner);
    MIXT_TRY(status);
    if ((double)choice.chosen.bytes > WORTH * (double)run->pressure.view.held)
        return MIXT_OK; // nothing that may be done frees much
    MIXT_TRY(ask_number(run, MIXT_KEY_TRAIN_SPLIT, choice.chosen.split, budget));
    return ask_number(run, MIXT_KEY_TRAIN_RECOMPUTE, (int64_t)choice.chosen.recompute, budget);
}

/** A tier once; the second one again where the budget has shrunk again. */
static mixt_status act(mixt_run *run, int tier, size_t budget)
{
    mixt__pressure *p = &run->pressure;
    p->found = 0;
    if (p->tier < 1) {
        p->tier = 1;
        MIXT_TRY(lower(run, budget));
        if (run->asked & MIXT_ASKED_DECISION)
            return MIXT_OK; // it may be enough: the next look says
    }
    if (tier < 2)
        return MIXT_OK;
    p->tier = 2;
    p->fitted = budget;
    p->plans++;
    return fit(run, budget);
}

/** How this process stands now. */
static mixt__pressure_view view_of(mixt_run *run)
{
    mixt__pressure *p = &run->pressure;
    mixt__run_count_memory(run);
    mixt__pressure_view v = {.wish = p->wish, .budget = mixt__pressure_budget(run), .held = held(run)};
    if (!p->squeezed && v.budget > p->most)
        p->most = (size_t)v.budget;
    v.most = p->most;
    v.step = step_bytes(run, run->experiment.trainer->inner);
    v.tier = wanted_tier(p, (size_t)v.budget, (size_t)v.held);
    return v;
}

/** Whether something is to be done that was not yet. */
static bool is_news(const mixt__pressure *p, const mixt__pressure_view *v)
{
    bool again = v->tier == 2 && p->tier == 2 && p->plans < PLANS && (double)v->budget < SHRUNK * (double)p->fitted;
    return v->tier > p->tier || again;
}

/** Whether a rank is worse off: it has looked often enough, its tier is higher, it holds more of its budget. */
static bool is_worse(const mixt__pressure_view *a, const mixt__pressure_view *b)
{
    if (a->wish != b->wish)
        return a->wish > b->wish;
    return a->tier > b->tier ||
           (a->tier == b->tier && (double)a->held * (double)b->budget > (double)b->held * (double)a->budget);
}

mixt_status mixt__pressure_consensus(mixt_run *run)
{
    mixt__group *g = run->group;
    mixt__pressure_view mine = view_of(run), *all = mixt__alloc((size_t)g->size * sizeof *all);
    mixt_status status = mixt__group_agree(
        g, all ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory to compare the memory of all ranks"));
    if (status == MIXT_OK)
        status = mixt__group_gather(g, &mine, sizeof mine, all, 1);
    if (status == MIXT_OK)
        run->pressure.view = all[0];
    for (int rank = 1; status == MIXT_OK && rank < g->size; rank++)
        if (is_worse(&all[rank], &run->pressure.view))
            run->pressure.view = all[rank];
    mixt__free(all);
    run->pressure.wish = false;
    const mixt__pressure_view *v = &run->pressure.view;
    if (status != MIXT_OK || !v->wish || !is_news(&run->pressure, v))
        return status;
    return mixt__run_agree(run, act(run, (int)v->tier, (size_t)v->budget));
}

mixt_status mixt__pressure_look(mixt_run *run)
{
    mixt__pressure *p = &run->pressure;
    double now = mixt__time_now();
    bool test = p->squeezed || mixt__memory_withheld();
    if (!test && now - p->looked < INTERVAL)
        return MIXT_OK;
    p->looked = now;
    mixt__pressure_view v = view_of(run);
    if (!is_news(p, &v)) {
        p->found = 0;
        return MIXT_OK;
    }
    if (++p->found < LOOKS)
        return MIXT_OK; // others may take and give back: what stays counts
    p->wish = run->group != NULL;
    if (p->wish)
        return MIXT_OK; // the others hear of it with the next update
    p->view = v;
    return act(run, (int)v.tier, (size_t)v.budget);
}

/* ---- acting ---- */

static mixt_status plan_anew(mixt__experiment *e)
{
    mixt_trainer *t = e->trainer;
    int64_t split = mixt__config_int(e->config, MIXT_KEY_TRAIN_SPLIT);
    size_t recompute = (size_t)mixt__config_int(e->config, MIXT_KEY_TRAIN_RECOMPUTE);
    mixt_dtype before = t->policy->formats.keep;
    MIXT_TRY(mixt__experiment_keep(e, t->policy));
    mixt_status status = mixt__trainer_refit(t->inner, split, recompute, t->policy->formats.keep);
    if (status != MIXT_OK) {
        t->policy->formats.keep = before;
        return status;
    }
    t->options.split = split;
    t->options.recompute_budget = recompute;
    return MIXT_OK;
}

mixt_status mixt__run_adopt_memory(mixt_run *run, mixt_config *next)
{
    mixt__experiment *e = &run->experiment;
    int64_t batch = mixt__config_int(next, MIXT_KEY_TRAIN_BATCH), split = mixt__config_int(next, MIXT_KEY_TRAIN_SPLIT);
    if (batch % split)
        return mixt__fail(MIXT_ERROR_CONFIG, "train.split %lld does not divide train.batch, %lld", (long long)split,
                          (long long)batch);
    e->config = next;
    mixt_status status = plan_anew(e);
    if (status != MIXT_OK) {
        e->config = run->config;
        return status;
    }
    mixt_config_free(run->config);
    run->config = next;
    mixt__free(run->phase_memory); // that was with the settings of before
    run->phase_memory = NULL;
    if (mixt__run_dir_config(&run->dir, next) != MIXT_OK)
        mixt__run_note(run, true, "the new setting cannot be written: %s", mixt_error_text());
    return MIXT_OK;
}
