/* What every file of the CUDA backend shares: the device, its stream, and errors in words.
 *
 * One process drives one GPU (CUDA_VISIBLE_DEVICES chooses it). Everything that a step computes is issued in order on
 * one stream and may be under capture into a graph: a kernel's run therefore never waits, allocates or copies from
 * pageable memory. Plain C; .cu files include it too.
 */
#ifndef MIXT_BACKEND_CUDA_CORE_CUDA_H
#define MIXT_BACKEND_CUDA_CORE_CUDA_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "backend/backend.h"
#include "ops/attrs.h"

typedef struct mixt__cuda_device {
    mixt__device base;
    cudaStream_t stream; // everything a step computes
    int sm;              // compute capability: 90 for Hopper
    int multiprocessors;
    int shared_limit; // bytes of shared memory that one block may ask for
    char name[128];
} mixt__cuda_device;

/** Valid once the backend is open. */
extern mixt__cuda_device mixt__cuda;

/** MIXT_OK, or a failure that says what was being done and what CUDA answered. */
mixt_status mixt__cuda_check(cudaError_t error, const char *what);

/** After a launch: whether it was accepted. Costs no wait. */
static inline mixt_status mixt__cuda_launched(const char *kernel)
{
    cudaError_t error = cudaPeekAtLastError();
    return error == cudaSuccess ? MIXT_OK : mixt__cuda_check(error, kernel);
}

/** Whether products of this call's operands can run on Tensor Cores: 16-bit formats, FP32 where TF32 is allowed. */
static inline bool mixt__cuda_tensor_format(const mixt__call *call)
{
    switch (call->in[0].dtype) {
    case MIXT_DTYPE_FP16:
        return mixt__cuda.sm >= 70;
    case MIXT_DTYPE_BF16:
        return mixt__cuda.sm >= 80;
    case MIXT_DTYPE_FP32:
        return mixt__cuda.sm >= 80 && call->arithmetic == MIXT_DTYPE_TF32;
    default:
        return false;
    }
}

/** The prepare of a candidate that needs nothing, but says that it multiplies on Tensor Cores. */
static inline mixt_status mixt__cuda_prepare_tensor(mixt__call *call, mixt__arena *arena)
{
    (void)arena;
    call->tensor_cores = mixt__cuda_tensor_format(call);
    return MIXT_OK;
}

/** Device memory outside the plan, for timing candidates at plan time; NULL when there is none. Give it back at once.
 */
void *mixt__cuda_scratch(size_t bytes);
void mixt__cuda_scratch_free(void *block);

/** Median time in seconds of `run` issued on the stream; negative when it fails. Used to choose algorithms. */
double mixt__cuda_time(mixt_status (*run)(void *argument), void *argument);

/* ---- choices that were timed: kept in a file for this GPU and these libraries, so that a later run takes the same */

/** The choice made earlier for this key, of exactly `bytes` bytes; false: none. */
bool mixt__cuda_choice_get(const char *key, void *choice, size_t bytes);
/** Keeps a choice where there is none, or one that did not serve. False: another process was first; `choice` is its
 *  now, so that all runs on this machine are made of the same. */
bool mixt__cuda_choice_put(const char *key, void *choice, size_t bytes);
/** All choices as text, and back: see mixt__backend. */
size_t mixt__cuda_choices_print(mixt__device *device, char *text, size_t room);
void mixt__cuda_choices_adopt(mixt__device *device, const char *text, size_t bytes);

static inline int64_t mixt__ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/** Elements of a tensor. */
static inline int64_t mixt__tensor_count(const mixt__tensor *t)
{
    int64_t count = 1;
    for (int i = 0; i < t->shape.rank; i++)
        count *= t->shape.dims[i];
    return count;
}

static inline int64_t mixt__tensor_last(const mixt__tensor *t)
{
    return t->shape.rank ? t->shape.dims[t->shape.rank - 1] : 1;
}

#ifdef __cplusplus
}
#endif
#endif
