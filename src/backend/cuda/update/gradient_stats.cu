/* Gradient statistics and step control on the GPU.
 *
 * Statistics: a block reads one chunk (8 × 16 bytes a thread, all in flight) and leaves its sums in the workspace; the
 * last block adds them up by segment, in a fixed tree. 4 bytes a parameter.
 * Control: one block adds up the segments; its first thread runs control.h.
 * Chunks start at multiples of 16 elements and the arenas are padded to them, so whole vectors may always be read.
 */
#include "backend/cuda/kernels.h"

#include "backend/control.h"
#include "backend/cuda/core/dependent.cuh"
#include "backend/cuda/core/last_block.cuh"
#include "backend/cuda/update/table.h"

extern "C" {
#include "base/status.h"
}

enum { CHUNK_THREADS = 512, CHUNK_VECTORS = MIXT_CUDA_CHUNK / (4 * CHUNK_THREADS) };
enum { CONTROL_THREADS = CHUNK_THREADS }; // so that control has the same bits behind statistics and by itself
enum { AHEAD = 3, SEGMENT_WARPS = CHUNK_THREADS / 32 - AHEAD }; // warps of the last block

/* ---- statistics ---- */

typedef struct alignas(16) chunk_stats {
    double sum_squares;
    uint32_t amax; // bits of a magnitude, which order like the magnitudes
    int32_t nonfinite, zeros;
    int32_t unused[3];
} chunk_stats;

static_assert(sizeof(chunk_stats) == 32, "mixt__update_workspace counts 32 bytes per chunk");

static __device__ __forceinline__ void stats_add(chunk_stats &s, float x)
{
    uint32_t bits = __float_as_uint(x) & 0x7fffffffu;
    bool special = bits > 0x7f7fffffu;
    s.nonfinite += special;
    s.zeros += bits == 0;
    s.amax = max(s.amax, special ? 0u : bits);
    s.sum_squares += (double)x * (double)x;
}

static __device__ __forceinline__ chunk_stats stats_of_warp(chunk_stats s)
{
#if __CUDA_ARCH__ >= 800
    s.amax = __reduce_max_sync(0xffffffffu, s.amax);
    s.nonfinite = __reduce_add_sync(0xffffffffu, s.nonfinite);
    s.zeros = __reduce_add_sync(0xffffffffu, s.zeros);
#else
    for (int lane = 16; lane; lane >>= 1) {
        s.amax = max(s.amax, __shfl_xor_sync(0xffffffffu, s.amax, lane));
        s.nonfinite += __shfl_xor_sync(0xffffffffu, s.nonfinite, lane);
        s.zeros += __shfl_xor_sync(0xffffffffu, s.zeros, lane);
    }
#endif
    s.sum_squares = warp_sum_f64(s.sum_squares);
    return s;
}

static __device__ __forceinline__ chunk_stats stats_read(const chunk_stats *p)
{
    union {
        float4 raw;
        struct {
            double sum_squares;
            uint32_t amax;
            int32_t nonfinite;
        } s;
    } first;
    first.raw = __ldcg(reinterpret_cast<const float4 *>(p));
    return {first.s.sum_squares, first.s.amax, first.s.nonfinite, __ldcg(&p->zeros), {}};
}

/** By one warp; join_stats.c does the same on the host. */
static __device__ void stats_of_segment(const mixt__cuda_table &table, const chunk_stats *partial, int64_t segment,
                                        mixt__segment_stats *stats)
{
    int64_t end = table.first[segment + 1];
    mixt__segment_stats total = {0, 0, 0, 0};
    uint32_t amax = 0;
#pragma unroll 4
    for (int64_t i = table.first[segment] + (threadIdx.x & 31); i < end; i += 32) {
        chunk_stats s = stats_read(&partial[i]);
        total.sum_squares += s.sum_squares;
        total.nonfinite += s.nonfinite;
        total.zeros += s.zeros;
        amax = max(amax, s.amax);
    }
    for (int lane = 16; lane; lane >>= 1) {
        total.sum_squares += __shfl_xor_sync(0xffffffffu, total.sum_squares, lane);
        total.nonfinite += __shfl_xor_sync(0xffffffffu, total.nonfinite, lane);
        total.zeros += __shfl_xor_sync(0xffffffffu, total.zeros, lane);
        amax = max(amax, __shfl_xor_sync(0xffffffffu, amax, lane));
    }
    total.amax = __uint_as_float(amax);
    if ((threadIdx.x & 31) == 0)
        stats[segment] = total;
}

/** In thread 0: of all threads. */
static __device__ __forceinline__ chunk_stats stats_of_block(chunk_stats s)
{
    __shared__ chunk_stats warps[CHUNK_THREADS / 32];
    s = stats_of_warp(s);
    if ((threadIdx.x & 31) == 0)
        warps[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x < 32)
        s = stats_of_warp(threadIdx.x < CHUNK_THREADS / 32 ? warps[threadIdx.x] : chunk_stats{0, 0, 0, 0, {}});
    return s;
}

/* ---- control ---- */

/** By a warp each, side by side: powers and cosines in double precision take a while. */
static __device__ __forceinline__ void coming_set(const mixt__update &update, int which, mixt__coming *coming)
{
    int64_t step = update.control->step;
    if (threadIdx.x & 31)
        return;
    if (which == 0)
        coming->lr = mixt__lr_after(&update.schedule, step);
    else if (which == 1)
        coming->inv_bias1 = mixt__inv_bias1(&update.optimizer, step + 1);
    else
        coming->inv_sqrt_bias2 = mixt__inv_sqrt_bias2(&update.optimizer, step + 1);
}

/** By one block, after a barrier: from the segments' statistics to the next control block. */
template <int THREADS>
static __device__ __forceinline__ void control_by_block(const mixt__update &update, const mixt__cuda_table &table,
                                                        const mixt__coming *coming)
{
    __shared__ double sums[THREADS / 32];
    __shared__ int first[THREADS / 32];
    double sum = 0;
    int bad = INT32_MAX; // position in the order of the backward pass
    for (int64_t i = threadIdx.x; i < table.segment_count; i += THREADS) {
        sum += update.stats[i].sum_squares;
        if (update.stats[table.order[i]].nonfinite)
            bad = min(bad, (int)i);
    }
    sum = warp_sum_f64(sum);
    for (int lane = 16; lane; lane >>= 1)
        bad = min(bad, __shfl_xor_sync(0xffffffffu, bad, lane));
    if ((threadIdx.x & 31) == 0) {
        sums[threadIdx.x / 32] = sum;
        first[threadIdx.x / 32] = bad;
    }
    __syncthreads();
    if (threadIdx.x)
        return;
    for (int i = 1; i < THREADS / 32; i++) {
        sum += sums[i];
        bad = min(bad, first[i]);
    }
    mixt__control control = *update.control;
    mixt__control_check(&control, update.damage);
    control.bad_segment = bad == INT32_MAX ? -1 : table.order[bad];
    mixt__control_next(&control, &update, sum, bad != INT32_MAX, coming);
    *update.control = control;
}

static __global__ void __launch_bounds__(CONTROL_THREADS)
    step_control(const mixt__update update, const mixt__cuda_table table)
{
    __shared__ mixt__coming coming;
    dependency_wait();
    dependents_may_start();
    if (threadIdx.x >= CONTROL_THREADS - 32 * AHEAD)
        coming_set(update, ((int)threadIdx.x - (CONTROL_THREADS - 32 * AHEAD)) / 32, &coming);
    __syncthreads();
    control_by_block<CONTROL_THREADS>(update, table, &coming);
}

/* ---- statistics, and control when it follows ---- */

static __global__ void __launch_bounds__(CHUNK_THREADS)
    gradient_stats_chunks(const mixt__update update, const mixt__cuda_table table)
{
    __shared__ mixt__coming coming;
    const mixt__cuda_chunk &chunk = table.chunks[blockIdx.x];
    const float4 *g = reinterpret_cast<const float4 *>(static_cast<const float *>(update.gradient.data) + chunk.at);
    chunk_stats *partial = (chunk_stats *)update.workspace, s = {0, 0, 0, 0, {}};
    int count = chunk.count, warp = (int)threadIdx.x / 32;
    float4 x[CHUNK_VECTORS];
    dependency_wait();
    dependents_may_start();
#pragma unroll
    for (int i = 0; i < CHUNK_VECTORS; i++) {
        int at = i * CHUNK_THREADS + (int)threadIdx.x;
        x[i] = 4 * at < count ? __ldcs(g + at) : make_float4(0, 0, 0, 0);
    }
#pragma unroll
    for (int i = 0; i < CHUNK_VECTORS; i++) {
        int at = 4 * (i * CHUNK_THREADS + (int)threadIdx.x);
        const float v[4] = {x[i].x, x[i].y, x[i].z, x[i].w};
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (at + j < count)
                stats_add(s, v[j]);
    }
    s = stats_of_block(s);
    if (threadIdx.x == 0)
        partial[blockIdx.x] = s;
    if (!last_block(table.counter))
        return;
    if (warp >= SEGMENT_WARPS && update.control_follows)
        coming_set(update, warp - SEGMENT_WARPS, &coming);
    for (int64_t i = warp; i < (warp < SEGMENT_WARPS ? table.segment_count : 0); i += SEGMENT_WARPS)
        stats_of_segment(table, partial, i, update.stats);
    __syncthreads();
    if (update.control_follows)
        control_by_block<CHUNK_THREADS>(update, table, &coming);
}

extern "C" mixt_status mixt__cuda_gradient_stats(mixt__device *device, const mixt__update *update)
{
    mixt__cuda_enter(device);
    const mixt__cuda_device *gpu = mixt__cuda_device_of(device);
    mixt__cuda_table table;
    MIXT_TRY(mixt__cuda_table_get(device, update, &table));
    if (!table.chunk_count)
        return mixt__cuda_check(
            cudaMemsetAsync(update->stats, 0, (size_t)table.segment_count * sizeof *update->stats, gpu->stream),
            "gradient statistics");
    return mixt__cuda_check(
        launch_dependent(gpu, gradient_stats_chunks, (unsigned)table.chunk_count, CHUNK_THREADS, *update, table),
        "gradient statistics");
}

extern "C" mixt_status mixt__cuda_step_control(mixt__device *device, const mixt__update *update)
{
    mixt__cuda_enter(device);
    const mixt__cuda_device *gpu = mixt__cuda_device_of(device);
    mixt__cuda_table table;
    MIXT_TRY(mixt__cuda_table_get(device, update, &table));
    if (update->control_follows && table.chunk_count)
        return MIXT_OK; // gradient_stats did it
    return mixt__cuda_check(launch_dependent(gpu, step_control, 1, CONTROL_THREADS, *update, table), "step control");
}
