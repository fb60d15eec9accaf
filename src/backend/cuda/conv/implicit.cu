/* Convolution and its gradients in strict FP32, where there are no matrix units: matrix products on the ordinary ones,
 * whose operands are gathered from the tensors as they are read. On an H200 a step of ResNet-50 takes 181 ms with them
 * and 501 with cuDNN's engines for channels last.
 *
 * A block of 256 threads makes 128 × 128 or 256 × 64 results, 8 × 8 a thread, 16 of the depth at a time; copies run two
 * slices ahead, and put zeros where a tap falls beside the image.
 *
 *   forward:      rows: pixels of dst; depth: taps × channels of src; columns: outputs. The weight is turned first.
 *   grad_src:     rows: pixels of src; depth: taps × outputs; columns: channels. With a stride, pixels of one class
 *                 (the remainders of their coordinates) meet the same taps: each class is a product of its own.
 *   grad_weight:  rows: taps × channels; depth: pixels of dst; columns: outputs. Blocks share the depth, and a second
 *                 pass adds their parts in order and turns the result.
 *
 * Every sum is made in one fixed order.
 */
#include "backend/cuda/conv/conv2d.h"
#include "backend/cuda/core/thread_tile.cuh"

#include "base/status.h"

#include <limits.h>

enum {
    THREADS = 256,
    TURN = 32,
    EDGE = 16383, // largest image side: a row keeps both coordinates in one int
};
static const int64_t part_bytes = 64 << 20; // of grad_weight's parts

/** n / d for 0 <= n < 2^31 as a product. */
typedef struct divider {
    uint32_t factor, shift; // factor 0: by 1
} divider;

typedef struct job {
    const float *left, *right, *bias;
    float *dst;
    int src_h, src_w, dst_h, dst_w; // of the images gathered from, and of those that pixels are counted in
    int images, stride, pad, kernel_h, kernel_w;
    int depth, columns; // channels of a gathered pixel; columns of the result
    int rows;           // grad_weight: taps × channels
    int slices;         // grad_weight: of one part
    divider by_w, by_h; // grad_weight: of dst
} job;

/* ---- forward and grad_src: gathered pixels are rows ---- */

/** Which pixels of the result a block makes, which taps they meet, and where those taps look. */
typedef struct pixel_class {
    int h, w, step;          // pixels, and how far apart they lie
    int from_y, from_x;      // the first of them
    int taps_y, taps_x;      // in number
    int tap_y, tap_x;        // the first of them
    int tap_step;            // to the next
    int look_y, look_x;      // the source pixel of result pixel 0 and the first tap
    int look_step, look_tap; // to the source pixel of the next result pixel, of the next tap
} pixel_class;

template <bool TURNED> static __device__ __forceinline__ pixel_class class_of(const job &j, int number)
{
    if (!TURNED)
        return {.h = j.dst_h,
                .w = j.dst_w,
                .step = 1,
                .taps_y = j.kernel_h,
                .taps_x = j.kernel_w,
                .tap_step = 1,
                .look_y = -j.pad,
                .look_x = -j.pad,
                .look_step = j.stride,
                .look_tap = 1};
    int s = j.stride, y = number / s, x = number % s, tap_y = (y + j.pad) % s, tap_x = (x + j.pad) % s;
    return {.h = (j.dst_h - y + s - 1) / s,
            .w = (j.dst_w - x + s - 1) / s,
            .step = s,
            .from_y = y,
            .from_x = x,
            .taps_y = max(0, (j.kernel_h - tap_y + s - 1) / s),
            .taps_x = max(0, (j.kernel_w - tap_x + s - 1) / s),
            .tap_y = tap_y,
            .tap_x = tap_x,
            .tap_step = s,
            .look_y = (y + j.pad - tap_y) / s,
            .look_x = (x + j.pad - tap_x) / s,
            .look_step = 1,
            .look_tap = -1};
}

/** Copies slices one after another; a thread copies a quarter of a slice's depth of every 64th row. */
template <int TM, int TN, bool TURNED> struct pixel_copier {
    int at[TM / 64], yx[TM / 64]; // of the source pixel under the first tap: its offset, and its coordinates
    int tap_y, tap_x, channel;    // of the next slice

    __device__ __forceinline__ void begin(const job &j, const pixel_class &c, int first)
    {
        int pixels = j.images * c.h * c.w;
        tap_y = tap_x = channel = 0;
#pragma unroll
        for (int i = 0; i < TM / 64; i++) {
            int row = first + (int)(threadIdx.x >> 2) + 64 * i, pixel = min(row, pixels - 1);
            int x = pixel % c.w * c.look_step + c.look_x, y = pixel / c.w % c.h * c.look_step + c.look_y;
            at[i] = ((pixel / c.w / c.h * j.src_h + y) * j.src_w + x) * j.depth + (int)(threadIdx.x & 3) * 4;
            yx[i] = row < pixels ? (int)((unsigned)y << 16 | (unsigned)(x & 0xffff)) : INT_MIN; // beside every image
        }
    }
    __device__ __forceinline__ void copy(const job &j, const pixel_class &c, float *slot, int first_column)
    {
        int move_y = tap_y * c.look_tap, move_x = tap_x * c.look_tap;
        int moved = (move_y * j.src_w + move_x) * j.depth + channel;
#pragma unroll
        for (int i = 0; i < TM / 64; i++) {
            int y = (yx[i] >> 16) + move_y, x = (int)(short)yx[i] + move_x;
            bool inside = (unsigned)y < (unsigned)j.src_h && (unsigned)x < (unsigned)j.src_w;
            copy16_async(slot + ((int)(threadIdx.x >> 2) + 64 * i) * PITCH + (int)(threadIdx.x & 3) * 4,
                         j.left + (inside ? at[i] + moved : 0), inside);
        }
        int tap = (c.tap_y + tap_y * c.tap_step) * j.kernel_w + c.tap_x + tap_x * c.tap_step;
        int taps = j.kernel_h * j.kernel_w;
        float *right = slot + TM * PITCH;
#pragma unroll
        for (int i = 0; i < TN / 64; i++) {
            int k = (int)threadIdx.x / (TN / 4) + i * (THREADS * 4 / TN), n = (int)threadIdx.x % (TN / 4) * 4;
            int row = TURNED ? (channel + k) * taps + tap : tap * j.depth + channel + k;
            bool inside = first_column + n < j.columns;
            copy16_async(right + k * TN + n, j.right + (inside ? row * j.columns + first_column + n : 0), inside);
        }
        channel += DEPTH;
        if (channel == j.depth) {
            channel = 0;
            if (++tap_x == c.taps_x) {
                tap_x = 0;
                tap_y++;
            }
        }
    }
};

template <int TM, int TN, bool TURNED> static __global__ void __launch_bounds__(THREADS, 2) pixels_kernel(const job j)
{
    constexpr int SLOT = TM * PITCH + DEPTH * TN;
    pixel_class c = class_of<TURNED>(j, (int)blockIdx.y);
    int across = (j.columns + TN - 1) / TN, first_column = (int)blockIdx.x % across * TN;
    int first = (int)blockIdx.x / across * TM, pixels = j.images * c.h * c.w;
    int slices = c.taps_y * c.taps_x * (j.depth / DEPTH);
    if (first >= pixels)
        return;
    pixel_copier<TM, TN, TURNED> copier;
    thread_tile<TM, TN> r = {};
    copier.begin(j, c, first);
    over_slices<SLOT>(
        slices, [&](int, float *slot) { copier.copy(j, c, slot, first_column); },
        [&](int, const float *slot) { r.template multiply_rows<DEPTH, PITCH>(slot, slot + TM * PITCH); });
#pragma unroll
    for (int i = 0; i < 8; i++) {
        int row = first + r.group() + TM / 8 * i, image = row / c.w / c.h;
        int y = row / c.w % c.h * c.step + c.from_y, x = row % c.w * c.step + c.from_x;
        if (row < pixels)
            r.store(i, j.dst + (int64_t)((image * j.dst_h + y) * j.dst_w + x) * j.columns, first_column, j.columns,
                    j.bias);
    }
}

/* ---- grad_weight: gathered pixels are the depth ---- */

static __device__ __forceinline__ int divide(int n, divider d)
{
    return d.factor ? (int)(__umulhi((unsigned)n, d.factor) >> d.shift) : n;
}

/** What a thread gathers from every pixel of dst: four channels under one tap. */
typedef struct patch {
    int y, x, channel; // of the source pixel, before the stride is added; rows past the last look beside the image
} patch;

static __device__ __forceinline__ patch patch_of(const job &j, int row)
{
    int tap = row / j.depth;
    return {.y = row < j.rows ? tap / j.kernel_w - j.pad : INT_MIN / 2,
            .x = tap % j.kernel_w - j.pad,
            .channel = row - tap * j.depth};
}

/** One slice: 16 pixels of dst, from the first of them; a thread's channels and outputs stay the same. */
template <int TM, int TN>
static __device__ __forceinline__ void copy_pixels(const job &j, float *slot, const patch &from, int first_column,
                                                   int first, int pixels)
{
    int m = (int)threadIdx.x % (TM / 4) * 4, n = (int)threadIdx.x % (TN / 4) * 4;
#pragma unroll
    for (int i = 0; i < TM / 64; i++) {
        int k = (int)threadIdx.x / (TM / 4) + i * (THREADS * 4 / TM), p = first + k;
        int line = divide(p, j.by_w), image = divide(line, j.by_h);
        int y = (line - image * j.dst_h) * j.stride + from.y, x = (p - line * j.dst_w) * j.stride + from.x;
        bool inside = p < pixels && (unsigned)y < (unsigned)j.src_h && (unsigned)x < (unsigned)j.src_w;
        int at = inside ? ((image * j.src_h + y) * j.src_w + x) * j.depth + from.channel : 0;
        copy16_async(slot + k * TM + m, j.left + at, inside);
    }
#pragma unroll
    for (int i = 0; i < TN / 64; i++) {
        int k = (int)threadIdx.x / (TN / 4) + i * (THREADS * 4 / TN), p = first + k;
        bool inside = p < pixels && first_column + n < j.columns;
        copy16_async(slot + DEPTH * TM + k * TN + n, j.right + (inside ? p * j.columns + first_column + n : 0), inside);
    }
}

/** blockIdx.y: which part of the depth. */
template <int TM, int TN> static __global__ void __launch_bounds__(THREADS, 2) weight_kernel(const job j)
{
    constexpr int SLOT = DEPTH * (TM + TN);
    int across = (j.columns + TN - 1) / TN, first_column = (int)blockIdx.x % across * TN;
    int first_row = (int)blockIdx.x / across * TM, pixels = j.images * j.dst_h * j.dst_w;
    int first = (int)blockIdx.y * j.slices, slices = min(j.slices, (pixels + DEPTH - 1) / DEPTH - first);
    patch from = patch_of(j, first_row + (int)threadIdx.x % (TM / 4) * 4);
    thread_tile<TM, TN> r = {};
    over_slices<SLOT>(
        slices,
        [&](int s, float *slot) { copy_pixels<TM, TN>(j, slot, from, first_column, (first + s) * DEPTH, pixels); },
        [&](int, const float *slot) { r.template multiply_columns<DEPTH>(slot, slot + DEPTH * TM); });
    float *part = j.dst + (int64_t)blockIdx.y * j.rows * j.columns;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        int row = first_row + 4 * r.group() + (i & 3) + (i >> 2) * (TM / 2);
        if (row < j.rows)
            r.store(i, part + (int64_t)row * j.columns, first_column, j.columns, NULL);
    }
}

/** dst (columns, rows) = the sum over the parts of src (parts, rows, columns), turned; or added to it. */
static __global__ void __launch_bounds__(THREADS)
    turn_kernel(const float *src, float *dst, int rows, int columns, int parts, bool add)
{
    __shared__ float tile[TURN][TURN + 1];
    int x = (int)threadIdx.x % TURN, row = (int)blockIdx.y * TURN, column = (int)blockIdx.x * TURN;
    for (int y = (int)threadIdx.x / TURN; y < TURN; y += THREADS / TURN) {
        float sum = 0;
        if (row + y < rows && column + x < columns)
#pragma unroll 8
            for (int p = 0; p < parts; p++)
                sum += src[((int64_t)p * rows + row + y) * columns + column + x];
        tile[y][x] = sum;
    }
    __syncthreads();
    for (int y = (int)threadIdx.x / TURN; y < TURN; y += THREADS / TURN) {
        int64_t at = (int64_t)(column + y) * rows + row + x;
        if (column + y < columns && row + x < rows)
            dst[at] = add ? dst[at] + tile[x][y] : tile[x][y];
    }
}

/* ---- host ---- */

static divider divider_of(uint32_t d)
{
    uint32_t bits = 0;
    while (((uint64_t)1 << bits) < d)
        bits++;
    if (!bits)
        return {};
    return {.factor = (uint32_t)(((uint64_t)1 << (31 + bits)) / d) + 1, .shift = bits - 1};
}

/** Whether half as many columns in a tile waste less. */
static bool narrow(int64_t columns)
{
    return columns % 128 && columns % 128 <= 64;
}

static int64_t tiles_of(int64_t rows, int64_t columns)
{
    return narrow(columns) ? mixt__ceil_div(rows, 256) * mixt__ceil_div(columns, 64)
                           : mixt__ceil_div(rows, 128) * mixt__ceil_div(columns, 128);
}

/** Slices that one part of grad_weight's depth takes: as few rounds of resident blocks for the work as can be. */
static int64_t slices_of(const mixt__cuda_device *gpu, const mixt__cuda_conv *v)
{
    int64_t rows = v->kernel_h * v->kernel_w * v->c, tiles = tiles_of(rows, v->o);
    int64_t all = mixt__ceil_div(v->n * v->out_h * v->out_w, DEPTH), resident = 2 * (int64_t)gpu->multiprocessors;
    int64_t most = part_bytes / (rows * v->o * (int64_t)sizeof(float)), best = all;
    double least = 0;
    for (int64_t parts = 1; parts <= (most > 1 ? most : 1) && parts <= 128 && (parts == 1 || all / parts >= 8);
         parts++) {
        int64_t slices = mixt__ceil_div(all, parts);
        double time = (double)mixt__ceil_div(tiles * mixt__ceil_div(all, slices), resident) * (double)(slices + 8);
        if (parts == 1 || time < least) {
            least = time;
            best = slices;
        }
    }
    return best;
}

static int64_t parts_of(const mixt__cuda_device *gpu, const mixt__cuda_conv *v)
{
    return mixt__ceil_div(mixt__ceil_div(v->n * v->out_h * v->out_w, DEPTH), slices_of(gpu, v));
}

extern "C" bool mixt__cuda_implicit_supports(const mixt__cuda_device *gpu, const mixt__cuda_conv *v,
                                             mixt__cuda_conv_kind kind)
{
    int64_t depth = kind == MIXT_CONV_FORWARD ? v->c : v->o, columns = kind == MIXT_CONV_GRAD_SRC ? v->c : v->o;
    bool fits = kind == MIXT_CONV_GRAD_WEIGHT ? v->c % 4 == 0 : depth % DEPTH == 0;
    int64_t pad_h = v->h + 2 * v->pad, pad_w = v->w + 2 * v->pad;
    return !v->volume && gpu->sm >= 80 && fits && columns % 4 == 0 && pad_h <= EDGE && pad_w <= EDGE &&
           v->stride <= 64 && v->n * pad_h * pad_w * v->c < INT32_MAX &&
           v->n * (v->out_h + v->pad) * (v->out_w + v->pad) * v->o < INT32_MAX &&
           v->o * v->kernel_h * v->kernel_w * v->c < INT32_MAX;
}

extern "C" size_t mixt__cuda_implicit_workspace(const mixt__cuda_device *gpu, const mixt__cuda_conv *v,
                                                mixt__cuda_conv_kind kind)
{
    size_t weights = (size_t)(v->o * v->kernel_h * v->kernel_w * v->c) * sizeof(float);
    return kind == MIXT_CONV_FORWARD ? weights : kind == MIXT_CONV_GRAD_WEIGHT ? weights * (size_t)parts_of(gpu, v) : 0;
}

static mixt_status turn(const mixt__cuda_device *gpu, const float *src, float *dst, int64_t rows, int64_t columns,
                        int64_t parts, bool add)
{
    dim3 grid((unsigned)mixt__ceil_div(columns, TURN), (unsigned)mixt__ceil_div(rows, TURN));
    turn_kernel<<<grid, THREADS, 0, gpu->stream>>>(src, dst, (int)rows, (int)columns, (int)parts, add);
    return mixt__cuda_launched("turning a weight");
}

static mixt_status launch(const mixt__cuda_device *gpu, void (*kernel)(const job), int64_t blocks, int64_t layers,
                          int shared, const job &j)
{
    MIXT_TRY(mixt__cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared),
                              "asking for shared memory"));
    kernel<<<dim3((unsigned)blocks, (unsigned)layers), THREADS, (size_t)shared, gpu->stream>>>(j);
    return mixt__cuda_launched("conv2d_implicit");
}

static mixt_status make_pixels(const mixt__cuda_device *gpu, const job &j, bool turned)
{
    int64_t classes = turned ? (int64_t)j.stride * j.stride : 1, step = turned ? j.stride : 1;
    int64_t pixels = (int64_t)j.images * mixt__ceil_div(j.dst_h, step) * mixt__ceil_div(j.dst_w, step);
    int64_t blocks = tiles_of(pixels, j.columns);
    constexpr int wide = SLOTS * (128 * PITCH + DEPTH * 128) * 4, tall = SLOTS * (256 * PITCH + DEPTH * 64) * 4;
    if (narrow(j.columns))
        return launch(gpu, turned ? pixels_kernel<256, 64, true> : pixels_kernel<256, 64, false>, blocks, classes, tall,
                      j);
    return launch(gpu, turned ? pixels_kernel<128, 128, true> : pixels_kernel<128, 128, false>, blocks, classes, wide,
                  j);
}

static mixt_status make_weight(const mixt__cuda_device *gpu, job *j, const mixt__cuda_conv *v, float *dst,
                               void *workspace, bool add)
{
    int64_t parts = parts_of(gpu, v), blocks;
    constexpr int wide = SLOTS * DEPTH * 256 * 4, tall = SLOTS * DEPTH * 320 * 4;
    j->dst = static_cast<float *>(workspace);
    j->rows = (int)(v->kernel_h * v->kernel_w * v->c);
    j->slices = (int)slices_of(gpu, v);
    j->by_w = divider_of((uint32_t)v->out_w);
    j->by_h = divider_of((uint32_t)v->out_h);
    blocks = tiles_of(j->rows, v->o);
    if (narrow(v->o))
        MIXT_TRY(launch(gpu, weight_kernel<256, 64>, blocks, parts, tall, *j));
    else
        MIXT_TRY(launch(gpu, weight_kernel<128, 128>, blocks, parts, wide, *j));
    return turn(gpu, j->dst, dst, j->rows, v->o, parts, add);
}

extern "C" mixt_status mixt__cuda_implicit_run(const mixt__cuda_device *gpu, const mixt__cuda_conv *v,
                                               mixt__cuda_conv_kind kind, const float *a, const float *b,
                                               const float *bias, float *dst, void *workspace, bool add)
{
    bool turned = kind == MIXT_CONV_GRAD_SRC;
    job j = {};
    j.left = a;
    j.right = b;
    j.bias = bias;
    j.dst = dst;
    j.images = (int)v->n;
    j.stride = (int)v->stride;
    j.pad = (int)v->pad;
    j.kernel_h = (int)v->kernel_h;
    j.kernel_w = (int)v->kernel_w;
    j.src_h = (int)(turned ? v->out_h : v->h);
    j.src_w = (int)(turned ? v->out_w : v->w);
    j.dst_h = (int)(turned ? v->h : v->out_h);
    j.dst_w = (int)(turned ? v->w : v->out_w);
    j.depth = (int)(turned ? v->o : v->c);
    j.columns = (int)(turned ? v->c : v->o);
    if (kind == MIXT_CONV_GRAD_WEIGHT)
        return make_weight(gpu, &j, v, dst, workspace, add);
    if (kind == MIXT_CONV_FORWARD) {
        j.right = static_cast<const float *>(workspace);
        MIXT_TRY(turn(gpu, b, static_cast<float *>(workspace), v->o, v->kernel_h * v->kernel_w * v->c, 1, false));
    }
    return make_pixels(gpu, j, turned);
}
