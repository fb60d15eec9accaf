/* mixt info: this machine, and what each number format will do on it. */
#include "cli/commands.h"

#include "base/isa.h"
#include "base/threads.h"
#include "cli/gpu.h"
#include "cli/machine.h"
#include "cli/table.h"

#include <jansson.h>
#include <string.h>

/** The features that mixt looks at, by name. */
typedef struct feature {
    const char *name;
    bool present;
} feature;

enum { FEATURES = 10 };

static void read_features(feature features[FEATURES])
{
    const mixt__cpu_features *f = mixt__cpu();
    const feature table[FEATURES] = {
        {"avx2", f->avx2},
        {"fma", f->fma},
        {"f16c", f->f16c},
        {"avx512", f->avx512},
        {"avx512_vnni", f->avx512_vnni},
        {"avx512_bf16", f->avx512_bf16},
        {"avx512_fp16", f->avx512_fp16},
        {"amx_tile", f->amx_tile},
        {"amx_bf16", f->amx_bf16},
        {"amx_int8", f->amx_int8},
    };
    memcpy(features, table, sizeof table);
}

static bool has_onednn(void)
{
#ifdef MIXT_HAVE_ONEDNN
    return true;
#else
    return false;
#endif
}

/** The model name without the blanks that some processors pad it with. */
static const char *cpu_model(void)
{
    const char *model = mixt__cpu()->model;
    model += strspn(model, " ");
    return *model ? model : "unknown";
}

static json_t *formats_json(void)
{
    cli_format formats[CLI_FORMATS];
    cli_formats_read(formats);
    json_t *list = json_array();
    for (int i = 0; i < CLI_FORMATS; i++)
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:s, s:s}", "format", formats[i].name, "support",
                                        formats[i].support, "how", formats[i].how, "training", formats[i].training));
    return list;
}

static int print_json(const cli_machine *machine)
{
    feature features[FEATURES];
    read_features(features);
    json_t *flags = json_object(), *caches = json_array();
    for (int i = 0; i < FEATURES; i++)
        json_object_set_new(flags, features[i].name, json_boolean(features[i].present));
    for (int i = 0; i < machine->cache_count; i++)
        json_array_append_new(caches,
                              json_pack("{s:i, s:s, s:I}", "level", machine->caches[i].level, "type",
                                        machine->caches[i].type, "bytes", (json_int_t)machine->caches[i].bytes));
    json_t *cpu =
        json_pack("{s:s, s:i, s:i, s:i, s:s, s:o, s:o}", "model", cpu_model(), "cores_online", machine->cores_online,
                  "cores_usable", machine->cores_usable, "threads", mixt__threads_count(), "isa",
                  mixt__isa_name(mixt__isa_level()), "flags", flags, "caches", caches);
    json_t *memory = json_pack("{s:I, s:I}", "total_bytes", (json_int_t)machine->memory_total, "available_bytes",
                               (json_int_t)machine->memory_available);
    cli_gpu found = cli_gpu_read();
    json_t *gpu = cli_gpu_json(&found);
    json_t *all = json_pack("{s:s, s:o, s:o, s:o, s:b, s:o}", "version", MIXT_VERSION, "cpu", cpu, "memory", memory,
                            "formats", formats_json(), "onednn", has_onednn(), "gpu", gpu);
    if (!all || json_dumpf(all, stdout, JSON_INDENT(2))) {
        json_decref(all);
        fputs("mixt info: no memory for the report\n", stderr);
        return CLI_FAILED;
    }
    fputc('\n', stdout);
    json_decref(all);
    return CLI_OK;
}

static void print_formats(void)
{
    cli_format formats[CLI_FORMATS];
    cli_formats_read(formats);
    cli_table table = {0};
    cli_table_column(&table, "format", CLI_LEFT);
    cli_table_column(&table, "support", CLI_LEFT);
    cli_table_column(&table, "how", CLI_LEFT);
    cli_table_column(&table, "in training", CLI_LEFT);
    for (int i = 0; i < CLI_FORMATS; i++) {
        bool native = !strcmp(formats[i].support, "native"), emulated = !strcmp(formats[i].support, "emulated");
        cli_table_cell(&table, "%s", formats[i].name);
        cli_table_cell_styled(&table, native ? CLI_GREEN : emulated ? CLI_YELLOW : CLI_PLAIN, formats[i].support);
        cli_table_cell(&table, "%s", formats[i].how);
        cli_table_cell(&table, "%s", formats[i].training);
    }
    cli_table_print(&table, stdout, 0);
    cli_table_free(&table);
}

static void print_text(const cli_machine *machine)
{
    char bytes[32];
    feature features[FEATURES];
    read_features(features);
    printf("CPU      %s\n", cpu_model());
    printf("cores    %d usable of %d, %d thread%s in use\n", machine->cores_usable, machine->cores_online,
           mixt__threads_count(), mixt__threads_count() == 1 ? "" : "s");
    printf("ISA      %s, from", mixt__isa_name(mixt__isa_level()));
    for (int i = 0; i < FEATURES; i++)
        if (features[i].present)
            printf(" %s", features[i].name);
    putchar('\n');
    for (int i = 0; i < machine->cache_count; i++)
        printf("%sL%d %s %s", i ? ", " : "caches   ", machine->caches[i].level, machine->caches[i].type,
               cli_format_bytes(bytes, (double)machine->caches[i].bytes));
    if (machine->cache_count)
        putchar('\n');
    if (machine->memory_total) {
        printf("memory   %s", cli_format_bytes(bytes, (double)machine->memory_total));
        printf(", %s available\n", cli_format_bytes(bytes, (double)machine->memory_available));
    }
    printf("oneDNN   %s\n", has_onednn() ? "yes" : "no: built without it, own kernels only");
    cli_gpu gpu = cli_gpu_read();
    cli_gpu_print(&gpu);
    putchar('\n');
    print_formats();
    if (gpu.usable) {
        putchar('\n');
        cli_gpu_print_formats(&gpu);
    }
}

static int run(const cli_args *args)
{
    cli_machine machine = cli_machine_read();
    if (cli_flag(args, "json"))
        return print_json(&machine);
    print_text(&machine);
    return CLI_OK;
}

const cli_command cli_info = {
    .name = "info",
    .summary = "show what this machine can do in each number format",
    .description = "Lists processor, usable cores, instruction sets, caches and memory, and says for each number "
                   "format whether the "
                   "hardware multiplies it (native), converts it to fp32 on the way (widened) or has nothing for it "
                   "(emulated), and "
                   "what training in that format will therefore do. With a GPU: its memory, multiprocessors, Tensor "
                   "Cores, formats and limits, driver and libraries; without one, why none is used.\n\n"
                   "The instruction-set level can be lowered with MIXT_ISA, the threads with MIXT_THREADS; MIXT_DEVICE "
                   "says what device auto means.",
    .options = {{"json", .kind = CLI_FLAG, .help = "print one JSON object instead of text"}},
    .examples =
        {
            {"mixt info", "a report for people"},
            {"mixt info --json | jq -r .cpu.isa", "the instruction-set level in use"},
            {"MIXT_ISA=avx2 mixt info", "what would happen on a CPU without AVX-512"},
        },
    .see_also = "bench|plan",
    .run = run,
};
