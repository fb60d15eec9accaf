/* mixt bench: the speed of one training step of a fixed model. */
#include "cli/commands.h"

#include "api/api.h"
#include "base/threads.h"
#include "cli/profile.h"
#include "cli/run_dir.h"
#include "cli/term.h"
#include "models/bench.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

enum { BATCHES = 4, WARM_UP = 6, GROUPS_MAX = 1000, STEPS_MIN = 4 };

/** One benchmark under way. */
typedef struct bench {
    const mixt__bench_model *model;
    const char *precision;
    int64_t batch, seq, steps;
    bool steps_given;
    mixt_context *context;
    mixt_trainer *trainer;
    mixt__model_sizes sizes;
    void *input[BATCHES], *target[BATCHES]; // in the device's memory
    double ms, spread;                      // median step; (ninth - first decile) / median of the groups
    double watts, items_j;                  // NaN: the device does not count its energy
    bool counted;                           // the device counts what its units do
    mixt__device_activity activity;
    double loss;
    mixt_memory memory;
    mixt_gpu_info device; // with `described`
    bool described;
} bench;

static const mixt__backend *backend_of(const bench *b)
{
    return b->context->backend;
}

/** One batch, made in `staged` (inputs, targets), as it is fed to the step. */
static mixt_status make_batch(bench *b, const mixt_data *data, int index, void *staged[2])
{
    const mixt__backend *device = backend_of(b);
    mixt__feed *feed = &b->trainer->core.feed;
    const void *input;
    b->input[index] = device->alloc(feed->input_bytes);
    b->target[index] = device->alloc(feed->target_bytes);
    if (!b->input[index] || !b->target[index] || !staged[0] || !staged[1])
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for %d batches of %lld samples (%.2f GiB)", BATCHES,
                          (long long)b->batch,
                          (double)(BATCHES * (feed->input_bytes + feed->target_bytes)) / 1073741824.0);
    MIXT_TRY(mixt_data_batch(data, b->batch, index, staged[0], staged[1]));
    MIXT_TRY(mixt__feed_round(feed, staged[0], &input));
    MIXT_TRY(device->upload(b->input[index], input, feed->input_bytes));
    return device->upload(b->target[index], staged[1], feed->target_bytes);
}

static mixt_status make_batches(bench *b, const mixt_data *data)
{
    const mixt__feed *feed = &b->trainer->core.feed;
    size_t need = BATCHES * (feed->input_bytes + feed->target_bytes), room = backend_of(b)->available();
    if (room && need > room)
        return mixt__fail(MIXT_ERROR_MEMORY,
                          "%d batches of %lld samples need %.2f GiB, %.2f are free: use a smaller batch", BATCHES,
                          (long long)b->batch, (double)need / 1073741824.0, (double)room / 1073741824.0);
    void *staged[2] = {mixt__alloc_uninit(feed->input_room), mixt__alloc_uninit(feed->target_room)};
    mixt_status status = MIXT_OK;
    for (int i = 0; i < BATCHES && status == MIXT_OK; i++)
        status = make_batch(b, data, i, staged);
    mixt__free(staged[0]);
    mixt__free(staged[1]);
    return status;
}

static mixt_status open(bench *b, const cli_args *args)
{
    mixt_context_options context = {.device = cli_text(args, "device"), .threads = (int)cli_int(args, "threads")};
    b->context = mixt_open_with(&context);
    if (!b->context)
        return MIXT_ERROR_DEVICE;
    mixt_data_options o = {.seq = b->seq, .classes = b->model->classes, .samples = b->batch * BATCHES, .seed = 1};
    mixt_data *data = mixt_data_new_with(b->context, b->model->data, &o);
    if (!data)
        return MIXT_ERROR_DATA;
    b->sizes = b->model->sizes;
    mixt__model model;
    MIXT_TRY(mixt__zoo_model(b->model->model, mixt_data_describe(data), &b->sizes, &model));
    mixt_trainer_options trainer = b->model->trainer;
    trainer.precision = b->precision;
    trainer.batch = b->batch;
    b->trainer = mixt__trainer_open(b->context, &model, &trainer);
    if (!b->trainer)
        return MIXT_ERROR_CONFIG;
    MIXT_TRY(mixt_trainer_compile(b->trainer, data));
    MIXT_TRY(mixt__trainer_allocate(&b->trainer->core)); // first: its message names all that the model needs
    return make_batches(b, data);
}

static int compare(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return a < b ? -1 : a > b;
}

/** Steps on the batches in turn; returns when they have run. Nothing waits in between. */
static mixt_status take_steps(bench *b, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        MIXT_TRY(mixt__trainer_step_on(&b->trainer->core, b->input[i % BATCHES], b->target[i % BATCHES], true, NULL));
    return backend_of(b)->synchronize();
}

// Seconds: what fast steps are timed for at least and slow ones at most, and steps before that. A processor, above all
// one that others share, needs some tenths of a second to find its speed.
static const double timed_least = 0.5, timed_most = 5, warm_seconds = 0.2;

/** Counters of energy and of units at work lag some tens of milliseconds behind: steps go on for this long. */
static const double counted_seconds = 0.5;

static mixt_status read_counters(bench *b, int64_t group)
{
    const mixt__backend *device = backend_of(b);
    b->watts = b->items_j = NAN;
    double first = device->energy ? device->energy() : (double)NAN;
    b->counted = device->activity && device->activity(NULL);
    if (isnan(first) && !b->counted)
        return MIXT_OK;
    double start = mixt__time_now(), elapsed = 0;
    int64_t steps = 0;
    while (elapsed < counted_seconds) {
        MIXT_TRY(take_steps(b, group));
        steps += group;
        elapsed = mixt__time_now() - start;
    }
    b->counted = b->counted && device->activity(&b->activity);
    double joules = isnan(first) ? first : device->energy() - first;
    if (joules > 0) {
        b->watts = joules / elapsed;
        b->items_j = (double)(steps * mixt__bench_items(b->model, b->batch, b->seq)) / joules;
    }
    return MIXT_OK;
}

/** The first steps, untimed. Unless someone asked for a number, it is settled by the fastest of them. */
static mixt_status warm_up(bench *b)
{
    mixt_step step = {0};
    double first = mixt__time_now(), now = first, fastest = INFINITY;
    for (int i = 0; i < WARM_UP || now - first < warm_seconds; i++) {
        double start = now;
        MIXT_TRY(mixt__trainer_step_on(&b->trainer->core, b->input[i % BATCHES], b->target[i % BATCHES], true, &step));
        now = mixt__time_now();
        fastest = fmin(fastest, now - start);
    }
    if (b->steps_given)
        return MIXT_OK;
    int64_t least = (int64_t)(timed_least / fastest), most = (int64_t)(timed_most / fastest);
    b->steps = b->steps > least ? b->steps : least;
    b->steps = b->steps < most ? b->steps : most;
    b->steps = b->steps > STEPS_MIN ? b->steps : STEPS_MIN;
    return MIXT_OK;
}

/** Groups of steps, timed as a whole, so that the clock costs nothing; the median group. */
static mixt_status measure(bench *b)
{
    mixt_step step = {0};
    MIXT_TRY(warm_up(b));
    bool small = !b->seq && mixt__shape_count(&b->trainer->core.spec.input) / b->batch <= 784;
    int64_t several = backend_of(b)->host_memory ? 10 : 50; // a wait for the device is short against that many
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
    double median = groups % 2 ? times[groups / 2] : (times[groups / 2 - 1] + times[groups / 2]) / 2;
    b->ms = 1e3 * median;
    b->spread = (times[groups * 9 / 10] - times[groups / 10]) / median;
    MIXT_TRY(read_counters(b, group));
    MIXT_TRY(mixt__trainer_step_on(&b->trainer->core, b->input[0], b->target[0], true, &step));
    b->loss = step.loss;
    b->described = backend_of(b)->describe && backend_of(b)->describe(&b->device) == MIXT_OK;
    return mixt_trainer_memory(b->trainer, &b->memory);
}

/** Bytes of the device in use beside what mixt allocated: context, libraries, other programs. */
static double overhead(const bench *b)
{
    return (double)b->device.memory_bytes - (double)b->device.memory_free - (double)backend_of(b)->allocated();
}

static void print_text(const bench *b)
{
    double items = (double)mixt__bench_items(b->model, b->batch, b->seq);
    char bytes[32], rate[32];
    printf("%s %s, batch %lld", b->model->name, b->precision, (long long)b->batch);
    if (b->seq)
        printf(" x %lld", (long long)b->seq);
    if (b->described)
        printf(", %s", b->device.name);
    else
        printf(", %d threads", mixt__threads_count());
    printf(": %.3f ms a step (spread %.1f%%), %s %s/s, %.3f TFLOP/s, %s", b->ms, 100 * b->spread,
           cli_format_count(rate, 1e3 * items / b->ms), b->seq ? "tokens" : "samples",
           b->model->flops(b->model, b->batch, b->seq) / b->ms / 1e9,
           cli_format_bytes(bytes, (double)b->memory.allocated));
    if (b->described)
        printf(" (%s beside it: context, libraries)", cli_format_bytes(bytes, overhead(b)));
    if (!isnan(b->watts))
        printf(", %.0f W, %s %s/J", b->watts, cli_format_count(rate, b->items_j), b->seq ? "tokens" : "samples");
    if (b->counted)
        printf("; at work: multiprocessors %.0f%% of the time, Tensor Cores %.0f%%, memory %.0f%%",
               100 * b->activity.multiprocessors, 100 * b->activity.tensor_cores, 100 * b->activity.memory);
    putchar('\n');
}

static void print_json(const bench *b, json_t *profile)
{
    double items = (double)mixt__bench_items(b->model, b->batch, b->seq);
    json_t *o = json_pack(
        "{s:s, s:s, s:s, s:s, s:I, s:I, s:f, s:f, s:f, s:f, s:o, s:i, s:f}", "peer", "mixt " MIXT_VERSION, "device",
        backend_of(b)->name, "model", b->model->name, "precision", b->precision, "batch", (json_int_t)b->batch, "seq",
        (json_int_t)b->seq, "ms", b->ms, "items_s", 1e3 * items / b->ms, "tflops",
        b->model->flops(b->model, b->batch, b->seq) / b->ms / 1e9, "spread", b->spread, "loss", cli_json_real(b->loss),
        "threads", mixt__threads_count(), "peak_gib", (double)b->memory.allocated / 1073741824.0);
    if (b->described) {
        json_object_set_new(o, "gpu", json_string(b->device.name));
        json_object_set_new(o, "overhead_gib", json_real(overhead(b) / 1073741824.0));
    }
    if (!isnan(b->watts)) {
        json_object_set_new(o, "watts", json_real(b->watts));
        json_object_set_new(o, "items_j", json_real(b->items_j));
    }
    if (b->counted) {
        json_object_set_new(o, "sm_active", json_real(b->activity.multiprocessors));
        json_object_set_new(o, "tensor_active", json_real(b->activity.tensor_cores));
        json_object_set_new(o, "memory_active", json_real(b->activity.memory));
    }
    if (profile)
        json_object_set_new(o, "profile", profile);
    json_dumpf(o, stdout, JSON_REAL_PRECISION(7));
    putchar('\n');
    json_decref(o);
}

static mixt_status report(bench *b, const cli_args *args)
{
    cli_profile profile = {0};
    mixt_status status = MIXT_OK;
    if (cli_flag(args, "profile"))
        status = cli_profile_run(b->trainer, b->input[0], b->target[0], b->steps, &profile);
    if (status == MIXT_OK && cli_flag(args, "json"))
        print_json(b, profile.rows ? cli_profile_json(&profile) : NULL);
    else if (status == MIXT_OK)
        print_text(b);
    if (status == MIXT_OK && profile.rows && !cli_flag(args, "json"))
        cli_profile_print(&profile);
    cli_profile_free(&profile);
    return status;
}

static void close_bench(bench *b)
{
    for (int i = 0; b->context && i < BATCHES; i++) {
        backend_of(b)->free(b->input[i]);
        backend_of(b)->free(b->target[i]);
    }
    mixt_close(b->context);
}

static int run(const cli_args *args)
{
    bench b = {.model = mixt__bench_find(cli_word(args, 0)), .precision = cli_text(args, "precision")};
    if (cli_int(args, "seq") && !b.model->seq)
        return cli_usage(args->command, "--seq %s: %s has no sequence: leave it out", cli_text(args, "seq"),
                         b.model->name);
    b.batch = cli_int(args, "batch") ? cli_int(args, "batch") : b.model->batch;
    b.seq = cli_int(args, "seq") ? cli_int(args, "seq") : b.model->seq;
    b.steps = cli_int(args, "steps");
    b.steps_given = cli_given(args, "steps");
    mixt_status status = open(&b, args);
    if (status == MIXT_OK)
        status = measure(&b);
    if (status == MIXT_OK)
        status = report(&b, args);
    close_bench(&b);
    return status == MIXT_OK ? CLI_OK : cli_failed();
}

const cli_command cli_bench = {
    .name = "bench",
    .summary = "time a training step of a well-known model",
    .description = "Times whole training steps (forward, loss, backward, clipping where the model has it, optimizer) "
                   "on random data that lie in the device's memory in the format the step reads, "
                   "and prints the median step, items per second, FLOP/s and peak memory. Models and sizes are fixed "
                   "so that figures can "
                   "be compared between machines and with other systems. On a GPU that counts its energy, also watts "
                   "and items per joule, on one that counts what its units do, the shares of time in which they "
                   "worked; memory that CUDA itself takes is given apart.",
    .arguments = {{"MODEL", CLI_ARGUMENT_CHOICE, "gpt2|gpt|bert|resnet50|convnet|mlp|lstm",
                   .help = "gpt2 (124M), gpt (6 x 384, bytes), bert (base), resnet50, convnet (1-32-64, 28 x 28), mlp "
                           "(784-512-512-10), lstm (2 x 512, bytes)"}},
    .options =
        {
            {"precision", 'p', CLI_CHOICE, "P", "fp32|tf32|fp16|bf16", .required = true,
             .help = "format of matrix work"},
            {"batch", 'b', CLI_INT, "B", .fallback = "0", .max = 1 << 24,
             .help = "samples in a step; 0: the model's own"},
            {"seq", 't', CLI_INT, "T", .fallback = "0", .max = 1 << 20,
             .help = "tokens in a sequence; 0: the model's own; of gpt2, gpt, bert and lstm"},
            {"steps", 'n', CLI_INT, "N", .fallback = "20", .min = 1, .max = 1000000,
             .help = "steps to time; unless given, fast ones for half a second, slow ones for 5 seconds only"},
            {"threads", .kind = CLI_INT, .metavar = "N", .fallback = "0", .max = 1024,
             .help = "CPU threads; 0: MIXT_THREADS, else all usable cores"},
            {"device", .kind = CLI_CHOICE, .metavar = "D", .choices = "auto|cpu|cuda", .fallback = "auto",
             .help = "where to run; auto: a GPU when one is usable"},
            {"profile", .kind = CLI_FLAG,
             .help = "then time each op by itself: FLOP/s, bytes/s, share of the device's limits"},
            {"json", .kind = CLI_FLAG, .help = "print one JSON object instead of text"},
        },
    .examples =
        {
            {"mixt bench mlp --precision bf16", "the perceptron at its own batch size"},
            {"mixt bench gpt --precision fp32 --batch 8 --seq 256 --threads 2 --json", "for a script"},
        },
    .see_also = "info|plan",
    .run = run,
};
