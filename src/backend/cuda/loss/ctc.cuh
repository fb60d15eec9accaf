/* What CTC's kernels share: the job, a sample's own lengths, sums of exponentials.
 *
 * States, tables and what counts: ops/ctc.c. A block takes a sample through its frames, threads take its states; a
 * frame's row lies in shared memory where two of them fit, else in the workspace. One barrier a frame: with the row,
 * each warp leaves its largest entry behind, and the next frame takes the largest of those off what it reads.
 */
#ifndef MIXT_BACKEND_CUDA_LOSS_CTC_CUH
#define MIXT_BACKEND_CUDA_LOSS_CTC_CUH

#include "backend/cuda/core/device.cuh"
#include "backend/cuda/kernels.h"

enum { CTC_THREADS = 1024, CTC_SHARED_STATES = 4096, CTC_ROW_WARPS = 4 };

typedef struct ctc_job {
    int64_t batch, frames, classes, labels, states; // B, T, C, S, 2S + 1
    int blank;
    const void *src;
    const int32_t *label, *own_labels, *own_frames; // own_frames NULL: all samples have all frames
    int64_t stride, window;
    float *lse;    // (B, T) in the workspace
    int32_t *best; // (B, T) in the workspace; NULL: nobody asks which class is the largest
    float *rows;   // (B, 2, states) in the workspace; NULL: rows lie in shared memory
} ctc_job;

/** A sample's own part. */
typedef struct ctc_sample {
    const int32_t *label;
    int frames, labels, states;
    bool counts;
} ctc_sample;

/** A sample's own frames. */
static __device__ __forceinline__ int ctc_frames(const ctc_job &j, int64_t b)
{
    int64_t frames = j.own_frames ? ((int64_t)j.own_frames[b] - j.window + j.stride) / j.stride : j.frames;
    return (int)(frames < 0 ? 0 : frames < j.frames ? frames : j.frames);
}

/** Frames that labels i, i + step, … of a sample need: one each, one more behind an equal one; past all where a label
 *  is none. */
static __device__ __forceinline__ int ctc_needed(const ctc_job &j, const int32_t *label, int length, int i, int step)
{
    int needed = 0;
    for (; i < length; i += step) {
        bool wrong = label[i] < 0 || label[i] >= j.classes || label[i] == j.blank;
        needed += wrong ? 1 << 24 : 1 + (i > 0 && label[i] == label[i - 1]);
        needed = needed < 1 << 24 ? needed : 1 << 24;
    }
    return needed;
}

/** By a whole warp: every lane gets the same. */
static __device__ __forceinline__ ctc_sample ctc_sample_at(const ctc_job &j, int64_t b)
{
    int labels = j.own_labels[b];
    ctc_sample s;
    s.label = j.label + b * j.labels;
    s.frames = ctc_frames(j, b);
    s.labels = labels < 0 ? 0 : labels < j.labels ? labels : (int)j.labels;
    s.states = 2 * s.labels + 1;
    int needed = ctc_needed(j, s.label, s.labels, threadIdx.x & 31, 32);
    for (int lane = 16; lane; lane >>= 1)
        needed += __shfl_xor_sync(0xffffffffu, needed, lane);
    s.counts = labels >= 0 && labels <= j.labels && needed <= s.frames;
    return s;
}

static __device__ __forceinline__ int ctc_class(const ctc_job &j, const ctc_sample &s, int state)
{
    return state & 1 ? s.label[state >> 1] : j.blank;
}

/** Whether a state may be entered from the one before the last: a label that differs from the last label. */
static __device__ __forceinline__ bool ctc_may_skip(const ctc_sample &s, int state)
{
    return (state & 1) && state >= 3 && state < s.states && s.label[state >> 1] != s.label[(state >> 1) - 1];
}

static __device__ __forceinline__ float ctc_log_add(float a, float b, float c)
{
    float most = fmaxf(a, fmaxf(b, c));
    return most + logf(expf(a - most) + expf(b - most) + expf(c - most));
}

/** The largest of what the warps of the block left behind. */
static __device__ __forceinline__ float ctc_largest(const float *warps)
{
    int lane = threadIdx.x & 31, count = blockDim.x >> 5;
    return warp_max(lane < count ? warps[lane] : -INFINITY);
}

/** A warp a row: log of the sum of its exponentials, and the first of its largest. */
template <typename T> static __global__ void __launch_bounds__(32 * CTC_ROW_WARPS) ctc_log_sums(const ctc_job j)
{
    int64_t row = (int64_t)blockIdx.x * CTC_ROW_WARPS + threadIdx.x / 32;
    if (row >= j.batch * j.frames || row % j.frames >= ctc_frames(j, row / j.frames))
        return;
    const T *x = (const T *)j.src + row * j.classes;
    float most = -INFINITY, sum = 0;
    int best = 0x7fffffff;
    for (int64_t k = threadIdx.x & 31; k < j.classes; k += 32) {
        float value = to_float(x[k]);
        if (value > most || best == 0x7fffffff) {
            most = value;
            best = (int)k;
        }
    }
    for (int lane = 16; lane; lane >>= 1) {
        float other = __shfl_xor_sync(0xffffffffu, most, lane);
        int which = __shfl_xor_sync(0xffffffffu, best, lane);
        if (other > most || (other == most && which < best)) {
            most = other;
            best = which;
        }
    }
    for (int64_t k = threadIdx.x & 31; k < j.classes; k += 32)
        sum += expf(to_float(x[k]) - most);
    sum = warp_sum(sum);
    if ((threadIdx.x & 31) == 0) {
        j.lse[row] = most + logf(sum);
        if (j.best)
            j.best[row] = best;
    }
}

static inline ctc_job ctc_job_of(const mixt__call *call)
{
    const mixt__shape *x = &call->in[0].shape;
    ctc_job j = {};
    j.batch = x->dims[0];
    j.frames = x->dims[1];
    j.classes = x->dims[2];
    j.labels = call->in[1].shape.dims[1];
    j.states = 2 * j.labels + 1;
    const mixt__ctc_attrs *at = (const mixt__ctc_attrs *)call->attrs;
    int last = call->in_count > 4 ? 6 : 3; // of the gradient, or forward
    j.blank = (int)at->blank;
    j.stride = at->stride > 1 ? at->stride : 1;
    j.window = at->window > 1 ? at->window : 1;
    j.src = call->in[0].data;
    j.label = (const int32_t *)call->in[1].data;
    j.own_labels = (const int32_t *)call->in[2].data;
    j.own_frames = call->in_count > last ? (const int32_t *)call->in[last].data : NULL;
    return j;
}

/** Rows of two frames that do not fit shared memory, in floats. */
static inline int64_t ctc_rows_outside(const ctc_job *j)
{
    return j->states > CTC_SHARED_STATES ? j->batch * 2 * j->states : 0;
}

static inline size_t ctc_rows_inside(const ctc_job *j)
{
    return j->states > CTC_SHARED_STATES ? 0 : 2 * (size_t)j->states * sizeof(float);
}

/** Threads of a sample's block: one a state where they suffice. */
static inline unsigned ctc_threads(const ctc_job *j)
{
    return (unsigned)(j->states < CTC_THREADS ? mixt__ceil_div(j->states, 32) * 32 : CTC_THREADS);
}

static inline unsigned ctc_row_blocks(const ctc_job *j)
{
    return (unsigned)mixt__ceil_div(j->batch * j->frames, CTC_ROW_WARPS);
}

#endif
