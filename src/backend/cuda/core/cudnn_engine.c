/* Reads and makes engine configurations through cuDNN's descriptors, and builds their plans. */
#include "backend/cuda/core/cudnn_engine.h"

void mixt__cudnn_destroy(cudnnBackendDescriptor_t descriptor)
{
    if (descriptor)
        cudnnBackendDestroyDescriptor(descriptor);
}

void mixt__cudnn_proposals_free(cudnnBackendDescriptor_t configs[MIXT_CUDNN_PROPOSALS])
{
    for (int i = 0; i < MIXT_CUDNN_PROPOSALS; i++)
        mixt__cudnn_destroy(configs[i]);
}

int64_t mixt__cudnn_propose(const mixt__cudnn_graph *g, cudnnBackendHeurMode_t mode,
                            cudnnBackendDescriptor_t configs[MIXT_CUDNN_PROPOSALS])
{
    for (int i = 0; i < MIXT_CUDNN_PROPOSALS; i++)
        if (cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &configs[i]) != CUDNN_STATUS_SUCCESS)
            configs[i] = NULL;
    cudnnBackendDescriptor_t heuristic = NULL;
    int64_t count = 0;
    cudnnStatus_t status = cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &heuristic);
    if (!status)
        status = cudnnBackendSetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                                          CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &g->graph);
    if (!status)
        status = cudnnBackendSetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (!status)
        status = cudnnBackendFinalize(heuristic);
    if (!status)
        status = cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                          MIXT_CUDNN_PROPOSALS, &count, configs);
    mixt__cudnn_destroy(heuristic);
    if (status)
        (void)mixt__cudnn_check(status, "asking for engines"); // its words stand if there is nothing better to say
    return status ? 0 : count < MIXT_CUDNN_PROPOSALS ? count : MIXT_CUDNN_PROPOSALS;
}

static cudnnStatus_t read_engine(cudnnBackendDescriptor_t config, mixt__cudnn_choice *c, unsigned *notes)
{
    cudnnBackendDescriptor_t engine = NULL;
    cudnnBackendNumericalNote_t list[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    int64_t count = 0, index = 0;
    cudnnStatus_t status = cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine);
    if (!status)
        status = cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                                          &engine);
    if (!status)
        status = cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &count, &index);
    c->engine = (int32_t)index;
    if (!status)
        status = cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                          CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, list);
    *notes = 0;
    for (int64_t i = 0; !status && i < count && i < CUDNN_NUMERICAL_NOTE_TYPE_COUNT; i++)
        *notes |= 1u << list[i];
    mixt__cudnn_destroy(engine);
    return status;
}

static cudnnStatus_t read_knobs(cudnnBackendDescriptor_t config, mixt__cudnn_choice *c)
{
    cudnnBackendDescriptor_t knobs[MIXT_CUDNN_KNOBS] = {0};
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    int64_t count = 0;
    for (int i = 0; !status && i < MIXT_CUDNN_KNOBS; i++)
        status = cudnnBackendCreateDescriptor(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, &knobs[i]);
    if (!status)
        status = cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                          MIXT_CUDNN_KNOBS, &count, knobs);
    if (count > MIXT_CUDNN_KNOBS)
        status = CUDNN_STATUS_NOT_SUPPORTED;
    for (int64_t i = 0; !status && i < count; i++) {
        int64_t got, value = 0;
        cudnnBackendKnobType_t type = 0;
        status =
            cudnnBackendGetAttribute(knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &got, &type);
        if (!status)
            status = cudnnBackendGetAttribute(knobs[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &got,
                                              &value);
        if (value != (int32_t)value)
            status = CUDNN_STATUS_NOT_SUPPORTED;
        c->knobs[i][0] = (int32_t)type;
        c->knobs[i][1] = (int32_t)value;
    }
    c->knob_count = (int32_t)count;
    for (int i = 0; i < MIXT_CUDNN_KNOBS; i++)
        mixt__cudnn_destroy(knobs[i]);
    return status;
}

cudnnStatus_t mixt__cudnn_config_read(cudnnBackendDescriptor_t config, mixt__cudnn_choice *c, unsigned *notes)
{
    cudnnStatus_t status = read_engine(config, c, notes);
    return status ? status : read_knobs(config, c);
}

static cudnnStatus_t make_knob(const int32_t knob[2], cudnnBackendDescriptor_t *made)
{
    int64_t value = knob[1];
    cudnnBackendKnobType_t type = (cudnnBackendKnobType_t)knob[0];
    cudnnStatus_t status = cudnnBackendCreateDescriptor(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, made);
    if (!status)
        status = cudnnBackendSetAttribute(*made, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
    if (!status)
        status = cudnnBackendSetAttribute(*made, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &value);
    return status ? status : cudnnBackendFinalize(*made);
}

cudnnStatus_t mixt__cudnn_config_make(const mixt__cudnn_graph *g, const mixt__cudnn_choice *c,
                                      cudnnBackendDescriptor_t *config)
{
    cudnnBackendDescriptor_t engine = NULL, knobs[MIXT_CUDNN_KNOBS] = {0};
    int64_t index = c->engine;
    cudnnStatus_t status = cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine);
    if (!status)
        status = cudnnBackendSetAttribute(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                          &g->graph);
    if (!status)
        status = cudnnBackendSetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &index);
    if (!status)
        status = cudnnBackendFinalize(engine);
    for (int64_t i = 0; !status && i < c->knob_count; i++)
        status = make_knob(c->knobs[i], &knobs[i]);
    if (!status)
        status = cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, config);
    if (!status)
        status =
            cudnnBackendSetAttribute(*config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &engine);
    if (!status && c->knob_count)
        status = cudnnBackendSetAttribute(*config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                          c->knob_count, knobs);
    if (!status)
        status = cudnnBackendFinalize(*config);
    for (int i = 0; i < MIXT_CUDNN_KNOBS; i++)
        mixt__cudnn_destroy(knobs[i]);
    mixt__cudnn_destroy(engine);
    return status;
}

cudnnStatus_t mixt__cudnn_config_workspace(cudnnBackendDescriptor_t config, size_t *bytes)
{
#if CUDNN_VERSION >= 90200
    int64_t count, said = 0;
    cudnnStatus_t status =
        cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count, &said);
    *bytes = (size_t)said;
    return status || said >= 0 ? status : CUDNN_STATUS_NOT_SUPPORTED;
#else
    (void)config;
    *bytes = 0;
    return CUDNN_STATUS_NOT_SUPPORTED;
#endif
}

/* ---- plans ---- */

void mixt__cudnn_build(mixt__cudnn_built *b, cudnnHandle_t handle)
{
    int64_t count, bytes = 0;
    b->status = cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &b->plan);
    if (!b->status)
        b->status = cudnnBackendSetAttribute(b->plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    if (!b->status)
        b->status = cudnnBackendSetAttribute(b->plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                                             CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &b->config);
    if (!b->status)
        b->status = cudnnBackendFinalize(b->plan);
    if (!b->status)
        b->status = cudnnBackendGetAttribute(b->plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
                                             &count, &bytes);
    b->workspace_bytes = (size_t)bytes;
    if (b->status)
        cudnnGetLastErrorString(b->detail, sizeof b->detail);
}
