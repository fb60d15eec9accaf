/* The order of the passes, with the verifier after each. */
#include "passes/passes.h"

#include "base/env.h"
#include "base/log.h"
#include "ops/attrs.h"
#include "passes/inject.h"

typedef mixt_status pass_fn(mixt__graph *graph, const mixt__compile_options *options);

static mixt_status autodiff(mixt__graph *graph, const mixt__compile_options *options)
{
    int32_t *gradients;
    if (!options->backward || !options->twins)
        return options->backward ? mixt__pass_autodiff(graph, NULL) : MIXT_OK;
    MIXT_TRY(mixt__pass_autodiff(graph, &gradients));
    mixt_status status = mixt__pass_twins(graph, gradients, options->twins);
    mixt__free(gradients);
    return status;
}

static mixt_status inject_dead(mixt__graph *graph, const mixt__compile_options *options)
{
    return mixt__pass_inject(graph, options->injections, false);
}

static mixt_status inject(mixt__graph *graph, const mixt__compile_options *options)
{
    return mixt__pass_inject(graph, options->injections, true);
}

static mixt_status simplify(mixt__graph *graph, const mixt__compile_options *options)
{
    (void)options;
    graph->plain_values = graph->value_count;
    return mixt__pass_simplify(graph);
}

static mixt_status losses(mixt__graph *graph, const mixt__compile_options *options)
{
    return options->no_fusion || !(options->fused & MIXT_FUSED_LOSS) ? MIXT_OK : mixt__pass_losses(graph);
}

static mixt_status epilogues(mixt__graph *graph, const mixt__compile_options *options)
{
    return options->no_fusion || !options->fused ? MIXT_OK : mixt__pass_epilogues(graph, options->fused);
}

static mixt_status classifier(mixt__graph *graph, const mixt__compile_options *options)
{
    return options->no_fusion || !(options->fused & MIXT_FUSED_HEAD) ? MIXT_OK : mixt__pass_classifier(graph);
}

static mixt_status split_logits(mixt__graph *graph, const mixt__compile_options *options)
{
    return mixt__pass_split_logits(graph, options->logits_limit ? options->logits_limit : MIXT_LOGITS_LIMIT);
}

static mixt_status quantise(mixt__graph *graph, const mixt__compile_options *options)
{
    (void)options;
    return mixt__pass_quantise(graph);
}

static mixt_status keep(mixt__graph *graph, const mixt__compile_options *options)
{
    return options->backward ? mixt__pass_keep(graph, !options->no_fusion, options->keep_all) : MIXT_OK;
}

static mixt_status fuse(mixt__graph *graph, const mixt__compile_options *options)
{
    return options->no_fusion ? MIXT_OK : mixt__pass_fuse(graph);
}

static mixt_status views(mixt__graph *graph, const mixt__compile_options *options)
{
    (void)options;
    return mixt__pass_views(graph);
}

static mixt_status recompute(mixt__graph *graph, const mixt__compile_options *options)
{
    mixt__recompute_choice choice = {0};
    mixt_status status = MIXT_OK;
    if (options->activation_budget)
        status = mixt__pass_recompute(graph, options->activation_budget, options->seconds, options->device, &choice);
    if (options->recompute)
        *options->recompute = choice;
    return status;
}

static mixt_status instrument(mixt__graph *graph, const mixt__compile_options *options)
{
    return options->instrument ? mixt__pass_instrument(graph, options->instrument) : MIXT_OK;
}

static mixt_status transform(mixt__graph *graph, const mixt__compile_options *options)
{
    static const struct {
        const char *name;
        pass_fn *run;
    } passes[] = {
        {"inject_dead", inject_dead},
        {"autodiff", autodiff},
        {"inject", inject},
        {"simplify", simplify},
        {"losses", losses},
        {"epilogues", epilogues},
        {"classifier", classifier},
        {"split_logits", split_logits},
        {"quantise", quantise},
        {"keep", keep},
        {"fuse", fuse},
        {"views", views},
        {"recompute", recompute},
        {"instrument", instrument},
    };
    for (size_t i = 0; i < sizeof passes / sizeof passes[0]; i++) {
        MIXT_TRY(passes[i].run(graph, options));
        MIXT_TRY(mixt__graph_verify(graph, passes[i].name));
        MIXT_LOG(PLAN, "after %s: %lld nodes", passes[i].name, (long long)graph->node_count);
    }
    return MIXT_OK;
}

mixt_status mixt__passes_run(const mixt__graph *source, const mixt__compile_options *options, mixt__graph **result)
{
    mixt__compile_options wanted = *options;
    bool fusion;
    *result = NULL;
    MIXT_TRY(mixt__env_on(MIXT_ENV_FUSION, &fusion));
    wanted.no_fusion = options->no_fusion || !fusion;
    MIXT_TRY(mixt__graph_verify(source, "build"));
    MIXT_TRY(mixt__pass_precision(source, &wanted.policy, wanted.teacher, wanted.typed_input, result));
    mixt_status status = mixt__graph_verify(*result, "precision");
    if (status == MIXT_OK)
        status = transform(*result, &wanted);
    if (status != MIXT_OK) {
        mixt__graph_free(*result);
        *result = NULL;
    }
    return status;
}
