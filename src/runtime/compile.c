/* Passes, then kernels and memory. */
#include "runtime/compile.h"

#include "runtime/roofline.h"

static double seconds(const void *limits, const mixt__graph *graph, const mixt__node *node)
{
    return mixt__roofline_seconds(limits, graph, node);
}

/** Whether the device multiplies in all formats that the policy names. */
static mixt_status check_formats(const mixt__policy *policy, const mixt__device *device)
{
    char names[MIXT_FORMAT_NAMES];
    for (int d = 0; d < MIXT_DTYPE_COUNT; d++) {
        if (!mixt__policy_names(policy, (mixt_dtype)d) || mixt__format_may((mixt_dtype)d, device->backend->multiplies))
            continue;
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "the %s backend has no products in %s: it has %s",
                          device->backend->name, mixt_dtype_name((mixt_dtype)d),
                          mixt__format_names(device->backend->multiplies, "and", names, sizeof names));
    }
    return MIXT_OK;
}

mixt_status mixt__compile_take(mixt__graph *source, const mixt__compile_options *options, mixt__device *device,
                               mixt__executable **executable)
{
    mixt__graph *typed;
    mixt__recompute_choice choice = {0};
    mixt__roofline limits = {0};
    mixt__compile_options wanted = *options;
    *executable = NULL;
    wanted.recompute = &choice;
    if (wanted.activation_budget && !wanted.seconds) {
        limits = mixt__roofline_of(device);
        wanted.seconds = seconds;
        wanted.device = &limits;
    }
    mixt_status status = check_formats(&options->policy, device);
    if (status == MIXT_OK)
        status = mixt__passes_run(source, &wanted, &typed);
    mixt__graph_free(source);
    if (options->recompute)
        *options->recompute = choice;
    if (status == MIXT_OK)
        status = mixt__executable_take(typed, device, executable);
    if (status == MIXT_OK)
        (*executable)->recompute = choice;
    return status;
}
