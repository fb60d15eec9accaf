/* Mean squared error and binary cross-entropy (on logits) against FP32 targets, the mean of elements that are losses
 * themselves, and their gradients.
 *
 * A NaN target, or a negative label, leaves its element out. Elements are dealt out to a grid that depends on their
 * number alone; threads add up in FP32, blocks and the last block in double precision, in a fixed order. Correct (BCE):
 * the logit's sign says which half of [0, 1] the target lies in; the others report 0. Bytes: one read of outputs and
 * targets, gradients also a write. One element at a time: these losses belong to small outputs.
 */
#include "backend/cuda/core/last_block.cuh"
#include "backend/cuda/kernels.h"

enum { THREADS = 256, ELEMENTS = 4096, MAX_BLOCKS = 1024 };

typedef struct block_sums {
    double loss;
    int64_t correct, counted;
} block_sums;

/** The T of src and grad is the kernels' own. */
typedef struct job {
    int64_t count;
    const void *src;
    const float *target, *saved_metrics, *seed;
    const int32_t *labels; // of a mean, in place of targets; neither: all elements count
    void *grad;
    float *loss, *metrics;
    block_sums *sums;   // one a block, in the workspace
    unsigned *finished; // of last_block
} job;

enum kind { SQUARED, BINARY, MEAN };

/* ---- one element ---- */

/** A NaN where the element does not count. */
template <kind K> static __device__ __forceinline__ float target_of(const job &j, int64_t i)
{
    if (K != MEAN)
        return j.target[i];
    if (j.labels)
        return j.labels[i] < 0 ? nanf("") : 0.0f;
    return j.target ? j.target[i] : 0.0f;
}

template <kind K> static __device__ __forceinline__ float loss_of(float x, float target)
{
    if (K == MEAN)
        return x;
    if (K == BINARY) // -t·log s(x) - (1 - t)·log(1 - s(x)), without overflow on either side
        return fmaxf(x, 0.0f) - x * target + log1pf(expf(-fabsf(x)));
    return (x - target) * (x - target);
}

template <kind K> static __device__ __forceinline__ float slope_of(float x, float target)
{
    if (K == MEAN)
        return 1.0f;
    return K == BINARY ? 1.0f / (1.0f + expf(-x)) - target : 2.0f * (x - target);
}

/* ---- all of them ---- */

static __device__ __forceinline__ block_sums sums_of_block(block_sums s)
{
    __shared__ block_sums warps[THREADS / 32];
    __syncthreads(); // a second call may follow
    for (int lane = 16; lane; lane >>= 1) {
        s.loss += __shfl_xor_sync(0xffffffffu, s.loss, lane);
        s.correct += __shfl_xor_sync(0xffffffffu, s.correct, lane);
        s.counted += __shfl_xor_sync(0xffffffffu, s.counted, lane);
    }
    if ((threadIdx.x & 31) == 0)
        warps[threadIdx.x / 32] = s;
    __syncthreads();
    for (int i = 1; threadIdx.x == 0 && i < THREADS / 32; i++) {
        s.loss += warps[i].loss;
        s.correct += warps[i].correct;
        s.counted += warps[i].counted;
    }
    return s; // the block's in its first thread
}

template <typename T, kind K> static __global__ void __launch_bounds__(THREADS) loss_sum(const job j)
{
    int64_t stride = (int64_t)gridDim.x * THREADS;
    float loss = 0;
    block_sums s = {0, 0, 0};
#pragma unroll 4
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < j.count; i += stride) {
        float x = to_float(((const T *)j.src)[i]), target = target_of<K>(j, i);
        bool counts = !isnan(target);
        loss += counts ? loss_of<K>(x, target) : 0.0f;
        s.counted += counts;
        s.correct += K == BINARY && counts && (x > 0) == (target > 0.5f);
    }
    s.loss = loss;
    s = sums_of_block(s);
    if (threadIdx.x == 0)
        j.sums[blockIdx.x] = s;
    if (!last_block(j.finished))
        return;
    s = {0, 0, 0};
    for (unsigned i = threadIdx.x; i < gridDim.x; i += THREADS) {
        s.loss += __ldcg(&j.sums[i].loss);
        s.correct += __ldcg((const long long *)&j.sums[i].correct);
        s.counted += __ldcg((const long long *)&j.sums[i].counted);
    }
    s = sums_of_block(s);
    if (threadIdx.x == 0) {
        *j.loss = s.counted ? (float)(s.loss / (double)s.counted) : 0.0f;
        j.metrics[0] = (float)s.loss;
        j.metrics[1] = (float)s.correct;
        j.metrics[2] = (float)s.counted;
    }
}

template <typename T, kind K> static __global__ void __launch_bounds__(THREADS) loss_gradient(const job j)
{
    int64_t stride = (int64_t)gridDim.x * THREADS;
    float factor = j.saved_metrics[2] > 0 ? *j.seed / j.saved_metrics[2] : 0.0f;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < j.count; i += stride) {
        float x = to_float(((const T *)j.src)[i]), target = target_of<K>(j, i);
        ((T *)j.grad)[i] = from_float<T>(isnan(target) ? 0.0f : slope_of<K>(x, target) * factor);
    }
}

/* ---- the host's side ---- */

static unsigned grid_of(int64_t count)
{
    int64_t blocks = mixt__ceil_div(count, ELEMENTS);
    return (unsigned)(blocks < 1 ? 1 : blocks < MAX_BLOCKS ? blocks : MAX_BLOCKS);
}

static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    (void)arena;
    call->workspace_bytes = grid_of(mixt__tensor_count(&call->in[0])) * sizeof(block_sums);
    return MIXT_OK;
}

/** @param given whether there are targets */
static job job_of(const mixt__call *call, bool given)
{
    job j = {};
    j.count = mixt__tensor_count(&call->in[0]);
    j.src = call->in[0].data;
    if (given && call->in[1].dtype == MIXT_DTYPE_INT32)
        j.labels = (const int32_t *)call->in[1].data;
    else if (given)
        j.target = (const float *)call->in[1].data;
    return j;
}

template <kind K> static mixt_status forward(const mixt__call *call)
{
    job j = job_of(call, call->in_count > 1);
    j.loss = (float *)call->out[0].data;
    j.metrics = (float *)call->out[1].data;
    j.sums = (block_sums *)call->workspace;
    j.finished = mixt__cuda_counter_at(call, MIXT_CUDA_COUNTER_MEAN_LOSSES);
    DISPATCH(call->in[0].dtype, T, loss_sum<T, K><<<grid_of(j.count), THREADS, 0, mixt__cuda_of(call)->stream>>>(j));
    return mixt__cuda_launched("loss");
}

template <kind K> static mixt_status gradient(const mixt__call *call)
{
    int last = call->in_count - 1; // behind the targets, where there are some
    job j = job_of(call, last > 2);
    j.saved_metrics = (const float *)call->in[last - 1].data;
    j.seed = (const float *)call->in[last].data;
    j.grad = call->out[0].data;
    DISPATCH(call->in[0].dtype, T,
             loss_gradient<T, K><<<grid_of(j.count), THREADS, 0, mixt__cuda_of(call)->stream>>>(j));
    return mixt__cuda_launched("gradient of a loss");
}

static const mixt__kernel mse = {.name = "elements", .prepare = prepare, .run = forward<SQUARED>};
static const mixt__kernel bce = {.name = "elements", .prepare = prepare, .run = forward<BINARY>};
static const mixt__kernel mean = {.name = "elements", .prepare = prepare, .run = forward<MEAN>};
static const mixt__kernel mse_grad = {.name = "elements", .run = gradient<SQUARED>};
static const mixt__kernel bce_grad = {.name = "elements", .run = gradient<BINARY>};
static const mixt__kernel mean_grad = {.name = "elements", .run = gradient<MEAN>};

extern "C" const mixt__kernel *const mixt__cuda_mse_kernels[] = {&mse, NULL};
extern "C" const mixt__kernel *const mixt__cuda_bce_kernels[] = {&bce, NULL};
extern "C" const mixt__kernel *const mixt__cuda_mean_loss_kernels[] = {&mean, NULL};
extern "C" const mixt__kernel *const mixt__cuda_mse_grad_kernels[] = {&mse_grad, NULL};
extern "C" const mixt__kernel *const mixt__cuda_bce_grad_kernels[] = {&bce_grad, NULL};
extern "C" const mixt__kernel *const mixt__cuda_mean_loss_grad_kernels[] = {&mean_grad, NULL};
