/* Training both sides and measuring each. */
#include "verify/verify.h"

#include "backend/device.h"
#include "base/options.h"
#include "base/progress.h"
#include "base/statistics.h"
#include "base/threads.h"
#include "policy/policy.h"
#include "run/auto/precision.h"
#include "run/open/init.h"
#include "run/open/phases.h"
#include "train/engine.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/** Losses in a row that are not finite, after which a run is given up: it has failed. */
enum { NOT_FINITE_MAX = 20, OUTPUTS_MAX = 1 << 26 };

/** A verification under way. */
typedef struct job {
    mixt_verification *v;
    const mixt_verify_options *options;
    int64_t run, runs;     // the one under way, from 1, of all
    int64_t seed;          // of it …
    const char *precision; // … and its precision
    int64_t done, total;   // updates, of all runs
    double started;
    bool stopped; // by the one who hears how far it is
} job;

/** One run of it. */
typedef struct side {
    job *job;
    mixt_verify_run *r;
    mixt__experiment e;
    double *losses, *accuracies, *seconds; // of each update
    int64_t losses_capacity, accuracies_capacity, seconds_capacity;
    mixt__engine engine;
    int not_finite; // losses in a row
} side;

static void tell(job *j, mixt_progress_kind kind, double loss, double accuracy, const char *text)
{
    mixt_progress p = mixt__progress(kind, "training");
    p.what = j->precision;
    p.unit = "updates";
    p.done = j->done;
    p.total = j->total;
    p.part = j->run;
    p.parts = j->runs;
    p.seconds = mixt__time_now() - j->started;
    p.loss = loss;
    p.accuracy = accuracy;
    p.text = text;
    if (!mixt__tell_on((mixt__teller){j->options->progress, j->options->user}, &p))
        j->stopped = true;
}

/* ---- training ---- */

/** Takes in the result of one update. */
static mixt_status take(void *user, const mixt__made *made)
{
    side *s = user;
    mixt_step step = made->step;
    mixt_verify_run *r = s->r;
    if (!mixt__grow((void **)&s->losses, &s->losses_capacity, r->steps, sizeof *s->losses) ||
        !mixt__grow((void **)&s->accuracies, &s->accuracies_capacity, r->steps, sizeof *s->accuracies) ||
        !mixt__grow((void **)&s->seconds, &s->seconds_capacity, r->steps, sizeof *s->seconds))
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the losses of %lld updates", (long long)r->steps);
    bool finite = isfinite(step.loss) && (step.skipped || isfinite(step.grad_norm));
    s->seconds[r->steps] = made->seconds;
    s->accuracies[r->steps] = step.accuracy;
    s->losses[r->steps++] = step.loss;
    r->skipped += step.skipped;
    bool caught =
        step.skipped && isfinite(step.loss) && mixt__trainer_settings_of(s->e.trainer->inner)->scaling.enabled;
    r->not_finite += !finite || (step.skipped && !caught);
    s->not_finite = isfinite(step.loss) ? 0 : s->not_finite + 1;
    s->job->done++;
    tell(s->job, MIXT_PROGRESS_STEP, step.loss, step.accuracy, "");
    s->engine.stop = s->job->stopped || s->not_finite >= NOT_FINITE_MAX;
    return MIXT_OK;
}

/** Memory is that of the largest phase. */
static mixt_status note_memory(side *s)
{
    mixt_memory now;
    MIXT_TRY(mixt_trainer_memory(s->e.trainer, &now));
    if (now.total > s->r->memory.total)
        s->r->memory = now;
    return MIXT_OK;
}

/** Where the policy has phases, the one of this update: all results are in. */
static mixt_status change_phase(void *user, int64_t update)
{
    side *s = user;
    if (!mixt__phases_due(&s->e, update))
        return MIXT_OK;
    MIXT_TRY(note_memory(s));
    return mixt__phases_reach(&s->e, update);
}

static bool phase_ends(void *user)
{
    const side *s = user;
    return mixt__phases_due(&s->e, mixt__trainer_steps(s->e.trainer->inner) + 1);
}

/** All updates; on a GPU the result of one is read while the next runs. */
static mixt_status train(side *s)
{
    mixt__engine *g = &s->engine;
    *g = (mixt__engine){.trainer = s->e.trainer->inner, .data = s->e.train, .user = s};
    g->before = change_phase;
    g->settles = phase_ends;
    g->made = take;
    g->stop = s->job->stopped;
    MIXT_TRY(mixt__engine_make(g, s->e.total_steps));
    int64_t warm = s->r->steps > 2 ? s->r->steps / 10 + 1 : 0;
    s->r->step_seconds = mixt__median(s->seconds + warm, s->r->steps - warm);
    return MIXT_OK;
}

/** Loss and accuracy at the end. */
static mixt_status evaluate(side *s)
{
    mixt_verify_run *r = s->r;
    int64_t last = r->steps / 10 + 1;
    mixt_evaluation found;
    r->accuracy = NAN;
    r->loss = r->steps >= last ? mixt__mean(s->losses + r->steps - last, last) : (double)NAN;
    if (!s->e.val || s->job->stopped)
        return MIXT_OK;
    MIXT_TRY(mixt_trainer_evaluate(s->e.trainer, s->e.val, &found));
    r->loss = found.loss;
    r->accuracy = found.accuracy;
    r->not_finite += !isfinite(found.loss);
    return MIXT_OK;
}

/* ---- outputs ---- */

/** The model's outputs for a batch in one policy, from the trainer's masters or their working copies. */
static mixt_status outputs(side *s, const mixt__policy *policy, const mixt__batch_spec *spec, const void *input,
                           float **values, int64_t *count)
{
    const mixt__trainer *t = s->e.trainer->inner;
    mixt__forward_shape shape = {.spec = spec, .params = mixt__trainer_params(t)};
    mixt__forward *f;
    MIXT_TRY(mixt__forward_new(mixt__trainer_model(t), policy, mixt__trainer_device(t), &shape, &f));
    mixt_status status = mixt__forward_bind(f, mixt__trainer_params(t));
    if (status == MIXT_OK)
        status = mixt__forward_run(f, input, 0, NULL);
    *count = mixt__shape_count(mixt__forward_output_shape(f));
    *values = mixt__alloc_uninit((size_t)*count * sizeof **values);
    if (status == MIXT_OK)
        status = *values ? mixt__forward_output(f, 0, *count, *values)
                         : mixt__fail(MIXT_ERROR_MEMORY, "no memory for the outputs of a batch");
    mixt__forward_free(f);
    return status;
}

/** Mean |mixed - FP32| and |FP32|; counts what is not finite. */
static double difference(const float *mixed, const float *fp32, int64_t count, int64_t *not_finite, double *size)
{
    double sum = 0, all = 0;
    for (int64_t i = 0; i < count; i++) {
        *not_finite += !isfinite(mixed[i]);
        sum += fabs((double)mixed[i] - (double)fp32[i]);
        all += fabs((double)fp32[i]);
    }
    *size = all / (double)count;
    return sum / (double)count;
}

/** What rounding the weights to the policy's formats does to FP32's outputs `exact`; NaN: none are rounded. */
static mixt_status measure_rounding(side *s, const mixt__batch_spec *spec, const void *input, const float *exact,
                                    double *rounding)
{
    mixt__policy fp32 = mixt__policy_of(MIXT_DTYPE_FP32);
    mixt__verify_weights kept;
    float *rounded = NULL;
    int64_t count = 0, ignored = 0;
    double size;
    mixt_status status = mixt__verify_round(s->e.trainer, &kept);
    if (status == MIXT_OK && kept.format != MIXT_DTYPE_NONE)
        status = outputs(s, &fp32, spec, input, &rounded, &count);
    mixt_status restored = mixt__verify_restore(s->e.trainer, &kept);
    s->r->format = kept.format;
    if (status == MIXT_OK && rounded)
        *rounding = difference(rounded, exact, count, &ignored, &size);
    mixt__free(rounded);
    return status == MIXT_OK ? restored : status;
}

/** Compares both policies on the first samples of the validation part, at the weights as they are, and with what
 *  rounding the weights alone does. */
static mixt_status compare_outputs(side *s, double *result, double *size, double *rounding)
{
    mixt_data *data = s->e.val ? s->e.val : s->e.train;
    const mixt_data_info *info = mixt_data_describe(data);
    int64_t each = info->target_elements * (info->classes > 0 ? info->classes : 1), count = OUTPUTS_MAX / each, valid;
    count = count < 1 ? 1 : count > info->samples ? info->samples : count;
    if (count > mixt__trainer_settings_of(s->e.trainer->inner)->eval_batch)
        count = mixt__trainer_settings_of(s->e.trainer->inner)->eval_batch;
    mixt__batch_spec spec = mixt__trainer_spec_of(data, count);
    void *input = mixt__alloc(mixt__spec_input_bytes(&spec)), *target = mixt__alloc(mixt__spec_target_bytes(&spec));
    mixt__policy fp32 = mixt__policy_of(MIXT_DTYPE_FP32);
    float *a = NULL, *b = NULL;
    int64_t outs;
    mixt_status status = input && target ? mixt_data_read(data, 0, count, input, target, &valid)
                                         : mixt__fail(MIXT_ERROR_MEMORY, "no memory for a batch");
    if (status == MIXT_OK)
        status = outputs(s, &fp32, &spec, input, &a, &outs);
    if (status == MIXT_OK)
        status = outputs(s, &mixt__trainer_settings_of(s->e.trainer->inner)->policy, &spec, input, &b, &outs);
    if (status == MIXT_OK)
        *result = difference(b, a, outs, &s->r->not_finite, size);
    if (status == MIXT_OK)
        status = measure_rounding(s, &spec, input, a, rounding);
    mixt__free(a);
    mixt__free(b);
    mixt__free(input);
    mixt__free(target);
    return status;
}

/* ---- one run ---- */

/** Share of the step's matrix FLOPs that run on the device's matrix units. */
static double tensor_cores(const mixt__executable *e)
{
    double all = 0, there = 0;
    for (int64_t i = 0; i < e->graph->node_count; i++) {
        const mixt__node *n = &e->graph->nodes[i];
        double flops = n->op->matrix_work && !n->alias ? mixt__node_flops(e->graph, n) : 0;
        all += flops;
        there += e->calls[i].tensor_cores ? flops : 0;
    }
    return all > 0 ? there / all : (double)NAN;
}

/** A line about the weights that training begins with. */
static void note(void *user, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    tell(user, MIXT_PROGRESS_NOTE, NAN, NAN, text);
}

/** @param first what was loaded is told then, and not again for each run */
static mixt_status open_side(side *s, bool first)
{
    mixt_config *config = s->job->v->config;
    char setting[64];
    const mixt_policy *policy = s->job->precision == s->job->v->precision ? s->job->v->policy : NULL;
    MIXT_TRY(mixt__config_set_policy(config, s->job->precision, "verify", policy));
    snprintf(setting, sizeof setting, "seed=%lld", (long long)s->job->seed);
    MIXT_TRY(mixt_config_set(config, setting, "verify"));
    MIXT_TRY(mixt__experiment_open(&s->e, config));
    MIXT_TRY(mixt__experiment_init(&s->e, true, first ? note : NULL, s->job));
    return mixt__trainer_allocate(s->e.trainer->inner);
}

static mixt_status measure(side *s, mixt_verify_side which)
{
    mixt_verification *v = s->job->v;
    mixt_verify_run *r = s->r;
    bool mixed = which == MIXT_VERIFY_MIXED;
    v->host = s->e.context->device->backend->host_memory;
    v->classes = mixt_data_describe(s->e.train)->target == MIXT_TARGET_CLASS && s->e.val;
    v->validated = s->e.val != NULL;
    v->fp16 = v->fp16 || mixt__policy_needs_scaling(&mixt__trainer_settings_of(s->e.trainer->inner)->policy);
    r->tensor_cores = v->host ? (double)NAN : tensor_cores(mixt__trainer_compiled(s->e.trainer->inner));
    r->difference = r->output_size = r->rounding = NAN;
    r->trained = r->trained_size = r->trained_rounding = r->tensor_active = NAN;
    r->products_share = r->products_flops = r->products_active = NAN;
    r->format = MIXT_DTYPE_NONE;
    if (mixed)
        MIXT_TRY(compare_outputs(s, &r->difference, &r->output_size, &r->rounding));
    mixt__device *device = s->e.context->device;
    bool counts = device->backend->activity && device->backend->activity(device, NULL);
    MIXT_TRY(train(s));
    mixt__device_activity activity;
    if (counts && device->backend->activity(device, &activity))
        r->tensor_active = activity.tensor_cores;
    MIXT_TRY(note_memory(s));
    MIXT_TRY(evaluate(s));
    if (!mixed || s->job->stopped)
        return MIXT_OK;
    MIXT_TRY(compare_outputs(s, &r->trained, &r->trained_size, &r->trained_rounding));
    if (s->job->seed == v->first_seed)
        mixt__verify_products(s->e.trainer, s->e.train, r);
    return MIXT_OK;
}

/** What came of a run. */
static void tell_run(job *j, const mixt_verify_run *r)
{
    char text[200], loss[32];
    snprintf(text, sizeof text, "seed %lld, %s: loss %s, %.2f ms per update", (long long)j->seed, j->precision,
             mixt__progress_loss(loss, r->loss), 1e3 * r->step_seconds);
    tell(j, MIXT_PROGRESS_PART, r->loss, r->accuracy, text);
}

static mixt_status run_side(job *j, int64_t index, mixt_verify_side which)
{
    side s = {.job = j, .r = &j->v->runs[index][which]};
    s.e.teller = (mixt__teller){j->options->progress, j->options->user};
    j->run++;
    j->seed = j->v->first_seed + index;
    j->precision = which == MIXT_VERIFY_FP32 ? "fp32" : j->v->precision;
    mixt_status status = open_side(&s, !index && !which);
    if (status == MIXT_OK) {
        j->total = s.e.total_steps * j->runs;
        status = measure(&s, which);
    }
    s.r->losses = s.losses;
    s.r->accuracies = s.accuracies;
    if (status == MIXT_OK && !j->stopped)
        tell_run(j, s.r);
    mixt__free(s.seconds);
    mixt__experiment_close(&s.e);
    return status;
}

/* ---- all of them ---- */

/** What can be seen before a whole run is spent. */
static mixt_status check(mixt_verification *v, const mixt_verify_options *o)
{
    if (v->seeds < 1 || v->seeds > MIXT_VERIFY_SEEDS_MAX || o->steps < 0)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%lld seeds, %lld steps: expected 1 to %d seeds and at least 1 step",
                          (long long)v->seeds, (long long)o->steps, MIXT_VERIFY_SEEDS_MAX);
    if (v->first_seed > INT64_MAX - (v->seeds - 1))
        return mixt__fail(MIXT_ERROR_CONFIG, "seed: %lld is too large for %lld seeds", (long long)v->first_seed,
                          (long long)v->seeds);
    if (!strcmp(v->precision, "fp32"))
        return mixt__fail(MIXT_ERROR_CONFIG, "precision is fp32: set the one to verify, as in precision=bf16");
    if (v->price < 0 || isinf(v->price) || isinf(v->target_loss) || v->target_accuracy < 0 || v->target_accuracy > 1 ||
        (!isnan(v->target_loss) && !isnan(v->target_accuracy)))
        return mixt__fail(MIXT_ERROR_ARGUMENT,
                          "price %g, target of loss %g, of accuracy %g: expected no negative price, and a finite loss "
                          "or an accuracy up to 1, not both",
                          v->price, v->target_loss, v->target_accuracy);
    return mixt_policy_open(v->precision, &v->policy);
}

static mixt_status set_steps(mixt_config *config, int64_t steps)
{
    char setting[64];
    if (!steps)
        return MIXT_OK;
    snprintf(setting, sizeof setting, "train.steps=%lld", (long long)steps);
    MIXT_TRY(mixt_config_set(config, setting, "verify"));
    return mixt_config_set(config, "train.epochs=0", "verify");
}

/** NaN: it is not given. */
static double given_or_none(double number)
{
    return number == MIXT_AUTO ? (double)NAN : number;
}

static mixt_status verify(mixt_verification *v, const mixt_config *config, const mixt_verify_options *o)
{
    MIXT_TRY(mixt_config_copy(config, &v->config));
    v->seeds = o->seeds;
    v->first_seed = mixt__config_int(config, MIXT_KEY_SEED);
    v->target_loss = given_or_none(o->target_loss);
    v->target_accuracy = given_or_none(o->target_accuracy);
    v->price = given_or_none(o->price);
    const char *precision;
    MIXT_TRY(mixt__auto_precision(config, &precision, NULL));
    v->precision = mixt__strdup(precision);
    v->model = mixt__strdup(mixt__config_string(config, MIXT_KEY_MODEL));
    if (!v->precision || !v->model)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a verification");
    MIXT_TRY(check(v, o));
    MIXT_TRY(set_steps(v->config, o->steps));
    v->runs = mixt__alloc((size_t)v->seeds * sizeof *v->runs);
    if (!v->runs)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a verification");
    job j = {.v = v, .options = o, .runs = v->seeds * MIXT_VERIFY_SIDES, .started = mixt__time_now()};
    for (int64_t i = 0; i < j.runs && !j.stopped; i++)
        MIXT_TRY(run_side(&j, i / MIXT_VERIFY_SIDES, (mixt_verify_side)(i % MIXT_VERIFY_SIDES)));
    if (j.stopped)
        return mixt__fail(MIXT_ERROR_STATE, "stopped before all runs were done: no verdict");
    mixt__verify_find_targets(v);
    mixt__verify_lines(v);
    return mixt__verify_judge(v);
}

mixt_status mixt_verify_with(const mixt_config *config, const mixt_verify_options *options,
                             mixt_verification **verification)
{
    MIXT_TRY(mixt__need(verification));
    *verification = NULL;
    MIXT_TRY(mixt__need_open(config, "configuration"));
    mixt_verify_options own = MIXT_OPTIONS(mixt_verify_options);
    MIXT_TRY(mixt__options(mixt_verify_options, &own, options));
    mixt_verification *v = mixt__alloc(sizeof *v);
    if (v)
        mixt__handle_add(&v->handle, v, "verification", NULL);
    mixt_status status = v ? verify(v, config, &own) : mixt__fail(MIXT_ERROR_MEMORY, "no memory for a verification");
    if (status == MIXT_OK)
        *verification = v;
    else
        mixt_verification_free(v);
    return status;
}

void mixt_verification_free(mixt_verification *v)
{
    if (!v || mixt__need_open(v, "verification") != MIXT_OK)
        return;
    mixt__handle_remove(v);
    for (int64_t i = 0; v->runs && i < v->seeds * MIXT_VERIFY_SIDES; i++) {
        const mixt_verify_run *r = &v->runs[i / MIXT_VERIFY_SIDES][i % MIXT_VERIFY_SIDES];
        mixt__free((double *)r->losses);
        mixt__free((double *)r->accuracies);
    }
    mixt__free(v->runs);
    mixt__free(v->precision);
    mixt_policy_free(v->policy);
    mixt__free(v->model);
    mixt_config_free(v->config);
    mixt__free(v);
}

/* ---- reading ---- */

mixt_verification_info mixt_verification_describe(const mixt_verification *v)
{
    if (mixt__need_open(v, "verification") != MIXT_OK)
        return (mixt_verification_info){.precision = "", .model = ""};
    mixt_verification_info info = {.checklist = true, .precision = v->precision, .model = v->model};
    info.seeds = v->seeds;
    info.first_seed = v->first_seed;
    info.safe = v->judgements[MIXT_CLAIM_SAFE].verdict;
    info.worth_it = MIXT_VERDICT_NO;
    for (mixt_claim c = MIXT_CLAIM_FASTER; c < MIXT_CLAIM_COUNT; c++)
        if (v->judgements[c].statistic && info.worth_it != MIXT_VERDICT_YES &&
            v->judgements[c].verdict != MIXT_VERDICT_NO)
            info.worth_it = v->judgements[c].verdict;
    for (int i = 0; i < MIXT_VERIFY_LINES; i++)
        info.checklist = info.checklist && (v->lines[i].pass || !v->lines[i].measured);
    return info;
}

const mixt_judgement *mixt_verification_judgement(const mixt_verification *v, mixt_claim claim)
{
    if (mixt__need_open(v, "verification") != MIXT_OK)
        return NULL;
    return (unsigned)claim < MIXT_CLAIM_COUNT && v->judgements[claim].statistic ? &v->judgements[claim] : NULL;
}

const mixt_judgement *mixt_verification_part(const mixt_verification *v, int index)
{
    if (mixt__need_open(v, "verification") != MIXT_OK)
        return NULL;
    return index >= 0 && index < MIXT_VERIFY_PARTS ? &v->parts[index] : NULL;
}

const mixt_verify_line *mixt_verification_line(const mixt_verification *v, int index)
{
    if (mixt__need_open(v, "verification") != MIXT_OK)
        return NULL;
    return index >= 0 && index < MIXT_VERIFY_LINES ? &v->lines[index] : NULL;
}

const mixt_verify_figure *mixt_verification_figure(const mixt_verification *v, int index)
{
    if (mixt__need_open(v, "verification") != MIXT_OK)
        return NULL;
    return index >= 0 && index < MIXT_VERIFY_FIGURES ? &v->figures[index] : NULL;
}

const mixt_verify_run *mixt_verification_run(const mixt_verification *v, int64_t seed, mixt_verify_side side)
{
    if (mixt__need_open(v, "verification") != MIXT_OK)
        return NULL;
    return seed >= 0 && seed < v->seeds && (unsigned)side < MIXT_VERIFY_SIDES ? &v->runs[seed][side] : NULL;
}
