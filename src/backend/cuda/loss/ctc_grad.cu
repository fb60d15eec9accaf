/* CTC's gradient: a block a sample goes backwards through its frames and leaves behind how likely all ways through each
 * state are; then a warp a frame makes shares of them and writes the gradient, all frames at once.
 *
 * A class that several labels have in common is summed by the first of them, which follows the others in order: no
 * additions whose order can change. The gradient may lie where the logits do: whoever writes a class is the only one
 * who reads it. Bytes: logits and alpha twice, the ways one write and one read, the gradient one write.
 */
#include "backend/cuda/loss/ctc.cuh"

enum { FIRST = 1 << 30 }; // of a link: no label before is the same

typedef struct grad_job {
    ctc_job common;
    const float *alpha, *metrics, *seed;
    void *grad;
    float *ways;     // (B, T, states) in the workspace: logarithms
    int32_t *link;   // (B, S): 1 + the next label that is the same, 0: none; FIRST
    uint32_t *taken; // (B, words): bit k: a label is of class k
    int64_t words;
} grad_job;

/** Which labels of a sample are the same, and which classes they are. */
static __device__ __forceinline__ void connect(const grad_job &j, const ctc_sample &s, int32_t *link, uint32_t *taken)
{
    for (int64_t i = threadIdx.x; i < j.words; i += blockDim.x)
        taken[i] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < s.labels; i += blockDim.x) {
        int next = i + 1, before = i - 1, label = s.label[i];
        while (next < s.labels && s.label[next] != label)
            next++;
        while (before >= 0 && s.label[before] != label)
            before--;
        link[i] = (next < s.labels ? next + 1 : 0) | (before < 0 ? FIRST : 0);
        atomicOr(&taken[label >> 5], 1u << (label & 31));
    }
}

template <typename T>
static __device__ __forceinline__ void run_sample(const grad_job &g, const ctc_sample &s, int64_t b, float *rows)
{
    __shared__ float largest[2][32];
    const ctc_job &j = g.common;
    const T *x = (const T *)j.src + b * j.frames * j.classes;
    const float *lse = j.lse + b * j.frames, *alpha = g.alpha + b * j.frames * j.states;
    float *ways = g.ways + b * j.frames * j.states, top = 0;
    int own = min((int)threadIdx.x, s.states - 1), of_own = ctc_class(j, s, own), end = s.frames - 1;
    bool own_skips = ctc_may_skip(s, own + 2);
    float ready = to_float(x[(int64_t)end * j.classes + of_own]) - lse[end];
    float ready_alpha = alpha[(int64_t)end * j.states + own];
    for (int t = end; t >= 0; t--) {
        float emission = ready, own_alpha = ready_alpha, most = -INFINITY, *row = rows + (t & 1) * j.states;
        const float *next = rows + (~t & 1) * j.states;
        if (t > 0) {
            ready = to_float(x[(int64_t)(t - 1) * j.classes + of_own]) - lse[t - 1];
            ready_alpha = alpha[(int64_t)(t - 1) * j.states + own];
        }
        for (int state = threadIdx.x; state < s.states; state += blockDim.x) {
            bool first = state == own, skips = first ? own_skips : ctc_may_skip(s, state + 2);
            float y = first ? emission : to_float(x[(int64_t)t * j.classes + ctc_class(j, s, state)]) - lse[t];
            float before = first ? own_alpha : alpha[(int64_t)t * j.states + state];
            float beta = state >= s.states - 2 ? 0 : MIXT_CTC_NEVER;
            if (t < end)
                beta = ctc_log_add(next[state] - top, state + 1 < s.states ? next[state + 1] - top : MIXT_CTC_NEVER,
                                   skips ? next[state + 2] - top : MIXT_CTC_NEVER);
            ways[(int64_t)t * j.states + state] = before + beta;
            row[state] = beta + y;
            most = fmaxf(most, beta + y);
        }
        most = warp_max(most);
        if ((threadIdx.x & 31) == 0)
            largest[t & 1][threadIdx.x >> 5] = most;
        __syncthreads();
        top = ctc_largest(largest[t & 1]);
    }
}

template <typename T> static __global__ void __launch_bounds__(CTC_THREADS) ctc_backward(const grad_job j)
{
    extern __shared__ float inside[];
    int64_t b = blockIdx.x;
    ctc_sample s = ctc_sample_at(j.common, b);
    if (!s.counts || !s.frames)
        return;
    connect(j, s, j.link + b * j.common.labels, j.taken + b * j.words);
    run_sample<T>(j, s, b, j.common.rows ? j.common.rows + b * 2 * j.common.states : inside);
}

/** What a warp knows of its frame. */
typedef struct frame {
    const float *ways;
    float most, sum, lse, factor;
} frame;

static __device__ __forceinline__ float share_of(const frame &f, int state)
{
    return expf(f.ways[state] - f.most) / f.sum;
}

template <typename T>
static __device__ __forceinline__ void put(const frame &f, const T *x, T *grad, int64_t k, float share)
{
    grad[k] = from_float<T>(f.factor * (expf(to_float(x[k]) - f.lse) - share));
}

/** The gradient of one frame. */
template <typename T>
static __device__ __forceinline__ void write_frame(const grad_job &g, const ctc_sample &s, int64_t b, frame f,
                                                   const T *x, T *grad)
{
    const int32_t *link = g.link + b * g.common.labels;
    const uint32_t *taken = g.taken + b * g.words;
    int lane = threadIdx.x & 31;
    f.most = -INFINITY;
    f.sum = 0;
    for (int state = lane; state < s.states; state += 32)
        f.most = fmaxf(f.most, f.ways[state]);
    f.most = warp_max(f.most);
    for (int state = lane; state < s.states; state += 32)
        f.sum += expf(f.ways[state] - f.most);
    f.sum = warp_sum(f.sum);
    float blank = 0;
    for (int state = 2 * lane; state < s.states; state += 64)
        blank += share_of(f, state);
    blank = warp_sum(blank);
    for (int64_t k = lane; k < g.common.classes; k += 32)
        if (k == g.common.blank || !(taken[k >> 5] >> (k & 31) & 1))
            put(f, x, grad, k, k == g.common.blank ? blank : 0.0f);
    for (int i = lane; i < s.labels; i += 32) {
        if (!(link[i] & FIRST))
            continue;
        float share = share_of(f, 2 * i + 1);
        for (int at = link[i] & (FIRST - 1); at; at = link[at - 1] & (FIRST - 1))
            share += share_of(f, 2 * at - 1);
        put(f, x, grad, s.label[i], share);
    }
}

template <typename T> static __global__ void __launch_bounds__(32 * CTC_ROW_WARPS) ctc_gradient(const grad_job g)
{
    const ctc_job &j = g.common;
    int64_t row = (int64_t)blockIdx.x * CTC_ROW_WARPS + threadIdx.x / 32, b = row / j.frames;
    if (row >= j.batch * j.frames)
        return;
    ctc_sample s = ctc_sample_at(j, b);
    T *grad = (T *)g.grad + row * j.classes;
    if (!s.counts || row % j.frames >= s.frames) {
        for (int64_t k = threadIdx.x & 31; k < j.classes; k += 32)
            grad[k] = from_float<T>(0.0f);
        return;
    }
    frame f = {};
    f.ways = g.ways + row * j.states;
    f.lse = j.lse[row];
    f.factor = *g.seed / g.metrics[2];
    write_frame<T>(g, s, b, f, (const T *)j.src + row * j.classes, grad);
}

/* ---- the host's side ---- */

static grad_job grad_job_of(const mixt__call *call)
{
    grad_job g = {};
    ctc_job *j = &g.common;
    *j = ctc_job_of(call);
    g.words = mixt__ceil_div(j->classes, 32);
    j->lse = (float *)call->workspace;
    g.ways = j->lse + j->batch * j->frames;
    g.link = (int32_t *)(g.ways + j->batch * j->frames * j->states);
    g.taken = (uint32_t *)(g.link + j->batch * j->labels);
    j->rows = ctc_rows_outside(j) ? (float *)(g.taken + j->batch * g.words) : NULL;
    return g;
}

static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    (void)arena;
    grad_job g = grad_job_of(call);
    const ctc_job *j = &g.common;
    int64_t numbers = j->batch * (j->frames * (1 + j->states) + j->labels + g.words) + ctc_rows_outside(j);
    call->workspace_bytes = (size_t)numbers * sizeof(float);
    return MIXT_OK;
}

static mixt_status run(const mixt__call *call)
{
    grad_job g = grad_job_of(call);
    const ctc_job *j = &g.common;
    g.alpha = (const float *)call->in[3].data;
    g.metrics = (const float *)call->in[4].data;
    g.seed = (const float *)call->in[5].data;
    g.grad = call->out[0].data;
    if (!mixt__tensor_count(&call->in[0]))
        return MIXT_OK;
    DISPATCH(call->in[0].dtype, T, {
        ctc_log_sums<T><<<ctc_row_blocks(j), 32 * CTC_ROW_WARPS, 0, mixt__cuda_of(call)->stream>>>(*j);
        ctc_backward<T><<<(unsigned)j->batch, ctc_threads(j), ctc_rows_inside(j), mixt__cuda_of(call)->stream>>>(g);
        ctc_gradient<T><<<ctc_row_blocks(j), 32 * CTC_ROW_WARPS, 0, mixt__cuda_of(call)->stream>>>(g);
    });
    return mixt__cuda_launched("CTC's gradient");
}

static const mixt__kernel ctc_grad = {.name = "samples", .prepare = prepare, .run = run};

extern "C" const mixt__kernel *const mixt__cuda_ctc_grad_kernels[] = {&ctc_grad, NULL};
