/* Layer norm, and with RMS root-mean-square norm, which has no mean and no bias, over the rows of (rows, cols).
 *
 * A grid that just fills the GPU; each warp takes one row after the other, its next rows already on their way through
 * shared memory (each lane copies what it will read itself, so there are no barriers). A row then stays in registers
 * between the mean, the sum of squared deviations and the result; weight and bias lie in shared memory, cut into
 * 16-byte halves so that the lanes' reads fall into different banks. Bytes: one read and one write of src's size. Rows
 * too long, odd or unaligned are left to a kernel that takes one element at a time.
 */
#include "backend/cuda/core/async_copy.cuh"
#include "backend/cuda/norm/layer_norm.cuh"

enum { WARPS = 8, RING = 16 }; // RING: packs that a warp has room for

/** STAGES rows of PACKS packs of 16 bytes a lane are under way at once. */
template <typename T, int V, int PACKS> struct ring {
    static constexpr int STAGES = RING / PACKS;
    uint4 *slots; // of this lane; those of one stage are `packs` apart by a warp's width
    int packs;

    __device__ __forceinline__ uint4 *slot(int stage, int pack) const
    {
        return slots + (stage * packs + pack) * 32;
    }

    __device__ __forceinline__ void ask(const job &j, int64_t row, int stage, int lane) const
    {
        const T *src = (const T *)j.src + row * j.cols;
#pragma unroll
        for (int i = 0; i < PACKS; i++) {
            int col = (i * 32 + lane) * V;
            bool something = row < j.rows && col < j.cols;
            if (i < packs)
                copy16_async(slot(stage, i), something ? src + col : j.src, something);
        }
        copies_commit();
    }
};

/** Weight and bias: for each pack of V columns, V / 4 vectors of each, those of one kind side by side. */
template <int V, bool RMS> static __device__ __forceinline__ void load_params(const job &j, float4 *params)
{
    int packs = (int)(j.cols / V);
    for (int i = (int)threadIdx.x; i < packs * (V / 4); i += (int)blockDim.x) {
        int at = i % (V / 4) * packs + i / (V / 4);
        params[at] = ((const float4 *)j.weight)[i];
        if (!RMS)
            params[V / 4 * packs + at] = ((const float4 *)j.bias)[i];
    }
    __syncthreads();
}

/** The statistics of a row held as PACKS packs a lane, of which those beyond the last column are zeros. */
template <int V, int PACKS, bool RMS>
static __device__ __forceinline__ void measure(const job &j, const float (*v)[V], int lane, float *mean, float *rstd)
{
    float sum = 0, squares = 0;
#pragma unroll
    for (int i = 0; i < PACKS; i++)
#pragma unroll
        for (int k = 0; k < V; k++)
            sum += v[i][k];
    *mean = RMS ? 0.0f : warp_sum(sum) * j.inv_cols;
#pragma unroll
    for (int i = 0; i < PACKS; i++) {
        bool inside = (i * 32 + lane) * V < j.cols;
#pragma unroll
        for (int k = 0; k < V; k++) {
            float centred = RMS ? v[i][k] : inside ? v[i][k] - *mean : 0.0f;
            squares += centred * centred;
        }
    }
    *rstd = 1.0f / sqrtf(warp_sum(squares) * j.inv_cols + j.eps);
}

template <typename T, int V, int PACKS, bool RMS>
static __device__ __forceinline__ void write_row(const job &j, int64_t row, float (*v)[V], int lane,
                                                 const float4 *params, float mean, float rstd)
{
    int packs = (int)(j.cols / V);
#pragma unroll
    for (int i = 0; i < PACKS; i++) {
        int at = i * 32 + lane;
        if (at >= packs)
            break;
#pragma unroll
        for (int half = 0; half < V / 4; half++) {
            float4 w = params[half * packs + at], b = {};
            if (!RMS)
                b = params[(V / 4 + half) * packs + at];
            float *x = v[i] + 4 * half;
            x[0] = (x[0] - mean) * rstd * w.x + b.x;
            x[1] = (x[1] - mean) * rstd * w.y + b.y;
            x[2] = (x[2] - mean) * rstd * w.z + b.z;
            x[3] = (x[3] - mean) * rstd * w.w + b.w;
        }
        store<T, V>(j.dst, row * j.cols + (int64_t)at * V, v[i]);
    }
}

/** packs: of 16 bytes a lane that a row takes, at most PACKS. Shared memory: parameters, then the warps' rings. */
template <typename T, int V, int PACKS, bool RMS>
static __global__ void __launch_bounds__(32 * WARPS, RING / PACKS) layer_norm_warp(const job j, int packs)
{
    extern __shared__ float4 shared[];
    typedef ring<T, V, PACKS> rows;
    int lane = (int)threadIdx.x & 31, warp = (int)threadIdx.x / 32, stage = 0;
    int64_t first = (int64_t)blockIdx.x * WARPS + warp, stride = (int64_t)gridDim.x * WARPS;
    rows r = {(uint4 *)shared + 2 * (j.cols / 4) + warp * rows::STAGES * packs * 32 + lane, packs};
    for (int s = 0; s < rows::STAGES - 1; s++)
        r.ask(j, first + s * stride, s, lane);
    load_params<V, RMS>(j, shared);
    for (int64_t row = first; row < j.rows; row += stride) {
        float v[PACKS][V], mean, rstd;
        copies_wait<rows::STAGES - 2>();
#pragma unroll
        for (int i = 0; i < PACKS; i++) {
            pack<T, V> x = i < packs ? pack<T, V>{*r.slot(stage, i)} : pack<T, V>();
            unpack(v[i], x);
        }
        r.ask(j, row + (rows::STAGES - 1) * stride, stage ? stage - 1 : rows::STAGES - 1, lane);
        measure<V, PACKS, RMS>(j, v, lane, &mean, &rstd);
        write_row<T, V, PACKS, RMS>(j, row, v, lane, shared, mean, rstd);
        if (lane == 0 && !RMS)
            j.mean[row] = mean;
        if (lane == 0)
            j.rstd[row] = rstd;
        stage = stage + 1 < rows::STAGES ? stage + 1 : 0;
    }
    copies_wait<0>();
}

/** One block a row, one element at a time. */
template <typename T, bool RMS> static __global__ void __launch_bounds__(PLAIN_THREADS) layer_norm_plain(const job j)
{
    __shared__ float shared[32];
    for (int64_t row = blockIdx.x; row < j.rows; row += gridDim.x) {
        const T *src = (const T *)j.src + row * j.cols;
        T *dst = (T *)j.dst + row * j.cols;
        float sum = 0, squares = 0;
        for (int64_t c = threadIdx.x; !RMS && c < j.cols; c += PLAIN_THREADS)
            sum += to_float(src[c]);
        float mean = RMS ? 0.0f : block_sum(sum, shared) * j.inv_cols;
        for (int64_t c = threadIdx.x; c < j.cols; c += PLAIN_THREADS) {
            float centred = to_float(src[c]) - mean;
            squares += centred * centred;
        }
        float rstd = 1.0f / sqrtf(block_sum(squares, shared) * j.inv_cols + j.eps);
        for (int64_t c = threadIdx.x; c < j.cols; c += PLAIN_THREADS)
            dst[c] = from_float<T>((to_float(src[c]) - mean) * rstd * j.weight[c] + (RMS ? 0.0f : j.bias[c]));
        if (threadIdx.x == 0 && !RMS)
            j.mean[row] = mean;
        if (threadIdx.x == 0)
            j.rstd[row] = rstd;
    }
}

/** False: a row is too long for this many packs, or the GPU's shared memory too small. */
template <typename T, int PACKS, bool RMS>
static bool forward_warps(const mixt__cuda_device *gpu, const job &j, cudaError_t *error)
{
    constexpr int V = vec16<T>::size;
    int packs = (int)mixt__ceil_div(j.cols, 32 * V);
    size_t shared = 2 * (size_t)j.cols * sizeof(float) + (size_t)(WARPS * (RING / PACKS) * packs) * 32 * sizeof(uint4);
    int64_t blocks = mixt__ceil_div(j.rows, WARPS), most = (int64_t)gpu->multiprocessors * (RING / PACKS);
    if (packs > PACKS || shared > (size_t)gpu->shared_limit)
        return false;
    auto kernel = layer_norm_warp<T, V, PACKS, RMS>;
    *error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
    if (*error == cudaSuccess)
        kernel<<<(unsigned)(blocks < most ? blocks : most), 32 * WARPS, shared, gpu->stream>>>(j, packs);
    return true;
}

template <typename T, bool RMS> static cudaError_t forward(const mixt__cuda_device *gpu, const job &j, bool vectors)
{
    cudaError_t error = cudaSuccess;
    if (!vectors || (!forward_warps<T, 4, RMS>(gpu, j, &error) && !forward_warps<T, 8, RMS>(gpu, j, &error)))
        layer_norm_plain<T, RMS><<<plain_grid(gpu, &j), PLAIN_THREADS, 0, gpu->stream>>>(j);
    return error;
}

static mixt_status forward_run(const mixt__call *call)
{
    job j = job_of(call);
    j.bias = (const float *)call->in[2].data;
    j.mean = (float *)call->out[1].data;
    j.rstd = (float *)call->out[2].data;
    if (!j.rows)
        return MIXT_OK;
    cudaError_t error = cudaSuccess;
    DISPATCH(call->in[0].dtype, T, error = forward<T, false>(mixt__cuda_of(call), j, all_aligned(call, &j)));
    return error == cudaSuccess ? mixt__cuda_launched("layer_norm") : mixt__cuda_check(error, "layer_norm");
}

static mixt_status rms_run(const mixt__call *call)
{
    job j = job_of(call);
    j.rstd = (float *)call->out[1].data;
    if (!j.rows)
        return MIXT_OK;
    cudaError_t error = cudaSuccess;
    DISPATCH(call->in[0].dtype, T, error = forward<T, true>(mixt__cuda_of(call), j, all_aligned(call, &j)));
    return error == cudaSuccess ? mixt__cuda_launched("rms_norm") : mixt__cuda_check(error, "rms_norm");
}

static const mixt__kernel rms_kernel = {.name = "rows", .run = rms_run};
static const mixt__kernel forward_kernel = {.name = "rows", .run = forward_run};

extern "C" const mixt__kernel *const mixt__cuda_layer_norm_kernels[] = {&forward_kernel, NULL};
extern "C" const mixt__kernel *const mixt__cuda_rms_norm_kernels[] = {&rms_kernel, NULL};
