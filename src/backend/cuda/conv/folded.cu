/* A folded convolution of 16 channels (see conv2d.h) and its weight gradient on the matrix units, FP16 and BF16;
 * TF32 goes to folded_tf32.cu, only the blocks' sums of its gradient are added here.
 *
 * Forward: a block makes ROWS rows of one image and 64 outputs; source rows and weight lie in shared memory, and each
 * warp makes 2 rows x 16 pixels x 64 outputs at a time: a tap is one step of 16 channels. Gradient: a block walks over
 * row pairs of all images with the whole 64 x taps x 16 gradient in the registers of its warps, two taps each, the next
 * pair on its way; the blocks' sums are added in order by a second kernel. Shared rows are swizzled so that eight
 * neighbouring pixels lie in different banks.
 * Bytes: the folded source (about 1.2 and 2.5 times, from the cache), dst or grad_dst once.
 */
#include "backend/cuda/conv/conv2d.h"

#include "backend/cuda/core/device.cuh"

enum { THREADS = 256, WARPS = 8, CHANNELS = 16, OUTPUTS = 64, ROWS = 16, PAIR = 2, TAPS = 16, STAGES = 2, PARTS = 8 };

typedef struct job {
    mixt__cuda_conv v; // folded: stride 1, no padding
    const void *src, *weight, *grad_dst;
    void *dst;
    const float *bias;
    float *partials; // (blocks, O, taps, 16)
    int blocks;
} job;

/* ---- instructions; there are none of them before Ampere, where the candidate steps aside ---- */

static __device__ __forceinline__ unsigned shared_address(const void *p)
{
    return (unsigned)__cvta_generic_to_shared(p);
}

/** 16 bytes to shared memory in the background; zeros unless `real`. */
static __device__ __forceinline__ void copy16(unsigned to, const void *from, bool real)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(real ? 16 : 0) : "memory");
#endif
}

static __device__ __forceinline__ void copies_close(void)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/** All but the newest `left` groups of copies are there. */
template <int left> static __device__ __forceinline__ void copies_wait(void)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory");
#endif
}

/** Four 8 x 8 matrices, as they lie or transposed; lane l gives row l % 8 of matrix l / 8. */
template <bool turned> static __device__ __forceinline__ void load_matrices(unsigned *r, unsigned address)
{
#if __CUDA_ARCH__ >= 750
    if constexpr (turned)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(address)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                     : "r"(address)
                     : "memory");
#endif
}

/** sum (16 x 8) += a (16 x 16) · b (16 x 8). */
static __device__ __forceinline__ void multiply(float *sum, const unsigned *a, const unsigned *b, bf16)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

static __device__ __forceinline__ void multiply(float *sum, const unsigned *a, const unsigned *b, fp16)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

/* ---- shared memory ---- */

/** Bytes from the first source pixel to half `half` of pixel p. */
static __device__ __forceinline__ int src_place(int p, int half)
{
    return p * 32 + ((half ^ (p >> 2 & 1)) << 4);
}

/** Copies source rows [y, y + rows) of an image, zeros past its end. */
template <typename T>
static __device__ __forceinline__ void load_src(const job &j, unsigned to, int64_t image, int y, int rows)
{
    int width = (int)j.v.w, pixels = rows * width;
    const T *from = static_cast<const T *>(j.src) + (image * j.v.h + y) * width * CHANNELS;
    int real = ((int)j.v.h - y) * width;
    for (int i = threadIdx.x; i < 2 * pixels; i += THREADS)
        copy16(to + src_place(i >> 1, i & 1), from + (i >> 1 < real ? i * 8 : 0), i >> 1 < real);
}

/* ---- forward ---- */

/** Where output o of 64 lies among the weight's rows, so that a lane's results are 16 neighbours: row r of matrix m is
 *  output r / 2 · 16 + 2 · m + r % 2. */
static __device__ __forceinline__ int weight_row(int o)
{
    return o % 16 / 2 * 8 + o / 16 * 2 + o % 2;
}

/** One lane's 16 results of a pixel. */
template <typename T>
static __device__ __forceinline__ void store_pixel(const job &j, int64_t pixel, int first, const float (*sums)[4],
                                                   int row)
{
    T *to = static_cast<T *>(j.dst) + pixel * j.v.o + first;
    for (int half = 0; half < 2; half++) {
        vec16<T> packed;
        for (int k = 0; k < 8; k++) {
            float sum = sums[half * 4 + k / 2][2 * row + k % 2];
            packed.v[k] = from_float<T>(j.bias ? sum + j.bias[first + half * 8 + k] : sum);
        }
        store16(to + half * 8, packed);
    }
}

template <typename T> static __global__ void __launch_bounds__(THREADS, 2) forward_kernel(const job j)
{
    extern __shared__ __align__(128) unsigned char shared[];
    int taps = (int)(j.v.kernel_h * j.v.kernel_w), width = (int)j.v.w, tiles = (int)(j.v.out_w / 16);
    int weight_stride = taps * 32 + 16, lane = threadIdx.x & 31, outputs = blockIdx.z * OUTPUTS;
    unsigned weight = shared_address(shared), src = weight + OUTPUTS * weight_stride;
    int64_t image = blockIdx.x;
    int top = blockIdx.y * ROWS;
    const T *from = static_cast<const T *>(j.weight) + (int64_t)outputs * taps * CHANNELS;
    for (int i = threadIdx.x; i < OUTPUTS * taps * 2; i += THREADS) {
        int o = i / (taps * 2);
        copy16(weight + weight_row(o) * weight_stride + i % (taps * 2) * 16, from + (int64_t)i * 8, true);
    }
    load_src<T>(j, src, image, top, ROWS + (int)j.v.kernel_h - 1);
    copies_close();
    copies_wait<0>();
    __syncthreads();
    int pixel = (lane & 7) + (lane >> 3 & 1) * 8;
    unsigned weight_lane = weight + ((lane & 7) + (lane >> 4) * 8) * weight_stride + (lane >> 3 & 1) * 16;
    for (int tile = threadIdx.x >> 5; tile < tiles * (ROWS / 2); tile += WARPS) {
        int y = tile / tiles * 2, x = tile % tiles * 16;
        float sums[2][8][4] = {};
        if (top + y >= j.v.out_h)
            break;
        for (int tap = 0; tap < taps; tap++) {
            unsigned a[2][4], b[4][4];
            int first = (y + tap / (int)j.v.kernel_w) * width + x + tap % (int)j.v.kernel_w + pixel;
            load_matrices<false>(a[0], src + src_place(first, lane >> 4));
            load_matrices<false>(a[1], src + src_place(first + width, lane >> 4));
#pragma unroll
            for (int n = 0; n < 4; n++)
                load_matrices<false>(b[n], weight_lane + n * 16 * weight_stride + tap * 32);
#pragma unroll
            for (int n = 0; n < 8; n++)
                for (int m = 0; m < 2; m++)
                    multiply(sums[m][n], a[m], &b[n / 2][n % 2 * 2], T());
        }
        for (int m = 0; m < 2; m++)
            for (int row = 0; row < 2 && top + y + m < j.v.out_h; row++)
                store_pixel<T>(j, (image * j.v.out_h + top + y + m) * j.v.out_w + x + (lane >> 2) + row * 8,
                               outputs + (lane & 3) * 16, sums[m], row);
    }
}

/* ---- gradient of the weight ---- */

/** Copies a pair of rows of grad_dst, 64 outputs, and the source rows under it. */
template <typename T>
static __device__ __forceinline__ void load_pair(const job &j, unsigned to, int64_t pair, int64_t pairs, int outputs)
{
    int64_t image = pair / pairs;
    int y = (int)(pair % pairs) * PAIR, width = (int)j.v.out_w;
    int real = ((int)j.v.out_h - y) * width;
    const T *from = static_cast<const T *>(j.grad_dst) + (image * j.v.out_h + y) * width * j.v.o + outputs;
    for (int i = threadIdx.x; i < PAIR * width * 8; i += THREADS) {
        int pixel = i >> 3, part = i & 7;
        copy16(to + pixel * 128 + ((part ^ (pixel & 7)) << 4), pixel < real ? from + pixel * j.v.o + part * 8 : from,
               pixel < real);
    }
    load_src<T>(j, to + PAIR * width * 128, image, y, PAIR + (int)j.v.kernel_h - 1);
}

/** Adds what one row pair gives to the two taps of this warp: a step is 16 pixels. */
template <typename T>
static __device__ __forceinline__ void add_pair(const job &j, unsigned stage, const int *taps, float (*sums)[2][2][4])
{
    int lane = threadIdx.x & 31, out_w = (int)j.v.out_w, width = (int)j.v.w, kernel_w = (int)j.v.kernel_w;
    unsigned src = stage + PAIR * out_w * 128;
    int pixel_a = (lane & 7) + (lane >> 4) * 8, part = lane >> 3 & 1;
    int pixel_b = (lane & 7) + (lane >> 3 & 1) * 8, half = lane >> 4;
    for (int y = 0; y < PAIR; y++)
        for (int x = 0; x < out_w; x += 16) {
            unsigned a[4][4], b[2][4];
            int pixel = y * out_w + x + pixel_a;
#pragma unroll
            for (int m = 0; m < 4; m++)
                load_matrices<true>(a[m], stage + pixel * 128 + ((m * 2 + part ^ (pixel & 7)) << 4));
#pragma unroll
            for (int t = 0; t < 2; t++) {
                int place = (y + taps[t] / kernel_w) * width + x + taps[t] % kernel_w + pixel_b;
                load_matrices<true>(b[t], src + src_place(place, half));
            }
#pragma unroll
            for (int m = 0; m < 4; m++)
                for (int t = 0; t < 2; t++)
                    for (int n = 0; n < 2; n++)
                        multiply(sums[m][t][n], a[m], &b[t][n * 2], T());
        }
}

template <typename T> static __global__ void __launch_bounds__(THREADS, 2) grad_weight_kernel(const job j)
{
    extern __shared__ __align__(128) unsigned char shared[];
    int count = (int)(j.v.kernel_h * j.v.kernel_w), warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    int taps[2] = {warp * 2, warp * 2 + 1 < count ? warp * 2 + 1 : count - 1}, outputs = blockIdx.y * OUTPUTS;
    int bytes = PAIR * (int)j.v.out_w * 128 + (PAIR + (int)j.v.kernel_h - 1) * (int)j.v.w * 32;
    int64_t pairs = (j.v.out_h + PAIR - 1) / PAIR, total = pairs * j.v.n;
    int64_t pair = total * blockIdx.x / gridDim.x, end = total * (blockIdx.x + 1) / gridDim.x;
    unsigned stages = shared_address(shared);
    float sums[4][2][2][4] = {};
    if (pair < end)
        load_pair<T>(j, stages, pair, pairs, outputs);
    copies_close();
    for (int stage = 0; pair < end; pair++, stage ^= 1) {
        if (pair + 1 < end)
            load_pair<T>(j, stages + (stage ^ 1) * bytes, pair + 1, pairs, outputs);
        copies_close();
        copies_wait<1>();
        __syncthreads();
        if (taps[0] < count)
            add_pair<T>(j, stages + stage * bytes, taps, sums);
        __syncthreads();
    }
    for (int m = 0; m < 4; m++)
        for (int t = 0; t < 2 && warp * 2 + t < count; t++)
            for (int n = 0; n < 2; n++)
                for (int row = 0; row < 2; row++) {
                    int64_t o = outputs + m * 16 + (lane >> 2) + row * 8;
                    float *to =
                        j.partials + ((blockIdx.x * j.v.o + o) * count + taps[t]) * CHANNELS + n * 8 + (lane & 3) * 2;
                    *reinterpret_cast<float2 *>(to) = make_float2(sums[m][t][n][row * 2], sums[m][t][n][row * 2 + 1]);
                }
}

/** The blocks' sums of an element of the gradient, and back to where it was before folding. PARTS threads an element.
 */
template <typename R>
static __global__ void __launch_bounds__(THREADS)
    finish_kernel(const mixt__cuda_fold f, const float *partials, int blocks, R *grad, bool add)
{
    __shared__ float parts[PARTS][THREADS / PARTS];
    const mixt__cuda_conv &v = f.from;
    int column = threadIdx.x % (THREADS / PARTS), part = threadIdx.x / (THREADS / PARTS);
    int64_t at = (int64_t)blockIdx.x * (THREADS / PARTS) + column,
            count = v.o * v.kernel_d * v.kernel_h * v.kernel_w * v.c;
    int64_t size = f.to.o * f.to.kernel_h * f.to.kernel_w * f.to.c, place = mixt__cuda_fold_place(&f, at);
    float sum = 0;
    if (at < count)
#pragma unroll 8
        for (int b = part; b < blocks; b += PARTS)
            sum += partials[b * size + place];
    parts[part][column] = sum;
    __syncthreads();
    if (part || at >= count)
        return;
    for (int p = 1; p < PARTS; p++)
        sum += parts[p][column];
    grad[at] = from_float<R>(add ? to_float(grad[at]) + sum : sum);
}

/* ---- launches ---- */

static size_t forward_shared(const mixt__cuda_conv *v)
{
    return (size_t)(OUTPUTS * (v->kernel_h * v->kernel_w * 32 + 16) + (ROWS + v->kernel_h - 1) * v->w * 32);
}

static size_t grad_shared(const mixt__cuda_conv *v)
{
    return (size_t)(STAGES * (PAIR * v->out_w * 128 + (PAIR + v->kernel_h - 1) * v->w * 32));
}

static int grad_blocks(const mixt__cuda_device *gpu, const mixt__cuda_conv *v, mixt_dtype dtype)
{
    if (dtype == MIXT_DTYPE_TF32)
        return mixt__cuda_folded_tf32_blocks(gpu, v);
    int64_t pairs = mixt__ceil_div(v->out_h, PAIR) * v->n, most = 2 * gpu->multiprocessors * OUTPUTS / v->o;
    most = most > 1 ? most : 1;
    return (int)(pairs < most ? pairs : most);
}

extern "C" bool mixt__cuda_folded_supports(const mixt__cuda_device *gpu, const mixt__cuda_fold *fold, mixt_dtype dtype)
{
    const mixt__cuda_conv *v = &fold->to;
    size_t limit = (size_t)gpu->shared_limit;
    if (dtype == MIXT_DTYPE_TF32)
        return mixt__cuda_folded_tf32_supports(gpu, v);
    return gpu->sm >= 80 && (dtype == MIXT_DTYPE_BF16 || dtype == MIXT_DTYPE_FP16) && v->c == CHANNELS &&
           v->o % OUTPUTS == 0 && v->out_w % 16 == 0 && v->kernel_h * v->kernel_w <= TAPS && v->n < INT32_MAX &&
           v->out_h < 65535 * ROWS && forward_shared(v) <= limit && grad_shared(v) <= limit;
}

extern "C" size_t mixt__cuda_folded_partials(const mixt__cuda_device *gpu, const mixt__cuda_fold *fold,
                                             mixt_dtype dtype)
{
    const mixt__cuda_conv *v = &fold->to;
    return (size_t)(grad_blocks(gpu, v, dtype) * v->o * v->kernel_h * v->kernel_w * v->c) * sizeof(float);
}

template <typename T> static mixt_status launch_forward(const mixt__cuda_device *gpu, const job &j)
{
    size_t bytes = forward_shared(&j.v);
    dim3 grid((unsigned)j.v.n, (unsigned)mixt__ceil_div(j.v.out_h, ROWS), (unsigned)(j.v.o / OUTPUTS));
    MIXT_TRY(mixt__cuda_check(
        cudaFuncSetAttribute(forward_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes), "conv2d"));
    forward_kernel<T><<<grid, THREADS, bytes, gpu->stream>>>(j);
    return mixt__cuda_launched("conv2d, folded");
}

extern "C" mixt_status mixt__cuda_folded_forward(const mixt__cuda_device *gpu, const mixt__cuda_fold *fold,
                                                 mixt_dtype dtype, const void *src, const void *weight,
                                                 const float *bias, void *dst)
{
    if (dtype == MIXT_DTYPE_TF32)
        return mixt__cuda_folded_tf32_forward(gpu, &fold->to, (const float *)src, (const float *)weight, bias,
                                              (float *)dst);
    job j = {};
    j.v = fold->to;
    j.src = src;
    j.weight = weight;
    j.bias = bias;
    j.dst = dst;
    return dtype == MIXT_DTYPE_BF16 ? launch_forward<bf16>(gpu, j) : launch_forward<fp16>(gpu, j);
}

template <typename T> static mixt_status launch_grad(const mixt__cuda_device *gpu, const job &j)
{
    size_t bytes = grad_shared(&j.v);
    MIXT_TRY(mixt__cuda_check(
        cudaFuncSetAttribute(grad_weight_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes),
        "conv2d"));
    grad_weight_kernel<T><<<dim3((unsigned)j.blocks, (unsigned)(j.v.o / OUTPUTS)), THREADS, bytes, gpu->stream>>>(j);
    return mixt__cuda_launched("conv2d_grad_weight, folded");
}

extern "C" mixt_status mixt__cuda_folded_grad_weight(const mixt__cuda_device *gpu, const mixt__cuda_fold *fold,
                                                     mixt_dtype dtype, const void *src, const void *grad_dst,
                                                     float *partials, const mixt__tensor *grad, bool add)
{
    const mixt__cuda_conv *v = &fold->from;
    job j = {};
    j.v = fold->to;
    j.src = src;
    j.grad_dst = grad_dst;
    j.partials = partials;
    j.blocks = grad_blocks(gpu, &fold->to, dtype);
    MIXT_TRY(dtype == MIXT_DTYPE_TF32
                 ? mixt__cuda_folded_tf32_grad_weight(gpu, &j.v, (const float *)src, (const float *)grad_dst, partials)
             : dtype == MIXT_DTYPE_BF16 ? launch_grad<bf16>(gpu, j)
                                        : launch_grad<fp16>(gpu, j));
    unsigned blocks = (unsigned)mixt__ceil_div(v->o * v->kernel_d * v->kernel_h * v->kernel_w * v->c, THREADS / PARTS);
    DISPATCH(grad->dtype, T,
             (finish_kernel<T><<<blocks, THREADS, 0, gpu->stream>>>(*fold, partials, j.blocks, (T *)grad->data, add)));
    return mixt__cuda_launched("conv2d_grad_weight, folded");
}
