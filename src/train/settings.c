/* Option words to settings: names checked against tables, numbers against limits. */
#include "train/trainer.h"

#include "base/c_locale.h"
#include "train/faults.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    mixt__optimizer_kind kind;
    bool momentum, nesterov;
} optimizers[] = {
    {"sgd", MIXT_OPTIMIZER_SGD, false, false},     {"momentum", MIXT_OPTIMIZER_SGD, true, false},
    {"nesterov", MIXT_OPTIMIZER_SGD, true, true},  {"adam", MIXT_OPTIMIZER_ADAM, false, false},
    {"adamw", MIXT_OPTIMIZER_ADAMW, false, false}, {"lamb", MIXT_OPTIMIZER_LAMB, false, false},
};

static const struct {
    const char *name;
    mixt__schedule_kind kind;
} schedules[] = {
    {"constant", MIXT_SCHEDULE_CONSTANT}, {"step", MIXT_SCHEDULE_STEP},         {"cosine", MIXT_SCHEDULE_COSINE},
    {"linear", MIXT_SCHEDULE_LINEAR},     {"onecycle", MIXT_SCHEDULE_ONECYCLE},
};

static mixt_status parse_optimizer(const mixt_trainer_options *o, mixt__optimizer *optimizer)
{
    const char *name = o->optimizer ? o->optimizer : "adamw";
    for (size_t i = 0; i < sizeof optimizers / sizeof optimizers[0]; i++) {
        if (strcmp(optimizers[i].name, name))
            continue;
        *optimizer = (mixt__optimizer){.kind = optimizers[i].kind, .nesterov = optimizers[i].nesterov};
        optimizer->momentum = optimizers[i].momentum ? o->momentum : 0.0f;
        optimizer->beta1 = o->beta1;
        optimizer->beta2 = o->beta2;
        optimizer->eps = o->eps;
        return MIXT_OK;
    }
    return mixt__fail(MIXT_ERROR_ARGUMENT, "optimizer '%s': must be sgd, momentum, nesterov, adam, adamw or lamb",
                      name);
}

static mixt_status parse_moments(const char *word, mixt_dtype *format)
{
    static const struct {
        const char *word;
        mixt_dtype format;
    } known[] = {
        {"fp32", MIXT_DTYPE_FP32}, {"bf16", MIXT_DTYPE_BF16}, {"int8", MIXT_DTYPE_INT8}, {"fp8", MIXT_DTYPE_FP8_E4M3}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (!strcmp(word ? word : "fp32", known[i].word)) {
            *format = known[i].format;
            return MIXT_OK;
        }
    return mixt__fail(MIXT_ERROR_ARGUMENT, "moments '%s': must be fp32, bf16, int8 or fp8", word);
}

static mixt_status parse_frozen(const char *word, mixt_dtype *format)
{
    bool read = !word || !strcmp(word, "auto");
    *format = mixt__format_of_frozen(word);
    return read || *format != MIXT_DTYPE_NONE
               ? MIXT_OK
               : mixt__fail(MIXT_ERROR_ARGUMENT, "frozen '%s': must be auto, fp8, int8 or nf4", word);
}

static mixt_status parse_schedule(const mixt_trainer_options *o, mixt__schedule *schedule)
{
    const char *name = o->schedule ? o->schedule : "constant";
    for (size_t i = 0; i < sizeof schedules / sizeof schedules[0]; i++) {
        if (strcmp(schedules[i].name, name))
            continue;
        *schedule = (mixt__schedule){.kind = schedules[i].kind, .lr = o->lr, .min_lr = o->min_lr};
        schedule->gamma = o->gamma;
        schedule->warmup = o->warmup;
        schedule->decay_steps = o->decay_steps;
        schedule->total_steps = o->total_steps;
        if (schedule->kind >= MIXT_SCHEDULE_COSINE && o->total_steps <= 0)
            return mixt__fail(MIXT_ERROR_ARGUMENT, "schedule '%s' needs total_steps, the number of updates of the run",
                              name);
        if (schedule->kind == MIXT_SCHEDULE_ONECYCLE && o->warmup > 0)
            return mixt__fail(MIXT_ERROR_ARGUMENT, "schedule 'onecycle' rises by itself: warmup %lld must be 0",
                              (long long)o->warmup);
        return MIXT_OK;
    }
    return mixt__fail(MIXT_ERROR_ARGUMENT, "schedule '%s': must be constant, step, cosine, linear or onecycle", name);
}

/** A scale that falls after good updates, or begins where it may not be, does harm without a word. */
static mixt_status check_scaling(const mixt__scaling *s)
{
    if (s->growth < 1)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "scale_growth %g: must be at least 1", (double)s->growth);
    if (s->floor > s->ceiling)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "scale_floor %g: must not be greater than scale_ceiling, %g",
                          (double)s->floor, (double)s->ceiling);
    if (s->initial < s->floor || s->initial > s->ceiling)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "scale_init %g: must be from scale_floor, %g, to scale_ceiling, %g",
                          (double)s->initial, (double)s->floor, (double)s->ceiling);
    return MIXT_OK;
}

/** What words and formats make of the settings, of which each is said; they say it themselves from then on. */
static mixt_status parse_scaling(mixt_policy_settings *p, bool uses_fp16, mixt__scaling *scaling)
{
    const char *word = p->loss_scale;
    bool automatic = !strcmp(word, "auto"), dynamic = !strcmp(word, "dynamic") || (automatic && uses_fp16);
    bool fixed = !automatic && !dynamic && strcmp(word, "none");
    *scaling = (mixt__scaling){.enabled = dynamic || fixed, .dynamic = dynamic, .initial = p->scale_init};
    scaling->growth = p->scale_growth;
    scaling->backoff = p->scale_backoff;
    scaling->floor = p->scale_floor;
    scaling->ceiling = p->scale_ceiling;
    scaling->interval = p->scale_interval;
    scaling->hysteresis = p->scale_hysteresis;
    MIXT_TRY(check_scaling(scaling));
    if (fixed && !mixt__policy_fixed_scale(word, &scaling->initial))
        return mixt__fail(MIXT_ERROR_ARGUMENT,
                          "loss_scale '%s': must be auto, dynamic, none or a number from 2^-24 (6e-8) to 2^126 "
                          "(8.5e37)",
                          word);
    p->scale_init = scaling->initial;
    p->loss_scale = fixed ? "fixed" : dynamic ? "dynamic" : "none";
    return MIXT_OK;
}

/** The options' settings, else the policy's, else the defaults: none is left to say. No clipping is 0 from here on. */
static mixt_status decide(const mixt_policy_settings *options, const mixt_policy *policy, mixt_policy_settings *decided)
{
    MIXT_TRY(mixt__policy_settings_check(options));
    *decided = policy->settings;
    mixt__policy_settings_take(decided, options);
    mixt__policy_settings_fill(decided);
    decided->clip = isfinite(decided->clip) ? decided->clip : 0;
    decided->clip_value = isfinite(decided->clip_value) ? decided->clip_value : 0;
    return MIXT_OK;
}

/** Numbers outside these limits make every update wrong without a word. */
static mixt_status check_numbers(const mixt_trainer_options *o)
{
    const struct {
        const char *name;
        float value, below;
        bool positive; // 0 is outside too
    } numbers[] = {
        {"lr", o->lr, INFINITY, false},       {"min_lr", o->min_lr, INFINITY, false},
        {"gamma", o->gamma, INFINITY, false}, {"momentum", o->momentum, 1, false},
        {"beta1", o->beta1, 1, false},        {"beta2", o->beta2, 1, false},
        {"eps", o->eps, INFINITY, true},      {"weight_decay", o->weight_decay, INFINITY, false},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        bool inside = numbers[i].value >= 0 && numbers[i].value < numbers[i].below;
        if (!inside || (numbers[i].positive && numbers[i].value == 0))
            return mixt__fail(MIXT_ERROR_ARGUMENT, "%s %g: must be %s to below %g", numbers[i].name,
                              (double)numbers[i].value, numbers[i].positive ? "above 0," : "from 0",
                              (double)numbers[i].below);
    }
    return MIXT_OK;
}

/** Counts outside these limits overflow where they are multiplied or subtracted, or divide by 0. */
static mixt_status check_counts(const mixt_trainer_options *o)
{
    const struct {
        const char *name;
        int64_t value, least, most;
    } counts[] = {
        {"batch", o->batch, 1, INT32_MAX},
        {"accumulate", o->accumulate, 1, MIXT_PASSES_MAX},
        {"split", o->split, 1, MIXT_PASSES_MAX},
        {"ranks", o->ranks, 1, MIXT_PASSES_MAX},
        {"eval_batch", o->eval_batch, 0, INT32_MAX},
        {"warmup", o->warmup, 0, INT64_MAX},
        {"decay_steps", o->decay_steps, 1, INT64_MAX},
        {"total_steps", o->total_steps, 0, INT64_MAX},
        {"inject_overflow", o->inject_overflow, 0, INT64_MAX},
        {"integrity_every", o->integrity_every, 0, INT64_MAX},
    };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        if (counts[i].value < counts[i].least || counts[i].value > counts[i].most)
            return mixt__fail(MIXT_ERROR_ARGUMENT, "%s %lld: must be from %lld to %lld", counts[i].name,
                              (long long)counts[i].value, (long long)counts[i].least, (long long)counts[i].most);
    return MIXT_OK;
}

/** Parts of different sizes would each need a plan of its own. */
static mixt_status check_split(const mixt_trainer_options *o)
{
    if (o->batch < o->ranks)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%lld ranks are more than a batch has samples, %lld",
                          (long long)o->ranks, (long long)o->batch);
    if (o->batch % o->ranks)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%lld ranks: must divide the batch, %lld", (long long)o->ranks,
                          (long long)o->batch);
    if (o->ranks > 1 && o->batch / o->ranks % o->split)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "split %lld: must divide each rank's share of the batch, %lld",
                          (long long)o->split, (long long)(o->batch / o->ranks));
    if (o->batch % o->split)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "split %lld: must divide the batch, %lld", (long long)o->split,
                          (long long)o->batch);
    if (o->accumulate * o->split > MIXT_PASSES_MAX)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "accumulate %lld times split %lld: at most %d passes make an update",
                          (long long)o->accumulate, (long long)o->split, MIXT_PASSES_MAX);
    if (o->accumulate * o->split * o->ranks > MIXT_PASSES_MAX)
        return mixt__fail(MIXT_ERROR_ARGUMENT,
                          "accumulate %lld times split %lld times %lld ranks: at most %d passes make an update",
                          (long long)o->accumulate, (long long)o->split, (long long)o->ranks, MIXT_PASSES_MAX);
    return MIXT_OK;
}

mixt_status mixt__trainer_settings_parse(const mixt_trainer_options *o, const mixt_policy *policy,
                                         mixt__trainer_settings *s)
{
    MIXT_TRY(check_numbers(o));
    MIXT_TRY(check_counts(o));
    MIXT_TRY(check_split(o));
    MIXT_TRY(parse_optimizer(o, &s->optimizer));
    MIXT_TRY(parse_moments(o->moments, &s->moments));
    MIXT_TRY(parse_frozen(o->frozen, &s->frozen));
    MIXT_TRY(parse_schedule(o, &s->schedule));
    MIXT_TRY(decide(&o->settings, policy, &s->decided));
    MIXT_TRY(parse_scaling(&s->decided, mixt__policy_needs_scaling(&policy->formats), &s->scaling));
    s->policy = policy->formats;
    s->weight_decay = o->weight_decay;
    s->batch = o->batch / o->ranks / o->split;
    s->eval_batch = o->eval_batch ? o->eval_batch : o->batch;
    s->accumulate = o->accumulate * o->split * o->ranks;
    s->ranks = o->ranks;
    s->split = o->split;
    s->seed = o->seed;
    s->no_fusion = o->no_fusion;
    s->recompute_budget = o->recompute_budget;
    s->freeze = o->freeze;
    s->lr_groups = o->lr_groups;
    s->decay_groups = o->decay_groups;
    s->inject_overflow = o->inject_overflow;
    s->faults = o->faults;
    s->no_integrity = o->no_integrity;
    s->integrity_every = o->integrity_every;
    return mixt__faults_parse(o->faults, &(mixt__faults){0});
}
