/* Passes, then kernels and memory. */
#include "runtime/compile.h"

#include "runtime/roofline.h"

static double seconds(const void *device, const mixt__graph *graph, const mixt__node *node)
{
    return mixt__roofline_seconds(device, graph, node);
}

mixt_status mixt__compile_take(mixt__graph *source, const mixt__compile_options *options, const mixt__backend *backend,
                               mixt__executable **executable)
{
    mixt__graph *typed;
    mixt__recompute_choice choice = {0};
    mixt__roofline device = {0};
    mixt__compile_options wanted = *options;
    *executable = NULL;
    wanted.recompute = &choice;
    if (wanted.activation_budget && !wanted.seconds) {
        device = mixt__roofline_of(backend);
        wanted.seconds = seconds;
        wanted.device = &device;
    }
    mixt_status status = mixt__passes_run(source, &wanted, &typed);
    mixt__graph_free(source);
    if (options->recompute)
        *options->recompute = choice;
    if (status == MIXT_OK)
        status = mixt__executable_take(typed, backend, executable);
    if (status == MIXT_OK)
        (*executable)->recompute = choice;
    return status;
}
