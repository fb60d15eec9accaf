/* mixt plan: what a configuration would compute and how much memory it would take, without running it. */
#include "cli/commands.h"

#include "cli/interchange.h"
#include "cli/profile.h"
#include "cli/table.h"

#include <jansson.h>
#include <string.h>

static const struct {
    const char *name, *text;
    size_t offset;
} roles[] = {
    {"parameters", "FP32 master weights", offsetof(mixt_memory, masters)},
    {"copies", "low-precision working copies of weights", offsetof(mixt_memory, copies)},
    {"gradients", "FP32 gradients", offsetof(mixt_memory, gradients)},
    {"moments", "optimizer moments, FP32", offsetof(mixt_memory, moments)},
    {"state", "running statistics", offsetof(mixt_memory, state)},
    {"activations", "values of the step, memory reused", offsetof(mixt_memory, activations)},
    {"workspace", "scratch of the kernels", offsetof(mixt_memory, workspace)},
    {"batches", "the batches of this step and the next", offsetof(mixt_memory, batches)},
    {"control", "loss scale, gradient statistics", offsetof(mixt_memory, control)},
    {"total", "what will be allocated, to the byte", offsetof(mixt_memory, total)},
};

static size_t role_bytes(const mixt_memory *m, size_t i)
{
    size_t bytes;
    memcpy(&bytes, (const char *)m + roles[i].offset, sizeof bytes);
    return bytes;
}

static void print_memory(const mixt_memory *m)
{
    char text[32];
    cli_table table = {0};
    cli_table_column(&table, "memory", CLI_LEFT);
    cli_table_column(&table, "bytes", CLI_RIGHT);
    cli_table_column(&table, "", CLI_RIGHT);
    cli_table_column(&table, "", CLI_LEFT);
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        cli_table_cell(&table, "%s", roles[i].name);
        cli_table_cell(&table, "%zu", role_bytes(m, i));
        cli_table_cell(&table, "%s", cli_format_bytes(text, (double)role_bytes(m, i)));
        cli_table_cell(&table, "%s", roles[i].text);
    }
    cli_table_print(&table, stdout, 0);
    cli_table_free(&table);
}

static void write_line(void *argument, const char *line)
{
    fprintf(argument, "%s\n", line);
}

/** One line a node: kernel, FLOPs, and why better candidates were refused. */
static void print_choices(const mixt__executable *x)
{
    cli_table table = {0};
    cli_table_column(&table, "layer", CLI_LEFT);
    cli_table_column(&table, "op", CLI_LEFT);
    cli_table_column(&table, "kernel", CLI_LEFT);
    cli_table_column(&table, "MFLOP", CLI_RIGHT);
    cli_table_column(&table, "why not others", CLI_LEFT);
    for (int64_t i = 0; i < x->graph->node_count; i++) {
        const mixt__node *n = &x->graph->nodes[i];
        const mixt__choice *c = &x->choices[i];
        char why[512] = "";
        for (int r = 0, used = 0; r < c->refused_count && used < (int)sizeof why; r++)
            used += snprintf(why + used, sizeof why - (size_t)used, "%s%s: %s", r ? "; " : "", c->refused[r].kernel,
                             c->refused[r].reason);
        cli_table_cell(&table, "%s%s", n->layer, n->backward ? " (backward)" : "");
        cli_table_cell(&table, "%s", n->op->name);
        cli_table_cell(&table, "%s", n->alias ? "view" : c->kernel->name);
        cli_table_cell(&table, "%.2f", mixt__node_flops(x->graph, n) / 1e6);
        cli_table_cell(&table, "%s", why);
    }
    cli_table_print(&table, stdout, 0);
    cli_table_free(&table);
}

static json_t *json_nodes(const mixt__executable *x)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < x->graph->node_count; i++) {
        const mixt__node *n = &x->graph->nodes[i];
        const mixt__value *out = &x->graph->values[n->out[0]];
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:s, s:b, s:s, s:s, s:f}", "layer", n->layer, "op", n->op->name,
                                        "kernel", n->alias ? "view" : x->choices[i].kernel->name, "backward",
                                        n->backward, "dtype", mixt_dtype_name(out->dtype), "arithmetic",
                                        mixt_dtype_name(n->arithmetic), "flops", mixt__node_flops(x->graph, n)));
    }
    return list;
}

/** Room on the device and what is in use there beside mixt's own; only on devices that describe themselves. */
static void print_device(const mixt__backend *backend)
{
    mixt_gpu_info d;
    char bytes[3][32];
    if (!backend->describe || backend->describe(&d) != MIXT_OK)
        return;
    double beside = (double)d.memory_bytes - (double)d.memory_free - (double)backend->allocated();
    printf("%s: %s of memory, %s free now, %s taken by context, libraries and other programs\n", d.name,
           cli_format_bytes(bytes[0], (double)d.memory_bytes), cli_format_bytes(bytes[1], (double)d.memory_free),
           cli_format_bytes(bytes[2], beside));
}

static void print_json(const cli_experiment *e, const mixt_memory *m, const cli_profile *profile)
{
    const mixt__executable *x = e->trainer->core.train;
    json_t *memory = json_object();
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++)
        json_object_set_new(memory, roles[i].name, json_integer((json_int_t)role_bytes(m, i)));
    json_t *o = json_pack("{s:s, s:o, s:f, s:f, s:I, s:o}", "device", x->backend->name, "memory", memory, "flops",
                          mixt__executable_flops(x, false), "matrix_flops", mixt__executable_flops(x, true),
                          "activations_without_reuse", (json_int_t)x->plan.naive_bytes, "nodes", json_nodes(x));
    if (profile->rows)
        json_object_set_new(o, "profile", cli_profile_json(profile));
    json_dumpf(o, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(o);
}

static void print(const cli_args *args, const cli_experiment *e, const mixt_memory *m, const cli_profile *profile)
{
    const mixt__executable *x = e->trainer->core.train;
    if (cli_flag(args, "json")) {
        print_json(e, m, profile);
        return;
    }
    char text[32];
    if (cli_flag(args, "graph"))
        mixt__graph_print(x->graph, write_line, stdout);
    if (cli_flag(args, "explain"))
        print_choices(x);
    print_memory(m);
    printf("%lld nodes, %.3f GFLOP a step (%.1f%% of it matrix work); activations without reuse would take %s\n",
           (long long)x->graph->node_count, mixt__executable_flops(x, false) / 1e9,
           100 * mixt__executable_flops(x, true) / mixt__executable_flops(x, false),
           cli_format_bytes(text, (double)x->plan.naive_bytes));
    print_device(x->backend);
    if (profile->rows) {
        putchar('\n');
        cli_profile_print(profile);
    }
}

enum { PROFILE_RUNS = 10 };

/** Takes the memory that was planned, brings one batch to the device and times each op on it. */
static mixt_status run_profile(cli_experiment *e, cli_profile *profile)
{
    mixt__trainer *t = &e->trainer->core;
    MIXT_TRY(mixt__trainer_allocate(t));
    size_t input = t->feed.input_bytes, target = t->feed.target_bytes;
    void *host[2] = {mixt__alloc_uninit(t->feed.input_room), mixt__alloc_uninit(target)};
    void *device[2] = {t->backend->alloc(input), t->backend->alloc(target)};
    const void *rounded = NULL;
    mixt_status status = host[0] && host[1] && device[0] && device[1]
                             ? mixt_data_batch(e->train, t->settings.batch, 0, host[0], host[1])
                             : mixt__fail(MIXT_ERROR_MEMORY, "no memory for a batch");
    if (status == MIXT_OK)
        status = mixt__feed_round(&t->feed, host[0], &rounded);
    if (status == MIXT_OK)
        status = t->backend->upload(device[0], rounded, input);
    if (status == MIXT_OK)
        status = t->backend->upload(device[1], host[1], target);
    if (status == MIXT_OK)
        status = cli_profile_run(e->trainer, device[0], device[1], PROFILE_RUNS, profile);
    for (int i = 0; i < 2; i++) {
        mixt__free(host[i]);
        t->backend->free(device[i]);
    }
    return status;
}

static mixt_status plan(const cli_args *args, const mixt_config *config)
{
    cli_experiment e = {0};
    cli_profile profile = {0};
    mixt_memory memory;
    mixt_status status = cli_experiment_open(&e, config);
    if (status == MIXT_OK)
        status = cli_init_check(&e);
    if (status == MIXT_OK)
        status = mixt_trainer_memory(e.trainer, &memory);
    if (status == MIXT_OK && cli_flag(args, "profile"))
        status = run_profile(&e, &profile);
    if (status == MIXT_OK)
        print(args, &e, &memory, &profile);
    cli_profile_free(&profile);
    cli_experiment_close(&e);
    return status;
}

static int run(const cli_args *args)
{
    mixt_config *config;
    int status = cli_config(args, cli_word(args, 0), &config);
    if (status == CLI_OK && cli_config_device(args, config) != MIXT_OK)
        status = cli_failed();
    if (status == CLI_OK && plan(args, config) != MIXT_OK)
        status = cli_failed();
    mixt_config_free(config);
    return status;
}

const cli_command cli_plan = {
    .name = "plan",
    .summary = "show memory, formats and kernels of a run before it starts",
    .description =
        "Compiles the training step of a configuration and prints its exact memory by role: parameters, gradients, "
        "moments, activations, workspace. What is planned is what will be allocated, to the byte; on a GPU, what "
        "CUDA's "
        "context and libraries take beside it is given apart.\n\n"
        "With --profile the step is also run, and each op's time, FLOP/s, bytes/s and share of the device's limits "
        "are printed.",
    .arguments =
        {
            {"CONFIG", CLI_ARGUMENT_FILE, .help = "YAML file of the run; 'mixt help config' lists the keys"},
            {"key=value", CLI_ARGUMENT_SETTING, .help = "settings that win over the file, as in train.batch=32"},
        },
    .options =
        {
            {"explain", 'e', CLI_FLAG, .help = "each op's kernel, and why the others were refused"},
            {"graph", 'g', CLI_FLAG, .help = "the typed graph, forward and backward"},
            {"device", .kind = CLI_CHOICE, .metavar = "D", .choices = "auto|cpu|cuda",
             .help = "plan for this device, whatever the configuration says"},
            {"profile", .kind = CLI_FLAG, .help = "run the step and time each op"},
            {"json", .kind = CLI_FLAG, .help = "print one JSON object instead of text"},
        },
    .examples =
        {
            {"mixt plan configs/digits.yaml precision=fp16", "memory of the step in fp16"},
            {"mixt plan configs/gpt.yaml data.path=FILE --explain", "which kernels will run and why"},
            {"mixt plan configs/digits.yaml precision=fp16 --graph", "where the casts are"},
            {"mixt plan configs/gpt.yaml data.path=FILE --device cuda --profile",
             "memory and time of each op on the GPU"},
        },
    .see_also = "train|bench|config",
    .run = run,
};
