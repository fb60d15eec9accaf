/* From a weights file of any known kind into the parameters of a trainer. */
#include "api/weights.h"

#include "mixt/num.h"
#include "store/nf4_file.h"

#include <math.h>
#include <string.h>

/** A NaN would only show as a loss that is none, some steps later, and the learning rate would be blamed. */
static mixt_status check_finite(const mixt__weights *w)
{
    for (int64_t i = 0; i < w->plan.count; i++) {
        const mixt__file_tensor *source = w->taken[w->plan.entries[i].here] ? w->sources[i] : NULL;
        int64_t count = source ? (int64_t)(source->bytes / mixt_dtype_size(source->dtype)) : 0;
        if (source)
            MIXT_TRY(mixt__nf4_tensor_values(source, w->buffer));
        for (int64_t k = 0; k < count; k++)
            if (!isfinite(w->buffer[k]))
                return mixt__fail(
                    MIXT_ERROR_DATA,
                    "%s: tensor '%s' holds %g (element %lld of %lld), and weights must be finite in FP32: use a file "
                    "from before training diverged; nothing was loaded (init_skip excludes names)",
                    w->path, source->name, isnan(w->buffer[k]) ? (double)NAN : (double)w->buffer[k], (long long)k,
                    (long long)count);
    }
    return MIXT_OK;
}

/** Parameters that a file of another program, or of the model without adapters, has: those stand behind all others. */
static int64_t own_count(const mixt__params *params)
{
    int64_t count = params->count;
    while (count && params->table[count - 1].adapter)
        count--;
    return count;
}

/** A parameter that is kept in NF4 from a file that has it so, as it is there. @param taken receives whether it is */
static mixt_status read_kept(mixt__params *params, int32_t index, const mixt__weights *weights, bool *taken)
{
    const mixt__param *p = &params->table[index];
    *taken = false;
    if (!mixt__params_is_frozen(params, index) || params->frozen.home[index] != MIXT_DTYPE_NF4)
        return MIXT_OK;
    mixt__nf4_matrix matrix = mixt__param_matrix(p);
    uint8_t *codes = mixt__alloc(mixt__format_bytes(MIXT_DTYPE_NF4, p->count));
    float *scales = mixt__alloc((size_t)mixt__nf4_words(&matrix) * sizeof *scales);
    mixt_status status = codes && scales ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory to load '%s'", p->name);
    *taken = status == MIXT_OK && mixt__weights_read_nf4(weights, index, &matrix, codes, scales);
    if (*taken)
        status = mixt__frozen_set_kept(params, index, codes, scales);
    mixt__free(codes);
    mixt__free(scales);
    return status;
}

static mixt_status read_all(mixt__params *params, mixt__weights *weights)
{
    int64_t most = 1;
    int64_t count = own_count(params);
    for (int64_t i = 0; i < count; i++)
        most = params->table[i].count > most ? params->table[i].count : most;
    float *values = mixt__alloc_uninit((size_t)most * sizeof *values);
    mixt_status status =
        values ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory to load %lld values", (long long)most);
    for (int64_t i = 0; status == MIXT_OK && i < count; i++) {
        bool taken = false;
        if (!weights->taken[i])
            continue;
        status = read_kept(params, (int32_t)i, weights, &taken);
        if (taken || status != MIXT_OK)
            continue;
        if (weights->places || weights->row_count) // what the file does not have of them stays as drawn
            status = mixt__params_get(params, (int32_t)i, values);
        if (status == MIXT_OK)
            status = mixt__weights_read(weights, i, values);
        if (status == MIXT_OK)
            status = mixt__params_set(params, (int32_t)i, values);
    }
    mixt__free(values);
    return status == MIXT_OK ? mixt__params_refresh_copies(params) : status;
}

/** Opens the file as one of these parameters' weights. */
static mixt_status open_for(const mixt__params *params, const mixt__weights_request *request, mixt__file_tensor *wanted,
                            mixt__weights **weights)
{
    mixt__weights_request r = *request;
    mixt__name_facts facts = {0};
    r.count = own_count(params);
    for (int64_t i = 0; i < r.count; i++) {
        const mixt__param *p = &params->table[i];
        wanted[i] = (mixt__file_tensor){.name = p->name, .dtype = MIXT_DTYPE_FP32, .rank = p->shape.rank};
        memcpy(wanted[i].dims, p->shape.dims, (size_t)p->shape.rank * sizeof p->shape.dims[0]);
    }
    r.wanted = wanted;
    if (request->facts) {
        facts = *request->facts;
        mixt__name_facts_read(&facts, wanted, r.count);
        r.facts = &facts;
    }
    return mixt__weights_open(&r, weights);
}

mixt_status mixt__params_init(mixt__params *params, const mixt__weights_request *request, mixt__before_load *before,
                              void *user, mixt__weights **weights)
{
    *weights = NULL;
    mixt__file_tensor *wanted = mixt__alloc((size_t)(params->count + 1) * sizeof *wanted);
    mixt_status status = wanted ? open_for(params, request, wanted, weights)
                                : mixt__fail(MIXT_ERROR_MEMORY, "no memory to load %s", request->path);
    if (status == MIXT_OK && before)
        status = check_finite(*weights);
    if (status == MIXT_OK && before)
        status = before(user);
    if (status == MIXT_OK && before)
        status = read_all(params, *weights);
    if (*weights)
        (*weights)->plan.here = NULL; // it was ours
    mixt__free(wanted);
    if (status != MIXT_OK) {
        mixt__weights_close(*weights);
        *weights = NULL;
    }
    return status;
}

static mixt_status take_weights(void *trainer)
{
    return mixt__trainer_take_weights(trainer);
}

mixt_status mixt__trainer_init(mixt_trainer *trainer, const mixt__weights_request *request, bool load,
                               mixt__weights **weights)
{
    mixt__trainer *t = trainer->inner;
    *weights = NULL;
    mixt_status status =
        mixt__trainer_compiled(t)
            ? mixt__params_init(mixt__trainer_params(t), request, load ? take_weights : NULL, t, weights)
            : mixt__fail(MIXT_ERROR_STATE, "compile the trainer before loading weights");
    return mixt__context_note(trainer->context, status);
}
