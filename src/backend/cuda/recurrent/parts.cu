/* The parts of a gradient that run after its steps: the states before each step, and the gradient of a GRU's bias.
 *
 * The bias's is the sum of the last H of 3H columns over all B T rows. A block has 32 columns and one of 32 spans of
 * rows, a warp every eighth row of its span; what the spans give is added in their order by a second launch.
 */
#include "backend/cuda/core/device.cuh"
#include "backend/cuda/recurrent/recurrent.h"

enum { THREADS = 256, COLUMNS = 32, WARPS = THREADS / 32 };

template <typename T> static __global__ void shift(const T *dst, T *shifted, int64_t count, int64_t row, int64_t steps)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (int64_t)gridDim.x * blockDim.x)
        shifted[i] = i / row % steps ? dst[i - row] : T{};
}

extern "C" mixt_status mixt__cuda_recurrent_shift(const mixt__cuda_device *gpu, const mixt__tensor *dst, void *shifted)
{
    size_t row_bytes = (size_t)mixt__tensor_last(dst) * mixt_dtype_size(dst->dtype);
    int64_t bytes = mixt__tensor_count(dst) * (int64_t)mixt_dtype_size(dst->dtype), steps = dst->shape.dims[1];
    unsigned blocks = (unsigned)(8 * gpu->multiprocessors);
    if (!bytes)
        return MIXT_OK;
    if (row_bytes % 16 == 0 && aligned16(dst->data))
        shift<<<blocks, THREADS, 0, gpu->stream>>>((const uint4 *)dst->data, (uint4 *)shifted, bytes / 16,
                                                   (int64_t)row_bytes / 16, steps);
    else
        shift<<<blocks, THREADS, 0, gpu->stream>>>((const uint16_t *)dst->data, (uint16_t *)shifted, bytes / 2,
                                                   (int64_t)row_bytes / 2, steps);
    return mixt__cuda_launched("the states before each step");
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    bias_spans(const T *sums, float *parts, int64_t rows, int64_t width, int64_t n)
{
    __shared__ float shared[WARPS][COLUMNS];
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    const int64_t column = (int64_t)blockIdx.x * COLUMNS + lane, span = (rows + gridDim.y - 1) / gridDim.y;
    const int64_t begin = blockIdx.y * span, end = begin + span < rows ? begin + span : rows;
    float sum = 0;
    if (column < n)
        for (int64_t row = begin + warp; row < end; row += WARPS)
            sum += to_float(sums[row * width + width - n + column]);
    shared[warp][lane] = sum;
    __syncthreads();
    if (warp == 0 && column < n) {
        for (int w = 1; w < WARPS; w++)
            sum += shared[w][lane];
        parts[blockIdx.y * n + column] = sum;
    }
}

static __global__ void __launch_bounds__(THREADS) bias_end(const float *parts, float *grad_bias, int64_t n, bool add)
{
    int64_t column = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (column >= n)
        return;
    float sum = add ? grad_bias[column] : 0.0f;
    for (int p = 0; p < MIXT__CUDA_BIAS_PARTS; p++)
        sum += parts[p * n + column];
    grad_bias[column] = sum;
}

extern "C" mixt_status mixt__cuda_recurrent_bias_run(const mixt__call *call, float *parts)
{
    mixt__recurrent_sizes s = mixt__recurrent_grad_sizes(call);
    dim3 grid((unsigned)mixt__ceil_div(s.hidden, COLUMNS), MIXT__CUDA_BIAS_PARTS);
    bool add = call->accumulate >> 2 & 1;
    DISPATCH(call->out[0].dtype, T,
             (bias_spans<T><<<grid, THREADS, 0, mixt__cuda_of(call)->stream>>>(
                 (const T *)mixt__recurrent_grad_sums(call), parts, s.batch * s.steps, s.rows, s.hidden)));
    bias_end<<<(unsigned)mixt__ceil_div(s.hidden, THREADS), THREADS, 0, mixt__cuda_of(call)->stream>>>(
        parts, (float *)call->out[2].data, s.hidden, add);
    return mixt__cuda_launched("a bias's gradient");
}
