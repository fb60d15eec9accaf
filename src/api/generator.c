/* The public generator: precision by name or file, weights from a file, failures noted in the context. */
#include "api/weights.h"
#include "base/options.h"

static mixt_status nothing(void *user)
{
    (void)user;
    return MIXT_OK;
}

static mixt_status load(mixt_generator *g, const char *path, const mixt__weights_request *request)
{
    char warning[MIXT_WEIGHTS_WARNING];
    mixt__weights *weights;
    if (!request)
        return mixt__weights_load(g->inner.params, path);
    MIXT_TRY(mixt__params_init(g->inner.params, request, nothing, NULL, &weights));
    mixt__weights_warning(weights, warning);
    mixt__weights_close(weights);
    g->warning = *warning ? mixt__arena_strdup(&g->context->arena, warning) : NULL;
    return *warning && !g->warning ? mixt__fail(MIXT_ERROR_MEMORY, "no memory for a generator") : MIXT_OK;
}

static mixt_status open_core(mixt_generator *g, const mixt__model *model, const mixt_generator_options *options,
                             const mixt__weights_request *request)
{
    if (!options->weights)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "a generator needs trained weights: .weights = \"model.safetensors\"");
    MIXT_TRY(mixt__policy_choose(options->precision, options->policy, &g->policy));
    MIXT_TRY(mixt__generator_open(&g->inner, model, &g->policy->formats, g->context->device, options->context));
    return load(g, options->weights, request);
}

mixt_status mixt__generator_make(mixt_context *context, const mixt__model *model, const mixt_generator_options *options,
                                 const mixt__weights_request *request, mixt_generator **generator)
{
    *generator = NULL;
    mixt_generator *g = mixt__arena_alloc(&context->arena, sizeof *g);
    if (!g || !mixt__grow((void **)&context->generators, &context->generator_capacity, context->generator_count,
                          sizeof *context->generators))
        return mixt__context_note(context, mixt__fail(MIXT_ERROR_MEMORY, "no memory for a generator"));
    g->context = context;
    mixt_status status = mixt__context_note(context, open_core(g, model, options, request));
    if (status != MIXT_OK) {
        mixt__generator_close(&g->inner);
        mixt_policy_free(g->policy);
        return status;
    }
    context->generators[context->generator_count++] = g;
    mixt__handle_add(&g->handle, g, "generator", context);
    *generator = g;
    return MIXT_OK;
}

mixt_status mixt_generator_new_with(mixt_model *model, const mixt_generator_options *options,
                                    mixt_generator **generator)
{
    MIXT_TRY(mixt__need(generator));
    *generator = NULL;
    MIXT_TRY(mixt__need_made(model, "model"));
    mixt_generator_options o = MIXT_OPTIONS(mixt_generator_options); // weights are missing there: that is said
    MIXT_TRY(mixt__context_note(model->context, mixt__options(mixt_generator_options, &o, options)));
    return mixt__generator_make(model->context, &model->model, &o, NULL, generator);
}

const char *mixt_generator_warning(const mixt_generator *g)
{
    return mixt__need_made(g, "generator") == MIXT_OK && g->warning ? g->warning : "";
}

mixt_status mixt_generator_start(mixt_generator *g, const int32_t *tokens, int64_t count)
{
    MIXT_TRY(mixt__need_made(g, "generator"));
    MIXT_TRY(mixt__need_in(g->context, tokens));
    return mixt__context_note(g->context, mixt__generator_start(&g->inner, tokens, count));
}

mixt_status mixt_generator_next(mixt_generator *g, const mixt_sampling *sampling, int32_t *token)
{
    MIXT_TRY(mixt__need_made(g, "generator"));
    MIXT_TRY(mixt__need_in(g->context, sampling));
    MIXT_TRY(mixt__need_in(g->context, token));
    return mixt__context_note(g->context, mixt__generator_next(&g->inner, sampling, token));
}

mixt_status mixt_generator_logits(mixt_generator *g, const float **logits, int64_t *vocab)
{
    MIXT_TRY(mixt__need_made(g, "generator"));
    MIXT_TRY(mixt__need_in(g->context, logits));
    MIXT_TRY(mixt__need_in(g->context, vocab));
    *logits = g->inner.logits;
    *vocab = g->inner.vocab;
    return mixt__context_note(g->context, mixt__generator_catch_up(&g->inner));
}
