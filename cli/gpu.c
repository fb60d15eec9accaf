/* Asks the CUDA backend, if it loads, to describe its device. */
#include "cli/gpu.h"

#include "api/api.h"
#include "cli/run_dir.h"
#include "cli/table.h"

#include <math.h>

/** The formats that Tensor Cores may have, and what training does with each. */
static const struct {
    const char *name;
    mixt_dtype dtype;
    const char *training;
} formats[] = {
    {"fp32", MIXT_DTYPE_FP32, "master weights, sums and losses of every run; all of an fp32 run"},
    {"tf32", MIXT_DTYPE_TF32, "fp32 tensors whose products are rounded; only where the policy says so"},
    {"fp16", MIXT_DTYPE_FP16, "stored and multiplied in 16 bits, summed in fp32; dynamic loss scaling"},
    {"bf16", MIXT_DTYPE_BF16, "stored and multiplied in 16 bits, summed in fp32; no loss scaling"},
    {"fp8", MIXT_DTYPE_FP8_E4M3, "not trained in; mixt convert writes and reads it"},
};

enum { FORMATS = sizeof formats / sizeof formats[0] };

cli_gpu cli_gpu_read(void)
{
    cli_gpu gpu = {.automatic = "cpu"};
    const mixt__backend *cuda, *automatic;
    mixt_status status = mixt__device_gpu(&cuda);
    if (status == MIXT_OK)
        status = cuda->describe(&gpu.info);
    gpu.usable = status == MIXT_OK;
    snprintf(gpu.reason, sizeof gpu.reason, "%s", gpu.usable ? "" : mixt_error_text());
    if (mixt__device_open("auto", &automatic) == MIXT_OK)
        gpu.automatic = automatic->name;
    return gpu;
}

void cli_gpu_print(const cli_gpu *gpu)
{
    const mixt__device_info *i = &gpu->info;
    char bytes[32];
    if (!gpu->usable) {
        printf("GPU      none: %s\n", gpu->reason);
        return;
    }
    printf("GPU      %s, compute capability %d.%d, %d multiprocessors, up to %.2f GHz", i->name, i->capability / 10,
           i->capability % 10, i->multiprocessors, i->clock / 1e9);
    if (!isnan(i->power_limit))
        printf(", %.0f W", i->power_limit);
    printf("\n         memory %s", cli_format_bytes(bytes, (double)i->memory_bytes));
    printf(", %s free", cli_format_bytes(bytes, (double)i->memory_free));
    printf(", up to %.2f TB/s, L2 cache %s\n", i->bytes_s / 1e12, cli_format_bytes(bytes, (double)i->cache_bytes));
    printf("         Tensor Cores of generation %d:", i->tensor_cores);
    for (int f = 1; f < FORMATS; f++)
        if (i->flops[formats[f].dtype] > 0)
            printf(" %s", formats[f].name);
    printf("\n         driver %s; %s\n", i->driver, i->libraries);
    printf("device   auto means %s\n", gpu->automatic);
}

void cli_gpu_print_formats(const cli_gpu *gpu)
{
    cli_table table = {0};
    cli_table_column(&table, "on the GPU", CLI_LEFT);
    cli_table_column(&table, "support", CLI_LEFT);
    cli_table_column(&table, "TFLOP/s", CLI_RIGHT);
    cli_table_column(&table, "in training", CLI_LEFT);
    for (int f = 0; f < FORMATS; f++) {
        double flops = gpu->info.flops[formats[f].dtype];
        cli_table_cell(&table, "%s", formats[f].name);
        if (f == 0)
            cli_table_cell(&table, "vector units");
        else
            cli_table_cell_styled(&table, flops > 0 ? CLI_GREEN : CLI_YELLOW, flops > 0 ? "Tensor Cores" : "no units");
        cli_table_cell(&table, flops > 0 ? "%.0f" : "", flops / 1e12);
        cli_table_cell(&table, "%s", formats[f].training);
    }
    cli_table_print(&table, stdout, 0);
    cli_table_free(&table);
}

json_t *cli_gpu_json(const cli_gpu *gpu)
{
    const mixt__device_info *i = &gpu->info;
    if (!gpu->usable)
        return json_pack("{s:b, s:s, s:s}", "usable", 0, "reason", gpu->reason, "auto", gpu->automatic);
    json_t *flops = json_object();
    for (int f = 0; f < FORMATS; f++)
        json_object_set_new(flops, formats[f].name, json_real(i->flops[formats[f].dtype]));
    return json_pack("{s:b, s:s, s:s, s:f, s:i, s:i, s:f, s:I, s:I, s:I, s:o, s:f, s:o, s:s, s:s}", "usable", 1, "auto",
                     gpu->automatic, "name", i->name, "compute_capability", i->capability / 10.0, "multiprocessors",
                     i->multiprocessors, "tensor_core_generation", i->tensor_cores, "clock_hz", i->clock,
                     "memory_bytes", (json_int_t)i->memory_bytes, "memory_free_bytes", (json_int_t)i->memory_free,
                     "l2_bytes", (json_int_t)i->cache_bytes, "flops", flops, "bytes_s", i->bytes_s, "power_limit_w",
                     cli_json_real(i->power_limit), "driver", i->driver, "libraries", i->libraries);
}
