/* Rows of a table by index: (table, ids) → rows.
 *
 * A warp takes an index and copies its row, 16 bytes a lane where rows allow it. An index that is no row of the table
 * gives a row of NaN, which the loss then shows: the device cannot say it in words.
 */
#include "backend/cuda/kernels.h"

#include "backend/cuda/core/device.cuh"

enum { THREADS = 256, WARPS = THREADS / 32 };

/** U: what a lane copies at once; count: of those a row. */
template <typename U>
static __global__ void __launch_bounds__(THREADS)
    embedding_copy(const U *table, const int32_t *ids, U *dst, int64_t id_count, int64_t table_rows, int64_t count,
                   U nan)
{
    int64_t i = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    if (i >= id_count)
        return;
    int64_t id = ids[i];
    bool known = id >= 0 && id < table_rows;
    const U *src = table + (known ? id : 0) * count;
#pragma unroll 4
    for (int64_t c = threadIdx.x & 31; c < count; c += 32)
        dst[i * count + c] = known ? src[c] : nan;
}

/** Rows of a table of numbers with a scale for each row. */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    embedding_scaled(const int8_t *table, const float *scales, const int32_t *ids, T *dst, int64_t id_count,
                     int64_t table_rows, int64_t count)
{
    int64_t i = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32;
    if (i >= id_count)
        return;
    int64_t id = ids[i];
    bool known = id >= 0 && id < table_rows;
    const int8_t *src = table + (known ? id : 0) * count;
    float scale = known ? scales[id] : NAN;
    for (int64_t c = threadIdx.x & 31; c < count; c += 32)
        dst[i * count + c] = from_float<T>((float)src[c] * scale);
}

static mixt_status run_scaled(const mixt__call *call)
{
    const mixt__tensor *table = &call->in[0], *ids = &call->in[1], *dst = &call->out[0];
    int64_t id_count = mixt__tensor_count(ids), rows = table->shape.dims[0], cols = table->shape.dims[1];
    unsigned grid = (unsigned)mixt__ceil_div(id_count, WARPS);
    if (!id_count || !cols)
        return MIXT_OK;
    DISPATCH(dst->dtype, T,
             embedding_scaled<T><<<grid, THREADS, 0, mixt__cuda_of(call)->stream>>>(
                 (const int8_t *)table->data, table->scales, (const int32_t *)ids->data, (T *)dst->data, id_count, rows,
                 cols));
    return mixt__cuda_launched("embedding_scaled");
}

static bool supports(const mixt__call *call, const char **reason)
{
    const mixt__tensor *table = &call->in[0];
    *reason = "of tables with scales only those of int8 with a scale for each row";
    return table->scale_kind == MIXT_SCALE_NONE ||
           (table->scale_kind == MIXT_SCALE_CHANNEL && table->dtype == MIXT_DTYPE_INT8);
}

static mixt_status run(const mixt__call *call)
{
    if (call->in[0].scale_kind != MIXT_SCALE_NONE)
        return run_scaled(call);
    const mixt__tensor *table = &call->in[0], *ids = &call->in[1], *dst = &call->out[0];
    int64_t id_count = mixt__tensor_count(ids), rows = table->shape.dims[0], cols = table->shape.dims[1];
    int64_t bytes = cols * (int64_t)mixt_dtype_size(table->dtype);
    unsigned grid = (unsigned)mixt__ceil_div(id_count, WARPS);
    const int32_t *list = (const int32_t *)ids->data;
    cudaStream_t stream = mixt__cuda_of(call)->stream;
    if (!id_count || !cols)
        return MIXT_OK;
    // 0x7fff7fff is NaN as FP32, and each half is as FP16 and as BF16
    if (bytes % 16 == 0 && aligned16(table->data) && aligned16(dst->data)) {
        uint4 nan = make_uint4(0x7fff7fffu, 0x7fff7fffu, 0x7fff7fffu, 0x7fff7fffu);
        embedding_copy<uint4><<<grid, THREADS, 0, stream>>>((const uint4 *)table->data, list, (uint4 *)dst->data,
                                                            id_count, rows, bytes / 16, nan);
    } else if (table->dtype == MIXT_DTYPE_FP32) {
        embedding_copy<uint32_t><<<grid, THREADS, 0, stream>>>(
            (const uint32_t *)table->data, list, (uint32_t *)dst->data, id_count, rows, cols, 0x7fff7fffu);
    } else {
        embedding_copy<uint16_t><<<grid, THREADS, 0, stream>>>((const uint16_t *)table->data, list,
                                                               (uint16_t *)dst->data, id_count, rows, cols, 0x7fff);
    }
    return mixt__cuda_launched("embedding");
}

static const mixt__kernel kernel = {.name = "rows", .supports = supports, .run = run};

extern "C" const mixt__kernel *const mixt__cuda_embedding_kernels[] = {&kernel, NULL};
