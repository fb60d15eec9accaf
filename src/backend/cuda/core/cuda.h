/* What every file of the CUDA backend shares: the device, its stream, and errors in words.
 *
 * A device is an object: two of one GPU share nothing but the GPU. One thread at a time works with one, and enters it
 * first (mixt__device_enter), which makes its GPU the thread's current one. Everything that a step computes is issued
 * in order on the device's stream and may be under capture into a graph: a kernel's run therefore never waits,
 * allocates or copies from pageable memory. Plain C; .cu files include it too.
 */
#ifndef MIXT_BACKEND_CUDA_CORE_CUDA_H
#define MIXT_BACKEND_CUDA_CORE_CUDA_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "backend/backend.h"
#include "ops/attrs.h"

/** Counters of blocks that are done, for kernels whose last block adds up what all left behind: 0 between launches.
 *  Each kernel has its own, since launches may overlap. */
typedef enum mixt__cuda_counter {
    MIXT_CUDA_COUNTER_CROSS_ENTROPY,
    MIXT_CUDA_COUNTER_CROSS_ENTROPY_ROWS,
    MIXT_CUDA_COUNTER_CROSS_ENTROPY_WARPS,
    MIXT_CUDA_COUNTER_CROSS_ENTROPY_STREAM,
    MIXT_CUDA_COUNTER_CTC,
    MIXT_CUDA_COUNTER_KL,
    MIXT_CUDA_COUNTER_MEAN_LOSSES,
    MIXT_CUDA_COUNTER_BATCH_NORM,
    MIXT_CUDA_COUNTERS_BATCH_NORM = 1024,
    MIXT_CUDA_COUNTER_REDUCE = MIXT_CUDA_COUNTER_BATCH_NORM + MIXT_CUDA_COUNTERS_BATCH_NORM,
    MIXT_CUDA_COUNTERS_REDUCE = 8192,
    MIXT_CUDA_COUNTERS = MIXT_CUDA_COUNTER_REDUCE + MIXT_CUDA_COUNTERS_REDUCE
} mixt__cuda_counter;

/** Copies beside the stream: a slot of staging memory is free again once the work issued before its fence has run. */
typedef struct mixt__cuda_copies {
    cudaStream_t batches, fetches;
    cudaEvent_t made, fetched;
    cudaEvent_t ready[MIXT_STAGE_SLOTS], read[MIXT_STAGE_SLOTS];
} mixt__cuda_copies;

/** Blocks of device memory that were taken and not given back. */
typedef struct mixt__cuda_blocks {
    struct mixt__cuda_block *list;
    int64_t count, capacity;
} mixt__cuda_blocks;

typedef struct mixt__cuda_marks {
    cudaEvent_t *list;
    int64_t count, capacity;
} mixt__cuda_marks;

/** Tables of updates (update/table.h). */
typedef struct mixt__cuda_tables {
    struct mixt__cuda_table_entry *list;
    int64_t count, capacity;
} mixt__cuda_tables;

/** Choices that were timed (choices.c). */
typedef struct mixt__cuda_choices {
    struct mixt__cuda_choice_entry *list;
    int64_t count, capacity;
    bool loaded;  // from the file
    bool adopted; // of an earlier run
    char *path;   // NULL: nowhere to keep them
} mixt__cuda_choices;

enum { MIXT_CUDNN_THREADS = 16 };

/** What cuDNN has made for this device (cudnn_plan.c, cudnn_search.c). */
typedef struct mixt__cuda_cudnn {
    struct cudnnContext *handles[MIXT_CUDNN_THREADS]; // the first is bound to the stream, the others build plans
    struct mixt__cudnn_plan *plans;
    struct mixt__cudnn_ahead *waiting; // graphs that will be asked for soon
    bool foreseeing;
    unsigned steps; // that were looked ahead to
} mixt__cuda_cudnn;

typedef struct mixt__cuda_device {
    mixt__device base;
    cudaStream_t stream; // everything a step computes
    int sm;              // compute capability: 90 for Hopper
    int multiprocessors;
    int shared_limit; // bytes of shared memory that one block may ask for
    char name[128];
    unsigned *counters; // (MIXT_CUDA_COUNTERS) in device memory
    mixt__cuda_copies copies;
    mixt__cuda_blocks blocks;
    mixt__cuda_marks marks;
    mixt__cuda_tables tables;
    mixt__cuda_choices choices;
    mixt__cuda_cudnn cudnn;
    struct cublasLtContext *lt;     // NULL: not asked for yet
    struct mixt__cuda_meter *meter; // power.c; NULL: the same
    struct mixt__cuda_device *next; // of those that are closed: open.c
} mixt__cuda_device;

static inline mixt__cuda_device *mixt__cuda_device_of(const mixt__device *device)
{
    return (mixt__cuda_device *)device->own;
}

/** The device of a call. */
static inline mixt__cuda_device *mixt__cuda_of(const mixt__call *call)
{
    return mixt__cuda_device_of(call->device);
}

/** The first of a kernel's counters. */
static inline unsigned *mixt__cuda_counter_at(const mixt__call *call, mixt__cuda_counter first)
{
    return mixt__cuda_of(call)->counters + first;
}

extern const mixt__backend mixt__cuda_backend;
mixt_status mixt__cuda_open(int number, int threads, mixt__device **device);
void mixt__cuda_close(mixt__device *device);
/** Makes the GPU of a device the calling thread's current one. */
void mixt__cuda_enter(mixt__device *device);
/** Whether this process has opened the GPU of this number. */
bool mixt__cuda_was_opened(int number);

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
    int sm = mixt__cuda_of(call)->sm;
    switch (call->in[0].dtype) {
    case MIXT_DTYPE_FP16:
        return sm >= 70;
    case MIXT_DTYPE_BF16:
        return sm >= 80;
    case MIXT_DTYPE_FP32:
        return sm >= 80 && call->arithmetic == MIXT_DTYPE_TF32;
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

/** Memory of the GPU that was entered, outside the plan, for timing candidates at plan time; NULL when there is none.
 *  Give it back at once. */
void *mixt__cuda_scratch(size_t bytes);
void mixt__cuda_scratch_free(void *block);

/** Median time in seconds of `run` issued on the stream; negative when it fails. Used to choose algorithms. */
double mixt__cuda_time(mixt__cuda_device *gpu, mixt_status (*run)(void *argument), void *argument);

/* ---- choices that were timed: kept in a file for this kind of GPU and these libraries, so that a later run takes the
 *      same */

/** The choice made earlier for this key, of exactly `bytes` bytes; false: none. */
bool mixt__cuda_choice_get(mixt__cuda_device *gpu, const char *key, void *choice, size_t bytes);
/** Keeps a choice where there is none, or one that did not serve. False: another process or device was first; `choice`
 *  is its now, so that all runs on this machine are made of the same. */
bool mixt__cuda_choice_put(mixt__cuda_device *gpu, const char *key, void *choice, size_t bytes);
/** All choices as text, and back: see mixt__backend. */
size_t mixt__cuda_choices_print(mixt__device *device, char *text, size_t room);
void mixt__cuda_choices_adopt(mixt__device *device, const char *text, size_t bytes);
/** Forgets all; the file keeps what it has. */
void mixt__cuda_choices_drop(mixt__cuda_device *gpu);

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
