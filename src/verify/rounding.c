/* Weights rounded to the format of their working copies, and to the one that products multiply them in, and put back:
 * what a format does to a model before any arithmetic in it. Invariant: after mixt__verify_restore the trainer has the
 * bits that it had before. Only masters change meanwhile, which FP32 reads; working copies stay.
 */
#include "verify/verify.h"

#include "api/api.h"
#include "base/alloc.h"
#include "num/num.h"
#include "ops/attrs.h"
#include "ops/ops.h"

#include <math.h>
#include <string.h>

/** Rounds `count` numbers to a format of 8 or 16 bits. */
static mixt_status round_values(float *values, int64_t count, mixt_dtype format)
{
    void *narrow = mixt__alloc_uninit((size_t)count * mixt_dtype_size(format));
    if (!narrow)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to round %lld weights", (long long)count);
    mixt_status status = mixt_convert(narrow, format, values, MIXT_DTYPE_FP32, count, NULL);
    if (status == MIXT_OK)
        status = mixt_convert(values, MIXT_DTYPE_FP32, narrow, format, count, NULL);
    mixt__free(narrow);
    return status;
}

/** Rounds to a format with the power of two that brings the largest near its end, as in front of a product. */
static mixt_status round_scaled(float *values, int64_t count, mixt_dtype format)
{
    float largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = isfinite(values[i]) ? fmaxf(largest, fabsf(values[i])) : largest;
    float scale = mixt__fp32_of_bits(mixt__cast_scale_bits(mixt__fp32_bits(largest), format));
    for (int64_t i = 0; i < count; i++)
        values[i] /= scale;
    MIXT_TRY(round_values(values, count, format));
    for (int64_t i = 0; i < count; i++)
        values[i] *= scale;
    return MIXT_OK;
}

/** The format that the forward pass rounds a parameter's copy to for its products; MIXT_DTYPE_NONE: they read the copy.
 */
static mixt_dtype operand_format(const mixt__graph *graph, int64_t param)
{
    for (int64_t i = 0; i < graph->node_count; i++) {
        const mixt__node *n = &graph->nodes[i];
        const mixt__value *from = n->op == &mixt__op_scaled_cast ? &graph->values[n->in[0]] : NULL;
        if (from && !n->backward && from->role == MIXT_ROLE_PARAM && from->param == param)
            return graph->values[n->out[0]].dtype;
    }
    return MIXT_DTYPE_NONE;
}

static mixt_status round_param(mixt_trainer *trainer, int64_t index, mixt__verify_weights *kept)
{
    mixt_param_info info;
    MIXT_TRY(mixt_trainer_param(trainer, index, &info));
    bool kept_so = mixt__trainer_params(trainer->inner)->frozen.home[index] == info.copy; // rounded already
    if (info.copy == MIXT_DTYPE_NONE || info.copy == MIXT_DTYPE_FP32 || kept_so)
        return MIXT_OK;
    mixt_dtype operand = operand_format(mixt__trainer_compiled(trainer->inner)->graph, index), coarsest = info.copy;
    size_t bytes = (size_t)info.count * sizeof(float);
    float *rounded = mixt__alloc_uninit(bytes), *before = mixt__alloc_uninit(bytes);
    mixt_status status = rounded && before ? mixt_trainer_param_get(trainer, index, before)
                                           : mixt__fail(MIXT_ERROR_MEMORY, "no memory to round %s", info.name);
    if (status == MIXT_OK) {
        memcpy(rounded, before, bytes);
        status = round_values(rounded, info.count, info.copy);
    }
    if (status == MIXT_OK && operand != MIXT_DTYPE_NONE) {
        coarsest = operand;
        status = round_scaled(rounded, info.count, operand);
    }
    if (status == MIXT_OK) {
        kept->values[index] = before;
        before = NULL;
        status = mixt__params_set(mixt__trainer_params(trainer->inner), (int32_t)index, rounded);
        if (kept->format == MIXT_DTYPE_NONE || mixt__dtype_roundoff(coarsest) > mixt__dtype_roundoff(kept->format))
            kept->format = coarsest;
    }
    mixt__free(rounded);
    mixt__free(before);
    return status;
}

mixt_status mixt__verify_round(mixt_trainer *trainer, mixt__verify_weights *kept)
{
    *kept = (mixt__verify_weights){.count = mixt_trainer_param_count(trainer), .format = MIXT_DTYPE_NONE};
    kept->values = mixt__alloc((size_t)kept->count * sizeof *kept->values);
    if (!kept->values)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to round weights");
    for (int64_t i = 0; i < kept->count; i++)
        MIXT_TRY(round_param(trainer, i, kept));
    return MIXT_OK;
}

mixt_status mixt__verify_restore(mixt_trainer *trainer, mixt__verify_weights *kept)
{
    mixt__params *params = mixt__trainer_params(trainer->inner);
    mixt_status status = MIXT_OK;
    for (int64_t i = 0; kept->values && i < kept->count; i++) {
        mixt_status now = kept->values[i] ? mixt__params_set(params, (int32_t)i, kept->values[i]) : MIXT_OK;
        status = status == MIXT_OK ? now : status;
        mixt__free(kept->values[i]);
    }
    mixt__free(kept->values);
    kept->values = NULL;
    return status;
}
