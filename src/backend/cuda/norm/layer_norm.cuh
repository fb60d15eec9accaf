/* What layer norm and its gradient share: their job, and how a call becomes one. */
#ifndef MIXT_BACKEND_CUDA_NORM_LAYER_NORM_CUH
#define MIXT_BACKEND_CUDA_NORM_LAYER_NORM_CUH

#include "backend/cuda/core/pack.cuh"
#include "backend/cuda/kernels.h"

enum { PLAIN_THREADS = 256 };

/** Everything the kernels of one call need; T of the pointers is the kernels' own. */
typedef struct job {
    int64_t rows, cols;
    const void *src, *grad_dst, *addend; // addend: NULL when there is none
    void *dst;                           // or grad_src
    const float *weight, *bias;
    float *mean, *rstd; // outputs of the forward, inputs of the gradient; mean: not of root-mean-square norm
    float *grads[3];    // gradient: of weight, bias, and the sums of grad_src's columns; NULL: not wanted
    bool add[3];        // to what they hold
    float *partials;    // (parts, kinds, cols)
    int64_t parts;
    int kinds; // of grads
    float eps, inv_cols;
} job;

static job job_of(const mixt__call *call)
{
    const mixt__norm_attrs *at = (const mixt__norm_attrs *)call->attrs;
    job j = {};
    j.cols = mixt__tensor_last(&call->in[0]);
    j.rows = j.cols ? mixt__tensor_count(&call->in[0]) / j.cols : 0;
    j.src = call->in[0].data;
    j.weight = (const float *)call->in[1].data;
    j.dst = call->out[0].data;
    j.eps = at->eps;
    j.inv_cols = j.cols ? 1.0f / (float)j.cols : 0.0f;
    return j;
}

/** Whether 16-byte accesses fit all of these. */
static bool all_aligned(const mixt__call *call, const job *j)
{
    bool good = j->cols % (16 / (int64_t)mixt_dtype_size(call->in[0].dtype)) == 0;
    for (int i = 0; i < call->in_count; i++)
        good = good && aligned16(call->in[i].data);
    return good && aligned16(call->out[0].data);
}

static unsigned plain_grid(const mixt__cuda_device *gpu, const job *j)
{
    int64_t most = 16 * (int64_t)gpu->multiprocessors;
    return (unsigned)(j->rows < most ? j->rows : most);
}

#endif
