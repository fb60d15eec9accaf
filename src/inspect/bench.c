/* Times the steps of a fixed model. */
#include "mixt/bench.h"

#include "base/options.h"
#include "base/threads.h"
#include "base/words.h"
#include "inspect/profile.h"
#include "models/bench.h"
#include "train/engine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES = 4, WARM_UP = 6, GROUPS_MAX = 1000, STEPS_DEFAULT = 20, STEPS_MIN = 4 };

/** One benchmark under way. */
typedef struct bench {
    const mixt__bench_model *model;
    const mixt_bench_options *options;
    mixt_bench_result *result;
    int64_t batch, seq, steps;
    mixt_context *context;
    mixt_trainer *trainer;
    mixt__model_sizes sizes;
    mixt__resident batches;
} bench;

static mixt__device *device_of(const bench *b)
{
    return b->context->device;
}

/* ---- data and trainer ---- */

/** Compiles again where the step takes more than it may: activations get what the rest leaves. */
static mixt_status keep_memory(const bench *b)
{
    mixt__trainer *t = b->trainer->inner;
    mixt_memory m = mixt__trainer_memory(t);
    size_t limit = b->options->memory, rest = m.total - m.activations;
    if (!limit || m.total <= limit)
        return MIXT_OK;
    if (rest >= limit)
        return mixt__fail(MIXT_ERROR_MEMORY, "memory %zu: the step takes %zu bytes without its activations", limit,
                          rest);
    mixt__trainer_set_recompute(t, limit - rest);
    mixt_status status = mixt__trainer_recompile(t);
    return status == MIXT_OK ? status
                             : mixt__fail_context(status, "memory %zu, %zu of it for activations", limit, limit - rest);
}

static mixt_status open_bench(bench *b)
{
    mixt_context_options context =
        MIXT_OPTIONS(mixt_context_options, .device = b->options->device, .threads = b->options->threads);
    if (mixt_open_with(&context, &b->context) != MIXT_OK)
        return MIXT_ERROR_DEVICE;
    mixt_data_options o = MIXT_OPTIONS(mixt_data_options, .seq = b->seq, .classes = b->model->classes, .seed = 1);
    o.samples = b->batch * BATCHES;
    mixt_data *data;
    if (mixt_data_new_with(b->context, b->model->data, &o, &data) != MIXT_OK)
        return MIXT_ERROR_DATA;
    b->sizes = b->model->sizes;
    mixt__model model;
    MIXT_TRY(mixt__zoo_model(b->model->model, mixt_data_describe(data), &b->sizes, &model));
    mixt_trainer_options trainer = mixt__bench_options(b->model);
    trainer.precision = b->options->precision;
    trainer.batch = b->batch;
    MIXT_TRY(mixt__trainer_open(b->context, &model, &trainer, &b->trainer));
    MIXT_TRY(mixt_trainer_compile(b->trainer, data));
    MIXT_TRY(keep_memory(b));
    b->result->recomputed = mixt__trainer_compiled(b->trainer->inner)->recompute.nodes;
    b->result->recompute_seconds = mixt__trainer_compiled(b->trainer->inner)->recompute.seconds;
    return mixt__resident_open(&b->batches, b->trainer->inner, data, BATCHES);
}

/* ---- timing ---- */

static int compare(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return a < b ? -1 : a > b;
}

/** Steps on the batches in turn; returns when they have run. Nothing waits in between. */
static mixt_status take_steps(bench *b, int64_t count)
{
    mixt__engine engine = {.trainer = b->trainer->inner, .resident = &b->batches};
    MIXT_TRY(mixt__engine_make(&engine, count));
    return mixt__device_synchronize(device_of(b));
}

// Seconds: what fast steps are timed for at least and slow ones at most, and steps before that. A processor, above all
// one that others share, needs some tenths of a second to find its speed.
static const double timed_least = 0.5, timed_most = 5, warm_seconds = 0.2;

/** Counters of energy and of units at work lag some tens of milliseconds behind: steps go on for this long. */
static const double counted_seconds = 0.5;

static mixt_status read_counters(bench *b, int64_t group)
{
    mixt__device *device = device_of(b);
    mixt_bench_result *r = b->result;
    double first = device->backend->energy ? mixt__device_energy(device) : (double)NAN;
    r->counted = device->backend->activity && device->backend->activity(device, NULL);
    if (isnan(first) && !r->counted)
        return MIXT_OK;
    double start = mixt__time_now(), elapsed = 0;
    int64_t steps = 0;
    while (elapsed < counted_seconds) {
        MIXT_TRY(take_steps(b, group));
        steps += group;
        elapsed = mixt__time_now() - start;
    }
    mixt__device_activity activity = {0};
    r->counted = r->counted && device->backend->activity(device, &activity);
    r->multiprocessors_active = activity.multiprocessors;
    r->tensor_cores_active = activity.tensor_cores;
    r->memory_active = activity.memory;
    double joules = isnan(first) ? first : mixt__device_energy(device) - first;
    if (joules > 0) {
        r->watts = joules / elapsed;
        r->items_j = (double)(steps * r->items) / joules;
    }
    return MIXT_OK;
}

/** The first steps. */
typedef struct warming {
    mixt__engine engine;
    double begun, fastest;
    int count;
} warming;

static mixt_status warm(void *user, const mixt__made *made)
{
    warming *w = user;
    w->fastest = fmin(w->fastest, made->seconds);
    w->engine.stop = ++w->count >= WARM_UP && mixt__time_now() - w->begun >= warm_seconds;
    return MIXT_OK;
}

/** The first steps, untimed. Unless someone asked for a number, it is settled by the fastest of them. */
static mixt_status warm_up(bench *b)
{
    warming w = {.begun = mixt__time_now(), .fastest = INFINITY};
    w.engine = (mixt__engine){.trainer = b->trainer->inner, .resident = &b->batches, .at_once = true, .made = warm};
    w.engine.user = &w;
    MIXT_TRY(mixt__engine_make(&w.engine, INT64_MAX));
    if (b->options->steps)
        return MIXT_OK;
    int64_t least = (int64_t)(timed_least / w.fastest), most = (int64_t)(timed_most / w.fastest);
    b->steps = b->steps > least ? b->steps : least;
    b->steps = b->steps < most ? b->steps : most;
    b->steps = b->steps > STEPS_MIN ? b->steps : STEPS_MIN;
    return MIXT_OK;
}

/** Groups of steps, timed as a whole, so that the clock costs nothing; the median group. */
static mixt_status measure(bench *b)
{
    mixt_step step = {0};
    mixt_bench_result *r = b->result;
    MIXT_TRY(warm_up(b));
    bool small = !b->seq && mixt__shape_count(&mixt__trainer_spec(b->trainer->inner)->input) / b->batch <= 784;
    int64_t several = device_of(b)->backend->host_memory ? 10 : 50; // a wait for the device is short against that many
    int64_t group = small ? several : b->steps / 4 > 10 ? 10 : b->steps / 4 > 1 ? b->steps / 4 : 1;
    int64_t groups = b->steps / group > 4 ? b->steps / group : 4;
    double times[GROUPS_MAX] = {0};
    if (groups > GROUPS_MAX)
        groups = GROUPS_MAX;
    for (int64_t g = 0; g < groups; g++) {
        double start = mixt__time_now();
        MIXT_TRY(take_steps(b, group));
        times[g] = (mixt__time_now() - start) / (double)group;
    }
    qsort(times, (size_t)groups, sizeof times[0], compare);
    r->seconds = groups % 2 ? times[groups / 2] : (times[groups / 2 - 1] + times[groups / 2]) / 2;
    r->spread = (times[groups * 9 / 10] - times[groups / 10]) / r->seconds;
    r->steps = groups * group;
    MIXT_TRY(read_counters(b, group));
    mixt__engine engine = {.trainer = b->trainer->inner, .resident = &b->batches};
    MIXT_TRY(mixt__engine_make_one(&engine, &step));
    r->loss = step.loss;
    r->gpu = device_of(b)->backend->describe && mixt__device_describe(device_of(b), &r->gpu_info) == MIXT_OK;
    if (r->gpu)
        r->gpu_other = (double)r->gpu_info.memory_bytes - (double)r->gpu_info.memory_free -
                       (double)mixt__device_allocated(device_of(b));
    return mixt_trainer_memory(b->trainer, &r->memory);
}

/* ---- models ---- */

int mixt_bench_count(void)
{
    int count = 0;
    while (mixt__bench_models[count].name)
        count++;
    return count;
}

bool mixt_bench_at(int position, mixt_bench_model *model)
{
    if (position < 0 || position >= mixt_bench_count())
        return false;
    const mixt__bench_model *m = &mixt__bench_models[position];
    *model = (mixt_bench_model){.name = m->name, .summary = m->summary, .batch = m->batch, .seq = m->seq};
    return true;
}

double mixt_bench_flops(const char *model, int64_t batch, int64_t seq)
{
    const mixt__bench_model *m = mixt__need(model) == MIXT_OK ? mixt__bench_find(model) : NULL;
    return m ? m->flops(m, batch, seq) : 0;
}

static mixt_status find_model(const char *name, const mixt__bench_model **model)
{
    char list[256] = "";
    mixt__nearest nearest = {.wanted = name};
    *model = mixt__bench_find(name);
    if (*model)
        return MIXT_OK;
    for (const mixt__bench_model *m = mixt__bench_models; m->name; m++) {
        size_t used = strlen(list);
        mixt__nearest_offer(&nearest, m->name);
        snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", m->name);
    }
    const char *guess = mixt__nearest_get(&nearest);
    return mixt__fail(MIXT_ERROR_ARGUMENT, "no benchmark '%s'%s%s%s; there are %s", name,
                      guess ? " (did you mean " : "", guess ? guess : "", guess ? "?)" : "", list);
}

/* ---- running ---- */

static mixt_status check_options(const bench *b)
{
    const mixt_bench_options *o = b->options;
    if (o->batch < 0 || o->seq < 0 || o->steps < 0)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "batch %lld, seq %lld, steps %lld: must be 0 (the default) or above",
                          (long long)o->batch, (long long)o->seq, (long long)o->steps);
    if (o->seq && !b->model->seq)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "seq %lld: %s has no sequence: leave it out", (long long)o->seq,
                          b->model->name);
    return MIXT_OK;
}

static mixt_status run(bench *b)
{
    MIXT_TRY(open_bench(b));
    b->result->device = device_of(b)->backend->name;
    b->result->threads = mixt__threads_count();
    MIXT_TRY(measure(b));
    if (!b->options->profile)
        return MIXT_OK;
    return mixt__profile_run(&b->batches, b->steps, &b->result->profile);
}

mixt_status mixt_bench_run_with(const char *model, const mixt_bench_options *options, mixt_bench_result *result)
{
    mixt_bench_options own = MIXT_OPTIONS(mixt_bench_options);
    bench b = {.options = &own, .result = result};
    MIXT_TRY(mixt__need(result));
    *result = (mixt_bench_result){.watts = NAN, .items_j = NAN};
    MIXT_TRY(mixt__need(model));
    MIXT_TRY(mixt__options(mixt_bench_options, &own, options));
    MIXT_TRY(find_model(model, &b.model));
    MIXT_TRY(check_options(&b));
    b.batch = result->batch = b.options->batch ? b.options->batch : b.model->batch;
    b.seq = result->seq = b.options->seq ? b.options->seq : b.model->seq;
    b.steps = b.options->steps ? b.options->steps : STEPS_DEFAULT;
    result->items = mixt__bench_items(b.model, b.batch, b.seq);
    result->flops = b.model->flops(b.model, b.batch, b.seq);
    mixt_status status = run(&b);
    mixt__resident_close(&b.batches);
    mixt_close(b.context);
    return status;
}

void mixt_bench_free(mixt_bench_result *result)
{
    if (!result)
        return;
    mixt_profile_free(result->profile);
    result->profile = NULL;
}
