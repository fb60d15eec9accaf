/* A function of values run once on arrays: builds a graph whose inputs have the arrays' formats, compiles, runs,
 * forgets. */
#include "mixt/compute.h"

#include "api/api.h"
#include "graph/builder.h"

#include <string.h>

enum { INPUTS_MAX = 16 };

static mixt_status check_array(const mixt_array *array, const char *what, bool indices)
{
    char names[MIXT_FORMAT_NAMES];
    if (!mixt__format_may(array->dtype, MIXT_MAY_HOLD) && !(indices && array->dtype == MIXT_DTYPE_INT32))
        return mixt__fail(MIXT_ERROR_DTYPE, "%s is %s: must be %s%s", what, mixt_dtype_name(array->dtype),
                          mixt__format_names(MIXT_MAY_HOLD, "or", names, sizeof names),
                          indices ? ", or int32 for indices" : "");
    if (!array->data || array->rank < 0 || array->rank > MIXT_MAX_RANK)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%s needs data and 0 to %d dimensions", what, MIXT_MAX_RANK);
    for (int i = 0; i < array->rank; i++)
        if (array->dims[i] < 1)
            return mixt__fail(MIXT_ERROR_SHAPE, "%s: dimension %d is %lld, must be at least 1", what, i,
                              (long long)array->dims[i]);
    return MIXT_OK;
}

static mixt_status check_arrays(const mixt_array *inputs, int count, const mixt_array *result)
{
    if (count < 0 || count > INPUTS_MAX)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%d input arrays: at most %d", count, INPUTS_MAX);
    for (int i = 0; i < count; i++)
        MIXT_TRY(check_array(&inputs[i], "an input array", true));
    return check_array(result, "the result array", false);
}

/** The one format of the float inputs and the result; FP32 where they differ, so that nothing is rounded twice and FP16
 * does not overflow on the way to a format that could hold the result. */
static mixt_dtype common_format(const mixt_array *inputs, int count, const mixt_array *result)
{
    for (int i = 0; i < count; i++)
        if (inputs[i].dtype != MIXT_DTYPE_INT32 && inputs[i].dtype != result->dtype)
            return MIXT_DTYPE_FP32;
    return result->dtype;
}

static mixt_status build(mixt__graph *graph, mixt_compute_fn fn, const mixt_array *inputs, int count,
                         const mixt_array *result, mixt_dtype format)
{
    mixt_value values[INPUTS_MAX];
    for (int i = 0; i < count; i++) {
        mixt__shape shape = mixt__shape_of(inputs[i].rank, inputs[i].dims);
        MIXT_TRY(mixt__graph_value(graph, MIXT_ROLE_INPUT, inputs[i].dtype, &shape, "input", &values[i].id));
    }
    mixt_builder b;
    mixt__builder_start(&b, graph, NULL);
    for (int i = 0; i < count; i++) // sums and their like work in the format that they are given
        if (inputs[i].dtype != MIXT_DTYPE_INT32 && inputs[i].dtype != format)
            values[i] = mixt_cast(&b, values[i], format);
    mixt_value made = mixt_cast(&b, fn(&b, values), result->dtype); // a value of its own: never a view, never an input
    MIXT_TRY(mixt__builder_finish(&b));
    if (graph->param_count)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "parameter '%s': a function with parameters needs a trainer",
                          graph->params[0].name);
    mixt__shape wanted = mixt__shape_of(result->rank, result->dims);
    const mixt__shape *shape = &graph->values[made.id].shape;
    char made_text[128], wanted_text[128];
    if (!mixt__shape_equal(shape, &wanted))
        return mixt__fail(MIXT_ERROR_SHAPE, "the result has shape %s, but its array has %s",
                          mixt__shape_text(shape, made_text, sizeof made_text),
                          mixt__shape_text(&wanted, wanted_text, sizeof wanted_text));
    graph->logits = made.id;
    graph->values[made.id].output = true;
    return MIXT_OK;
}

/** Runs on copies of the inputs in the device's memory. */
static mixt_status run_uploaded(mixt__executable *e, const void **by_value)
{
    mixt_status status = MIXT_OK;
    for (int64_t v = 1; v < e->graph->value_count; v++) {
        const void *host = by_value[v];
        size_t bytes =
            (size_t)mixt__shape_count(&e->graph->values[v].shape) * mixt_dtype_size(e->graph->values[v].dtype);
        void *device = host && status == MIXT_OK ? mixt__device_alloc(e->device, bytes) : NULL;
        by_value[v] = device;
        if (host && status == MIXT_OK)
            status = device ? mixt__device_upload(e->device, device, host, bytes)
                            : mixt__fail(MIXT_ERROR_MEMORY, "no memory on %s for the inputs", e->device->backend->name);
    }
    if (status == MIXT_OK)
        status = mixt__executable_run(e, &(mixt__run){.inputs = by_value});
    if (status == MIXT_OK)
        status = mixt__device_synchronize(e->device);
    for (int64_t v = 1; v < e->graph->value_count; v++)
        if (by_value[v])
            mixt__device_free(e->device, (void *)(uintptr_t)by_value[v]);
    return status;
}

static mixt_status run(mixt__executable *e, const mixt_array *inputs, const mixt_array *result)
{
    MIXT_TRY(mixt__executable_allocate(e));
    mixt__executable_bind(e, NULL, NULL);
    const void **by_value = mixt__arena_alloc(&e->memory_of_calls, (size_t)e->graph->value_count * sizeof *by_value);
    if (!by_value)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the inputs");
    for (int64_t v = 1, next = 0; v < e->graph->value_count; v++) // passes keep the order of inputs
        by_value[v] = e->graph->values[v].role == MIXT_ROLE_INPUT ? inputs[next++].data : NULL;
    mixt_status status = e->device->backend->host_memory ? mixt__executable_run(e, &(mixt__run){.inputs = by_value})
                                                         : run_uploaded(e, by_value);
    MIXT_TRY(status);
    const mixt__value *made = &e->graph->values[e->graph->logits];
    size_t bytes = (size_t)mixt__shape_count(&made->shape) * mixt_dtype_size(made->dtype);
    return mixt__device_download(e->device, result->data, mixt__executable_address(e, e->graph->logits), bytes);
}

static mixt_status compute(mixt__device *device, mixt_compute_fn fn, const mixt_array *inputs, int count,
                           const mixt_array *result)
{
    mixt__graph *source = NULL;
    mixt__executable *executable = NULL;
    mixt_status status = check_arrays(inputs, count, result);
    if (status != MIXT_OK)
        return status;
    mixt_dtype format = common_format(inputs, count, result);
    mixt__compile_options options = {.policy = mixt__policy_of(format)};
    MIXT_TRY_CLEANUP(mixt__graph_new(&source));
    MIXT_TRY_CLEANUP(build(source, fn, inputs, count, result, format));
    mixt__graph *built = source;
    source = NULL; // taken
    MIXT_TRY_CLEANUP(mixt__compile_take(built, &options, device, &executable));
    status = run(executable, inputs, result);
cleanup:
    mixt__executable_free(executable);
    mixt__graph_free(source);
    return status;
}

mixt_status mixt_compute(mixt_context *context, mixt_compute_fn fn, const mixt_array *inputs, int input_count,
                         const mixt_array *result)
{
    MIXT_TRY(mixt__need_context(context));
    if (!fn || (!inputs && input_count) || !result)
        return mixt__context_note(
            context, mixt__fail(MIXT_ERROR_ARGUMENT, "mixt_compute needs a function, inputs and a result"));
    return mixt__context_note(context, compute(context->device, fn, inputs, input_count, result));
}
