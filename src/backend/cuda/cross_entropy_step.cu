/* Cross-entropy and its gradient in one pass over the logits: (logits, target, seed[, all]) → (grad_logits, loss,
 * metrics).
 *
 * A block takes a row and keeps it in shared memory where that fits: all of it is on its way there at once
 * (asynchronous copies, each thread waits for its own in four stages), log-sum-exp is taken as it arrives, then the
 * gradient is written, perhaps over the logits. Two blocks share a multiprocessor, so that one loads while the other
 * computes. Bytes: one read and one write of the logits; longer rows are read twice. Small problems are one launch of
 * one block, a warp a row.
 *
 * The number of targets that count is a factor of every gradient, so a first launch counts the labels. Each row leaves
 * its loss in the workspace; the last block adds them up.
 */
#include "backend/cuda/cross_entropy.cuh"

enum { ROW_THREADS = 512, STAGES = 4, SMALL_THREADS = 1024, SMALL_WARPS = SMALL_THREADS / 32 };
enum { SMALL_CLASSES = 1024, SMALL_ELEMENTS = 16384 };

static __device__ unsigned finished; // of last_block

/* ---- copies to shared memory that nobody waits for yet ---- */

static __device__ __forceinline__ void copy16_async(void *shared, const void *global)
{
#if __CUDA_ARCH__ >= 800
    unsigned address = (unsigned)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(global) : "memory");
#else
    *(uint4 *)shared = *(const uint4 *)global;
#endif
}

static __device__ __forceinline__ void copies_commit(void)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/** Until all but the last PENDING groups of this thread's copies are there. */
template <int PENDING> static __device__ __forceinline__ void copies_wait(void)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}

/* ---- a row a block ---- */

template <typename T, int V, int STAGE>
static __device__ __forceinline__ void add_stage(peak &p, const T *cache, int packs, int each, bool totals)
{
    copies_wait<STAGES - 1 - STAGE>();
    for (int i = 0; i < each; i++) {
        int at = (STAGE * each + i) * ROW_THREADS + (int)threadIdx.x;
        if (at < packs) {
            float v[V];
            unpack(v, load<T, V>(cache, (int64_t)at * V));
            peak_add<V>(p, v, totals);
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
                copy16_async(cache + at * V, row + at * V);
        }
        copies_commit();
    }
    add_stage<T, V, 0>(p, cache, packs, each, totals);
    add_stage<T, V, 1>(p, cache, packs, each, totals);
    add_stage<T, V, 2>(p, cache, packs, each, totals);
    add_stage<T, V, 3>(p, cache, packs, each, totals);
    return p;
}

template <typename T, int V> static __device__ __forceinline__ peak peak_of_row(const job &j, const T *row)
{
    peak p = peak_none();
#pragma unroll 4
    for (int64_t c = (int64_t)threadIdx.x * V; c < j.classes; c += ROW_THREADS * V) {
        float v[V];
        unpack(v, load<T, V>(row, c));
        peak_add<V>(p, v, j.smoothing > 0);
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
        bool counts = label >= 0 && label < j.classes;
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
    if (last_block(&finished))
        summarize(j);
}

static __global__ void __launch_bounds__(SMALL_THREADS)
    count_targets(const int32_t *labels, int64_t rows, int64_t *targets)
{
    __shared__ int64_t counts[SMALL_WARPS];
    int64_t count = 0;
#pragma unroll 8
    for (int64_t r = threadIdx.x; r < rows; r += SMALL_THREADS)
        count += labels[r] >= 0;
    for (int lane = 16; lane; lane >>= 1)
        count += __shfl_xor_sync(0xffffffffu, count, lane);
    if ((threadIdx.x & 31) == 0)
        counts[threadIdx.x / 32] = count;
    __syncthreads();
    if (threadIdx.x)
        return;
    for (int i = 1; i < SMALL_WARPS; i++)
        count += counts[i];
    *targets = count;
}

/* ---- a warp a row, one block for all ---- */

template <typename T>
static __device__ __forceinline__ row_result small_row(const job &j, int64_t r, float factor, int lane)
{
    const T *row = (const T *)j.logits + r * j.classes;
    int32_t label = j.labels[r];
    bool counts = label >= 0 && label < j.classes;
    row_result result = {label < 0 ? 0.0f : NAN, label < 0 ? LEFT_OUT : WRONG};
    float offset = 0;
    if (counts) {
        peak p = peak_none();
        for (int64_t c = lane; c < j.classes; c += 32) {
            float v = to_float(row[c]);
            peak_add<1>(p, &v, true);
        }
        p = peak_of_warp(p);
        float lse = peak_lse(p), at_label = to_float(row[label]);
        bool found = false;
        for (int64_t c = lane; c < label; c += 32)
            found = found || to_float(row[c]) == p.max;
        offset = -lse * LOG2E;
        result.loss = row_loss(j, p, lse, at_label, label);
        if (at_label == p.max && !__any_sync(0xffffffffu, found))
            result.outcome = CORRECT;
        __syncwarp(); // everyone has read the label's logit
    }
    for (int64_t c = lane; c < j.classes; c += 32) {
        float v = 0;
        if (counts) {
            v = to_float(row[c]);
            gradient_of<1>(j, &v, offset, factor, label, c);
        }
        ((T *)j.grad)[r * j.classes + c] = from_float<T>(v);
    }
    return result;
}

template <typename T> static __global__ void __launch_bounds__(SMALL_THREADS) cross_entropy_step_small(const job j)
{
    int64_t targets = 0;
    for (int64_t r = 0; r < j.all_rows; r += SMALL_THREADS)
        targets += __syncthreads_count(r + threadIdx.x < j.all_rows && j.all[r + threadIdx.x] >= 0);
    if (threadIdx.x == 0)
        *(int64_t *)j.targets = targets; // read by this thread when it sums up
    float factor = targets ? *j.seed / (float)targets : 0.0f;
    for (int64_t r = threadIdx.x / 32; r < j.rows; r += SMALL_WARPS) {
        row_result result = small_row<T>(j, r, factor, (int)threadIdx.x & 31);
        if ((threadIdx.x & 31) == 0)
            j.results[r] = result;
    }
    __threadfence();
    __syncthreads();
    summarize(j);
}

/* ---- the host's side ---- */

static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    (void)arena;
    call->workspace_bytes = sizeof(int64_t) + (size_t)mixt__tensor_count(&call->in[1]) * sizeof(row_result);
    return MIXT_OK;
}

template <typename T, int V, bool CACHED> static cudaError_t launch(const job &j, size_t shared)
{
    auto kernel = cross_entropy_step_row<T, V, CACHED>;
    if (shared) {
        cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
        if (error != cudaSuccess)
            return error;
    }
    unsigned grid = (unsigned)(j.rows < INT32_MAX ? j.rows : INT32_MAX);
    kernel<<<grid, ROW_THREADS, shared, mixt__cuda.stream>>>(j);
    return cudaSuccess;
}

template <typename T> static cudaError_t step(const job &j, bool vectors)
{
    constexpr int V = vec16<T>::size;
    size_t bytes = (size_t)j.classes * sizeof(T);
    if (!j.rows || (j.classes <= SMALL_CLASSES && j.rows * j.classes <= SMALL_ELEMENTS)) {
        cross_entropy_step_small<T><<<1, SMALL_THREADS, 0, mixt__cuda.stream>>>(j);
        return cudaSuccess;
    }
    count_targets<<<1, SMALL_THREADS, 0, mixt__cuda.stream>>>(j.all, j.all_rows, (int64_t *)j.targets);
    if (vectors && bytes <= (size_t)mixt__cuda.shared_limit - 4096)
        return launch<T, V, true>(j, bytes);
    return vectors ? launch<T, V, false>(j, 0) : launch<T, 1, false>(j, 0);
}

static mixt_status run(const mixt__call *call)
{
    job j = job_of(call);
    cudaError_t error = cudaSuccess;
    j.seed = (const float *)call->in[2].data;
    const mixt__tensor *all = &call->in[call->in_count > 3 ? 3 : 1];
    j.all = (const int32_t *)all->data;
    j.all_rows = mixt__tensor_count(all);
    j.grad = call->out[0].data;
    j.loss = (float *)call->out[1].data;
    j.metrics = (float *)call->out[2].data;
    j.targets = (const int64_t *)call->workspace;
    j.results = (row_result *)((int64_t *)call->workspace + 1);
    DISPATCH(call->in[0].dtype, T, error = step<T>(j, whole_vectors(call, &j)));
    return error == cudaSuccess ? mixt__cuda_launched("cross_entropy_step")
                                : mixt__cuda_check(error, "cross_entropy_step");
}

static const mixt__kernel kernel = {.name = "rows", .prepare = prepare, .run = run};

extern "C" const mixt__kernel *const mixt__cuda_cross_entropy_step_kernels[] = {&kernel, NULL};
