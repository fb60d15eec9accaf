/* Makes the candidates for a configuration on a machine, plans and times each, and hands them to the judge. */
#include "choose/advice.h"

#include "base/options.h"

#include "choose/assumed.h"
#include "choose/by_layer.h"
#include "choose/look.h"
#include "choose/trial.h"
#include "num/num.h"
#include "run/open/fit.h"
#include "run/run.h"
#include "store/json.h"

#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const double clip_usual = 1;
/** Of the time for trials, what the look at one step's ops may take, and the trial of a policy by layer. */
static const double look_share = 0.2, again_share = 0.2;

/** What is asked, while it is answered. */
typedef struct asking {
    const mixt_advise_options *options;
    mixt_advice *advice;
    mixt_run *run;
    int own;       // the candidate that is the configuration's own precision
    int64_t split; // parts of a batch, as the configuration has it
} asking;

const char *mixt__advice_text(mixt_advice *advice, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const char *kept = mixt__arena_strdup(&advice->arena, text);
    return kept ? kept : "";
}

/* ---- candidates ---- */

/** Largest relative error of one rounding: what a format is said to lose where nothing was measured. */
static double rounding(mixt_dtype format)
{
    return format == MIXT_DTYPE_FP32 ? 0 : format == MIXT_DTYPE_BF16 ? 0x1p-9 : mixt__dtype_roundoff(format);
}

static mixt__contender *add(mixt_advice *a, const char *name, mixt_dtype format, mixt__rank rank)
{
    mixt__contender *c = &a->candidates[a->count++];
    *c = (mixt__contender){.format = format, .rank = rank};
    c->units = mixt__machine_has(a->machine, format);
    c->storage = !c->units && a->machine->info.capability == 0 && mixt_dtype_size(format) == 2;
    c->out = (mixt_advice_candidate){.name = name, .seconds = NAN, .run_seconds = NAN, .cost = NAN};
    c->out.lost = rounding(format);
    c->out.source = "none";
    c->out.verdict = c->out.why = "";
    return c;
}

static mixt_status add_named(mixt_advice *a, const char *name, mixt_dtype format, mixt__rank rank)
{
    return mixt_policy_named(name, &add(a, name, format, rank)->policy);
}

/** The configuration's own policy where it is none of the four names. */
static mixt_status add_own(asking *q)
{
    const mixt_policy *own = mixt_trainer_policy(mixt_run_trainer(q->run));
    const char *name = mixt_config_string(mixt_run_config(q->run), "precision");
    mixt_dtype forward;
    if (!mixt_policy_count(own) && strcmp(name, "mixed")) {
        mixt_dtype backward;
        mixt_policy_default(own, &forward, &backward);
        for (int i = 0; forward == backward && i < q->advice->count; i++)
            if (q->advice->candidates[i].format == forward)
                q->own = i;
        if (forward == backward)
            return MIXT_OK;
    }
    q->own = q->advice->count;
    mixt_policy_default(own, &forward, NULL);
    const char *slash = strrchr(name, '/');
    name = mixt__advice_text(q->advice, "%s", slash ? slash + 1 : name);
    return mixt_policy_copy(own, &add(q->advice, name, forward, MIXT_RANK_RULES)->policy);
}

static mixt_status make_candidates(asking *q)
{
    mixt_advice *a = q->advice;
    MIXT_TRY(add_named(a, "fp32", MIXT_DTYPE_FP32, MIXT_RANK_FP32));
    MIXT_TRY(add_named(a, "tf32", MIXT_DTYPE_TF32, MIXT_RANK_TF32));
    MIXT_TRY(add_named(a, "bf16", MIXT_DTYPE_BF16, MIXT_RANK_BF16));
    MIXT_TRY(add_named(a, "fp16", MIXT_DTYPE_FP16, MIXT_RANK_FP16));
    MIXT_TRY(add_own(q));
    if (q->own < 0 || a->candidates[q->own].format != MIXT_DTYPE_FP8_E4M3)
        add(a, "fp8", MIXT_DTYPE_FP8_E4M3, MIXT_RANK_FP8);
    return MIXT_OK;
}

/* ---- memory and modelled time ---- */

void mixt__advice_time(const mixt_advice *a, mixt__contender *c, double seconds, const char *source)
{
    c->out.seconds = seconds;
    c->out.run_seconds = seconds * (double)a->updates;
    c->out.cost = a->price * c->out.run_seconds / 3600;
    c->out.source = source;
}

/** Undoes what the candidate before was planned with, so that it fits. */
static mixt_status as_configured(const asking *q)
{
    return mixt_plan_fit(q->run, SIZE_MAX, NULL);
}

/** Plans the run for a candidate within the limit; takes no memory. Where it fits as it is configured, it stays so. */
static mixt_status plan(asking *q, mixt__contender *c)
{
    mixt_advice *a = q->advice;
    mixt_trainer *trainer = q->run->experiment.trainer;
    mixt__trainer *t = trainer->inner;
    mixt_fit fit;
    MIXT_TRY(as_configured(q));
    MIXT_TRY(mixt_trainer_set_policy(trainer, c->policy));
    mixt_status status = mixt_plan_fit(q->run, a->limit, &fit);
    bool too_large = status == MIXT_ERROR_MEMORY && fit.memory > a->limit; // else this process had none for planning
    if (status != MIXT_OK && !too_large)
        return status;
    c->fits = status == MIXT_OK;
    c->out.memory = fit.memory;
    c->batch = fit.batch;
    c->accumulate = fit.accumulate;
    c->split = fit.split;
    c->activations = fit.recompute;
    c->recompute = fit.recomputed > 0;
    c->cost = mixt__cost_step(a->machine, t);
    c->step_memory = mixt__trainer_memory(t).total;
    c->compiled = true;
    mixt__advice_time(a, c, c->cost.seconds, "modelled");
    return MIXT_OK;
}

static mixt_status plan_all(asking *q)
{
    mixt_advice *a = q->advice;
    for (int i = 0; i < a->count; i++)
        if (a->candidates[i].policy)
            MIXT_TRY(plan(q, &a->candidates[i]));
    return MIXT_OK;
}

/* ---- by layer ---- */

/** The fastest low format that the machine has units for; NULL: none that counts. */
static mixt__contender *fastest_low(mixt_advice *a)
{
    mixt__contender *low = NULL;
    for (int i = 0; i < a->count; i++) {
        mixt__contender *c = &a->candidates[i];
        bool counts = c->compiled && c->units && c->fits && (c->rank == MIXT_RANK_BF16 || c->rank == MIXT_RANK_FP16);
        if (counts && (!low || c->out.seconds < low->out.seconds))
            low = c;
    }
    return low;
}

/** A candidate with rules over a low format; takes the policy. */
static mixt_status add_rules(asking *q, const mixt__contender *low, mixt_policy *policy, int64_t layers)
{
    mixt_advice *a = q->advice;
    const char *name =
        mixt__advice_text(a, "%s, %lld layer%s fp32", low->out.name, (long long)layers, layers == 1 ? "" : "s");
    mixt__contender *c = add(a, name, low->format, MIXT_RANK_RULES);
    c->policy = policy;
    return plan(q, c);
}

/** Layers that the low format does not make faster, in FP32: a candidate where that wins as a whole. */
static mixt_status add_faster(asking *q)
{
    mixt_advice *a = q->advice;
    const mixt__contender *low = fastest_low(a);
    mixt_policy *policy;
    int64_t layers;
    if (!low || a->lose == 0)
        return MIXT_OK;
    MIXT_TRY(mixt__by_layer_faster(a, q->run, &a->candidates[0], low, &policy, &layers));
    if (!policy)
        return MIXT_OK;
    MIXT_TRY(add_rules(q, low, policy, layers));
    mixt__contender *added = &a->candidates[a->count - 1];
    if (added->out.seconds >= low->out.seconds) {
        mixt_policy_free(added->policy);
        a->count--;
    }
    return MIXT_OK;
}

/** Layers that cannot bear the low format, in FP32: where its trial lost too much. */
static mixt_status add_bearable(asking *q, double limit)
{
    mixt_advice *a = q->advice;
    const mixt__contender *low = fastest_low(a);
    mixt_policy *policy;
    int64_t layers;
    if (!low || !low->paired || a->lose == 0 || low->out.lost <= a->lose)
        return MIXT_OK;
    MIXT_TRY(mixt__by_layer_bearable(q->run, &a->candidates[0], low, &policy, &layers));
    if (!policy)
        return MIXT_OK;
    MIXT_TRY(add_rules(q, low, policy, layers));
    return mixt__trial_run(a, q->run, a->count - 1, limit, (mixt__teller){q->options->progress, q->options->user});
}

/* ---- the answer ---- */

/** Clipping keeps attention and recurrence from the rare large gradient; the configuration's own word counts. */
static double clip_of(const asking *q, const mixt__contender *c)
{
    const mixt_config *config = mixt_run_config(q->run);
    if (mixt_config_was_set(config, "train.clip"))
        return mixt_config_float(config, "train.clip");
    return c->cost.work[MIXT_WORK_ATTENTION] > 0 || c->cost.work[MIXT_WORK_RECURRENT] > 0 ? clip_usual : 0;
}

/** What the policy rests on, as JSON, which is YAML too. */
static char *evidence(const mixt_advice *a, const mixt__contender *c)
{
    const mixt_advice_candidate *fp32 = &a->candidates[0].out;
    json_t *map = json_pack("{s:s, s:s, s:s, s:s, s:f, s:f, s:s, s:I, s:I}", "machine", a->choice.machine, "title",
                            a->machine->info.title, "decided_by", a->choice.decided, "why", a->choice.why, "ms",
                            1e3 * c->out.seconds, "fp32_ms", 1e3 * fp32->seconds, "times", c->out.source, "memory",
                            (json_int_t)c->out.memory, "fp32_memory", (json_int_t)fp32->memory);
    char *text = map ? mixt__json_dumps(map, JSON_REAL_PRECISION(6) | JSON_PRESERVE_ORDER) : NULL;
    json_decref(map);
    return text;
}

static mixt_status complete_policy(mixt_advice *a, mixt__contender *c)
{
    mixt_policy_settings settings;
    mixt_policy_get_settings(c->policy, &settings);
    settings.clip = settings.clip > 0 ? settings.clip : (float)a->choice.clip;
    if (!settings.loss_scale && mixt__format_of(c->format)->loss_scaling)
        settings.loss_scale = "dynamic";
    MIXT_TRY(mixt_policy_set_settings(c->policy, &settings));
    MIXT_TRY(mixt_policy_set_made_by(c->policy, "mixt advise"));
    char *text = evidence(a, c), *yaml;
    mixt_status status =
        text ? mixt_policy_set_evidence(c->policy, text) : mixt__fail(MIXT_ERROR_MEMORY, "no memory for the evidence");
    free(text);
    MIXT_TRY(status);
    MIXT_TRY(mixt_policy_print(c->policy, &yaml));
    a->choice.policy = mixt__arena_strdup(&a->arena, yaml);
    free(yaml);
    return a->choice.policy ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for the policy");
}

/** Seconds that all that is measured may take. */
static double trial_limit(const asking *q)
{
    return q->options->trial;
}

/** Seconds that finding the largest batch may take: a GPU times its algorithms anew for every batch that is tried. */
static const double largest_limit = 10;

/** The largest batch that fits in the chosen precision, and why not a larger one; 0: not even one does, or it was not
 *  found in time. */
static mixt_status find_largest(const asking *q, const mixt__contender *c)
{
    mixt_largest_batch largest = {0};
    mixt_advice_choice *choice = &q->advice->choice;
    choice->largest_reason = "";
    MIXT_TRY(as_configured(q));
    MIXT_TRY(mixt_trainer_set_policy(q->run->experiment.trainer, c->policy));
    if (mixt__largest_find(q->run, q->advice->limit, largest_limit, &largest) != MIXT_OK)
        return MIXT_OK;
    choice->largest_batch = largest.batch;
    choice->largest_reason = mixt__advice_text(q->advice, "%s", largest.reason);
    mixt_free(largest.reason);
    return MIXT_OK;
}

static void find_price(const asking *q)
{
    const char *source = mixt_machine_source(q->advice->machine, "price");
    bool asked = q->options->price != MIXT_AUTO;
    q->advice->choice.price = q->advice->price;
    q->advice->choice.price_source = asked || !source ? "" : source;
}

static mixt_status conclude(asking *q)
{
    mixt_advice *a = q->advice;
    a->choice.machine = a->machine->info.name;
    a->choice.title = a->machine->info.title;
    a->choice.assumed = a->assumed;
    a->choice.limit = a->limit;
    mixt__contender *c = mixt__verdict(a);
    a->choice.precision = mixt_dtype_name(c->format);
    a->choice.batch = c->batch;
    a->choice.accumulate = c->accumulate;
    a->choice.recompute = c->recompute;
    a->choice.split = c->split;
    MIXT_TRY(find_largest(q, c));
    find_price(q);
    a->choice.loss_scale = mixt__format_of(c->format)->loss_scaling ? "dynamic" : "none";
    a->choice.clip = clip_of(q, c);
    MIXT_TRY(complete_policy(a, c));
    const mixt__contender *looked = q->options->run ? &a->candidates[q->own] : c;
    a->choice.looked_at = looked->out.name;
    return mixt__look(a, q->run, looked, q->options->run, look_share * trial_limit(q));
}

/* ---- opening ---- */

static mixt_status check_options(const mixt_advise_options *o)
{
    if (!(o->lose >= 0 && o->lose <= 1))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "mixt_advise: lose %g: must be a share from 0 to 1", o->lose);
    if (o->price != MIXT_AUTO && !(o->price >= 0 && o->price < INFINITY))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "mixt_advise: price %g: must be 0 or above", o->price);
    if (!(o->trial >= 0))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "mixt_advise: trial %g: must be 0 seconds or more", o->trial);
    return MIXT_OK;
}

static mixt_status open_run(asking *q, const mixt_config *config)
{
    mixt_advice *a = q->advice;
    mixt_run_options options =
        MIXT_OPTIONS(mixt_run_options, .progress = q->options->progress, .user = q->options->user);
    mixt_config *copy;
    int64_t asked = mixt_config_int(config, "train.memory");
    MIXT_TRY(mixt_config_copy(config, &copy));
    mixt_status status =
        mixt_config_set(copy, "train.memory=0", "advise"); // each candidate is planned to fit by itself
    if (status == MIXT_OK)
        status = mixt_run_open_config(copy, &options, &q->run);
    mixt_config_free(copy);
    MIXT_TRY(status);
    mixt__device *device = q->run->experiment.context->device;
    if (!a->machine)
        MIXT_TRY(mixt__machine_here(device, &a->machine));
    a->limit = mixt__fit_room(q->run);
    if (asked && (size_t)asked < a->limit)
        a->limit = (size_t)asked;
    if (q->options->memory && q->options->memory < a->limit)
        a->limit = q->options->memory;
    a->lose = q->options->lose;
    a->price = q->options->price == MIXT_AUTO ? a->machine->info.price : q->options->price;
    a->updates = mixt_run_describe(q->run).total_steps;
    a->split = mixt__trainer_settings_of(q->run->experiment.trainer->inner)->split;
    return MIXT_OK;
}

static mixt_status answer(asking *q, const mixt_config *config)
{
    MIXT_TRY(open_run(q, config));
    MIXT_TRY(make_candidates(q));
    MIXT_TRY(plan_all(q));
    MIXT_TRY(add_faster(q));
    double limit = trial_limit(q);
    if (!q->advice->assumed && limit > 0) {
        double all = (1 - look_share - again_share) * limit;
        MIXT_TRY(mixt__trial_run(q->advice, q->run, 0, all, (mixt__teller){q->options->progress, q->options->user}));
        MIXT_TRY(add_bearable(q, again_share * limit));
    }
    return conclude(q);
}

/** On the machine that is asked about. */
static mixt_status ask(asking *q, const mixt_config *config)
{
    mixt_advice *a = q->advice;
    if (q->options->machine) {
        MIXT_TRY(mixt_machine_open(q->options->machine, &a->machine));
        a->assumed = true;
        mixt__assume_begin(a->machine);
    }
    mixt_status status = answer(q, config);
    if (status == MIXT_OK && a->arena.short_of_memory)
        status = mixt__fail(MIXT_ERROR_MEMORY, "no memory for the text of advice");
    mixt_run_close(q->run);
    if (a->assumed)
        mixt__assume_end();
    return status;
}

mixt_status mixt_advise_with(const mixt_config *config, const mixt_advise_options *options, mixt_advice **advice)
{
    mixt_advise_options own = MIXT_OPTIONS(mixt_advise_options);
    asking q = {.options = &own};
    MIXT_TRY(mixt__need(advice));
    *advice = NULL;
    MIXT_TRY(mixt__need(config));
    MIXT_TRY(mixt__options(mixt_advise_options, &own, options));
    MIXT_TRY(check_options(&own));
    q.advice = mixt__alloc(sizeof *q.advice);
    if (!q.advice)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for advice");
    mixt__handle_add(&q.advice->handle, q.advice, "advice", NULL);
    mixt_status status = ask(&q, config);
    if (status == MIXT_OK)
        *advice = q.advice;
    else
        mixt_advice_free(q.advice);
    return status;
}

void mixt_advice_free(mixt_advice *advice)
{
    if (!advice || mixt__need_open(advice, "advice") != MIXT_OK)
        return;
    mixt__handle_remove(advice);
    for (int i = 0; i < advice->count; i++)
        mixt_policy_free(advice->candidates[i].policy);
    mixt_machine_free(advice->machine);
    mixt__arena_free(&advice->arena);
    mixt__free(advice);
}

/* ---- asking ---- */

const mixt_advice_candidate *mixt_advice_candidate_at(const mixt_advice *advice, int index)
{
    if (mixt__need_open(advice, "advice") != MIXT_OK)
        return NULL;
    return index >= 0 && index < advice->count ? &advice->candidates[index].out : NULL;
}

const mixt_advice_choice *mixt_advice_choose(const mixt_advice *advice)
{
    return mixt__need_open(advice, "advice") == MIXT_OK ? &advice->choice : NULL;
}

const mixt_remedy *mixt_advice_remedy(const mixt_advice *advice, int index)
{
    if (mixt__need_open(advice, "advice") != MIXT_OK)
        return NULL;
    return index >= 0 && index < advice->remedy_count ? &advice->remedies[index] : NULL;
}

mixt_status mixt_advice_write(const mixt_advice *advice, const char *path, bool overwrite)
{
    struct stat there;
    mixt_policy *policy;
    MIXT_TRY(mixt__need_open(advice, "advice"));
    MIXT_TRY(mixt__need(path));
    if (!overwrite && !lstat(path, &there))
        return mixt__fail(MIXT_ERROR_FILE, "%s: exists already", path);
    MIXT_TRY(mixt_policy_parse(advice->choice.policy, path, &policy));
    mixt_status status = mixt_policy_write(policy, path);
    mixt_policy_free(policy);
    return status;
}
