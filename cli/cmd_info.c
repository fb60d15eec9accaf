/* mixt info: this machine, and what each number format will do on it. */
#include "cli/commands.h"

#include "cli/json.h"
#include "cli/table.h"

#include <mixt/machine.h>
#include <mixt/program.h>
#include <mixt/ranks.h>

#include <math.h>
#include <string.h>
#include <stdarg.h>

/** The GPU, or why none is used. */
typedef struct gpu {
    bool usable;
    char reason[1024];
    mixt_gpu_info info;
    mixt_format_info formats[MIXT_FORMATS_MAX];
    int format_count;
} gpu;

static void read_gpu(gpu *g)
{
    *g = (gpu){0};
    g->usable = mixt_gpu_describe(0, &g->info) == MIXT_OK;
    if (g->usable)
        g->format_count = mixt_gpu_formats(&g->info, g->formats);
    else
        snprintf(g->reason, sizeof g->reason, "%s", mixt_error_text());
}

/* ---- JSON ---- */

static json_t *cpu_json(const mixt_cpu_info *cpu)
{
    json_t *flags = json_object(), *caches = json_array();
    for (int i = 0; i < cpu->feature_count; i++)
        cli_json_set(flags, cpu->features[i].name, json_boolean(cpu->features[i].present));
    for (int i = 0; i < cpu->cache_count; i++)
        cli_json_add(caches, cli_json_pack("{s:i, s:s, s:I}", "level", cpu->caches[i].level, "type",
                                           cpu->caches[i].type, "bytes", (json_int_t)cpu->caches[i].bytes));
    return cli_json_pack("{s:s, s:i, s:i, s:i, s:s, s:o, s:o}", "model", cpu->name, "cores_online", cpu->cores_online,
                         "cores_usable", cpu->cores_usable, "threads", cpu->threads, "isa", cpu->isa, "flags", flags,
                         "caches", caches);
}

static json_t *formats_json(void)
{
    mixt_format_info formats[MIXT_FORMATS_MAX];
    int count = mixt_cpu_formats(formats);
    json_t *list = json_array();
    for (int i = 0; i < count; i++)
        cli_json_add(list, cli_json_pack("{s:s, s:s, s:s, s:s}", "format", formats[i].name, "support",
                                         mixt_support_name(formats[i].support), "how", formats[i].how, "training",
                                         formats[i].training));
    return list;
}

static json_t *gpu_json(const gpu *g)
{
    const mixt_gpu_info *i = &g->info;
    if (!g->usable)
        return cli_json_pack("{s:b, s:s, s:s}", "usable", 0, "reason", g->reason, "auto", mixt_device_auto());
    json_t *flops = json_object();
    for (int f = 0; f < g->format_count; f++)
        cli_json_set(flops, g->formats[f].name, cli_json_real(g->formats[f].flops));
    return cli_json_pack("{s:b, s:s, s:s, s:f, s:i, s:i, s:f, s:I, s:I, s:I, s:o, s:f, s:o, s:s, s:s}", "usable", 1,
                         "auto", mixt_device_auto(), "name", i->name, "compute_capability", i->capability / 10.0,
                         "multiprocessors", i->multiprocessors, "tensor_core_generation", i->tensor_cores, "clock_hz",
                         i->clock, "memory_bytes", (json_int_t)i->memory_bytes, "memory_free_bytes",
                         (json_int_t)i->memory_free, "l2_bytes", (json_int_t)i->cache_bytes, "flops", flops, "bytes_s",
                         i->bytes_s, "power_limit_w", cli_json_real(i->power_limit), "driver", i->driver, "libraries",
                         i->libraries);
}

static json_t *gpus_json(int count)
{
    json_t *list = json_array();
    mixt_gpu_info info;
    for (int i = 0; i < count; i++)
        if (mixt_gpu_describe(i, &info) == MIXT_OK)
            cli_json_add(list, cli_json_pack("{s:s, s:f, s:I}", "name", info.name, "compute_capability",
                                             info.capability / 10.0, "memory_bytes", (json_int_t)info.memory_bytes));
    return list;
}

static const char *const transports[] = {"mpi", "nccl"};

static json_t *ranks_json(void)
{
    mixt_ranks r = mixt_ranks_find();
    json_t *all = cli_json_pack("{s:i, s:i, s:s}", "rank", r.rank, "size", r.size, "launcher", r.launcher);
    for (size_t i = 0; i < sizeof transports / sizeof transports[0]; i++) {
        const char *version;
        bool there = mixt_ranks_transport(transports[i], &version) == MIXT_OK;
        cli_json_set(all, transports[i],
                     cli_json_pack("{s:b, s:s}", "available", there, there ? "version" : "reason",
                                   there ? version : mixt_error_text()));
    }
    return all;
}

/** "fp16_support" and its like: whether the device that training takes multiplies in the format. */
static void add_support(json_t *all, const gpu *g)
{
    static const char *const asked[] = {"fp16", "bf16", "tf32", "fp8"};
    mixt_format_info cpu[MIXT_FORMATS_MAX];
    int cpu_count = mixt_cpu_formats(cpu);
    bool on_gpu = g->usable && !strcmp(mixt_device_auto(), "cuda");
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        char key[32];
        bool native = false;
        for (int f = 0; f < (on_gpu ? g->format_count : cpu_count); f++) {
            const mixt_format_info *format = on_gpu ? &g->formats[f] : &cpu[f];
            native = native || (!strcmp(format->name, asked[i]) && format->support == MIXT_SUPPORT_NATIVE);
        }
        snprintf(key, sizeof key, "%s_support", asked[i]);
        cli_json_set(all, key, json_boolean(native));
    }
}

static int print_json(const mixt_cpu_info *cpu, const gpu *g)
{
    int count = mixt_gpu_count();
    json_t *memory = cli_json_pack("{s:I, s:I}", "total_bytes", (json_int_t)cpu->memory_total, "available_bytes",
                                   (json_int_t)cpu->memory_available);
    json_t *all = cli_json_pack("{s:s, s:o, s:o, s:o, s:o}", "version", mixt_version(), "cpu", cpu_json(cpu), "memory",
                                memory, "formats", formats_json(), "gpu", gpu_json(g));
    cli_json_set(all, "gpu_count", json_integer(count));
    cli_json_set(all, "gpus", gpus_json(count));
    cli_json_set(all, "ranks", ranks_json());
    add_support(all, g);
    cli_json_print(all, stdout, JSON_INDENT(2));
    return CLI_OK;
}

/* ---- text ---- */

static void print_cpu_formats(void)
{
    mixt_format_info formats[MIXT_FORMATS_MAX];
    int count = mixt_cpu_formats(formats);
    static const cli_style styles[] = {
        [MIXT_SUPPORT_NATIVE] = CLI_GREEN, [MIXT_SUPPORT_WIDENED] = CLI_PLAIN, [MIXT_SUPPORT_EMULATED] = CLI_YELLOW};
    cli_table table = {0};
    cli_table_column(&table, "format", CLI_LEFT);
    cli_table_column(&table, "support", CLI_LEFT);
    cli_table_column(&table, "how", CLI_LEFT);
    cli_table_column(&table, "in training", CLI_LEFT);
    for (int i = 0; i < count; i++) {
        cli_table_cell(&table, "%s", formats[i].name);
        cli_table_cell_styled(&table, styles[formats[i].support], mixt_support_name(formats[i].support));
        cli_table_cell(&table, "%s", formats[i].how);
        cli_table_cell(&table, "%s", formats[i].training);
    }
    cli_table_print(&table, stdout, 0);
    cli_table_free(&table);
}

/** Which units multiply each format there, and how fast at most. */
static void print_gpu_formats(const gpu *g)
{
    cli_table table = {0};
    cli_table_column(&table, "on the GPU", CLI_LEFT);
    cli_table_column(&table, "support", CLI_LEFT);
    cli_table_column(&table, "TFLOP/s", CLI_RIGHT);
    cli_table_column(&table, "in training", CLI_LEFT);
    for (int i = 0; i < g->format_count; i++) {
        const mixt_format_info *f = &g->formats[i];
        bool vector = f->dtype == MIXT_DTYPE_FP32, native = f->support == MIXT_SUPPORT_NATIVE;
        cli_table_cell(&table, "%s", f->name);
        cli_table_cell_styled(&table, vector ? CLI_PLAIN : native ? CLI_GREEN : CLI_YELLOW, f->how);
        cli_table_cell(&table, f->flops > 0 ? "%.0f" : "", f->flops / 1e12);
        cli_table_cell(&table, "%s", f->training);
    }
    cli_table_print(&table, stdout, 0);
    cli_table_free(&table);
}

/** Appends to a line of 1024 bytes. */
static void add(char line[1024], const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(char line[1024], const char *format, ...)
{
    size_t used = strlen(line);
    va_list args;
    va_start(args, format);
    vsnprintf(line + used, 1024 - used, format, args);
    va_end(args);
}

static void print_gpu(const gpu *g)
{
    const mixt_gpu_info *i = &g->info;
    char bytes[3][32], power[32] = "", cores[1024] = "";
    if (!g->usable) {
        cli_line(stdout, "GPU      ", "none: %s", g->reason);
        return;
    }
    if (!isnan(i->power_limit))
        snprintf(power, sizeof power, ", %.0f W", i->power_limit);
    cli_line(stdout, "GPU      ", "%s, compute capability %d.%d, %d multiprocessors, up to %.2f GHz%s", i->name,
             i->capability / 10, i->capability % 10, i->multiprocessors, i->clock / 1e9, power);
    cli_line(stdout, "         ", "memory %s, %s free, up to %.2f TB/s, L2 cache %s",
             cli_format_bytes(bytes[0], (double)i->memory_bytes), cli_format_bytes(bytes[1], (double)i->memory_free),
             i->bytes_s / 1e12, cli_format_bytes(bytes[2], (double)i->cache_bytes));
    for (int f = 0; f < g->format_count; f++)
        if (g->formats[f].dtype != MIXT_DTYPE_FP32 && g->formats[f].flops > 0)
            add(cores, " %s", g->formats[f].name);
    cli_line(stdout, "         ", "Tensor Cores of generation %d:%s", i->tensor_cores, cores);
    cli_line(stdout, "         ", "driver %s; %s", i->driver, i->libraries);
    mixt_gpu_info other;
    for (int k = 1; k < mixt_gpu_count(); k++)
        if (mixt_gpu_describe(k, &other) == MIXT_OK)
            cli_line(stdout, "         ", "not in use: GPU %d, %s, compute capability %d.%d, memory %s", k, other.name,
                     other.capability / 10, other.capability % 10,
                     cli_format_bytes(bytes[0], (double)other.memory_bytes));
    cli_line(stdout, "device   ", "auto means %s", mixt_device_auto());
}

static void print_cpu(const mixt_cpu_info *cpu)
{
    char bytes[2][32], features[1024] = "", caches[1024] = "";
    cli_line(stdout, "CPU      ", "%s", cpu->name);
    cli_line(stdout, "cores    ", "%d usable of %d, %d thread%s in use", cpu->cores_usable, cpu->cores_online,
             cpu->threads, cpu->threads == 1 ? "" : "s");
    for (int i = 0; i < cpu->feature_count; i++)
        if (cpu->features[i].present)
            add(features, " %s", cpu->features[i].name);
    cli_line(stdout, "ISA      ", "%s, from%s", cpu->isa, features);
    for (int i = 0; i < cpu->cache_count; i++)
        add(caches, "%sL%d %s %s", i ? ", " : "", cpu->caches[i].level, cpu->caches[i].type,
            cli_format_bytes(bytes[0], (double)cpu->caches[i].bytes));
    if (cpu->cache_count)
        cli_line(stdout, "caches   ", "%s", caches);
    if (cpu->memory_total)
        cli_line(stdout, "memory   ", "%s, %s available", cli_format_bytes(bytes[0], (double)cpu->memory_total),
                 cli_format_bytes(bytes[1], (double)cpu->memory_available));
}

/** What several ranks would be joined by, and whether this process is one of them. */
static void print_ranks(void)
{
    const char *version;
    mixt_ranks r = mixt_ranks_find();
    for (size_t i = 0; i < sizeof transports / sizeof transports[0]; i++) {
        bool there = mixt_ranks_transport(transports[i], &version) == MIXT_OK;
        cli_line(stdout, i ? "         " : "ranks    ", "%s: %s", transports[i], there ? version : mixt_error_text());
    }
    if (r.size > 1)
        cli_line(stdout, "         ", "this is rank %d of %d, started by %s", r.rank, r.size, r.launcher);
}

static void print_text(const mixt_cpu_info *cpu, const gpu *g)
{
    print_cpu(cpu);
    print_gpu(g);
    print_ranks();
    putchar('\n');
    print_cpu_formats();
    if (g->usable) {
        putchar('\n');
        print_gpu_formats(g);
    }
}

static int run(const cli_args *args)
{
    mixt_cpu_info cpu;
    gpu g;
    mixt_cpu_describe(&cpu);
    read_gpu(&g);
    if (cli_flag(args, "json"))
        return print_json(&cpu, &g);
    print_text(&cpu, &g);
    return CLI_OK;
}

const cli_command cli_info = {
    .name = "info",
    .summary = "show what this machine can do in each number format",
    .description =
        "Lists processor, cores, instruction sets, caches, memory and GPU, and for each number format whether the "
        "hardware multiplies it (native), converts it to FP32 first (widened) or does not have it (emulated), and what "
        "training in that format therefore does.\n\n"
        "With a GPU: its memory, multiprocessors, Tensor Cores, formats and limits, driver and libraries; without one, "
        "why none is used. Then the transports for training in several processes (mpirun, srun). In JSON, "
        "fp16_support and the like say whether the device that training uses multiplies in the format.\n\n"
        "MIXT_ISA lowers the instruction set, MIXT_THREADS the number of threads; MIXT_DEVICE says what device auto "
        "means.",
    .options = {{"json", .kind = CLI_FLAG, .help = "print one JSON object"}},
    .examples =
        {
            {"mixt info", "a report for people"},
            {"mixt info --json | jq -r .cpu.isa", "the instruction set in use"},
            {"MIXT_ISA=avx2 mixt info", "what a CPU without AVX-512 would do"},
        },
    .see_also = "bench|plan",
    .run = run,
};
