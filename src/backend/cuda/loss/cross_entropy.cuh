/* What the cross-entropy kernels share: the log-sum-exp of a row in one pass, and what a call is made of.
 *
 * Exponentials are taken to base 2 (the hardware's), with the factor log2(e) folded into a multiply-add.
 */
#ifndef MIXT_BACKEND_CUDA_LOSS_CROSS_ENTROPY_CUH
#define MIXT_BACKEND_CUDA_LOSS_CROSS_ENTROPY_CUH

#include "backend/cuda/core/last_block.cuh"
#include "backend/cuda/core/pack.cuh"
#include "backend/cuda/kernels.h"

extern "C" const mixt__kernel mixt__cuda_cross_entropy_step_stream, mixt__cuda_cross_entropy_step_warps,
    mixt__cuda_cross_entropy_step_rows;

#define LOG2E 1.44269504088896340736f

enum { LEFT_OUT, WRONG, CORRECT };

/** One row's part in the loss, kept until the last block adds them up. */
typedef struct row_result {
    float loss;
    int32_t outcome;
} row_result;

/** Everything the kernels of one call need; T of the pointers is the kernels' own. */
typedef struct job {
    int64_t rows, classes; // classes: logits in a row, padding included
    int64_t valid;         // the first of them, that count
    const void *logits;
    const int32_t *labels;
    const int32_t *all; // labels of the whole batch, whose count divides; the same as labels unless this is a part
    int64_t all_rows;
    void *grad;
    const float *seed;
    const float *saved_lse, *saved_metrics; // inputs of cross_entropy_grad
    float *loss, *metrics, *lse;            // outputs; lse NULL when nobody wants it
    float smoothing;
    row_result *results;    // (rows), in the workspace
    const int64_t *targets; // that count, in the workspace
    unsigned *finished;     // of last_block, by kernels that have a last one
} job;

/** 2^x; results below the normal range are 0. */
static __device__ __forceinline__ float exp2_fast(float x)
{
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

/* ---- log-sum-exp, one element after the other ---- */

/** sum: of exp(x - max) so far; total: of x. A row of -infinity keeps its max and a sum of 0. */
typedef struct peak {
    float max, sum, total;
} peak;

static __device__ __forceinline__ peak peak_none(void)
{
    return {-INFINITY, 0.0f, 0.0f};
}

static __device__ __forceinline__ float peak_offset(float max)
{
    return max == -INFINITY ? 0.0f : -max * LOG2E;
}

template <int V> static __device__ __forceinline__ void peak_add(peak &p, const float *v, bool totals, int64_t count)
{
    if (count < V) { // the last classes, then padding
#pragma unroll
        for (int k = 0; k < V - 1; k++)
            if (k < count)
                peak_add<1>(p, v + k, totals, 1);
        return;
    }
    float most = v[0];
#pragma unroll
    for (int k = 1; k < V; k++)
        most = fmaxf(most, v[k]);
    if (most > p.max) { // seldom, after the first few
        p.sum *= exp2_fast((p.max - most) * LOG2E);
        p.max = most;
    }
    float offset = peak_offset(p.max), sum = 0;
#pragma unroll
    for (int k = 0; k < V; k++)
        sum += exp2_fast(fmaf(v[k], LOG2E, offset));
    p.sum += sum;
    if (totals)
        for (int k = 0; k < V; k++)
            p.total += v[k];
}

static __device__ __forceinline__ peak peak_merge(const peak &a, const peak &b)
{
    float max = fmaxf(a.max, b.max);
    float fa = a.max == max ? 1.0f : exp2_fast((a.max - max) * LOG2E);
    float fb = b.max == max ? 1.0f : exp2_fast((b.max - max) * LOG2E);
    return {max, a.sum * fa + b.sum * fb, a.total + b.total};
}

static __device__ __forceinline__ peak peak_of_warp(peak p)
{
    for (int lane = 16; lane; lane >>= 1) {
        peak other = {__shfl_xor_sync(0xffffffffu, p.max, lane), __shfl_xor_sync(0xffffffffu, p.sum, lane),
                      __shfl_xor_sync(0xffffffffu, p.total, lane)};
        p = peak_merge(p, other);
    }
    return p;
}

/** The same in every thread; `shared` holds 32 and may be reused after the call. */
static __device__ __forceinline__ peak peak_of_block(peak p, peak *shared)
{
    int lane = (int)threadIdx.x & 31;
    p = peak_of_warp(p);
    if (lane == 0)
        shared[threadIdx.x / 32] = p;
    __syncthreads();
    p = peak_of_warp(lane < (int)blockDim.x / 32 ? shared[lane] : peak_none());
    __syncthreads();
    return p;
}

static __device__ __forceinline__ float peak_lse(const peak &p)
{
    return (p.max == -INFINITY ? 0.0f : p.max) + logf(p.sum);
}

/** NaN for a label that is no class: the device cannot say so in words. */
static __device__ __forceinline__ float row_loss(const job &j, const peak &p, float lse, float at_label, int32_t label)
{
    if (label >= j.valid)
        return NAN;
    float loss = lse - (1.0f - j.smoothing) * at_label;
    return j.smoothing > 0 ? loss - j.smoothing / (float)j.valid * p.total : loss;
}

/** exp(x - lse) minus the target, times factor, of the V classes from `first` on. */
template <int V>
static __device__ __forceinline__ void gradient_of(const job &j, float *v, float offset, float factor, int32_t label,
                                                   int64_t first)
{
    float even = j.smoothing / (float)j.valid * factor;
#pragma unroll
    for (int k = 0; k < V; k++)
        v[k] = exp2_fast(fmaf(v[k], LOG2E, offset));
    if (label >= first && label < first + V)
#pragma unroll
        for (int k = 0; k < V; k++) // the difference before the factor: near a probability of 1 it cancels
            v[k] = fmaf(label == first + k ? v[k] - (1.0f - j.smoothing) : v[k], factor, -even);
    else
#pragma unroll
        for (int k = 0; k < V; k++)
            v[k] = fmaf(v[k], factor, -even);
    if (first + V > j.valid)
#pragma unroll
        for (int k = 0; k < V; k++)
            v[k] = first + k < j.valid ? v[k] : 0.0f; // padding
}

/** Labels of the whole batch that count, the same in every thread: each block counts them all. */
template <int THREADS> static __device__ __forceinline__ int64_t count_targets(const job &j)
{
    __shared__ int counts[THREADS / 32];
    int count = 0; // of this thread's share
#pragma unroll 8
    for (int64_t r = threadIdx.x; r < j.all_rows; r += THREADS)
        count += j.all[r] >= 0;
    for (int lane = 16; lane; lane >>= 1)
        count += __shfl_xor_sync(0xffffffffu, count, lane);
    if ((threadIdx.x & 31) == 0)
        counts[threadIdx.x / 32] = count;
    __syncthreads();
    int64_t all = 0;
    for (int i = 0; i < THREADS / 32; i++)
        all += counts[i];
    return all;
}

/** Loss and metrics from the rows' results, by one block; losses in double precision, in a fixed order. */
static __device__ __forceinline__ void summarize(const job &j)
{
    __shared__ double sums[32];
    __shared__ int64_t counts[2][32];
    double sum = 0;
    int64_t correct = 0, counted = 0;
#pragma unroll 8
    for (int64_t r = threadIdx.x; r < j.rows; r += blockDim.x) {
        int2 raw = __ldcg(reinterpret_cast<const int2 *>(&j.results[r]));
        sum += (double)__int_as_float(raw.x);
        counted += raw.y != LEFT_OUT;
        correct += raw.y == CORRECT;
    }
    for (int lane = 16; lane; lane >>= 1) {
        sum += __shfl_xor_sync(0xffffffffu, sum, lane);
        correct += __shfl_xor_sync(0xffffffffu, correct, lane);
        counted += __shfl_xor_sync(0xffffffffu, counted, lane);
    }
    if ((threadIdx.x & 31) == 0) {
        sums[threadIdx.x / 32] = sum;
        counts[0][threadIdx.x / 32] = correct;
        counts[1][threadIdx.x / 32] = counted;
    }
    __syncthreads();
    if (threadIdx.x)
        return;
    for (int i = 1; i < (int)blockDim.x / 32; i++) {
        sum += sums[i];
        correct += counts[0][i];
        counted += counts[1][i];
    }
    int64_t divisor = j.targets ? *j.targets : counted;
    *j.loss = divisor ? (float)(sum / (double)divisor) : 0.0f;
    j.metrics[0] = (float)sum;
    j.metrics[1] = (float)correct;
    j.metrics[2] = (float)counted;
}

/* ---- the host's side ---- */

/** What all three ops have: logits and labels. */
static inline job job_of(const mixt__call *call)
{
    job j = {};
    j.classes = mixt__tensor_last(&call->in[0]);
    j.rows = mixt__tensor_count(&call->in[1]);
    j.logits = call->in[0].data;
    j.labels = (const int32_t *)call->in[1].data;
    j.smoothing = ((const mixt__loss_attrs *)call->attrs)->smoothing;
    j.valid = mixt__loss_classes((const mixt__loss_attrs *)call->attrs, j.classes);
    return j;
}

/** cross_entropy_step: the targets that count, then one result a row. */
static inline mixt_status step_prepare(mixt__call *call, mixt__arena *arena)
{
    (void)arena;
    call->workspace_bytes = sizeof(int64_t) + (size_t)mixt__tensor_count(&call->in[1]) * sizeof(row_result);
    return MIXT_OK;
}

static inline job step_job(const mixt__call *call)
{
    const mixt__tensor *all = &call->in[call->in_count > 3 ? 3 : 1];
    job j = job_of(call);
    j.seed = (const float *)call->in[2].data;
    j.all = (const int32_t *)all->data;
    j.all_rows = mixt__tensor_count(all);
    j.grad = call->out[0].data;
    j.loss = (float *)call->out[1].data;
    j.metrics = (float *)call->out[2].data;
    j.targets = (const int64_t *)call->workspace;
    j.results = (row_result *)((int64_t *)call->workspace + 1);
    return j;
}

/** Whether rows can be read, and gradients written, 16 bytes at a time. */
static inline bool whole_vectors(const mixt__call *call, const job *j)
{
    return j->classes % (16 / (int64_t)mixt_dtype_size(call->in[0].dtype)) == 0 && aligned16(j->logits) &&
           (!j->grad || aligned16(j->grad));
}

#endif
