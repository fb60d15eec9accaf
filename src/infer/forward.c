/* Building, compiling and running a model without its loss. */
#include "infer/forward.h"

#include "runtime/compile.h"

#include <string.h>

static mixt__batch_spec spec_of(const mixt__forward_shape *shape)
{
    return shape->spec ? *shape->spec : (mixt__batch_spec){.input_dtype = shape->dtype, .input = shape->input};
}

static mixt_status compile(const mixt__model *model, const mixt__policy *policy, mixt__device *device,
                           const mixt__forward_shape *shape, mixt__executable **executable)
{
    mixt__graph *source;
    mixt__compile_options options = {.policy = *policy, .fused = device->backend->fused};
    mixt__batch_spec spec = spec_of(shape);
    MIXT_TRY(mixt__model_build_outputs(model, &spec, shape->cache_rows, &source));
    if (shape->params)
        mixt__frozen_mark(shape->params, source);
    return mixt__compile_take(source, &options, device, executable);
}

mixt_status mixt__forward_new(const mixt__model *model, const mixt__policy *policy, mixt__device *device,
                              const mixt__forward_shape *shape, mixt__forward **forward)
{
    mixt__forward *f = mixt__alloc(sizeof *f);
    *forward = NULL;
    if (!f)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a plan");
    mixt_status status = compile(model, policy, device, shape, &f->executable);
    if (status == MIXT_OK) {
        f->by_value = mixt__alloc((size_t)f->executable->graph->value_count * sizeof *f->by_value);
        status = f->by_value ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for a plan");
    }
    mixt__batch_spec spec = spec_of(shape);
    f->tokens = shape->cache_rows ? spec.input.dims[spec.input.rank - 1] : 0;
    spec.more_count -= shape->given;
    f->input_bytes = mixt__spec_input_bytes(&spec);
    if (status == MIXT_OK)
        *forward = f;
    else
        mixt__forward_free(f);
    return status;
}

void mixt__forward_free(mixt__forward *f)
{
    if (!f)
        return;
    if (f->input)
        mixt__device_free(f->executable->device, f->input);
    if (f->positions)
        mixt__device_free(f->executable->device, f->positions);
    mixt__executable_free(f->executable);
    mixt__free(f->by_value);
    mixt__free(f);
}

mixt_status mixt__forward_bind(mixt__forward *f, const mixt__params *params)
{
    mixt__executable *e = f->executable;
    MIXT_TRY(mixt__params_match(params, e->graph));
    MIXT_TRY(mixt__frozen_check(params, e->graph));
    MIXT_TRY(mixt__executable_allocate(e));
    mixt__executable_bind(e, params, NULL);
    f->input = mixt__device_alloc(e->device, f->input_bytes);
    f->positions = f->tokens ? mixt__device_alloc(e->device, (size_t)f->tokens * sizeof *f->positions) : NULL;
    if (!f->input || (f->tokens && !f->positions))
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory on %s for the input", e->device->backend->name);
    for (int i = 0; i < e->graph->array_count; i++)
        if (!e->graph->arrays[i].target)
            f->by_value[e->graph->arrays[i].value] =
                (char *)f->input + e->graph->values[e->graph->arrays[i].value].place;
    if (e->graph->positions)
        f->by_value[e->graph->positions] = f->positions;
    return MIXT_OK;
}

/** NULL past the last. */
static const mixt__value *cache_of(const mixt__forward *f, int64_t i)
{
    const mixt__graph *g = f->executable->graph;
    for (int64_t v = 1; v < g->value_count; v++)
        if (g->values[v].role == MIXT_ROLE_CACHE && i-- == 0)
            return &g->values[v];
    return NULL;
}

int64_t mixt__forward_cache_bytes(const mixt__forward *f, int64_t i)
{
    const mixt__value *cache = cache_of(f, i);
    return cache ? mixt__shape_count(&cache->shape) * (int64_t)mixt_dtype_size(cache->dtype) : -1;
}

int64_t mixt__forward_cache_places(const mixt__forward *f, int64_t i)
{
    const mixt__value *cache = cache_of(f, i);
    return cache && cache->shape.rank == 3 ? cache->shape.dims[1] : 0;
}

bool mixt__forward_has_places(const mixt__forward *f)
{
    const mixt__graph *g = f->executable->graph;
    for (int64_t i = 0; g->positions && i < g->node_count; i++)
        for (int k = 0; k < g->nodes[i].in_count; k++)
            if (g->nodes[i].in[k] == g->positions)
                return true;
    return false;
}

void mixt__forward_give(mixt__forward *f, const char *name, const void *address)
{
    const mixt__graph *g = f->executable->graph;
    for (int i = 0; i < g->array_count; i++)
        if (!strcmp(g->arrays[i].name, name))
            f->by_value[g->arrays[i].value] = address;
}

const void *mixt__forward_result(const mixt__forward *f)
{
    return mixt__executable_address(f->executable, f->executable->graph->logits);
}

static mixt_status put_positions(mixt__forward *f, int64_t first)
{
    int32_t places[64]; // a piece at a time: the host's copy needs no memory of its own
    for (int64_t from = 0; from < f->tokens; from += 64) {
        int64_t count = f->tokens - from < 64 ? f->tokens - from : 64;
        for (int64_t i = 0; i < count; i++)
            places[i] = (int32_t)(first + from + i);
        MIXT_TRY(
            mixt__device_upload(f->executable->device, f->positions + from, places, (size_t)count * sizeof *places));
    }
    return MIXT_OK;
}

mixt_status mixt__forward_run(mixt__forward *f, const void *input, int64_t first, void *const *caches)
{
    const mixt__graph *g = f->executable->graph;
    MIXT_TRY(mixt__device_upload(f->executable->device, f->input, input, f->input_bytes));
    MIXT_TRY(put_positions(f, first));
    for (int64_t v = 1, next = 0; v < g->value_count; v++)
        if (g->values[v].role == MIXT_ROLE_CACHE)
            f->by_value[v] = caches[next++];
    return mixt__executable_run(f->executable, &(mixt__run){.inputs = f->by_value});
}

const mixt__shape *mixt__forward_output_shape(const mixt__forward *f)
{
    return &f->executable->graph->values[f->executable->graph->logits].shape;
}

mixt_status mixt__forward_output(const mixt__forward *f, int64_t from, int64_t count, float *values)
{
    const float *logits = mixt__forward_result(f);
    return mixt__device_download(f->executable->device, values, logits + from, (size_t)count * sizeof *values);
}
