/* cross_entropy_step for short rows: a warp a row, which stays in registers, EACH classes a lane; rows of few classes
 * go ROWS at a time, so that their latencies overlap. One launch: every block counts the labels itself, after it has
 * asked for its first rows; a small problem is one block. Bytes: one read and one write of the logits.
 *
 * Each warp adds up the losses of its rows in order in double precision, each block those of its warps, the last block
 * those of the blocks.
 */
#include "backend/cuda/loss/cross_entropy.cuh"

enum { THREADS = 512, WARPS = THREADS / 32, MOST_CLASSES = 1024, BLOCKS_EACH = 2 };

typedef struct sums {
    double loss;
    int64_t correct, counted;
} sums;

/** What a warp holds of its rows: class lane + 32·i in v[·][i], -infinity beyond the last that counts. */
template <int EACH, int ROWS> struct held {
    int32_t label[ROWS];
    float v[ROWS][EACH];
};

template <typename T, int EACH, int ROWS>
static __device__ __forceinline__ void hold(const job &j, int64_t first, held<EACH, ROWS> &h)
{
    int lane = (int)threadIdx.x & 31;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        bool inside = first + r < j.rows;
        const T *row = (const T *)j.logits + (first + r) * j.classes;
        h.label[r] = inside ? j.labels[first + r] : -1;
#pragma unroll
        for (int i = 0; i < EACH; i++)
            h.v[r][i] = inside && lane + 32 * i < j.valid ? to_float(row[lane + 32 * i]) : -INFINITY;
    }
}

/** The loss of a row whose label is a class; v becomes exp(x - lse) minus the target, times factor. */
template <int EACH>
static __device__ __forceinline__ float work(const job &j, float *v, int label, float factor, bool *correct)
{
    int lane = (int)threadIdx.x & 31;
    float most = v[0], sum = 0, mine = 0;
    bool found = false;
    peak p = peak_none();
#pragma unroll
    for (int i = 1; i < EACH; i++)
        most = fmaxf(most, v[i]);
    p.max = warp_max(most);
    float offset = peak_offset(p.max);
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        int c = lane + 32 * i;
        sum += exp2_fast(fmaf(v[i], LOG2E, offset));
        p.total += c < j.valid ? v[i] : 0.0f;
        mine = c == label ? v[i] : mine;
        found = found || (c < label && v[i] == p.max);
    }
    p.sum = warp_sum(sum);
    p.total = j.smoothing > 0 ? warp_sum(p.total) : 0.0f;
    float lse = peak_lse(p), at_label = __shfl_sync(0xffffffffu, mine, label & 31);
    *correct = !__any_sync(0xffffffffu, found) && at_label == p.max;
#pragma unroll
    for (int i = 0; i < EACH; i++)
        gradient_of<1>(j, &v[i], -lse * LOG2E, factor, label, lane + 32 * i);
    return row_loss(j, p, lse, at_label, label);
}

template <typename T, int EACH, int ROWS>
static __device__ __forceinline__ void settle(const job &j, int64_t first, held<EACH, ROWS> &h, float factor, sums &s)
{
    int lane = (int)threadIdx.x & 31;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        int32_t label = h.label[r];
        bool counts = label >= 0 && label < j.valid, correct = false;
        float loss = label < 0 ? 0.0f : NAN;
        if (counts) // the same for the whole warp
            loss = work<EACH>(j, h.v[r], label, factor, &correct);
        s.loss += (double)loss;
        s.correct += correct;
        s.counted += label >= 0;
#pragma unroll
        for (int i = 0; i < EACH; i++)
            if (first + r < j.rows && lane + 32 * i < j.classes)
                ((T *)j.grad)[(first + r) * j.classes + lane + 32 * i] = from_float<T>(counts ? h.v[r][i] : 0.0f);
    }
}

/** In the first thread. */
static __device__ __forceinline__ sums sums_of_block(const sums &mine)
{
    __shared__ sums warps[WARPS];
    __syncthreads(); // a second call may follow
    if ((threadIdx.x & 31) == 0)
        warps[threadIdx.x / 32] = mine;
    __syncthreads();
    sums s = mine;
    for (int i = 1; threadIdx.x == 0 && i < WARPS; i++) {
        s.loss += warps[i].loss;
        s.correct += warps[i].correct;
        s.counted += warps[i].counted;
    }
    return s;
}

static __device__ __forceinline__ void finish(const job &j, const sums &s, int64_t targets)
{
    *j.loss = targets ? (float)(s.loss / (double)targets) : 0.0f;
    j.metrics[0] = (float)s.loss;
    j.metrics[1] = (float)s.correct;
    j.metrics[2] = (float)s.counted;
}

template <typename T, int EACH, int ROWS>
static __global__ void __launch_bounds__(THREADS) cross_entropy_step_warps(const job j, sums *partial)
{
    int64_t first = ((int64_t)blockIdx.x * WARPS + threadIdx.x / 32) * ROWS, stride = (int64_t)gridDim.x * WARPS * ROWS;
    held<EACH, ROWS> h;
    sums s = {0, 0, 0};
    hold<T, EACH, ROWS>(j, first, h);
    float seed = *j.seed;
    int64_t targets = count_targets<THREADS>(j);
    float factor = targets ? seed / (float)targets : 0.0f;
    for (; first < j.rows; first += stride) {
        settle<T, EACH, ROWS>(j, first, h, factor, s);
        hold<T, EACH, ROWS>(j, first + stride, h);
    }
    s = sums_of_block(s);
    if (gridDim.x > 1) {
        if (threadIdx.x == 0)
            partial[blockIdx.x] = s;
        if (!last_block(j.finished))
            return;
        s = {0, 0, 0};
        for (unsigned i = threadIdx.x / 32; i < gridDim.x; i += WARPS) {
            s.loss += __ldcg(&partial[i].loss);
            s.correct += __ldcg((const long long *)&partial[i].correct);
            s.counted += __ldcg((const long long *)&partial[i].counted);
        }
        s = sums_of_block(s);
    }
    if (threadIdx.x == 0)
        finish(j, s, targets);
}

/* ---- the host's side ---- */

static bool supports(const mixt__call *call, const char **reason)
{
    *reason = "only up to 1024 classes";
    return mixt__tensor_last(&call->in[0]) <= MOST_CLASSES;
}

static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    (void)arena;
    call->workspace_bytes = (size_t)(mixt__cuda_of(call)->multiprocessors * BLOCKS_EACH) * sizeof(sums);
    return MIXT_OK;
}

template <typename T, int EACH, int ROWS> static void launch(const mixt__cuda_device *gpu, const job &j, sums *partial)
{
    int64_t blocks = mixt__ceil_div(j.rows, WARPS * ROWS), most = (int64_t)gpu->multiprocessors * BLOCKS_EACH;
    blocks = blocks < 1 ? 1 : blocks < most ? blocks : most;
    cross_entropy_step_warps<T, EACH, ROWS><<<(unsigned)blocks, THREADS, 0, gpu->stream>>>(j, partial);
}

template <typename T> static void step(const mixt__cuda_device *gpu, const job &j, sums *partial)
{
    if (j.classes <= 32)
        launch<T, 1, 8>(gpu, j, partial);
    else if (j.classes <= 256)
        launch<T, 8, 1>(gpu, j, partial);
    else
        launch<T, 32, 1>(gpu, j, partial);
}

static mixt_status run(const mixt__call *call)
{
    job j = step_job(call);
    j.finished = mixt__cuda_counter_at(call, MIXT_CUDA_COUNTER_CROSS_ENTROPY_WARPS);
    DISPATCH(call->in[0].dtype, T, step<T>(mixt__cuda_of(call), j, (sums *)call->workspace));
    return mixt__cuda_launched("cross_entropy_step");
}

extern "C" const mixt__kernel mixt__cuda_cross_entropy_step_warps = {
    .name = "warps", .supports = supports, .prepare = prepare, .run = run};
