/* Cross-entropy of each row for itself: not on GPUs so far, which is said by name. */
#include "backend/cuda/kernels.h"

static bool supports(const mixt__call *call, const char **reason)
{
    (void)call;
    *reason = "losses of single rows, of which preferences are learned, are computed on the CPU alone so far";
    return false;
}

static mixt_status run(const mixt__call *call)
{
    (void)call;
    return MIXT_ERROR_UNSUPPORTED;
}

static const mixt__kernel none = {.name = "none", .supports = supports, .run = run};

const mixt__kernel *const mixt__cuda_cross_entropy_rows_kernels[] = {&none, NULL};
const mixt__kernel *const mixt__cuda_cross_entropy_rows_grad_kernels[] = {&none, NULL};
