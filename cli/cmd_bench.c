/* mixt bench: the speed of one training step of a fixed model. */
#include "cli/commands.h"

#include "api/api.h"
#include "base/memory.h"
#include "base/threads.h"
#include "cli/table.h"
#include "models/bench.h"

#include <jansson.h>
#include <stdlib.h>

enum { BATCHES = 4, WARM_UP = 6, GROUPS_MAX = 1000 };

/** One benchmark under way. */
typedef struct bench {
    const mixt__bench_model *model;
    const char *precision;
    int64_t batch, seq, steps;
    mixt_context *context;
    mixt_trainer *trainer;
    mixt__model_sizes sizes;
    void *input[BATCHES], *target[BATCHES];
    double ms, spread; // median step; (largest - smallest) / median of the groups
    double loss;
    mixt_memory memory;
} bench;

/** On a GPU the batches wait in its memory: what is timed is the step, not a loader. */
static mixt_status move_to_device(const bench *b, void **batch, size_t bytes)
{
    const mixt__backend *backend = b->context->backend;
    if (backend->host_memory)
        return MIXT_OK;
    void *host = *batch;
    *batch = backend->alloc(bytes);
    mixt_status status = *batch ? backend->upload(*batch, host, bytes)
                                : mixt__fail(MIXT_ERROR_MEMORY, "no memory on %s for the batches", backend->name);
    mixt__free(host);
    return status;
}

/** One step on one of the batches; `result` NULL: without waiting for it. */
static mixt_status step_on(bench *b, int64_t i, mixt_step *result)
{
    bool resident = !b->context->backend->host_memory;
    return mixt__trainer_step_on(&b->trainer->core, b->input[i % BATCHES], b->target[i % BATCHES], resident, result);
}

static mixt_status make_batches(bench *b, const mixt_data *data)
{
    const mixt_data_info *info = mixt_data_describe(data);
    size_t input = (size_t)(b->batch * info->input_elements) * mixt_dtype_size(info->input_dtype);
    size_t target = (size_t)(b->batch * info->target_elements) * mixt_dtype_size(info->target_dtype);
    size_t need = BATCHES * (input + target), room = mixt__memory_available();
    if (room && need > room)
        return mixt__fail(MIXT_ERROR_MEMORY,
                          "%d batches of %lld samples need %.2f GiB, %.2f are free: use a smaller batch", BATCHES,
                          (long long)b->batch, (double)need / 1073741824.0, (double)room / 1073741824.0);
    for (int i = 0; i < BATCHES; i++) {
        b->input[i] = mixt__alloc_uninit(input);
        b->target[i] = mixt__alloc_uninit(target);
        if (!b->input[i] || !b->target[i])
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory for %d batches of %lld samples (%.2f GiB)", BATCHES,
                              (long long)b->batch, (double)need / 1073741824.0);
        MIXT_TRY(mixt_data_batch(data, b->batch, i, b->input[i], b->target[i]));
        MIXT_TRY(move_to_device(b, &b->input[i], input));
        MIXT_TRY(move_to_device(b, &b->target[i], target));
    }
    return MIXT_OK;
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

/** Groups of steps, timed as a whole, so that the clock costs nothing; the median group. */
static mixt_status measure(bench *b)
{
    mixt_step step = {0};
    for (int i = 0; i < WARM_UP; i++)
        MIXT_TRY(step_on(b, i, &step));
    bool small = !b->seq && mixt__shape_count(&b->trainer->core.spec.input) / b->batch <= 784;
    int64_t group = small               ? (b->context->backend->host_memory ? 10 : 50)
                    : b->steps / 4 > 10 ? 10
                    : b->steps / 4 > 1  ? b->steps / 4
                                        : 1;
    int64_t groups = b->steps / group > 4 ? b->steps / group : 4;
    double times[GROUPS_MAX] = {0};
    if (groups > GROUPS_MAX)
        groups = GROUPS_MAX;
    for (int64_t g = 0; g < groups; g++) {
        double start = mixt__time_now();
        for (int64_t i = 0; i < group; i++) // the queue stays full, as in real training; the last step waits for all
            MIXT_TRY(step_on(b, i, i + 1 < group ? NULL : &step));
        times[g] = (mixt__time_now() - start) / (double)group;
    }
    qsort(times, (size_t)groups, sizeof times[0], compare);
    double median = groups % 2 ? times[groups / 2] : (times[groups / 2 - 1] + times[groups / 2]) / 2;
    b->ms = 1e3 * median;
    b->spread = (times[groups - 1] - times[0]) / median;
    b->loss = step.loss;
    return mixt_trainer_memory(b->trainer, &b->memory);
}

static void print_profile(const mixt__executable *x)
{
    cli_table table = {0};
    cli_table_column(&table, "layer", CLI_LEFT);
    cli_table_column(&table, "op", CLI_LEFT);
    cli_table_column(&table, "kernel", CLI_LEFT);
    cli_table_column(&table, "us", CLI_RIGHT);
    cli_table_column(&table, "GFLOP/s", CLI_RIGHT);
    for (int64_t i = 0; i < x->graph->node_count; i++) {
        const mixt__node *n = &x->graph->nodes[i];
        double seconds = x->seconds[i] / (double)x->profiled_runs;
        if (n->alias)
            continue;
        cli_table_cell(&table, "%s%s", n->layer, n->backward ? " (backward)" : "");
        cli_table_cell(&table, "%s", n->op->name);
        cli_table_cell(&table, "%s", x->choices[i].kernel->name);
        cli_table_cell(&table, "%.1f", 1e6 * seconds);
        cli_table_cell(&table, "%.1f", mixt__node_flops(x->graph, n) / seconds / 1e9);
    }
    cli_table_print(&table, stdout, 0);
    cli_table_free(&table);
}

static mixt_status profile(bench *b)
{
    mixt__executable *x = b->trainer->core.train;
    MIXT_TRY(mixt__executable_profile(x, true));
    for (int64_t i = 0; i < b->steps; i++)
        MIXT_TRY(step_on(b, i, NULL));
    print_profile(x);
    return mixt__executable_profile(x, false);
}

static void print(const bench *b, bool json)
{
    double items = (double)mixt__bench_items(b->model, b->batch, b->seq);
    double tflops = b->model->flops(b->model, b->batch, b->seq) / b->ms / 1e9;
    char bytes[32], rate[32];
    if (!json) {
        printf("%s %s, batch %lld", b->model->name, b->precision, (long long)b->batch);
        if (b->seq)
            printf(" x %lld", (long long)b->seq);
        printf(", %d threads: %.3f ms a step (spread %.1f%%), %s %s/s, %.3f TFLOP/s, %s\n", mixt__threads_count(),
               b->ms, 100 * b->spread, cli_format_count(rate, 1e3 * items / b->ms), b->seq ? "tokens" : "samples",
               tflops, cli_format_bytes(bytes, (double)b->memory.allocated));
        return;
    }
    json_t *o =
        json_pack("{s:s, s:s, s:s, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:i, s:f}", "peer", "mixt " MIXT_VERSION, "model",
                  b->model->name, "precision", b->precision, "batch", (json_int_t)b->batch, "seq", (json_int_t)b->seq,
                  "ms", b->ms, "items_s", 1e3 * items / b->ms, "tflops", tflops, "spread", b->spread, "loss", b->loss,
                  "threads", mixt__threads_count(), "peak_gib", (double)b->memory.allocated / 1073741824.0);
    json_dumpf(o, stdout, JSON_REAL_PRECISION(7));
    putchar('\n');
    json_decref(o);
}

static void give_back(const bench *b, void *batch)
{
    if (b->context && batch)
        (b->context->backend->host_memory ? mixt__free : b->context->backend->free)(batch);
}

static void close_bench(bench *b)
{
    for (int i = 0; i < BATCHES; i++) {
        give_back(b, b->input[i]);
        give_back(b, b->target[i]);
    }
    mixt_close(b->context);
}

static int run(const cli_args *args)
{
    bench b = {.model = mixt__bench_find(cli_word(args, 0)), .precision = cli_text(args, "precision")};
    b.batch = cli_int(args, "batch") ? cli_int(args, "batch") : b.model->batch;
    b.seq = b.model->seq && cli_int(args, "seq") ? cli_int(args, "seq") : b.model->seq;
    b.steps = cli_int(args, "steps");
    mixt_status status = open(&b, args);
    if (status == MIXT_OK)
        status = measure(&b);
    if (status == MIXT_OK)
        print(&b, cli_flag(args, "json"));
    if (status == MIXT_OK && cli_flag(args, "profile"))
        status = profile(&b);
    close_bench(&b);
    return status == MIXT_OK ? CLI_OK : cli_failed();
}

const cli_command cli_bench = {
    .name = "bench",
    .summary = "time a training step of a well-known model",
    .description = "Times whole training steps (forward, loss, backward, clipping where the model has it, optimizer) "
                   "on random data "
                   "and prints the median step, items per second, FLOP/s and peak memory. Models and sizes are fixed "
                   "so that figures can "
                   "be compared between machines and with other systems.",
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
             .help = "tokens in a sequence; 0: the model's own"},
            {"steps", 'n', CLI_INT, "N", .fallback = "20", .min = 1, .max = 1000000, .help = "steps to time"},
            {"threads", .kind = CLI_INT, .metavar = "N", .fallback = "0", .max = 1024,
             .help = "CPU threads; 0: MIXT_THREADS, else all usable cores"},
            {"device", .kind = CLI_CHOICE, .metavar = "D", .choices = "auto|cpu|cuda", .fallback = "auto",
             .help = "where to run"},
            {"profile", .kind = CLI_FLAG, .help = "then time each op by itself and print a table"},
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
