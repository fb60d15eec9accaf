/* Merging a parameter; the run and its merged self side by side. */
#include "run/open/merge.h"

#include "base/status.h"
#include "mixt/num.h"
#include "run/run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

mixt_status mixt__merge_open(mixt__merge *m, const char *folder, const char *weights)
{
    *m = (mixt__merge){.folder = folder, .weights = weights, .difference = NAN, .largest = NAN};
    MIXT_TRY(mixt_run_load_with(folder, weights, NULL, &m->run));
    const mixt__trainer *t = m->run->experiment.trainer->inner;
    m->params = mixt__trainer_params(t);
    m->scale = mixt__lora_scale(&mixt__trainer_model(t)->lora);
    m->tensors = mixt__alloc((size_t)(m->params->count + 1) * sizeof *m->tensors);
    if (!m->tensors)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to merge its adapters", folder);
    for (int64_t i = 0; i < m->params->count && !m->params->table[i].adapter; i++) { // adapters stand behind
        const mixt__param *p = &m->params->table[i];
        m->tensors[m->count] = (mixt__file_tensor){.name = p->name, .dtype = MIXT_DTYPE_FP32, .rank = p->shape.rank};
        memcpy(m->tensors[m->count].dims, p->shape.dims, (size_t)p->shape.rank * sizeof p->shape.dims[0]);
        m->tensors[m->count++].bytes = (size_t)p->count * sizeof(float);
    }
    return MIXT_OK;
}

/** Values of an adapter's parameter, for mixt__free; *index -1: there is none of that name. */
static mixt_status read_named(const mixt__merge *m, const char *name, int32_t *index, float **values)
{
    *values = NULL;
    *index = mixt__params_find(m->params, name);
    if (*index < 0)
        return MIXT_OK;
    *values = mixt__alloc_uninit((size_t)m->params->table[*index].count * sizeof **values + 1);
    return *values ? mixt__params_get(m->params, *index, *values)
                   : mixt__fail(MIXT_ERROR_MEMORY, "no memory to merge '%s'", name);
}

/** Adds scale · B A to rows of a weight. @param a (rank, cols) @param b (rows, rank) */
static void add_product(float scale, const float *a, const float *b, int64_t rows, int64_t cols, int64_t rank,
                        float *values)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++) {
            double sum = 0;
            for (int64_t k = 0; k < rank; k++)
                sum += (double)b[r * rank + k] * (double)a[k * cols + c];
            values[r * cols + c] += (float)((double)scale * sum);
        }
}

/** Adds the adapter of a part of a layer, whose rows of A begin at `slot`. @param part -1: of the layer as one
 *  @param found receives whether it has one */
static mixt_status add_part(const mixt__merge *m, const char *layer, int part, const float *a, int64_t *slot,
                            int64_t cols, float *values)
{
    char name[600];
    int32_t index;
    float *b;
    int length = part < 0 ? snprintf(name, sizeof name, "%s." MIXT_LORA_B, layer)
                          : snprintf(name, sizeof name, "%s." MIXT_LORA_B ".%d", layer, part);
    if (length >= (int)sizeof name)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "layer '%.60s…': its name is too long", layer);
    mixt_status status = read_named(m, name, &index, &b);
    if (status == MIXT_OK && b) {
        const mixt__shape *shape = &m->params->table[index].shape;
        add_product(m->scale, a + *slot * cols, b, shape->dims[0], cols, shape->dims[1], values);
        *slot += shape->dims[1];
    }
    mixt__free(b);
    return status;
}

mixt_status mixt__merge_values(void *merge, int64_t index, float *values)
{
    const mixt__merge *m = merge;
    const mixt__param *p = &m->params->table[index];
    char layer[512], name[600];
    int32_t down;
    float *a;
    MIXT_TRY(mixt__params_get(m->params, (int32_t)index, values));
    snprintf(layer, sizeof layer, "%s", p->name);
    char *end = strrchr(layer, '.');
    if (p->shape.rank != 2 || !end || strcmp(end, ".weight"))
        return MIXT_OK;
    *end = '\0';
    snprintf(name, sizeof name, "%s." MIXT_LORA_A, layer);
    mixt_status status = read_named(m, name, &down, &a);
    int64_t slot = 0, row = 0, cols = p->shape.dims[1];
    if (status == MIXT_OK && a && !p->part_count)
        status = add_part(m, layer, -1, a, &slot, cols, values);
    for (int k = 0; status == MIXT_OK && a && k < p->part_count; row += p->parts[k++])
        status = add_part(m, layer, k, a, &slot, cols, values + row * cols);
    mixt__free(a);
    return status;
}

/* ---- the same, side by side ---- */

/** Gives a run without adapters the merged values, rounded to a format. */
static mixt_status give(const mixt__merge *m, mixt_run *merged, mixt_dtype dtype)
{
    mixt__params *to = mixt__trainer_params(merged->experiment.trainer->inner);
    for (int64_t i = 0; i < m->count; i++) {
        int64_t count = m->params->table[i].count;
        float *values = mixt__alloc_uninit((size_t)count * 2 * sizeof *values + 1);
        mixt_status status = values ? mixt__merge_values((void *)(uintptr_t)m, i, values)
                                    : mixt__fail(MIXT_ERROR_MEMORY, "no memory to merge the adapters");
        if (status == MIXT_OK)
            status = mixt_convert(values + count, dtype, values, MIXT_DTYPE_FP32, count, NULL);
        if (status == MIXT_OK)
            status = mixt_convert(values, MIXT_DTYPE_FP32, values + count, dtype, count, NULL);
        if (status == MIXT_OK)
            status = mixt__params_set(to, (int32_t)i, values);
        mixt__free(values);
        MIXT_TRY(status);
    }
    return mixt__params_refresh_copies(to);
}

/** Tokens of a text that means nothing, each another than the one before; the same for every call. */
static void fill_tokens(int32_t *tokens, int64_t count, int64_t ids)
{
    uint32_t state = 1;
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        tokens[i] = (int32_t)((int64_t)(state >> 8) % ids);
    }
}

static mixt_status compare(mixt__merge *m, mixt_run *merged)
{
    mixt_trainer *with = m->run->experiment.trainer, *without = merged->experiment.trainer;
    const mixt__batch_spec *spec = mixt__trainer_spec(with->inner);
    int64_t ids = mixt_data_describe(m->run->experiment.facts)->classes, outputs;
    if (spec->input_dtype != MIXT_DTYPE_INT32 || spec->input.rank != 2 || spec->more_count || ids < 1)
        return MIXT_OK; // no text alone
    MIXT_TRY(mixt_trainer_outputs(with, &outputs));
    int32_t *tokens = mixt__alloc_uninit((size_t)spec->input.dims[1] * sizeof *tokens);
    float *logits = mixt__alloc_uninit(2 * (size_t)outputs * sizeof *logits);
    mixt_status status = tokens && logits ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory to compare logits");
    if (status == MIXT_OK) {
        fill_tokens(tokens, spec->input.dims[1], ids);
        status = mixt_trainer_predict(with, tokens, 1, logits);
    }
    if (status == MIXT_OK)
        status = mixt_trainer_predict(without, tokens, 1, logits + outputs);
    if (status == MIXT_OK)
        m->difference = m->largest = 0;
    for (int64_t i = 0; status == MIXT_OK && i < outputs; i++) {
        m->largest = fmax(m->largest, fabs((double)logits[i]));
        m->difference = fmax(m->difference, fabs((double)logits[i] - (double)logits[outputs + i]));
    }
    mixt__free(tokens);
    mixt__free(logits);
    return status;
}

mixt_status mixt__merge_compare(mixt__merge *m, mixt_dtype dtype)
{
    static const char *const settings[] = {"lora.rank=0",  "lora.alpha=0", "lora.dropout=0",    "lora.rslora=false",
                                           "lora.layers=", "lora.also=",   "train.frozen=auto", NULL};
    mixt_run_options options = MIXT_OPTIONS(mixt_run_options, .settings = settings);
    mixt_run *merged;
    MIXT_TRY(mixt_run_load_with(m->folder, m->weights, &options, &merged));
    mixt_status status = give(m, merged, dtype);
    if (status == MIXT_OK)
        status = compare(m, merged);
    mixt_run_close(merged);
    return status;
}

void mixt__merge_close(mixt__merge *m)
{
    mixt_run_close(m->run);
    mixt__free(m->tensors);
    *m = (mixt__merge){0};
}
