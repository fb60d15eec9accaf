/* Passes, then kernels and memory. */
#include "runtime/compile.h"

/** Shares of a device's limits that kernels reach on large work, and what the rest costs. A processor says nothing
 * about itself: only the ratio of its two rates counts there. */
static mixt__recompute_rates rates_of(const mixt__backend *backend)
{
    const double products = 0.75, traffic = 0.85, launch = 2e-6;
    mixt_gpu_info gpu = {.bytes_s = 2e10};
    mixt__recompute_rates rates = {.start = launch};
    for (int d = 0; d < MIXT_DTYPE_COUNT; d++)
        gpu.flops[d] = 2e11;
    if (backend->describe)
        (void)backend->describe(&gpu); // what it cannot say stays as it is
    for (int d = 0; d < MIXT_DTYPE_COUNT; d++)
        rates.flops[d] = products * (gpu.flops[d] > 0 ? gpu.flops[d] : gpu.flops[MIXT_DTYPE_FP32]);
    rates.bytes = traffic * gpu.bytes_s;
    return rates;
}

mixt_status mixt__compile_take(mixt__graph *source, const mixt__compile_options *options, const mixt__backend *backend,
                               mixt__executable **executable)
{
    mixt__graph *typed;
    mixt__recompute_choice choice = {0};
    mixt__compile_options wanted = *options;
    *executable = NULL;
    wanted.recompute = &choice;
    if (wanted.activation_budget)
        wanted.rates = rates_of(backend);
    mixt_status status = mixt__passes_run(source, &wanted, &typed);
    mixt__graph_free(source);
    if (status == MIXT_OK)
        status = mixt__executable_take(typed, backend, executable);
    if (status == MIXT_OK)
        (*executable)->recompute = choice;
    return status;
}
