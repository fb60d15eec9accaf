/* Cross-entropy alone, and its gradient alone: for evaluation, and where the two are not fused (cross_entropy_step).
 *
 * A block takes a row, 16 bytes a thread where rows allow it. Forward: one read of the logits; each row leaves its loss
 * in the workspace and the last block adds them up. Gradient: one read and one write, perhaps in place.
 */
#include "backend/cuda/loss/cross_entropy.cuh"

enum { ROW_THREADS = 256 };

/** Whether a class before the label has the same logit. */
template <typename T> static __device__ __forceinline__ bool earlier(const T *row, int32_t label, float most)
{
    bool found = false;
    for (int c = (int)threadIdx.x; c < label; c += ROW_THREADS)
        found = found || to_float(row[c]) == most;
    return __syncthreads_or(found);
}

template <typename T, int V> static __global__ void __launch_bounds__(ROW_THREADS) cross_entropy_row(const job j)
{
    __shared__ peak shared[32];
    for (int64_t r = blockIdx.x; r < j.rows; r += gridDim.x) {
        int32_t label = j.labels[r];
        const T *row = (const T *)j.logits + r * j.classes;
        row_result result = {label < 0 ? 0.0f : NAN, label < 0 ? LEFT_OUT : WRONG};
        float lse = 0;
        if (label >= 0) { // the same for the whole block
            peak p = peak_none();
#pragma unroll 4
            for (int64_t c = (int64_t)threadIdx.x * V; c < j.classes; c += ROW_THREADS * V) {
                float v[V];
                unpack(v, load<T, V>(row, c));
                peak_add<V>(p, v, j.smoothing > 0, j.valid - c);
            }
            p = peak_of_block(p, shared);
            lse = peak_lse(p);
            float at_label = label < j.valid ? to_float(row[label]) : NAN;
            result.loss = row_loss(j, p, lse, at_label, label);
            if (at_label == p.max && !earlier(row, label, p.max))
                result.outcome = CORRECT;
        }
        if (threadIdx.x == 0) {
            j.results[r] = result;
            j.lse[r] = lse;
        }
    }
    if (last_block(j.finished))
        summarize(j);
}

template <typename T, int V> static __global__ void __launch_bounds__(ROW_THREADS) cross_entropy_grad_row(const job j)
{
    float factor = j.saved_metrics[2] > 0 ? *j.seed / j.saved_metrics[2] : 0.0f;
    for (int64_t r = blockIdx.x; r < j.rows; r += gridDim.x) {
        int32_t label = j.labels[r];
        bool counts = label >= 0 && label < j.valid;
        float offset = -j.saved_lse[r] * LOG2E;
#pragma unroll 2
        for (int64_t c = (int64_t)threadIdx.x * V; c < j.classes; c += ROW_THREADS * V) {
            float v[V] = {};
            if (counts) {
                unpack(v, load<T, V>(j.logits, r * j.classes + c));
                gradient_of<V>(j, v, offset, factor, label, c);
            }
            store<T, V>(j.grad, r * j.classes + c, v);
        }
    }
}

/* ---- the host's side ---- */

static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    (void)arena;
    call->workspace_bytes = (size_t)mixt__tensor_count(&call->in[1]) * sizeof(row_result);
    return MIXT_OK;
}

/** At least one block, which writes the sums of no rows. */
static unsigned grid_of(const job *j)
{
    return (unsigned)(j->rows < 1 ? 1 : j->rows < INT32_MAX ? j->rows : INT32_MAX);
}

template <typename T> static void forward(const mixt__cuda_device *gpu, const job &j, bool vectors)
{
    if (vectors)
        cross_entropy_row<T, vec16<T>::size><<<grid_of(&j), ROW_THREADS, 0, gpu->stream>>>(j);
    else
        cross_entropy_row<T, 1><<<grid_of(&j), ROW_THREADS, 0, gpu->stream>>>(j);
}

static mixt_status forward_run(const mixt__call *call)
{
    job j = job_of(call);
    j.loss = (float *)call->out[0].data;
    j.metrics = (float *)call->out[1].data;
    j.lse = (float *)call->out[2].data;
    j.results = (row_result *)call->workspace;
    j.finished = mixt__cuda_counter_at(call, MIXT_CUDA_COUNTER_CROSS_ENTROPY);
    DISPATCH(call->in[0].dtype, T, forward<T>(mixt__cuda_of(call), j, whole_vectors(call, &j)));
    return mixt__cuda_launched("cross_entropy");
}

template <typename T> static void gradient(const mixt__cuda_device *gpu, const job &j, bool vectors)
{
    if (vectors)
        cross_entropy_grad_row<T, vec16<T>::size><<<grid_of(&j), ROW_THREADS, 0, gpu->stream>>>(j);
    else
        cross_entropy_grad_row<T, 1><<<grid_of(&j), ROW_THREADS, 0, gpu->stream>>>(j);
}

static mixt_status gradient_run(const mixt__call *call)
{
    job j = job_of(call);
    j.grad = call->out[0].data;
    j.saved_lse = (const float *)call->in[2].data;
    j.saved_metrics = (const float *)call->in[3].data;
    j.seed = (const float *)call->in[4].data;
    DISPATCH(call->in[0].dtype, T, gradient<T>(mixt__cuda_of(call), j, whole_vectors(call, &j)));
    return mixt__cuda_launched("cross_entropy_grad");
}

static const mixt__kernel forward_kernel = {.name = "rows", .prepare = prepare, .run = forward_run};
static const mixt__kernel gradient_kernel = {.name = "rows", .run = gradient_run};

extern "C" const mixt__kernel *const mixt__cuda_cross_entropy_kernels[] = {&forward_kernel, NULL};
extern "C" const mixt__kernel *const mixt__cuda_cross_entropy_grad_kernels[] = {&gradient_kernel, NULL};
