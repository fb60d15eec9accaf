/* Weights rounded to the format of their working copies and put back: what a format does to a model before any
 * arithmetic in it. Invariant: after mixt__verify_restore the trainer has the bits that it had before. Only masters
 * change meanwhile, which FP32 reads; working copies stay.
 */
#include "verify/verify.h"

#include "api/api.h"
#include "base/alloc.h"
#include "num/num.h"

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

static mixt_status round_param(mixt_trainer *trainer, int64_t index, mixt__verify_weights *kept)
{
    mixt_param_info info;
    MIXT_TRY(mixt_trainer_param(trainer, index, &info));
    bool kept_so = mixt__trainer_params(trainer->inner)->frozen.home[index] == info.copy; // rounded already
    if (info.copy == MIXT_DTYPE_NONE || info.copy == MIXT_DTYPE_FP32 || kept_so)
        return MIXT_OK;
    size_t bytes = (size_t)info.count * sizeof(float);
    float *rounded = mixt__alloc_uninit(bytes), *before = mixt__alloc_uninit(bytes);
    mixt_status status = rounded && before ? mixt_trainer_param_get(trainer, index, before)
                                           : mixt__fail(MIXT_ERROR_MEMORY, "no memory to round %s", info.name);
    if (status == MIXT_OK) {
        memcpy(rounded, before, bytes);
        status = round_values(rounded, info.count, info.copy);
    }
    if (status == MIXT_OK) {
        kept->values[index] = before;
        before = NULL;
        status = mixt__params_set(mixt__trainer_params(trainer->inner), (int32_t)index, rounded);
        if (kept->format == MIXT_DTYPE_NONE || mixt__dtype_roundoff(info.copy) > mixt__dtype_roundoff(kept->format))
            kept->format = info.copy;
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
