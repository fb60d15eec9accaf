/* Layer norm over the rows of (rows, cols).
 *
 * A warp takes two rows, which stay in its registers between the mean, the sum of squared deviations and the result;
 * weight and bias come from the cache once for both. Bytes: one read and one write of src's size. Rows too long, odd or
 * unaligned are left to a kernel that takes one element at a time.
 */
#include "backend/cuda/layer_norm.cuh"

enum { FORWARD_WARPS = 8 };

/** ROWS of a warp: two of them share what is loaded of weight and bias, while registers last. */
template <typename T, int V, int PACKS, int ROWS>
static __global__ void __launch_bounds__(32 * FORWARD_WARPS, PACKS <= 4 ? 3 : 2) layer_norm_warp(const job j)
{
    int lane = (int)threadIdx.x & 31;
    int64_t first = ((int64_t)blockIdx.x * FORWARD_WARPS + threadIdx.x / 32) * ROWS;
    pack<T, V> x[ROWS][PACKS];
    float mean[ROWS], rstd[ROWS], v[V];
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int i = 0; i < PACKS; i++) {
            int64_t col = (int64_t)(i * 32 + lane) * V;
            x[r][i] = col < j.cols && first + r < j.rows ? load<T, V>(j.src, (first + r) * j.cols + col) : pack<T, V>();
        }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        float sum = 0, squares = 0;
#pragma unroll
        for (int i = 0; i < PACKS; i++) {
            unpack(v, x[r][i]);
            for (int k = 0; k < V; k++)
                sum += v[k];
            forget(x[r][i]);
        }
        mean[r] = warp_sum(sum) * j.inv_cols;
#pragma unroll
        for (int i = 0; i < PACKS; i++) {
            unpack(v, x[r][i]);
            bool inside = (i * 32 + lane) * V < j.cols;
            for (int k = 0; k < V; k++)
                squares += inside ? (v[k] - mean[r]) * (v[k] - mean[r]) : 0.0f;
            forget(x[r][i]);
        }
        rstd[r] = 1.0f / sqrtf(warp_sum(squares) * j.inv_cols + j.eps);
        if (lane == 0 && first + r < j.rows) {
            j.mean[first + r] = mean[r];
            j.rstd[first + r] = rstd[r];
        }
    }
#pragma unroll
    for (int i = 0; i < PACKS; i++) {
        int64_t col = (int64_t)(i * 32 + lane) * V;
        float weight[V], bias[V];
        if (col >= j.cols)
            break;
        load_constants<V>(weight, j.weight, col);
        load_constants<V>(bias, j.bias, col);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            unpack(v, x[r][i]);
            for (int k = 0; k < V; k++)
                v[k] = (v[k] - mean[r]) * rstd[r] * weight[k] + bias[k];
            if (first + r < j.rows)
                store<T, V>(j.dst, (first + r) * j.cols + col, v);
        }
    }
}

/** One block a row, one element at a time. */
template <typename T> static __global__ void __launch_bounds__(PLAIN_THREADS) layer_norm_plain(const job j)
{
    __shared__ float shared[32];
    for (int64_t row = blockIdx.x; row < j.rows; row += gridDim.x) {
        const T *src = (const T *)j.src + row * j.cols;
        T *dst = (T *)j.dst + row * j.cols;
        float sum = 0, squares = 0;
        for (int64_t c = threadIdx.x; c < j.cols; c += PLAIN_THREADS)
            sum += to_float(src[c]);
        float mean = block_sum(sum, shared) * j.inv_cols;
        for (int64_t c = threadIdx.x; c < j.cols; c += PLAIN_THREADS) {
            float centred = to_float(src[c]) - mean;
            squares += centred * centred;
        }
        float rstd = 1.0f / sqrtf(block_sum(squares, shared) * j.inv_cols + j.eps);
        for (int64_t c = threadIdx.x; c < j.cols; c += PLAIN_THREADS)
            dst[c] = from_float<T>((to_float(src[c]) - mean) * rstd * j.weight[c] + j.bias[c]);
        if (threadIdx.x == 0) {
            j.mean[row] = mean;
            j.rstd[row] = rstd;
        }
    }
}

static unsigned warp_grid(int64_t rows)
{
    return (unsigned)mixt__ceil_div(rows, FORWARD_WARPS);
}

template <typename T> static void forward(const job &j, bool vectors)
{
    constexpr int V = vec16<T>::size;
    if (vectors && j.cols <= 32 * V * 4)
        layer_norm_warp<T, V, 4, 2>
            <<<warp_grid(mixt__ceil_div(j.rows, 2)), 32 * FORWARD_WARPS, 0, mixt__cuda.stream>>>(j);
    else if (vectors && j.cols <= 32 * V * 8)
        layer_norm_warp<T, V, 8, 1><<<warp_grid(j.rows), 32 * FORWARD_WARPS, 0, mixt__cuda.stream>>>(j);
    else
        layer_norm_plain<T><<<plain_grid(&j), PLAIN_THREADS, 0, mixt__cuda.stream>>>(j);
}

static mixt_status forward_run(const mixt__call *call)
{
    job j = job_of(call);
    j.bias = (const float *)call->in[2].data;
    j.mean = (float *)call->out[1].data;
    j.rstd = (float *)call->out[2].data;
    if (!j.rows)
        return MIXT_OK;
    DISPATCH(call->in[0].dtype, T, forward<T>(j, all_aligned(call, &j)));
    return mixt__cuda_launched("layer_norm");
}

static const mixt__kernel forward_kernel = {.name = "rows", .run = forward_run};

extern "C" const mixt__kernel *const mixt__cuda_layer_norm_kernels[] = {&forward_kernel, NULL};
