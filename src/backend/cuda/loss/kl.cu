/* Divergence from a teacher beside the cross-entropy with labels (ops/kl.c): forward, gradient, and both at once.
 *
 * A block takes a row: its threads take every 256th class, so that each gradient is written, perhaps over the logits or
 * the teacher's scores, by the thread that read what lies there. Log-sum-exps of logits / T and teacher / T and the
 * mean of their difference under the teacher are taken in one pass; a step reads the row once more, mostly from the
 * cache. Sums run over threads in a fixed order. Each row leaves its loss in the workspace; the last block adds them up
 * in double precision. A step's rows that count are counted by a launch of its own, as in cross_entropy_step.cu. Bytes:
 * both tensors once, a step once more, and a write of the gradient.
 */
#include "backend/cuda/loss/cross_entropy.cuh"

enum { ROW_THREADS = 256, COUNT_THREADS = 1024 };
enum { LSE_WARM, LSE_TEACHER, LSE_PLAIN, LSE_COUNT };

/** A loss with a teacher; `lse` and `saved_lse` of the job have three a row. */
typedef struct kl_job {
    job j; // labels may be NULL: every row counts
    const void *teacher;
    int64_t teacher_pitch;
    float cold, weight, task; // 1 / temperature
} kl_job;

/** Sum of exponentials of base 2 so far, and of what they weigh. */
typedef struct weighed_peak {
    float max, sum, weighed;
} weighed_peak;

static __device__ __forceinline__ void add(weighed_peak &p, float x, float weighs)
{
    if (x > p.max) {
        float less = exp2_fast(p.max - x);
        p.sum *= less;
        p.weighed *= less;
        p.max = x;
    }
    float e = x == -INFINITY ? 0.0f : exp2_fast(x - p.max);
    p.sum += e;
    p.weighed += e > 0 ? e * weighs : 0.0f; // what the teacher excludes may be infinitely far away
}

static __device__ __forceinline__ weighed_peak merge(const weighed_peak &a, const weighed_peak &b)
{
    float max = fmaxf(a.max, b.max);
    float fa = a.max == max ? 1.0f : exp2_fast(a.max - max), fb = b.max == max ? 1.0f : exp2_fast(b.max - max);
    return {max, a.sum * fa + b.sum * fb, a.weighed * fa + b.weighed * fb};
}

static __device__ __forceinline__ weighed_peak of_warp(weighed_peak p)
{
    for (int lane = 16; lane; lane >>= 1) {
        weighed_peak other = {__shfl_xor_sync(0xffffffffu, p.max, lane), __shfl_xor_sync(0xffffffffu, p.sum, lane),
                              __shfl_xor_sync(0xffffffffu, p.weighed, lane)};
        p = merge(p, other);
    }
    return p;
}

/** The same in every thread; `shared` may be reused after the call. */
static __device__ __forceinline__ weighed_peak of_block(weighed_peak p, weighed_peak *shared)
{
    int lane = (int)threadIdx.x & 31;
    p = of_warp(p);
    if (lane == 0)
        shared[threadIdx.x / 32] = p;
    __syncthreads();
    p = of_warp(lane < ROW_THREADS / 32 ? shared[lane] : weighed_peak{-INFINITY, 0.0f, 0.0f});
    __syncthreads();
    return p;
}

static __device__ __forceinline__ float lse_of(const weighed_peak &p)
{
    return (p.max == -INFINITY ? 0.0f : p.max) * (1.0f / LOG2E) + logf(p.sum);
}

static __device__ __forceinline__ bool row_counts(const kl_job &k, int64_t r)
{
    return !k.j.labels || (k.j.labels[r] >= 0 && k.j.labels[r] < k.j.valid);
}

/** Whether a class before the label has the same logit. */
template <typename T> static __device__ __forceinline__ bool earlier(const T *row, int32_t label, float most)
{
    bool found = false;
    for (int c = (int)threadIdx.x; c < label; c += ROW_THREADS)
        found = found || to_float(row[c]) == most;
    return __syncthreads_or(found);
}

/** The cross-entropy of a row that has a label, with its log-sum-exp in *lse and whether it is right in *outcome. */
template <typename T>
static __device__ __forceinline__ float task_of(const kl_job &k, const T *row, int32_t label, float *lse,
                                                int32_t *outcome)
{
    __shared__ peak shared[32];
    peak p = peak_none();
    for (int64_t c = threadIdx.x; c < k.j.valid; c += ROW_THREADS) {
        float x = to_float(row[c]);
        peak_add<1>(p, &x, k.j.smoothing > 0, 1);
    }
    p = peak_of_block(p, shared);
    *lse = peak_lse(p);
    float at_label = to_float(row[label]);
    *outcome = at_label == p.max && !earlier(row, label, p.max) ? CORRECT : WRONG;
    return row_loss(k.j, p, *lse, at_label, label);
}

/** The three log-sum-exps of a row and its loss. */
template <typename T, typename U>
static __device__ __forceinline__ row_result row_of(const kl_job &k, int64_t r, float lse[LSE_COUNT])
{
    __shared__ weighed_peak shared[ROW_THREADS / 32];
    const T *row = (const T *)k.j.logits + r * k.j.classes;
    const U *other = (const U *)k.teacher + r * k.teacher_pitch;
    weighed_peak student = {-INFINITY, 0.0f, 0.0f}, teacher = student;
#pragma unroll 4
    for (int64_t c = threadIdx.x; c < k.j.valid; c += ROW_THREADS) {
        float x = to_float(row[c]) * k.cold, t = to_float(other[c]) * k.cold;
        add(student, x * LOG2E, 0.0f);
        add(teacher, t * LOG2E, t - x);
    }
    student = of_block(student, shared);
    teacher = of_block(teacher, shared);
    lse[LSE_WARM] = lse_of(student);
    lse[LSE_TEACHER] = lse_of(teacher);
    lse[LSE_PLAIN] = 0;
    row_result result = {0.0f, WRONG};
    float task = k.j.labels ? task_of(k, row, k.j.labels[r], &lse[LSE_PLAIN], &result.outcome) : 0.0f;
    result.loss = k.weight * (teacher.weighed / teacher.sum + (lse[LSE_WARM] - lse[LSE_TEACHER]));
    if (k.j.labels && k.task != 0)
        result.loss += k.task * task;
    return result;
}

/** @param lse of the row @param factor seed over rows that count */
template <typename T, typename U>
static __device__ __forceinline__ void row_gradient(const kl_job &k, int64_t r, const float lse[LSE_COUNT],
                                                    float factor, bool counts)
{
    const T *row = (const T *)k.j.logits + r * k.j.classes;
    const U *other = (const U *)k.teacher + r * k.teacher_pitch;
    float warm = -lse[LSE_WARM] * LOG2E, cool = -lse[LSE_TEACHER] * LOG2E, plain = -lse[LSE_PLAIN] * LOG2E;
    float slope = k.weight * k.cold, even = k.j.smoothing / (float)k.j.valid, scale = k.cold * LOG2E;
    bool task = k.j.labels && k.task != 0;
    for (int64_t c = threadIdx.x; c < k.j.classes; c += ROW_THREADS) {
        float g = 0;
        if (counts && c < k.j.valid) {
            float x = to_float(row[c]), t = to_float(other[c]);
            g = slope * (exp2_fast(fmaf(x, scale, warm)) - exp2_fast(fmaf(t, scale, cool)));
            if (task) {
                float p = exp2_fast(fmaf(x, LOG2E, plain)) - (c == k.j.labels[r] ? 1.0f - k.j.smoothing : 0.0f);
                g = fmaf(k.task, p - even, g);
            }
        }
        ((T *)k.j.grad)[r * k.j.classes + c] = from_float<T>(g * factor);
    }
}

template <typename T, typename U, bool STEP>
static __global__ void __launch_bounds__(ROW_THREADS) kl_rows(const kl_job k)
{
    int64_t targets = k.j.targets ? *k.j.targets : k.j.rows;
    float factor = STEP && targets ? *k.j.seed / (float)targets : 0.0f;
    for (int64_t r = blockIdx.x; r < k.j.rows; r += gridDim.x) {
        bool counts = row_counts(k, r); // the same for the whole block
        bool left_out = k.j.labels && k.j.labels[r] < 0;
        float lse[LSE_COUNT] = {0.0f, 0.0f, 0.0f};
        row_result result = {left_out ? 0.0f : NAN, left_out ? LEFT_OUT : WRONG};
        if (counts)
            result = row_of<T, U>(k, r, lse);
        __syncthreads(); // everyone has read the label's logit
        if (STEP)
            row_gradient<T, U>(k, r, lse, factor, counts);
        if (threadIdx.x == 0)
            k.j.results[r] = result;
        if (!STEP && threadIdx.x < LSE_COUNT)
            k.j.lse[r * LSE_COUNT + threadIdx.x] = lse[threadIdx.x];
    }
    if (last_block(k.j.finished))
        summarize(k.j);
}

template <typename T, typename U> static __global__ void __launch_bounds__(ROW_THREADS) kl_gradients(const kl_job k)
{
    float factor = k.j.saved_metrics[2] > 0 ? *k.j.seed / k.j.saved_metrics[2] : 0.0f;
    for (int64_t r = blockIdx.x; r < k.j.rows; r += gridDim.x)
        row_gradient<T, U>(k, r, k.j.saved_lse + r * LSE_COUNT, factor, row_counts(k, r));
}

static __global__ void __launch_bounds__(COUNT_THREADS) count_labels(const job j)
{
    int64_t targets = count_targets<COUNT_THREADS>(j);
    if (threadIdx.x == 0)
        *(int64_t *)j.targets = targets;
}

/* ---- the host's side ---- */

/** @param labels which input they are, where there are so many */
static kl_job kl_job_of(const mixt__call *call, int labels)
{
    const mixt__kl_attrs *at = (const mixt__kl_attrs *)call->attrs;
    kl_job k = {};
    k.j.classes = mixt__tensor_last(&call->in[0]);
    k.j.rows = k.j.classes ? mixt__tensor_count(&call->in[0]) / k.j.classes : 0;
    k.j.valid = mixt__loss_classes(&at->loss, k.j.classes);
    k.j.logits = call->in[0].data;
    k.j.labels = call->in_count > labels ? (const int32_t *)call->in[labels].data : NULL;
    k.j.smoothing = at->loss.smoothing;
    k.teacher = call->in[1].data;
    k.teacher_pitch = mixt__tensor_last(&call->in[1]);
    k.cold = 1.0f / at->temperature;
    k.weight = at->weight;
    k.task = at->task;
    k.j.finished = mixt__cuda_counter_at(call, MIXT_CUDA_COUNTER_KL);
    return k;
}

/** At least one block, which writes the sums of no rows. */
static unsigned grid_of(const kl_job *k)
{
    return (unsigned)(k->j.rows < 1 ? 1 : k->j.rows < INT32_MAX ? k->j.rows : INT32_MAX);
}

/** Runs `statement` with the C types of the logits and of the teacher's scores. */
#define DISPATCH_BOTH(call, T, U, ...) DISPATCH((call)->in[0].dtype, T, DISPATCH((call)->in[1].dtype, U, __VA_ARGS__))

static mixt_status forward_run(const mixt__call *call)
{
    kl_job k = kl_job_of(call, 2);
    k.j.loss = (float *)call->out[0].data;
    k.j.metrics = (float *)call->out[1].data;
    k.j.lse = (float *)call->out[2].data;
    k.j.results = (row_result *)call->workspace;
    DISPATCH_BOTH(call, T, U, kl_rows<T, U, false><<<grid_of(&k), ROW_THREADS, 0, mixt__cuda_of(call)->stream>>>(k));
    return mixt__cuda_launched("kl");
}

static mixt_status gradient_run(const mixt__call *call)
{
    kl_job k = kl_job_of(call, 5);
    k.j.grad = call->out[0].data;
    k.j.saved_lse = (const float *)call->in[2].data;
    k.j.saved_metrics = (const float *)call->in[3].data;
    k.j.seed = (const float *)call->in[4].data;
    DISPATCH_BOTH(call, T, U, kl_gradients<T, U><<<grid_of(&k), ROW_THREADS, 0, mixt__cuda_of(call)->stream>>>(k));
    return mixt__cuda_launched("kl_grad");
}

static mixt_status step_run(const mixt__call *call)
{
    kl_job k = kl_job_of(call, 3);
    const mixt__tensor *all = &call->in[call->in_count > 4 ? 4 : 3];
    k.j.seed = (const float *)call->in[2].data;
    k.j.grad = call->out[0].data;
    k.j.loss = (float *)call->out[1].data;
    k.j.metrics = (float *)call->out[2].data;
    k.j.results = (row_result *)((int64_t *)call->workspace + 1);
    if (k.j.labels) {
        k.j.targets = (const int64_t *)call->workspace;
        k.j.all = (const int32_t *)all->data;
        k.j.all_rows = mixt__tensor_count(all);
        count_labels<<<1, COUNT_THREADS, 0, mixt__cuda_of(call)->stream>>>(k.j);
    }
    DISPATCH_BOTH(call, T, U, kl_rows<T, U, true><<<grid_of(&k), ROW_THREADS, 0, mixt__cuda_of(call)->stream>>>(k));
    return mixt__cuda_launched("kl_step");
}

/** The rows that count, then one result a row. */
static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    (void)arena;
    call->workspace_bytes = sizeof(int64_t) + (size_t)kl_job_of(call, 2).j.rows * sizeof(row_result);
    return MIXT_OK;
}

static const mixt__kernel forward_kernel = {.name = "rows", .prepare = prepare, .run = forward_run};
static const mixt__kernel gradient_kernel = {.name = "rows", .run = gradient_run};
static const mixt__kernel step_kernel = {.name = "rows", .prepare = prepare, .run = step_run};

extern "C" const mixt__kernel *const mixt__cuda_kl_kernels[] = {&forward_kernel, NULL};
extern "C" const mixt__kernel *const mixt__cuda_kl_grad_kernels[] = {&gradient_kernel, NULL};
extern "C" const mixt__kernel *const mixt__cuda_kl_step_kernels[] = {&step_kernel, NULL};
