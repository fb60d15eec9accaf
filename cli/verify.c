/* Training both sides and measuring each. */
#include "cli/verify.h"

#include "base/statistics.h"
#include "base/threads.h"
#include "run/init.h"
#include "cli/progress.h"
#include "cli/tokenize_progress.h"

#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/** Losses in a row that are not finite, after which a run is given up: it has failed. */
enum { HOPELESS_MAX = 20, OUTPUTS_MAX = 1 << 26 };

static volatile sig_atomic_t stop_requested;

static void request_stop(int signal_number)
{
    (void)signal_number;
    stop_requested = 1;
}

typedef struct side {
    cli_verify *v;
    cli_verify_run *r;
    mixt__experiment e;
    cli_progress *progress;
    cli_progress_info shown;
    double *seconds; // of each update
    int64_t seconds_capacity, losses_capacity;
    double digested_at;
    int hopeless;
} side;

/** Takes in the result of one update. */
static mixt_status digest(side *s)
{
    mixt_step step;
    cli_verify_run *r = s->r;
    MIXT_TRY(mixt__trainer_result(&s->e.trainer->core, r->steps + 1, &step));
    if (!mixt__grow((void **)&r->losses, &s->losses_capacity, r->steps, sizeof *r->losses) ||
        !mixt__grow((void **)&s->seconds, &s->seconds_capacity, r->steps, sizeof *s->seconds))
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the losses of %lld updates", (long long)r->steps);
    double now = mixt__time_now();
    bool finite = isfinite(step.loss) && (step.skipped || isfinite(step.grad_norm));
    s->seconds[r->steps] = now - s->digested_at;
    s->digested_at = now;
    r->losses[r->steps++] = step.loss;
    r->skipped += step.skipped;
    bool caught = step.skipped && isfinite(step.loss) && s->e.trainer->core.settings.scaling.enabled;
    r->not_finite += !finite || (step.skipped && !caught);
    s->hopeless = isfinite(step.loss) ? 0 : s->hopeless + 1;
    s->shown.step++;
    s->shown.loss = step.loss;
    s->shown.accuracy = step.accuracy;
    cli_progress_update(s->progress, &s->shown);
    return MIXT_OK;
}

/** All updates; on a GPU the result of one is read while the next runs. */
static mixt_status train(side *s)
{
    int64_t total = s->e.total_steps, issued = 0;
    bool host = s->e.context->backend->host_memory;
    s->digested_at = mixt__time_now();
    while (issued < total && !stop_requested && s->hopeless < HOPELESS_MAX) {
        MIXT_TRY(mixt_trainer_step(s->e.trainer, s->e.train, NULL));
        issued++;
        while (s->r->steps < issued - (host ? 0 : 1))
            MIXT_TRY(digest(s));
    }
    while (s->r->steps < issued)
        MIXT_TRY(digest(s));
    int64_t warm = s->r->steps > 2 ? s->r->steps / 10 + 1 : 0;
    s->r->step_seconds = mixt__median(s->seconds + warm, s->r->steps - warm);
    return MIXT_OK;
}

/** Loss and accuracy at the end. */
static mixt_status evaluate(side *s)
{
    cli_verify_run *r = s->r;
    int64_t last = r->steps / 10 + 1;
    mixt_evaluation found;
    r->accuracy = NAN;
    r->loss = r->steps >= last ? mixt__mean(r->losses + r->steps - last, last) : (double)NAN;
    if (!s->e.val || stop_requested)
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
    const mixt__trainer *t = &s->e.trainer->core;
    mixt__forward_shape shape = {.dtype = spec->input_dtype, .input = spec->input};
    mixt__forward *f;
    MIXT_TRY(mixt__forward_new(&t->model, policy, t->backend, &shape, &f));
    mixt_status status = mixt__forward_bind(f, t->params);
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

/** Compares both policies on the first samples of the validation part, at the weights as they are. */
static mixt_status compare_outputs(side *s, double *result, double *size)
{
    mixt_data *data = s->e.val ? s->e.val : s->e.train;
    const mixt_data_info *info = mixt_data_describe(data);
    int64_t each = info->target_elements * (info->classes > 0 ? info->classes : 1), count = OUTPUTS_MAX / each, valid;
    count = count < 1 ? 1 : count > info->samples ? info->samples : count;
    if (count > s->e.trainer->core.settings.eval_batch)
        count = s->e.trainer->core.settings.eval_batch;
    mixt__batch_spec spec = mixt__trainer_spec_of(data, count);
    void *input = mixt__alloc((size_t)(count * info->input_elements) * mixt_dtype_size(info->input_dtype));
    void *target = mixt__alloc((size_t)(count * info->target_elements) * mixt_dtype_size(info->target_dtype));
    mixt__policy fp32 = mixt__policy_of(MIXT_DTYPE_FP32);
    float *a = NULL, *b = NULL;
    int64_t outs;
    mixt_status status = input && target ? mixt_data_read(data, 0, count, input, target, &valid)
                                         : mixt__fail(MIXT_ERROR_MEMORY, "no memory for a batch");
    if (status == MIXT_OK)
        status = outputs(s, &fp32, &spec, input, &a, &outs);
    if (status == MIXT_OK)
        status = outputs(s, &s->e.trainer->core.settings.policy, &spec, input, &b, &outs);
    if (status == MIXT_OK)
        *result = difference(b, a, outs, &s->r->not_finite, size);
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

static void print_note(void *user, const char *format, ...)
{
    va_list args;
    (void)user;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

/** @param first what was loaded is said then, and not again for each run */
static mixt_status open_side(side *s, mixt_config *config, int which, int64_t seed, bool first)
{
    char setting[300];
    snprintf(setting, sizeof setting, "precision=%s", which == CLI_VERIFY_FP32 ? "fp32" : s->v->policy);
    MIXT_TRY(mixt_config_set(config, setting, "verify"));
    snprintf(setting, sizeof setting, "seed=%lld", (long long)seed);
    MIXT_TRY(mixt_config_set(config, setting, "verify"));
    MIXT_TRY(mixt__experiment_open(&s->e, config));
    MIXT_TRY(mixt__experiment_init(&s->e, true, s->progress->quiet || !first ? NULL : print_note, NULL));
    return mixt__trainer_allocate(&s->e.trainer->core);
}

static mixt_status measure(side *s, int which)
{
    cli_verify *v = s->v;
    cli_verify_run *r = s->r;
    bool mixed = which == CLI_VERIFY_MIXED;
    v->host = s->e.context->backend->host_memory;
    v->classes = mixt_data_describe(s->e.train)->target == MIXT_TARGET_CLASS && s->e.val;
    v->validated = s->e.val != NULL;
    v->fp16 = v->fp16 || mixt__policy_uses(&s->e.trainer->core.settings.policy, MIXT_DTYPE_FP16);
    r->tensor_cores = v->host ? (double)NAN : tensor_cores(s->e.trainer->core.train);
    double end_size;
    r->difference = r->trained = r->output_size = NAN;
    if (mixed)
        MIXT_TRY(compare_outputs(s, &r->difference, &r->output_size));
    MIXT_TRY(train(s));
    MIXT_TRY(mixt_trainer_memory(s->e.trainer, &r->memory));
    MIXT_TRY(evaluate(s));
    return mixed && !stop_requested ? compare_outputs(s, &r->trained, &end_size) : MIXT_OK;
}

static mixt_status run_side(cli_verify *v, mixt_config *config, int64_t index, int which, cli_progress *progress,
                            cli_progress_info *shown)
{
    side s = {.v = v,
              .e = {.progress = cli_tokenize_progress},
              .r = &v->runs[index][which],
              .progress = progress,
              .shown = *shown};
    int64_t seed = v->first_seed + index;
    mixt_status status = open_side(&s, config, which, seed, !index && !which);
    if (status == MIXT_OK) {
        s.shown.steps = s.e.total_steps * v->seeds * CLI_VERIFY_SIDES;
        status = measure(&s, which);
    }
    if (status == MIXT_OK && !stop_requested)
        cli_progress_note(progress, "seed %lld, %s: loss %.4f, %.2f ms a step", (long long)seed,
                          which == CLI_VERIFY_FP32 ? "fp32" : v->policy, s.r->loss, 1e3 * s.r->step_seconds);
    *shown = s.shown;
    mixt__free(s.seconds);
    mixt__experiment_close(&s.e);
    return status;
}

mixt_status cli_verify_measure(cli_verify *v, mixt_config *config, bool quiet)
{
    struct sigaction action = {.sa_handler = request_stop, .sa_flags = (int)SA_RESETHAND}, old_int, old_term;
    cli_progress progress;
    cli_progress_info shown = {.part = "run", .items_s = NAN, .scale = NAN};
    mixt_status status = MIXT_OK;
    snprintf(v->policy, sizeof v->policy, "%s", mixt__config_string(config, MIXT_KEY_PRECISION));
    v->first_seed = mixt__config_int(config, MIXT_KEY_SEED);
    shown.epochs = v->seeds * CLI_VERIFY_SIDES;
    stop_requested = 0;
    sigaction(SIGINT, &action, &old_int);
    sigaction(SIGTERM, &action, &old_term);
    cli_progress_start(&progress, stderr, quiet, 0);
    for (int64_t i = 0; status == MIXT_OK && i < v->seeds * CLI_VERIFY_SIDES && !stop_requested; i++) {
        shown.epoch = i + 1;
        status = run_side(v, config, i / CLI_VERIFY_SIDES, (int)(i % CLI_VERIFY_SIDES), &progress, &shown);
    }
    v->interrupted = stop_requested;
    if (shown.step)
        cli_progress_finish(&progress, &shown);
    sigaction(SIGINT, &old_int, NULL);
    sigaction(SIGTERM, &old_term, NULL);
    return status;
}

void cli_verify_free(cli_verify *v)
{
    for (int64_t i = 0; i < CLI_VERIFY_SEEDS_MAX; i++)
        for (int k = 0; k < CLI_VERIFY_SIDES; k++) {
            mixt__free(v->runs[i][k].losses);
            v->runs[i][k].losses = NULL;
        }
}
