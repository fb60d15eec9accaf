/* A folded convolution of 16 channels (see conv2d.h) and its weight gradient in TF32 on the matrix units: FP32 tensors,
 * FP32 sums, compute capability 8.0 and later. Source and weight were rounded to TF32 when they were folded; grad_dst
 * is rounded on its way from shared memory to the registers.
 *
 * A product of 16 × 8 × 8 takes 768 bytes of operands and shared memory gives 128 a clock, so both kernels use an
 * operand in all rows of taps that it belongs to:
 *   forward   A block has 32 outputs of the weight and walks over bands of 8 rows. A warp makes 8 rows × 16 pixels × 32
 *             outputs: 16 pixels of a source row go into up to 4 rows of dst. 76 bytes a product with 4 × 4 taps. One
 *             band lies in shared memory; a multiprocessor's second block multiplies while the first loads.
 *   gradient  A block has the whole gradient of 64 outputs in registers, a warp one column of taps and 32 outputs, and
 *             walks over tiles of 8 rows × 16 pixels, the next tile on its way. The sum goes over pixels; going down
 *             the rows, a row of grad_dst meets the last 4 of the source. 108 bytes a product. The blocks' sums are
 *             added in order by folded.cu.
 * Bytes: the folded source 2.8 (forward) and 1.6 times, from the cache, dst or grad_dst once. Which channels, outputs
 * and pixels a lane calls which place of a product (tf32_tile.cuh) is chosen so that it reads and writes 8 or 16 bytes.
 */
#include "backend/cuda/conv/conv2d.h"

#include "backend/cuda/core/tf32_tile.cuh"

enum { CHANNELS = 16, TALL = 8, WIDE = 16, TAPS = 4 }; // a tile's rows and pixels; taps each way, at most
enum { FORWARD_WARPS = 4, FORWARD_THREADS = 32 * FORWARD_WARPS, FORWARD_OUTPUTS = 32 };
enum { GRAD_THREADS = 256, GRAD_OUTPUTS = 64, GRAD_TILE = TALL * WIDE * GRAD_OUTPUTS };
enum { STAGE = GRAD_TILE + (TALL + TAPS - 1) * (WIDE + TAPS - 1) * CHANNELS }; // floats: grad_dst, source
enum { GRAD_SHARED = 2 * STAGE * (int)sizeof(float) };

typedef struct job {
    mixt__cuda_conv v; // folded: stride 1, no padding
    const float *src, *weight, *grad_dst, *bias;
    float *dst, *partials; // partials: (blocks, O, taps, 16)
} job;

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800

/** Rows of dst from `top` on, as many as a tile has or the image has left. */
static __device__ __forceinline__ int rows_from(const job &j, int top)
{
    return (int)j.v.out_h - top < TALL ? (int)j.v.out_h - top : TALL;
}

/* ---- forward ---- */

/** Copies the block's outputs of the weight, as (taps, 32, 16). Row 8n + column is the output in that column of product
 *  n: a lane's results are then four neighbours of each 16 outputs, and four lanes write 64 bytes. */
static __device__ __forceinline__ void load_weight(const job &j, float *to, int outputs, int taps)
{
    const float *from = j.weight + (int64_t)outputs * taps * CHANNELS;
    for (int i = threadIdx.x; i < FORWARD_OUTPUTS * taps * 4; i += FORWARD_THREADS) {
        int o = i / (taps * 4), tap = i / 4 % taps, piece = i % 4;
        int row = (o / 16 * 2 + o % 4 / 2) * 8 + o % 16 / 4 * 2 + o % 2;
        copy16_async(to + (tap * FORWARD_OUTPUTS + row) * CHANNELS + piece * 4, from + (int64_t)i * 4, true);
    }
}

/** Adds all taps to a warp's tile. src, weight: where the lane's 16 bytes of the first pixel and tap lie; pitch: floats
 *  from a source row to the next. */
template <int KH>
static __device__ __forceinline__ void add_taps(float (&sums)[TALL][4][4], const float *src, const float *weight,
                                                int pitch, int kernel_w)
{
    for (int tap = 0; tap < kernel_w; tap++, src += CHANNELS, weight += FORWARD_OUTPUTS * CHANNELS) {
        uint4 b[KH][4];
#pragma unroll
        for (int i = 0; i < KH * 4; i++)
            b[i / 4][i % 4] = *(const uint4 *)(weight + (i / 4 * kernel_w * FORWARD_OUTPUTS + i % 4 * 8) * CHANNELS);
#pragma unroll
        for (int r = 0; r < TALL + KH - 1; r++) { // row r of the source is in row r - dy of dst
            uint4 low = *(const uint4 *)(src + r * pitch), high = *(const uint4 *)(src + r * pitch + 8 * CHANNELS);
            uint4 first = make_uint4(low.x, high.x, low.y, high.y), second = make_uint4(low.z, high.z, low.w, high.w);
#pragma unroll
            for (int i = 0; i < KH * 4; i++)
                if (r - i / 4 >= 0 && r - i / 4 < TALL)
                    tf32_multiply(sums[r - i / 4][i % 4], first, b[i / 4][i % 4].x, b[i / 4][i % 4].y);
#pragma unroll
            for (int i = 0; i < KH * 4; i++)
                if (r - i / 4 >= 0 && r - i / 4 < TALL)
                    tf32_multiply(sums[r - i / 4][i % 4], second, b[i / 4][i % 4].z, b[i / 4][i % 4].w);
        }
    }
}

/** The lane's results of a tile, its first pixel at `to`: rows g and g + 8 of a product are pixels. */
static __device__ __forceinline__ void store_tile(const job &j, float *to, const float (&sums)[TALL][4][4], int rows,
                                                  int output)
{
    int lane = threadIdx.x & 31;
    float bias[8];
    output += (lane & 3) * 4;
#pragma unroll
    for (int k = 0; k < 8; k++)
        bias[k] = j.bias ? j.bias[output + k / 4 * 16 + k % 4] : 0.0f;
    to += (lane >> 2) * j.v.o + output;
#pragma unroll
    for (int m = 0; m < TALL; m++)
#pragma unroll
        for (int k = 0; k < 4 && m < rows; k++) {
            int pixel = k / 2 * 8, n = k % 2 * 2, e = k / 2 * 2;
            const float *add = bias + k % 2 * 4;
            *(float4 *)(to + (m * j.v.out_w + pixel) * j.v.o + k % 2 * 16) =
                make_float4(sums[m][n][e] + add[0], sums[m][n][e + 1] + add[1], sums[m][n + 1][e] + add[2],
                            sums[m][n + 1][e + 1] + add[3]);
        }
}

/** Rows past the image's end are left as they lie: they reach only results that are not stored. */
template <int KH> static __device__ __forceinline__ void walk_bands(const job &j, float *shared)
{
    int taps = KH * (int)j.v.kernel_w, pitch = (int)j.v.w * CHANNELS, outputs = blockIdx.y * FORWARD_OUTPUTS;
    int bands = (int)(j.v.out_h + TALL - 1) / TALL, end = bands * (int)j.v.n, lane = threadIdx.x & 31;
    float *src = shared + taps * FORWARD_OUTPUTS * CHANNELS;
    load_weight(j, shared, outputs, taps);
    for (int band = blockIdx.x, turn = 0; band < end; band += gridDim.x, turn++) {
        int image = band / bands, top = band % bands * TALL, rows = rows_from(j, top);
        const float *from = j.src + ((int64_t)image * j.v.h + top) * pitch;
        for (int i = threadIdx.x * 4; i < (rows + KH - 1) * pitch; i += FORWARD_THREADS * 4)
            copy16_async(src + i, from + i, true);
        copies_commit();
        copies_wait<0>();
        __syncthreads(); // the band is there
        // the warp that makes a tile more changes, so that all four parts of the multiprocessor are as busy
        for (int x = ((threadIdx.x >> 5) + turn) % FORWARD_WARPS * WIDE; x < j.v.out_w; x += FORWARD_WARPS * WIDE) {
            float sums[TALL][4][4] = {};
            add_taps<KH>(sums, src + x * CHANNELS + lane * 4, shared + lane * 4, pitch, (int)j.v.kernel_w);
            store_tile(j, j.dst + (((int64_t)image * j.v.out_h + top) * j.v.out_w + x) * j.v.o, sums, rows, outputs);
        }
        __syncthreads(); // all have read it
    }
}

/* ---- gradient of the weight ---- */

/** Where a 16-byte piece of source pixel q lies in a tile: of four neighbours, 32 bytes each are in different banks. */
static __device__ __forceinline__ int src_place(int q, int piece)
{
    return q * CHANNELS + ((piece ^ (q & 2)) << 2);
}

/** Where a tile of grad_dst begins. */
typedef struct corner {
    int64_t image;
    int x, y, rows;
} corner;

static __device__ __forceinline__ corner corner_of(const job &j, int tile)
{
    int strips = (int)j.v.out_w / WIDE, bands = (int)(j.v.out_h + TALL - 1) / TALL;
    int y = tile / strips % bands * TALL;
    return {tile / strips / bands, tile % strips * WIDE, y, rows_from(j, y)};
}

/** Copies a tile of grad_dst and the source pixels under it, of rows that there are. */
template <int KH>
static __device__ __forceinline__ void load_tile(const job &j, float *stage, const corner &at, int outputs)
{
    int piece = threadIdx.x % 16, column = threadIdx.x / 16, pitch = WIDE + (int)j.v.kernel_w - 1;
    const float *grad_dst =
        j.grad_dst + ((at.image * j.v.out_h + at.y) * j.v.out_w + at.x + column) * j.v.o + outputs + piece * 4;
    const float *src = j.src + ((at.image * j.v.h + at.y) * j.v.w + at.x) * CHANNELS;
    float *to = stage + tf32_place<GRAD_OUTPUTS>(column, piece);
    for (int row = 0; row < at.rows; row++)
        copy16_async(to + row * WIDE * GRAD_OUTPUTS, grad_dst + row * j.v.out_w * j.v.o, true);
    for (int i = threadIdx.x; i < (at.rows + KH - 1) * pitch * 4; i += GRAD_THREADS) {
        int q = i / 4, row = q / pitch, x = q % pitch;
        copy16_async(stage + GRAD_TILE + src_place(q, i % 4), src + (row * j.v.w + x) * CHANNELS + i % 4 * 4, true);
    }
}

/** Adds a tile to the warp's column of taps: 32 outputs from 32 · half on. Places c and c + 4 of a sum are these of
 *  eight pixels; outputs 4g … 4g + 3 are rows g and g + 8 of two products, channels 2g and 2g + 1 columns g of two. */
template <int KH>
static __device__ __forceinline__ void add_tile(float (&sums)[KH][2][2][4], const float *stage, int rows, int pitch,
                                                int tap, int half)
{
    int g = threadIdx.x >> 2 & 7, c = threadIdx.x & 3, place = tf32_place<GRAD_OUTPUTS>(c, 8 * half + g);
#pragma unroll
    for (int x = 0; x < WIDE; x += 8) {
        uint2 b[KH][2]; // the last rows of the source, row r at r % KH
        auto load_row = [&](int r) {
            const float *from = stage + GRAD_TILE + src_place(r * pitch + x + tap + c, g >> 1) + (g & 1) * 2;
            b[r % KH][0] = *(const uint2 *)from;
            b[r % KH][1] = *(const uint2 *)(from + 4 * CHANNELS);
        };
#pragma unroll
        for (int r = 0; r < KH - 1; r++)
            load_row(r);
#pragma unroll
        for (int y = 0; y < TALL; y++) {
            if (y >= rows)
                break;
            load_row(y + KH - 1);
            const float *from = stage + (y * WIDE + x) * GRAD_OUTPUTS;
            float4 low = *(const float4 *)(from + place),
                   high = *(const float4 *)(from + (place ^ 16) + 4 * GRAD_OUTPUTS);
            uint4 a[2] = {make_uint4(tf32_bits(low.x), tf32_bits(low.y), tf32_bits(high.x), tf32_bits(high.y)),
                          make_uint4(tf32_bits(low.z), tf32_bits(low.w), tf32_bits(high.z), tf32_bits(high.w))};
#pragma unroll
            for (int i = 0; i < KH * 2; i++) {
                const uint2(&row)[2] = b[(y + i / 2) % KH];
                tf32_multiply(sums[i / 2][i % 2][0], a[i % 2], row[0].x, row[1].x);
                tf32_multiply(sums[i / 2][i % 2][1], a[i % 2], row[0].y, row[1].y);
            }
        }
    }
}

/** The lane's part of the block's sums: channels 4c … 4c + 3 of four neighbouring outputs. */
template <int KH>
static __device__ __forceinline__ void store_sums(const job &j, const float (&sums)[KH][2][2][4], int tap, int output)
{
    int lane = threadIdx.x & 31, taps = KH * (int)j.v.kernel_w;
    output += lane >> 2 << 2;
#pragma unroll
    for (int i = 0; i < KH * 4; i++) {
        int dy = i / 4, o = i % 4, e = o % 2 * 2;
        const float(&two)[2][4] = sums[dy][o / 2];
        float *to = j.partials + ((blockIdx.x * j.v.o + output + o) * taps + dy * j.v.kernel_w + tap) * CHANNELS;
        *(float4 *)(to + (lane & 3) * 4) = make_float4(two[0][e], two[1][e], two[0][e + 1], two[1][e + 1]);
    }
}

template <int KH> static __device__ __forceinline__ void walk_tiles(const job &j, float *shared)
{
    int warp = threadIdx.x >> 5, tap = warp / 2, half = warp % 2, outputs = blockIdx.y * GRAD_OUTPUTS;
    int pitch = WIDE + (int)j.v.kernel_w - 1;
    int64_t total = j.v.out_w / WIDE * ((j.v.out_h + TALL - 1) / TALL) * j.v.n;
    int first = (int)(total * blockIdx.x / gridDim.x), end = (int)(total * (blockIdx.x + 1) / gridDim.x);
    float sums[KH][2][2][4] = {}; // rows of taps, sixteens of outputs, eights of channels
    auto copy = [&](int tile, int slot) { load_tile<KH>(j, shared + slot * STAGE, corner_of(j, tile), outputs); };
    over_tiles(first, end, 1, copy, [&](int tile, int slot) {
        if (tap < j.v.kernel_w)
            add_tile<KH>(sums, shared + slot * STAGE, corner_of(j, tile).rows, pitch, tap, half);
    });
    if (tap < j.v.kernel_w)
        store_sums<KH>(j, sums, tap, outputs + 32 * half);
}

#endif

/* ---- launches ---- */

template <int KH> static __global__ void __launch_bounds__(FORWARD_THREADS, 2) forward_kernel(const job j)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    extern __shared__ float4 memory[];
    walk_bands<KH>(j, reinterpret_cast<float *>(memory));
#endif
}

template <int KH> static __global__ void __launch_bounds__(GRAD_THREADS, 2) grad_weight_kernel(const job j)
{
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    extern __shared__ float4 memory[];
    walk_tiles<KH>(j, reinterpret_cast<float *>(memory));
#endif
}

typedef void (*kernel)(const job);

static mixt_status launch(const mixt__cuda_device *gpu, kernel kernel, const job &j, dim3 grid, unsigned threads,
                          size_t bytes)
{
    MIXT_TRY(mixt__cuda_check(cudaFuncSetAttribute(reinterpret_cast<const void *>(kernel),
                                                   cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes),
                              "conv2d"));
    kernel<<<grid, threads, bytes, gpu->stream>>>(j);
    return mixt__cuda_launched("conv2d, folded in TF32");
}

static size_t forward_shared(const mixt__cuda_conv *v)
{
    int64_t weights = v->kernel_h * v->kernel_w * FORWARD_OUTPUTS, pixels = (TALL + v->kernel_h - 1) * v->w;
    return (size_t)((weights + pixels) * CHANNELS) * sizeof(float);
}

/** Two blocks a multiprocessor, or as many as have work. */
static int64_t blocks_for(const mixt__cuda_device *gpu, int64_t work, int64_t parts)
{
    int64_t most = mixt__ceil_div(2 * gpu->multiprocessors, parts);
    return work < most ? work : most;
}

static int64_t tiles_of(const mixt__cuda_conv *v)
{
    return v->out_w / WIDE * mixt__ceil_div(v->out_h, TALL) * v->n;
}

extern "C" bool mixt__cuda_folded_tf32_supports(const mixt__cuda_device *gpu, const mixt__cuda_conv *v)
{
    size_t limit = (size_t)gpu->shared_limit;
    return gpu->sm >= 80 && v->c == CHANNELS && v->o % GRAD_OUTPUTS == 0 && v->o / FORWARD_OUTPUTS < 65536 &&
           v->out_w % WIDE == 0 && v->kernel_h <= TAPS && v->kernel_w <= TAPS && tiles_of(v) < INT32_MAX / 2 &&
           forward_shared(v) <= limit && GRAD_SHARED <= limit;
}

extern "C" int mixt__cuda_folded_tf32_blocks(const mixt__cuda_device *gpu, const mixt__cuda_conv *v)
{
    return (int)blocks_for(gpu, tiles_of(v), v->o / GRAD_OUTPUTS);
}

extern "C" mixt_status mixt__cuda_folded_tf32_forward(const mixt__cuda_device *gpu, const mixt__cuda_conv *v,
                                                      const float *src, const float *weight, const float *bias,
                                                      float *dst)
{
    static const kernel kernels[TAPS] = {forward_kernel<1>, forward_kernel<2>, forward_kernel<3>, forward_kernel<4>};
    int64_t parts = v->o / FORWARD_OUTPUTS, blocks = blocks_for(gpu, mixt__ceil_div(v->out_h, TALL) * v->n, parts);
    job j = {};
    j.v = *v;
    j.src = src;
    j.weight = weight;
    j.bias = bias;
    j.dst = dst;
    return launch(gpu, kernels[v->kernel_h - 1], j, dim3((unsigned)blocks, (unsigned)parts), FORWARD_THREADS,
                  forward_shared(v));
}

extern "C" mixt_status mixt__cuda_folded_tf32_grad_weight(const mixt__cuda_device *gpu, const mixt__cuda_conv *v,
                                                          const float *src, const float *grad_dst, float *partials)
{
    static const kernel kernels[TAPS] = {grad_weight_kernel<1>, grad_weight_kernel<2>, grad_weight_kernel<3>,
                                         grad_weight_kernel<4>};
    job j = {};
    j.v = *v;
    j.src = src;
    j.grad_dst = grad_dst;
    j.partials = partials;
    dim3 grid((unsigned)mixt__cuda_folded_tf32_blocks(gpu, v), (unsigned)(v->o / GRAD_OUTPUTS));
    return launch(gpu, kernels[v->kernel_h - 1], j, grid, GRAD_THREADS, GRAD_SHARED);
}
