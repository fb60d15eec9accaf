/* Tokens a second of the 6 x 384 GPT with a full context of 256: from caches, and by reading the whole text again. */
#include "base/threads.h"
#include "infer/generator.h"
#include "models/models.h"

#include <stdio.h>

enum { CONTEXT = 256, WHOLE_RUNS = 5 };

static int fail(void)
{
    fprintf(stderr, "generate: %s\n", mixt_error_text());
    return 1;
}

/** Seconds of one token when the text is read anew for each. */
static mixt_status time_whole(const mixt__generator *g, const int32_t *text, double *seconds)
{
    mixt__forward_shape shape = {.dtype = MIXT_DTYPE_INT32, .input = {2, {1, CONTEXT}}};
    mixt__forward *f;
    MIXT_TRY(mixt__forward_new(&g->model, &g->policy, g->device, &shape, &f));
    mixt_status status = mixt__forward_bind(f, g->params);
    double start = 0;
    for (int i = 0; status == MIXT_OK && i <= WHOLE_RUNS; i++) {
        status = mixt__forward_run(f, text, 0, NULL);
        start = i ? start : mixt__time_now(); // the first run only warms up
    }
    *seconds = (mixt__time_now() - start) / WHOLE_RUNS;
    mixt__forward_free(f);
    return status;
}

static mixt_status time_cached(mixt__generator *g, const int32_t *text, double *seconds)
{
    mixt_sampling sampling = {.temperature = 1};
    int32_t token;
    MIXT_TRY(mixt__generator_start(g, text, CONTEXT / 2));
    MIXT_TRY(mixt__generator_next(g, &sampling, &token));
    double start = mixt__time_now();
    for (int i = 1; i < CONTEXT / 2; i++) // as long as nothing is forgotten
        MIXT_TRY(mixt__generator_next(g, &sampling, &token));
    *seconds = (mixt__time_now() - start) / (CONTEXT / 2 - 1);
    return MIXT_OK;
}

int main(void)
{
    const mixt_dtype formats[] = {MIXT_DTYPE_FP32, MIXT_DTYPE_BF16};
    static int32_t text[CONTEXT];
    mixt_data_info info = {.input_dtype = MIXT_DTYPE_INT32, .input_rank = 1, .input_dims = {CONTEXT}, .classes = 256};
    mixt__model_sizes sizes = {.layers = 6, .width = 384, .heads = 6};
    mixt__model model;
    info.target = MIXT_TARGET_TOKENS;
    info.target_elements = CONTEXT;
    for (int i = 0; i < CONTEXT; i++)
        text[i] = i * 37 % 256;
    if (mixt__zoo_model("gpt", &info, &sizes, &model) != MIXT_OK)
        return fail();
    printf("%8s %16s %16s %8s\n", "format", "cached tokens/s", "whole tokens/s", "ratio");
    for (int i = 0; i < 2; i++) {
        mixt__generator g;
        mixt__policy policy = mixt__policy_of(formats[i]);
        double cached, whole;
        if (mixt__generator_open(&g, &model, &policy, &mixt__device_cpu, CONTEXT) != MIXT_OK ||
            mixt__params_initialise(g.params, 1) != MIXT_OK || time_cached(&g, text, &cached) != MIXT_OK ||
            time_whole(&g, text, &whole) != MIXT_OK)
            return fail();
        printf("%8s %16.0f %16.1f %8.1f\n", mixt_dtype_name(formats[i]), 1 / cached, 1 / whole, whole / cached);
        mixt__generator_close(&g);
    }
    return 0;
}
