/* Ops that only the CPU has so far: asked for them, the GPU says so. */
#include "backend/cuda/kernels.h"

static bool refuse(const mixt__call *call, const char **reason)
{
    (void)call;
    *reason = "there is no kernel of it for GPUs yet: train on the CPU (device=cpu)";
    return false;
}

static mixt_status run(const mixt__call *call)
{
    (void)call;
    return MIXT_ERROR_UNSUPPORTED;
}

static const mixt__kernel none = {.name = "none", .supports = refuse, .run = run};

#define NOT_YET(op) const mixt__kernel *const mixt__cuda_##op##_kernels[] = {&none, NULL}

NOT_YET(extreme);
NOT_YET(extreme_grad);
NOT_YET(cumsum);
NOT_YET(trilu);
NOT_YET(sample);
NOT_YET(sample_grad);
NOT_YET(log_softmax);
