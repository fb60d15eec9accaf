/* Gradient statistics and step control on the GPU.
 *
 *   statistics: a block reads one chunk (8 × 16 bytes a thread, all in flight) and leaves its sums in the workspace;
 * the last block adds them up by segment, in a fixed tree. 4 bytes a parameter. control:    one block adds up the
 * segments; its first thread runs control.h. Chunks start at multiples of 16 elements and the arenas are padded to
 * them, so whole vectors may always be read.
 */
#include "backend/cuda/kernels.h"

#include "backend/control.h"
#include "backend/cuda/device.cuh"
#include "backend/cuda/last_block.cuh"
#include "backend/cuda/update_table.h"

extern "C" {
#include "base/status.h"
}

enum { CHUNK_THREADS = 512, CHUNK_VECTORS = MIXT_UPDATE_CHUNK / (4 * CHUNK_THREADS), CONTROL_THREADS = 256 };

/* ---- statistics ---- */

typedef struct alignas(16) chunk_stats {
    double sum_squares;
    uint32_t amax; // bits of a magnitude, which order like the magnitudes
    int32_t nonfinite, zeros;
    int32_t unused[3];
} chunk_stats;

static_assert(sizeof(chunk_stats) == 32, "mixt__update_workspace counts 32 bytes a chunk");

static __device__ __forceinline__ void stats_add(chunk_stats &s, float x)
{
    uint32_t bits = __float_as_uint(x) & 0x7fffffffu;
    bool special = bits > 0x7f7fffffu;
    s.nonfinite += special;
    s.zeros += bits == 0;
    s.amax = max(s.amax, special ? 0u : bits);
    s.sum_squares += (double)x * (double)x;
}

static __device__ __forceinline__ void stats_merge(chunk_stats &s, const chunk_stats &t)
{
    s.sum_squares += t.sum_squares;
    s.amax = max(s.amax, t.amax);
    s.nonfinite += t.nonfinite;
    s.zeros += t.zeros;
}

static __device__ __forceinline__ chunk_stats stats_of_warp(chunk_stats s)
{
    for (int lane = 16; lane; lane >>= 1) {
        chunk_stats t;
        t.sum_squares = __shfl_xor_sync(0xffffffffu, s.sum_squares, lane);
        t.amax = __shfl_xor_sync(0xffffffffu, s.amax, lane);
        t.nonfinite = __shfl_xor_sync(0xffffffffu, s.nonfinite, lane);
        t.zeros = __shfl_xor_sync(0xffffffffu, s.zeros, lane);
        stats_merge(s, t);
    }
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

/** By one warp. */
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

static __global__ void __launch_bounds__(CHUNK_THREADS)
    gradient_stats_chunks(const mixt__cuda_table table, const float *grad, chunk_stats *partial,
                          mixt__segment_stats *stats)
{
    __shared__ chunk_stats warps[CHUNK_THREADS / 32];
    const mixt__cuda_chunk &chunk = table.chunks[blockIdx.x];
    const float4 *g = reinterpret_cast<const float4 *>(grad + chunk.at);
    int count = chunk.count;
    float4 x[CHUNK_VECTORS];
#pragma unroll
    for (int i = 0; i < CHUNK_VECTORS; i++) {
        int at = i * CHUNK_THREADS + (int)threadIdx.x;
        x[i] = 4 * at < count ? __ldcs(g + at) : make_float4(0, 0, 0, 0);
    }
    chunk_stats s = {0, 0, 0, 0, {}};
#pragma unroll
    for (int i = 0; i < CHUNK_VECTORS; i++) {
        int at = 4 * (i * CHUNK_THREADS + (int)threadIdx.x);
        const float v[4] = {x[i].x, x[i].y, x[i].z, x[i].w};
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (at + j < count)
                stats_add(s, v[j]);
    }
    s = stats_of_warp(s);
    if ((threadIdx.x & 31) == 0)
        warps[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x < 32) {
        s = threadIdx.x < CHUNK_THREADS / 32 ? warps[threadIdx.x] : chunk_stats{0, 0, 0, 0, {}};
        s = stats_of_warp(s);
        if (threadIdx.x == 0)
            partial[blockIdx.x] = s;
    }
    if (!last_block(table.counter))
        return;
    for (int64_t i = threadIdx.x / 32; i < table.segment_count; i += CHUNK_THREADS / 32)
        stats_of_segment(table, partial, i, stats);
}

extern "C" mixt_status mixt__cuda_gradient_stats(const mixt__update *update)
{
    mixt__cuda_table table;
    MIXT_TRY(mixt__cuda_table_get(update, &table));
    if (!table.chunk_count)
        return mixt__cuda_check(
            cudaMemsetAsync(update->stats, 0, (size_t)table.segment_count * sizeof *update->stats, mixt__cuda.stream),
            "gradient statistics");
    gradient_stats_chunks<<<(unsigned)table.chunk_count, CHUNK_THREADS, 0, mixt__cuda.stream>>>(
        table, update->grad, (chunk_stats *)update->workspace, update->stats);
    return mixt__cuda_launched("gradient statistics");
}

/* ---- control ---- */

static __global__ void __launch_bounds__(CONTROL_THREADS)
    step_control(const mixt__update update, const int32_t *order, int64_t segment_count)
{
    __shared__ double sums[CONTROL_THREADS / 32];
    __shared__ int first[CONTROL_THREADS / 32];
    double sum = 0;
    int bad = INT32_MAX; // position in the order of the backward pass
    for (int64_t i = threadIdx.x; i < segment_count; i += CONTROL_THREADS) {
        sum += update.stats[i].sum_squares;
        if (update.stats[order[i]].nonfinite)
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
    for (int i = 1; i < CONTROL_THREADS / 32; i++) {
        sum += sums[i];
        bad = min(bad, first[i]);
    }
    mixt__control control = *update.control;
    control.bad_segment = bad == INT32_MAX ? -1 : order[bad];
    mixt__control_next(&control, &update, sum, bad != INT32_MAX);
    *update.control = control;
}

extern "C" mixt_status mixt__cuda_step_control(const mixt__update *update)
{
    mixt__cuda_table table;
    MIXT_TRY(mixt__cuda_table_get(update, &table));
    step_control<<<1, CONTROL_THREADS, 0, mixt__cuda.stream>>>(*update, table.order, table.segment_count);
    return mixt__cuda_launched("step control");
}
