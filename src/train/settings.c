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
    *format = !word || !strcmp(word, "fp32") ? MIXT_DTYPE_FP32 : MIXT_DTYPE_BF16;
    return *format == MIXT_DTYPE_FP32 || !strcmp(word, "bf16")
               ? MIXT_OK
               : mixt__fail(MIXT_ERROR_ARGUMENT, "moments '%s': must be fp32 or bf16", word);
}

static mixt_status parse_frozen(const char *word, mixt_dtype *format)
{
    bool read = !word || !strcmp(word, "auto");
    *format = read ? MIXT_DTYPE_NONE : MIXT_DTYPE_INT8;
    return read || !strcmp(word, mixt_dtype_name(*format))
               ? MIXT_OK
               : mixt__fail(MIXT_ERROR_ARGUMENT, "frozen '%s': must be auto or int8", word);
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

/** Outside the limits, scaled losses or the factor that unscales are no longer normal FP32 numbers. */
static mixt_status parse_fixed_scale(const char *word, float *scale)
{
    char *end;
    *scale = mixt__read_float(word, &end);
    if (end == word || *end || !(*scale > 0) || !isfinite(*scale))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "loss_scale '%s': must be auto, dynamic, none or a number above 0",
                          word);
    if (*scale < 0x1p-24f || *scale > 0x1p126f)
        return mixt__fail(MIXT_ERROR_ARGUMENT,
                          "loss_scale '%s': a fixed scale must be from 2^-24 (6e-8) to 2^126 (8.5e37)", word);
    return MIXT_OK;
}

static mixt_status parse_scaling(const mixt_trainer_options *o, bool uses_fp16, mixt__scaling *scaling)
{
    const char *word = o->loss_scale;
    *scaling = (mixt__scaling){.initial = o->scale_init};
    scaling->growth = o->scale_growth;
    scaling->backoff = o->scale_backoff;
    scaling->floor = o->scale_floor;
    scaling->ceiling = o->scale_ceiling;
    scaling->interval = o->scale_interval;
    scaling->hysteresis = o->scale_hysteresis;
    MIXT_TRY(check_scaling(scaling));
    if (!strcmp(word, "auto"))
        scaling->enabled = scaling->dynamic = uses_fp16;
    else if (!strcmp(word, "dynamic"))
        scaling->enabled = scaling->dynamic = true;
    else if (strcmp(word, "none")) {
        scaling->enabled = true;
        return parse_fixed_scale(word, &scaling->initial);
    }
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
        {"lr", o->lr, INFINITY, false},
        {"min_lr", o->min_lr, INFINITY, false},
        {"gamma", o->gamma, INFINITY, false},
        {"momentum", o->momentum, 1, false},
        {"beta1", o->beta1, 1, false},
        {"beta2", o->beta2, 1, false},
        {"eps", o->eps, INFINITY, true},
        {"weight_decay", o->weight_decay, INFINITY, false},
        {"clip", o->clip, INFINITY, false},
        {"clip_value", o->clip_value, INFINITY, false},
        {"scale_init", o->scale_init, INFINITY, true},
        {"scale_growth", o->scale_growth, INFINITY, true},
        {"scale_backoff", o->scale_backoff, 1, true},
        {"scale_floor", o->scale_floor, INFINITY, true},
        {"scale_ceiling", o->scale_ceiling, INFINITY, true},
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
        {"scale_interval", o->scale_interval, 1, INT64_MAX},
        {"scale_hysteresis", o->scale_hysteresis, 1, INT32_MAX},
        {"inject_overflow", o->inject_overflow, 0, INT64_MAX},
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

/** What decides: the option, else the policy (0: it does not say), else the default. */
static float choose(float option, float policy, float fallback)
{
    return option != (float)MIXT_BY_POLICY ? option : policy != 0 ? policy : fallback;
}

static int64_t choose_count(int64_t option, int64_t policy, int64_t fallback)
{
    return option != MIXT_BY_POLICY ? option : policy ? policy : fallback;
}

/** The options with what they leave to the policy filled in. */
static mixt_trainer_options with_policy(const mixt_trainer_options *options, const mixt_policy *policy)
{
    mixt_trainer_options o = *options;
    const mixt_policy_settings *p = &policy->settings;
    o.loss_scale = o.loss_scale ? o.loss_scale : p->loss_scale ? p->loss_scale : "auto";
    o.scale_init = choose(o.scale_init, p->scale_init, 65536.0f);
    o.scale_growth = choose(o.scale_growth, p->scale_growth, 2.0f);
    o.scale_backoff = choose(o.scale_backoff, p->scale_backoff, 0.5f);
    o.scale_floor = choose(o.scale_floor, p->scale_floor, 1.0f);
    o.scale_ceiling = choose(o.scale_ceiling, p->scale_ceiling, 16777216.0f);
    o.scale_interval = choose_count(o.scale_interval, p->scale_interval, 2000);
    o.scale_hysteresis = (int)choose_count(o.scale_hysteresis, p->scale_hysteresis, 1);
    o.clip = choose(o.clip, p->clip, 0);
    o.clip_value = choose(o.clip_value, p->clip_value, 0);
    return o;
}

mixt_status mixt__trainer_settings_parse(const mixt_trainer_options *options, const mixt_policy *policy,
                                         mixt__trainer_settings *s)
{
    mixt_trainer_options resolved = with_policy(options, policy), *o = &resolved;
    MIXT_TRY(check_numbers(o));
    MIXT_TRY(check_counts(o));
    MIXT_TRY(check_split(o));
    MIXT_TRY(parse_optimizer(o, &s->optimizer));
    MIXT_TRY(parse_moments(o->moments, &s->moments));
    MIXT_TRY(parse_frozen(o->frozen, &s->frozen));
    MIXT_TRY(parse_schedule(o, &s->schedule));
    MIXT_TRY(parse_scaling(o, mixt__policy_needs_scaling(&policy->formats), &s->scaling));
    s->policy = policy->formats;
    s->weight_decay = o->weight_decay;
    s->clip_norm = o->clip;
    s->clip_value = o->clip_value;
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
    return mixt__faults_parse(o->faults, &(mixt__faults){0});
}
