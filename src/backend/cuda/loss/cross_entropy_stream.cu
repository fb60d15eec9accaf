/* cross_entropy_step for long rows on Hopper: one block a multiprocessor, rows streamed through shared memory.
 *
 * While a row is worked on, the copy engine brings the block's next rows into the other buffers; a buffer is given back
 * when the row's gradient has been written. Loads therefore never stop, and the two exponentials an element (about
 * 4 µs a row of 50304) hide behind them (6.5 µs). Bytes: one read and one write of the logits.
 *
 * Every block counts the labels itself, while its first rows are on their way. Rows that do not start at multiples of
 * 16 bytes go to cross_entropy_step.cu.
 */
#include "backend/cuda/loss/cross_entropy.cuh"

enum { THREADS = 1024, MIN_BUFFERS = 2, MAX_BUFFERS = 4, OVERHEAD = 4096, MIN_BYTES = 16384 };

/* ---- the copy engine ---- */

#if __CUDA_ARCH__ >= 900
static __device__ __forceinline__ unsigned address_of(const void *shared)
{
    return (unsigned)__cvta_generic_to_shared(shared);
}

static __device__ __forceinline__ void barrier_init(uint64_t *barrier)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(barrier)) : "memory");
}

static __device__ __forceinline__ void copy_bulk(void *shared, const void *global, unsigned bytes, uint64_t *barrier)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address_of(barrier)), "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     address_of(shared)),
                 "l"(global), "r"(bytes), "r"(address_of(barrier))
                 : "memory");
}

static __device__ __forceinline__ void barrier_wait(uint64_t *barrier, unsigned parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}\n" ::"r"(address_of(barrier)),
                 "r"(parity)
                 : "memory");
}
#endif

/* ---- rows ---- */

template <typename T, int V> static __device__ __forceinline__ peak peak_of_row(const job &j, const T *row)
{
    int packs = (int)(j.classes / V);
    peak p = peak_none();
#pragma unroll 2
    for (int i = (int)threadIdx.x; i < packs; i += THREADS) {
        float v[V];
        unpack(v, load<T, V>(row, (int64_t)i * V));
        peak_add<V>(p, v, j.smoothing > 0, j.valid - (int64_t)i * V);
    }
    return p;
}

/** Loss and gradient of a row whose label is a class. */
template <typename T, int V>
static __device__ __forceinline__ row_result work(const job &j, const T *row, int64_t r, int32_t label, float factor,
                                                  peak *shared)
{
    int packs = (int)(j.classes / V);
    bool found = false;
    peak p = peak_of_block(peak_of_row<T, V>(j, row), shared);
    float lse = peak_lse(p), at_label = to_float(row[label]), offset = -lse * LOG2E;
    row_result result = {row_loss(j, p, lse, at_label, label), WRONG};
    if (at_label == p.max) { // the same for the whole block
        for (int c = (int)threadIdx.x; c < label; c += THREADS)
            found = found || to_float(row[c]) == p.max;
        result.outcome = __syncthreads_or(found) ? WRONG : CORRECT;
    }
#pragma unroll 2
    for (int i = (int)threadIdx.x; i < packs; i += THREADS) {
        float v[V];
        unpack(v, load<T, V>(row, (int64_t)i * V));
        gradient_of<V>(j, v, offset, factor, label, (int64_t)i * V);
        store<T, V>(j.grad, r * j.classes + (int64_t)i * V, v);
    }
    return result;
}

template <typename T, int V> static __device__ __forceinline__ void clear(const job &j, int64_t r)
{
    float zeros[V] = {};
    for (int i = (int)threadIdx.x; i < (int)(j.classes / V); i += THREADS)
        store<T, V>(j.grad, r * j.classes + (int64_t)i * V, zeros);
}

/** pitch: bytes from one buffer to the next. */
template <typename T, int V>
static __global__ void __launch_bounds__(THREADS) cross_entropy_step_stream(const job j, int buffers, unsigned pitch)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ uint64_t full[MAX_BUFFERS];
    __shared__ peak shared[32];
    const T *logits = (const T *)j.logits;
    unsigned bytes = (unsigned)(j.classes * (int64_t)sizeof(T));
    if (threadIdx.x == 0) {
        for (int b = 0; b < buffers; b++)
            barrier_init(&full[b]);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        for (int b = 0; b < buffers && blockIdx.x + (int64_t)b * gridDim.x < j.rows; b++)
            copy_bulk(memory + b * pitch, logits + (blockIdx.x + (int64_t)b * gridDim.x) * j.classes, bytes, &full[b]);
    }
    int64_t targets = count_targets<THREADS>(j); // and a barrier: the copies' barriers are made
    float factor = targets ? *j.seed / (float)targets : 0.0f;
    int b = 0;
    unsigned parity = 0;
    for (int64_t r = blockIdx.x; r < j.rows; r += gridDim.x) {
        int32_t label = j.labels[r];
        row_result result = {label < 0 ? 0.0f : NAN, label < 0 ? LEFT_OUT : WRONG};
        barrier_wait(&full[b], parity);
        if (label >= 0 && label < j.valid) // the same for the whole block
            result = work<T, V>(j, (const T *)(memory + b * pitch), r, label, factor, shared);
        else
            clear<T, V>(j, r);
        if (threadIdx.x == 0)
            j.results[r] = result;
        __syncthreads(); // nobody reads this buffer any more
        int64_t next = r + (int64_t)buffers * gridDim.x;
        if (threadIdx.x == 0 && next < j.rows)
            copy_bulk(memory + b * pitch, logits + next * j.classes, bytes, &full[b]);
        b = b + 1 < buffers ? b + 1 : 0;
        parity ^= b == 0;
    }
    if (!last_block(j.finished))
        return;
    if (threadIdx.x == 0)
        *(int64_t *)j.targets = targets; // read by this thread when it sums up
    summarize(j);
#endif
}

/* ---- the host's side ---- */

static unsigned pitch_of(const mixt__call *call)
{
    size_t bytes = (size_t)mixt__tensor_last(&call->in[0]) * mixt_dtype_size(call->in[0].dtype);
    return (unsigned)((bytes + 127) / 128 * 128);
}

static bool supports(const mixt__call *call, const char **reason)
{
    size_t bytes = (size_t)mixt__tensor_last(&call->in[0]) * mixt_dtype_size(call->in[0].dtype);
    if (mixt__cuda_of(call)->sm < 90) {
        *reason = "needs compute capability 9.0";
        return false;
    }
    if (bytes % 16 || bytes < MIN_BYTES || MIN_BUFFERS * bytes + OVERHEAD > (size_t)mixt__cuda_of(call)->shared_limit) {
        *reason = "two rows of at least 16 KB, of whole 16 bytes, must fit shared memory";
        return false;
    }
    return true;
}

template <typename T> static cudaError_t launch(const mixt__cuda_device *gpu, const job &j, unsigned pitch)
{
    auto kernel = cross_entropy_step_stream<T, vec16<T>::size>;
    int fit = (gpu->shared_limit - OVERHEAD) / (int)pitch, buffers = fit < MAX_BUFFERS ? fit : MAX_BUFFERS;
    int shared = buffers * (int)pitch;
    cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    if (error != cudaSuccess)
        return error;
    int64_t grid = j.rows < gpu->multiprocessors ? j.rows : gpu->multiprocessors;
    kernel<<<(unsigned)(grid < 1 ? 1 : grid), THREADS, (size_t)shared, gpu->stream>>>(j, buffers, pitch);
    return cudaSuccess;
}

static mixt_status run(const mixt__call *call)
{
    job j = step_job(call);
    j.finished = mixt__cuda_counter_at(call, MIXT_CUDA_COUNTER_CROSS_ENTROPY_STREAM);
    cudaError_t error = cudaSuccess;
    if (!whole_vectors(call, &j))
        return mixt__cuda_cross_entropy_step_rows.run(call);
    DISPATCH(call->in[0].dtype, T, error = launch<T>(mixt__cuda_of(call), j, pitch_of(call)));
    return error == cudaSuccess ? mixt__cuda_launched("cross_entropy_step")
                                : mixt__cuda_check(error, "cross_entropy_step");
}

extern "C" const mixt__kernel mixt__cuda_cross_entropy_step_stream = {
    .name = "stream", .supports = supports, .prepare = step_prepare, .run = run};
