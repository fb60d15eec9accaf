/* The order of the passes, with the verifier after each. */
#include "passes/passes.h"

#include "base/log.h"

static mixt_status transform(mixt__graph *graph, const mixt__compile_options *options)
{
    const struct {
        const char *name;
        mixt_status (*run)(mixt__graph *graph);
        bool enabled;
    } passes[] = {
        {"autodiff", mixt__pass_autodiff, options->backward},
        {"simplify", mixt__pass_simplify, true},
        {"fuse", mixt__pass_fuse, !options->no_fusion},
        {"views", mixt__pass_views, true},
    };
    for (size_t i = 0; i < sizeof passes / sizeof passes[0]; i++) {
        if (!passes[i].enabled)
            continue;
        MIXT_TRY(passes[i].run(graph));
        MIXT_TRY(mixt__graph_verify(graph, passes[i].name));
        MIXT_LOG(PLAN, "after %s: %lld nodes", passes[i].name, (long long)graph->node_count);
    }
    return MIXT_OK;
}

mixt_status mixt__passes_run(const mixt__graph *source, const mixt__compile_options *options, mixt__graph **result)
{
    *result = NULL;
    MIXT_TRY(mixt__graph_verify(source, "build"));
    MIXT_TRY(mixt__pass_precision(source, &options->policy, result));
    mixt_status status = mixt__graph_verify(*result, "precision");
    if (status == MIXT_OK)
        status = transform(*result, options);
    if (status != MIXT_OK) {
        mixt__graph_free(*result);
        *result = NULL;
    }
    return status;
}
