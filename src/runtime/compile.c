/* Passes, then kernels and memory. */
#include "runtime/compile.h"

mixt_status mixt__compile_take(mixt__graph *source, const mixt__compile_options *options, const mixt__backend *backend,
                               mixt__executable **executable)
{
    mixt__graph *typed;
    *executable = NULL;
    mixt_status status = mixt__passes_run(source, options, &typed);
    mixt__graph_free(source);
    return status == MIXT_OK ? mixt__executable_take(typed, backend, executable) : status;
}
