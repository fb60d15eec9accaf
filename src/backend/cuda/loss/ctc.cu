/* CTC forward: sums of exponentials of all frames at once, then a block a sample, frame after frame.
 *
 * Bytes: the logits once, and once more where states look them up; alpha one write. What counts is the time of one
 * frame, so the next one's logits are on their way while it is worked on. The block that ends last adds up the samples,
 * in double precision and in a fixed order.
 */
#include "backend/cuda/core/last_block.cuh"
#include "backend/cuda/loss/ctc.cuh"

typedef struct result {
    double loss;
    int counts, correct;
} result;

typedef struct forward_job {
    ctc_job common;
    float *alpha, *loss, *metrics;
    result *results;    // (B) in the workspace
    unsigned *finished; // of last_block
} forward_job;

/** What no sample's part of alpha holds. */
static __device__ __forceinline__ void clear(const ctc_job &j, const ctc_sample &s, float *alpha)
{
    int64_t own = s.counts ? s.frames : 0;
    for (int64_t i = threadIdx.x; i < j.frames * j.states; i += blockDim.x)
        if (i / j.states >= own || i % j.states >= s.states)
            alpha[i] = MIXT_CTC_NEVER;
}

/** Frames in which a new letter begins, of [begin, end); with `compare`, whether they are those of the labels. */
static __device__ __forceinline__ int letters(const ctc_job &j, const ctc_sample &s, const int32_t *best, int begin,
                                              int end, int spelled, bool compare, bool *right)
{
    int count = 0;
    for (int t = begin; t < end; t++) {
        if (best[t] == j.blank || (t > 0 && best[t] == best[t - 1]))
            continue;
        if (compare)
            *right = *right && spelled + count < s.labels && s.label[spelled + count] == best[t];
        count++;
    }
    return count;
}

/** Whether the largest logits of the frames spell the labels: threads take stretches of frames. */
static __device__ __forceinline__ bool spells(const ctc_job &j, const ctc_sample &s, const int32_t *best)
{
    __shared__ int counts[CTC_THREADS];
    int share = (s.frames + (int)blockDim.x - 1) / (int)blockDim.x, before = 0, total = 0;
    int begin = min((int)threadIdx.x * share, s.frames), end = min(begin + share, s.frames);
    bool right = true;
    counts[threadIdx.x] = letters(j, s, best, begin, end, 0, false, &right);
    __syncthreads();
    for (int i = 0; i < (int)blockDim.x; i++) {
        before += i < (int)threadIdx.x ? counts[i] : 0;
        total += counts[i];
    }
    letters(j, s, best, begin, end, before, true, &right);
    return __syncthreads_and(right && total == s.labels);
}

/** -log of the probability of a sample's labels, in every thread; its part of alpha. Frames are at least 1. */
template <typename T>
static __device__ __forceinline__ double run_sample(const ctc_job &j, const ctc_sample &s, int64_t b, float *rows,
                                                    float *alpha)
{
    __shared__ float largest[2][32];
    const T *x = (const T *)j.src + b * j.frames * j.classes;
    const float *lse = j.lse + b * j.frames;
    int own = min((int)threadIdx.x, s.states - 1), of_own = ctc_class(j, s, own);
    bool own_skips = ctc_may_skip(s, own);
    double loss = 0;
    float ready = to_float(x[of_own]) - lse[0], top = 0;
    for (int t = 0; t < s.frames; t++) {
        float emission = ready, most = -INFINITY, *row = rows + (t & 1) * j.states;
        const float *before = rows + (~t & 1) * j.states;
        if (t + 1 < s.frames)
            ready = to_float(x[(int64_t)(t + 1) * j.classes + of_own]) - lse[t + 1];
        for (int state = threadIdx.x; state < s.states; state += blockDim.x) {
            bool first = state == own, skips = first ? own_skips : ctc_may_skip(s, state);
            float y = first ? emission : to_float(x[(int64_t)t * j.classes + ctc_class(j, s, state)]) - lse[t];
            float value = state < 2 ? 0 : MIXT_CTC_NEVER;
            if (t > 0) {
                float stay = before[state] - top;
                alpha[(int64_t)(t - 1) * j.states + state] = stay;
                value = ctc_log_add(stay, state >= 1 ? before[state - 1] - top : MIXT_CTC_NEVER,
                                    skips ? before[state - 2] - top : MIXT_CTC_NEVER);
            }
            row[state] = value + y;
            most = fmaxf(most, value + y);
        }
        most = warp_max(most);
        if ((threadIdx.x & 31) == 0)
            largest[t & 1][threadIdx.x >> 5] = most;
        __syncthreads();
        top = ctc_largest(largest[t & 1]);
        loss -= (double)top;
    }
    const float *last = rows + ((s.frames - 1) & 1) * j.states;
    for (int state = threadIdx.x; state < s.states; state += blockDim.x)
        alpha[(int64_t)(s.frames - 1) * j.states + state] = last[state] - top;
    float other = s.labels ? last[s.states - 2] - top : MIXT_CTC_NEVER;
    return loss - (double)ctc_log_add(last[s.states - 1] - top, other, MIXT_CTC_NEVER);
}

/** The sums of all samples; by one warp of the last block. */
static __device__ __forceinline__ void add_up(const forward_job &j)
{
    double sum = 0, counted = 0, correct = 0;
    for (int64_t b = threadIdx.x; b < j.common.batch; b += 32) {
        sum += __ldcg(&j.results[b].loss);
        counted += __ldcg(&j.results[b].counts);
        correct += __ldcg(&j.results[b].correct);
    }
    sum = warp_sum_f64(sum);
    counted = warp_sum_f64(counted);
    correct = warp_sum_f64(correct);
    if (threadIdx.x == 0) {
        *j.loss = counted > 0 ? (float)(sum / counted) : 0.0f;
        j.metrics[0] = (float)sum;
        j.metrics[1] = (float)correct;
        j.metrics[2] = (float)counted;
    }
}

template <typename T> static __global__ void __launch_bounds__(CTC_THREADS) ctc_forward(const forward_job j)
{
    extern __shared__ float inside[];
    int64_t b = blockIdx.x;
    if (b < j.common.batch) {
        ctc_sample s = ctc_sample_at(j.common, b);
        float *alpha = j.alpha + b * j.common.frames * j.common.states;
        float *rows = j.common.rows ? j.common.rows + b * 2 * j.common.states : inside;
        clear(j.common, s, alpha);
        double loss = s.counts && s.frames ? run_sample<T>(j.common, s, b, rows, alpha) : 0;
        bool correct = s.counts && spells(j.common, s, j.common.best + b * j.common.frames);
        if (threadIdx.x == 0)
            j.results[b] = result{loss, s.counts, correct};
    }
    if (last_block(j.finished) && threadIdx.x < 32)
        add_up(j);
}

/* ---- the host's side ---- */

static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    (void)arena;
    ctc_job j = ctc_job_of(call);
    call->workspace_bytes = (size_t)j.batch * sizeof(result) + (size_t)(2 * j.batch * j.frames) * sizeof(float) +
                            (size_t)ctc_rows_outside(&j) * sizeof(float);
    return MIXT_OK;
}

static mixt_status run(const mixt__call *call)
{
    forward_job f = {};
    ctc_job *j = &f.common;
    *j = ctc_job_of(call);
    f.loss = (float *)call->out[0].data;
    f.metrics = (float *)call->out[1].data;
    f.alpha = (float *)call->out[2].data;
    f.results = (result *)call->workspace;
    f.finished = mixt__cuda_counter_at(call, MIXT_CUDA_COUNTER_CTC);
    j->lse = (float *)(f.results + j->batch);
    j->best = (int32_t *)(j->lse + j->batch * j->frames);
    j->rows = ctc_rows_outside(j) ? (float *)(j->best + j->batch * j->frames) : NULL;
    if (j->batch * j->frames > 0)
        DISPATCH(call->in[0].dtype, T,
                 ctc_log_sums<T><<<ctc_row_blocks(j), 32 * CTC_ROW_WARPS, 0, mixt__cuda_of(call)->stream>>>(*j));
    unsigned blocks = (unsigned)(j->batch > 0 ? j->batch : 1);
    DISPATCH(call->in[0].dtype, T,
             ctc_forward<T><<<blocks, ctc_threads(j), ctc_rows_inside(j), mixt__cuda_of(call)->stream>>>(f));
    return mixt__cuda_launched("CTC");
}

static const mixt__kernel ctc = {.name = "samples", .prepare = prepare, .run = run};

extern "C" const mixt__kernel *const mixt__cuda_ctc_kernels[] = {&ctc, NULL};
