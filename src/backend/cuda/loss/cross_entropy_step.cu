/* Cross-entropy and its gradient in one pass over the logits: (logits, target, seed[, all]) → (grad_logits, loss,
 * metrics).
 *
 * A block takes a row and keeps it in shared memory where that fits: all of it is on its way there at once
 * (asynchronous copies, each thread waits for its own in four stages), log-sum-exp is taken as it arrives, then the
 * gradient is written, perhaps over the logits. Two blocks share a multiprocessor, so that one loads while the other
 * computes. Bytes: one read and one write of the logits; longer rows are read twice.
 *
 * The number of targets that count is a factor of every gradient, so a first launch counts the labels. Each row leaves
 * its loss in the workspace; the last block adds them up. Short rows are better off in cross_entropy_warps.cu, long
 * ones on Hopper in cross_entropy_stream.cu.
 */
#include "backend/cuda/core/async_copy.cuh"
#include "backend/cuda/loss/cross_entropy.cuh"

enum { ROW_THREADS = 512, STAGES = 4, COUNT_THREADS = 1024 };

/* ---- a row a block ---- */

template <typename T, int V, int STAGE>
static __device__ __forceinline__ void add_stage(peak &p, const T *cache, int packs, int each, bool totals,
                                                 int64_t valid)
{
    copies_wait<STAGES - 1 - STAGE>();
    for (int i = 0; i < each; i++) {
        int at = (STAGE * each + i) * ROW_THREADS + (int)threadIdx.x;
        if (at < packs) {
            float v[V];
            unpack(v, load<T, V>(cache, (int64_t)at * V));
            peak_add<V>(p, v, totals, valid - (int64_t)at * V);
        }
    }
}

/** Each thread reads from the cache only what it copied itself: no barrier before the sums. */
template <typename T, int V>
static __device__ __forceinline__ peak peak_through_cache(const job &j, const T *row, T *cache)
{
    int packs = (int)(j.classes / V), each = (packs + STAGES * ROW_THREADS - 1) / (STAGES * ROW_THREADS);
    bool totals = j.smoothing > 0;
    peak p = peak_none();
    for (int stage = 0; stage < STAGES; stage++) {
        for (int i = 0; i < each; i++) {
            int at = (stage * each + i) * ROW_THREADS + (int)threadIdx.x;
            if (at < packs)
                copy16_async(cache + at * V, row + at * V, true);
        }
        copies_commit();
    }
    add_stage<T, V, 0>(p, cache, packs, each, totals, j.valid);
    add_stage<T, V, 1>(p, cache, packs, each, totals, j.valid);
    add_stage<T, V, 2>(p, cache, packs, each, totals, j.valid);
    add_stage<T, V, 3>(p, cache, packs, each, totals, j.valid);
    return p;
}

template <typename T, int V> static __device__ __forceinline__ peak peak_of_row(const job &j, const T *row)
{
    peak p = peak_none();
#pragma unroll 4
    for (int64_t c = (int64_t)threadIdx.x * V; c < j.classes; c += ROW_THREADS * V) {
        float v[V];
        unpack(v, load<T, V>(row, c));
        peak_add<V>(p, v, j.smoothing > 0, j.valid - c);
    }
    return p;
}

/** Whether a class before the label has the same logit. */
template <typename T> static __device__ __forceinline__ bool earlier(const T *row, int32_t label, float most)
{
    bool found = false;
    for (int c = (int)threadIdx.x; c < label; c += ROW_THREADS)
        found = found || to_float(row[c]) == most;
    return __syncthreads_or(found);
}

template <typename T, int V, bool CACHED>
static __global__ void __launch_bounds__(ROW_THREADS, 2) cross_entropy_step_row(const job j)
{
    extern __shared__ uint4 cache[];
    __shared__ peak shared[32];
    float factor = *j.targets ? *j.seed / (float)*j.targets : 0.0f;
    for (int64_t r = blockIdx.x; r < j.rows; r += gridDim.x) {
        int32_t label = j.labels[r];
        const T *row = (const T *)j.logits + r * j.classes, *src = CACHED ? (const T *)cache : row;
        row_result result = {label < 0 ? 0.0f : NAN, label < 0 ? LEFT_OUT : WRONG};
        bool counts = label >= 0 && label < j.valid;
        float offset = 0;
        if (counts) { // the same for the whole block
            peak p;
            if constexpr (CACHED)
                p = peak_through_cache<T, V>(j, row, (T *)cache);
            else
                p = peak_of_row<T, V>(j, row);
            p = peak_of_block(p, shared); // and a barrier: the whole row is in the cache
            float lse = peak_lse(p), at_label = to_float(src[label]);
            offset = -lse * LOG2E;
            result.loss = row_loss(j, p, lse, at_label, label);
            if (at_label == p.max && !earlier(src, label, p.max))
                result.outcome = CORRECT;
            __syncthreads(); // everyone has read the label's logit
        }
        for (int64_t c = (int64_t)threadIdx.x * V; c < j.classes; c += ROW_THREADS * V) {
            float v[V] = {};
            if (counts) {
                unpack(v, load<T, V>(src, c));
                gradient_of<V>(j, v, offset, factor, label, c);
            }
            store<T, V>(j.grad, r * j.classes + c, v);
        }
        if (threadIdx.x == 0)
            j.results[r] = result;
    }
    if (last_block(j.finished))
        summarize(j);
}

static __global__ void __launch_bounds__(COUNT_THREADS) count_labels(const job j)
{
    int64_t targets = count_targets<COUNT_THREADS>(j);
    if (threadIdx.x == 0)
        *(int64_t *)j.targets = targets;
}

/* ---- the host's side ---- */

template <typename T, int V, bool CACHED>
static cudaError_t launch(const mixt__cuda_device *gpu, const job &j, size_t shared)
{
    auto kernel = cross_entropy_step_row<T, V, CACHED>;
    if (shared) {
        cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
        if (error != cudaSuccess)
            return error;
    }
    unsigned grid = (unsigned)(j.rows < 1 ? 1 : j.rows < INT32_MAX ? j.rows : INT32_MAX);
    kernel<<<grid, ROW_THREADS, shared, gpu->stream>>>(j);
    return cudaSuccess;
}

template <typename T> static cudaError_t step(const mixt__cuda_device *gpu, const job &j, bool vectors)
{
    constexpr int V = vec16<T>::size;
    size_t bytes = (size_t)j.classes * sizeof(T);
    count_labels<<<1, COUNT_THREADS, 0, gpu->stream>>>(j);
    if (vectors && bytes <= (size_t)gpu->shared_limit - 4096)
        return launch<T, V, true>(gpu, j, bytes);
    return vectors ? launch<T, V, false>(gpu, j, 0) : launch<T, 1, false>(gpu, j, 0);
}

static mixt_status run(const mixt__call *call)
{
    job j = step_job(call);
    j.finished = mixt__cuda_counter_at(call, MIXT_CUDA_COUNTER_CROSS_ENTROPY_ROWS);
    cudaError_t error = cudaSuccess;
    DISPATCH(call->in[0].dtype, T, error = step<T>(mixt__cuda_of(call), j, whole_vectors(call, &j)));
    return error == cudaSuccess ? mixt__cuda_launched("cross_entropy_step")
                                : mixt__cuda_check(error, "cross_entropy_step");
}

extern "C" const mixt__kernel mixt__cuda_cross_entropy_step_rows = {
    .name = "rows", .prepare = step_prepare, .run = run};

extern "C" const mixt__kernel *const mixt__cuda_cross_entropy_step_kernels[] = {
    &mixt__cuda_cross_entropy_step_warps, &mixt__cuda_cross_entropy_step_stream, &mixt__cuda_cross_entropy_step_rows,
    NULL};
