/* Statistics of a value and of the difference of two, in one pass.
 *
 * Blocks take elements in the order of their indices, EACH of them a thread and a stride of the whole grid apart; the
 * number of blocks depends on the number of elements alone. A thread adds up in FP64, a block adds its threads up in a
 * fixed tree and leaves its numbers and counts in the workspace, and a last launch, a block for each number, adds up
 * the blocks in a fixed tree too: the same bits every time. Bytes moved: the inputs once. What takes the time are
 * instructions, about 16 an element: at 4 TB/s a multiprocessor has 15 for one of 16 bits.
 *
 * Exponents of a tensor crowd into a few bins, where atomics of a warp would wait for each other. So each thread has
 * counters of its own for all 256, a byte each in shared memory, four to a word and the words of a bin's neighbours a
 * block of threads apart: a warp touches each bank once. Before a byte can overflow the block adds them up.
 */
#include "backend/cuda/kernels.h"

#include "backend/cuda/core/any_format.cuh"
extern "C" {
#include "num/num.h"
}

#include <cuda_fp8.h>

#include <type_traits>

namespace
{

enum { THREADS = 128, WARPS = THREADS / 32, EACH = 8, WORDS = MIXT_STATS_BINS / 4 };
enum { MOST_BLOCKS = 792 };   // six on each of 132 multiprocessors: as many as have room for their counters
enum { ROUNDS = 248 / EACH }; // of a thread before its counters, of 8 bits, are added up
/** Numbers and counts that a block leaves, those of either op; counts of a block fit 32 bits: it sees fewer elements.
 */
enum { NUMBERS = 8, SINGLES = MIXT_STATS_EXPONENTS, COUNTS = MIXT_STATS_COUNTS };

/** A tensor by its index: rows may lie apart, elements of a row do not. */
struct view {
    const void *data;
    mixt_dtype dtype;
    int rank;
    bool contiguous;
    int64_t dims[MIXT_MAX_RANK], strides[MIXT_MAX_RANK];
};

struct job {
    view in[3];
    int64_t count;
    uint32_t beyond[MIXT_STATS_TARGETS], flushed[MIXT_STATS_TARGETS]; // as bits of magnitudes
    bool targets;                                                     // some format is held against
    double *numbers;                                                  // (blocks, NUMBERS)
    uint32_t *counts;                                                 // (blocks, COUNTS)
    double *total_numbers;
    int64_t *total_counts;
    int number_count, count_count, largest; // of the op; largest: the number that is a maximum, -1: see stats
    unsigned blocks;
};

__device__ __forceinline__ float load(const view &v, int64_t i)
{
    int64_t at = i;
    if (!v.contiguous) {
        at = 0;
        for (int d = v.rank - 1; d >= 0; d--) {
            int64_t rest = i / v.dims[d];
            at += (i - rest * v.dims[d]) * v.strides[d];
            i = rest;
        }
    }
    if (v.dtype == MIXT_DTYPE_FP8_E4M3 || v.dtype == MIXT_DTYPE_FP8_E5M2)
        return __half2float(__nv_cvt_fp8_to_halfraw(static_cast<const __nv_fp8_storage_t *>(v.data)[at],
                                                    v.dtype == MIXT_DTYPE_FP8_E4M3 ? __NV_E4M3 : __NV_E5M2));
    return load_any(v.data, v.dtype, at);
}

/** Whether number k of tensor_stats is a minimum, a maximum or a sum. */
__device__ __forceinline__ double join(const job &a, int k, double x, double y)
{
    if (a.largest < 0 && k == MIXT_STATS_MIN)
        return fmin(x, y);
    if ((a.largest < 0 && (k == MIXT_STATS_MAX || k == MIXT_STATS_AMAX)) || k == a.largest)
        return fmax(x, y);
    return x + y;
}

/** The threads' numbers and single counts joined, in the block's place of the workspace. */
__device__ void leave(const job &a, const double *numbers, const uint32_t *counts, int singles)
{
    __shared__ double shared[WARPS][NUMBERS];
    __shared__ uint32_t shared_counts[WARPS][SINGLES];
    int warp = threadIdx.x / 32;
    for (int k = 0; k < a.number_count; k++) {
        double x = numbers[k];
        for (int lane = 16; lane; lane >>= 1)
            x = join(a, k, x, __shfl_xor_sync(0xffffffffu, x, lane));
        if (threadIdx.x % 32 == 0)
            shared[warp][k] = x;
    }
    for (int k = 0; k < singles; k++) {
        uint32_t n = counts[k];
        for (int lane = 16; lane; lane >>= 1)
            n += __shfl_xor_sync(0xffffffffu, n, lane);
        if (threadIdx.x % 32 == 0)
            shared_counts[warp][k] = n;
    }
    __syncthreads();
    if (threadIdx.x < a.number_count) {
        double x = shared[0][threadIdx.x];
        for (int w = 1; w < WARPS; w++)
            x = join(a, threadIdx.x, x, shared[w][threadIdx.x]);
        a.numbers[blockIdx.x * NUMBERS + threadIdx.x] = x;
    }
    if (threadIdx.x < singles) {
        uint32_t n = 0;
        for (int w = 0; w < WARPS; w++)
            n += shared_counts[w][threadIdx.x];
        a.counts[blockIdx.x * COUNTS + threadIdx.x] = n;
    }
}

/** What a thread knows of its elements. */
struct sight {
    double sum, squares;
    float low, high;
    uint32_t zeros, nan, inf, seen, beyond[MIXT_STATS_TARGETS], flushed[MIXT_STATS_TARGETS];
};

__device__ __forceinline__ void see(const job &a, sight &s, uint8_t *bins, float x)
{
    uint32_t size = __float_as_uint(x) & 0x7fffffffu, e = size >> 23;
    bins[(e / 4 * THREADS) * 4 + e % 4]++;
    s.seen++;
    s.zeros += size == 0;
    if (a.targets)
#pragma unroll
        for (int t = 0; t < MIXT_STATS_TARGETS; t++) {
            s.beyond[t] += size >= a.beyond[t] && size < 0x7f800000u;
            s.flushed[t] += size <= a.flushed[t] && size > 0;
        }
    if (size >= 0x7f800000u) {
        s.nan += size > 0x7f800000u;
        s.inf += size == 0x7f800000u;
        return;
    }
    double v = x;
    s.sum += v;
    s.squares += v * v;
    s.low = fminf(s.low, x);
    s.high = fmaxf(s.high, x);
}

/** Adds the bytes of all threads to the block's bins and clears them. A thread has one word in WORDS of half of the
 *  threads, each lane another one, so that they read from different banks. */
__device__ void add_bytes(uint32_t (*words)[THREADS], uint32_t *bins)
{
    static_assert(THREADS == 2 * WORDS, "two threads a word");
    int word = threadIdx.x % WORDS, half = threadIdx.x / WORDS * WORDS;
    uint32_t even = 0, odd = 0; // two counters of 16 bits each: 64 threads of at most 255
    __syncthreads();
    for (int i = 0; i < WORDS; i++) {
        int thread = half + (i + threadIdx.x) % WORDS;
        uint32_t four = words[word][thread];
        words[word][thread] = 0;
        even += four & 0x00ff00ffu;
        odd += four >> 8 & 0x00ff00ffu;
    }
    atomicAdd(&bins[4 * word], even & 0xffffu);
    atomicAdd(&bins[4 * word + 1], odd & 0xffffu);
    atomicAdd(&bins[4 * word + 2], even >> 16);
    atomicAdd(&bins[4 * word + 3], odd >> 16);
    __syncthreads();
}

/** Two numbers of 16 bits. */
template <typename T> struct pair_of;
template <> struct pair_of<bf16> {
    using type = __nv_bfloat162;
};
template <> struct pair_of<fp16> {
    using type = __half2;
};
struct nobody {
}; // of no such format

/** EACH elements at once, whose extremes are found in pairs; one by one where they are not all finite. */
template <typename T> __device__ __forceinline__ void see_packed(const job &a, sight &s, uint8_t *bins, uint4 raw)
{
    using pair = typename pair_of<T>::type;
    const pair *x = reinterpret_cast<const pair *>(&raw);
    const T *each = reinterpret_cast<const T *>(&raw);
    pair low = x[0], high = x[0];
#pragma unroll
    for (int k = 1; k < EACH / 2; k++) {
        low = __hmin2_nan(low, x[k]);
        high = __hmax2_nan(high, x[k]);
    }
    float least = to_float(__hmin_nan(low.x, low.y)), most = to_float(__hmax_nan(high.x, high.y));
    if (a.targets || !(least > -INFINITY && most < INFINITY)) {
#pragma unroll
        for (int k = 0; k < EACH; k++)
            see(a, s, bins, to_float(each[k]));
        return;
    }
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        float v = to_float(each[k]);
        uint32_t bits = __float_as_uint(v);
        static_assert(THREADS == 128, "a row of words is 512 bytes, and has four exponents");
        bins[(bits >> 16 & 0x7e00u) | (bits >> 23 & 3u)]++;
        s.zeros += v == 0;
        double wide = v;
        s.sum += wide;
        s.squares += wide * wide;
    }
    s.seen += EACH;
    s.low = fminf(s.low, least);
    s.high = fmaxf(s.high, most);
}

/** All of the block's elements, EACH of a thread at a time.
 *  @param T what they are, whole and aligned; nobody: something else */
template <typename T>
__device__ __forceinline__ void see_all(const job &a, sight &s, uint32_t (*words)[THREADS], uint32_t *bins)
{
    constexpr bool packed = !std::is_same<T, nobody>::value;
    uint8_t *own = reinterpret_cast<uint8_t *>(&words[0][threadIdx.x]);
    const uint4 *data = static_cast<const uint4 *>(a.in[0].data);
    int64_t step = static_cast<int64_t>(gridDim.x) * THREADS * EACH;
    int64_t first = static_cast<int64_t>(blockIdx.x) * THREADS * EACH, i = first + threadIdx.x * EACH;
    uint4 next = {};
    if (packed && i + EACH <= a.count)
        next = data[i / EACH];
    for (int round = 1; first < a.count; first += step, i += step, round++) { // the same rounds for the whole block
        if constexpr (packed) {
            uint4 now = next;
            if (i + step + EACH <= a.count)
                next = data[(i + step) / EACH]; // on its way while this one is looked at
            if (i + EACH <= a.count)
                see_packed<T>(a, s, own, now);
        }
        if (!packed || i + EACH > a.count)
            for (int k = 0; k < EACH && i + k < a.count; k++)
                see(a, s, own, load(a.in[0], i + k));
        if (round % ROUNDS == 0)
            add_bytes(words, bins);
    }
    add_bytes(words, bins);
}

__global__ void __launch_bounds__(THREADS) stats(const job a)
{
    __shared__ uint32_t words[WORDS][THREADS], bins[MIXT_STATS_BINS];
    sight s = {};
    s.low = INFINITY;
    s.high = -INFINITY;
    for (int i = threadIdx.x; i < MIXT_STATS_BINS; i += THREADS)
        bins[i] = 0;
    for (int w = 0; w < WORDS; w++)
        words[w][threadIdx.x] = 0;
    bool whole = a.in[0].contiguous && reinterpret_cast<uintptr_t>(a.in[0].data) % 16 == 0;
    if (whole && a.in[0].dtype == MIXT_DTYPE_BF16)
        see_all<bf16>(a, s, words, bins);
    else if (whole && a.in[0].dtype == MIXT_DTYPE_FP16)
        see_all<fp16>(a, s, words, bins);
    else
        see_all<nobody>(a, s, words, bins);
    double numbers[NUMBERS] = {s.sum, s.squares, s.low, s.high, fmaxf(0.0f, fmaxf(-s.low, s.high))};
    uint32_t counts[SINGLES] = {s.seen, s.zeros, s.nan, s.inf};
#pragma unroll
    for (int t = 0; t < MIXT_STATS_TARGETS; t++) {
        counts[MIXT_STATS_BEYOND + t] = s.beyond[t];
        counts[MIXT_STATS_FLUSHED + t] = s.flushed[t];
    }
    leave(a, numbers, counts, SINGLES);
    for (int i = threadIdx.x; i < MIXT_STATS_BINS; i += THREADS)
        a.counts[blockIdx.x * COUNTS + MIXT_STATS_EXPONENTS + i] = bins[i];
}

__global__ void __launch_bounds__(THREADS) differences(const job a)
{
    double numbers[NUMBERS] = {0};
    uint32_t counts[SINGLES] = {0};
    int64_t step = static_cast<int64_t>(gridDim.x) * THREADS;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x; i < a.count; i += step) {
        double x = load(a.in[0], i), y = load(a.in[1], i), w = a.in[2].data ? load(a.in[2], i) : 0.0f;
        counts[MIXT_DIFF_COUNT]++;
        if (!isfinite(x) || !isfinite(w)) {
            counts[MIXT_DIFF_SKIPPED]++;
            continue;
        }
        if (!isfinite(y)) {
            counts[MIXT_DIFF_BROKEN]++;
            continue;
        }
        double e = y - x;
        counts[MIXT_DIFF_FLUSHED] += x != 0 && y == 0;
        numbers[MIXT_DIFF_SQUARES] += e * e;
        numbers[MIXT_DIFF_REFERENCE] += x * x;
        numbers[MIXT_DIFF_OTHER] += y * y;
        numbers[MIXT_DIFF_PRODUCT] += x * y;
        numbers[MIXT_DIFF_LARGEST] = fmax(numbers[MIXT_DIFF_LARGEST], fabs(e));
        numbers[MIXT_DIFF_FIRST] += w * e;
        numbers[MIXT_DIFF_SECOND] += w * e * (w * e);
    }
    leave(a, numbers, counts, MIXT_DIFF_COUNTS);
}

/** A block for each number and each count: of all blocks before, in a fixed tree. */
__global__ void __launch_bounds__(THREADS) finish(const job a)
{
    __shared__ double numbers[THREADS];
    __shared__ unsigned long long counts[THREADS];
    int k = blockIdx.x, t = threadIdx.x;
    bool number = k < a.number_count;
    if (number) {
        double x = t < a.blocks ? a.numbers[t * NUMBERS + k] : 0; // beyond the last block nobody looks
        for (unsigned b = t + THREADS; b < a.blocks; b += THREADS)
            x = join(a, k, x, a.numbers[b * NUMBERS + k]);
        numbers[t] = x;
    } else {
        unsigned long long n = 0;
        for (unsigned b = t; b < a.blocks; b += THREADS)
            n += a.counts[b * COUNTS + k - a.number_count];
        counts[t] = n;
    }
    for (unsigned half = THREADS / 2; half; half /= 2) {
        __syncthreads();
        if (t < half && number && t + half < a.blocks)
            numbers[t] = join(a, k, numbers[t], numbers[t + half]);
        else if (t < half && !number)
            counts[t] += counts[t + half];
    }
    if (t == 0 && number)
        a.total_numbers[k] = numbers[0];
    else if (t == 0)
        a.total_counts[k - a.number_count] = static_cast<int64_t>(counts[0]);
}

unsigned blocks_for(int64_t count)
{
    int64_t blocks = mixt__ceil_div(count, THREADS * EACH);
    return static_cast<unsigned>(blocks < 1 ? 1 : blocks > MOST_BLOCKS ? MOST_BLOCKS : blocks);
}

mixt_status prepare(mixt__call *call, mixt__arena *)
{
    call->workspace_bytes =
        blocks_for(mixt__tensor_count(&call->in[0])) * (NUMBERS * sizeof(double) + COUNTS * sizeof(uint32_t));
    return MIXT_OK;
}

job job_of(const mixt__call *call)
{
    job a = {};
    for (int i = 0; i < call->in_count; i++) {
        const mixt__tensor *t = &call->in[i];
        view *v = &a.in[i];
        *v = {t->data, t->dtype, t->shape.rank, t->contiguous, {0}, {0}};
        for (int d = 0; d < t->shape.rank; d++) {
            v->dims[d] = t->shape.dims[d];
            v->strides[d] = t->strides[d];
        }
    }
    a.count = mixt__tensor_count(&call->in[0]);
    a.blocks = blocks_for(a.count);
    a.numbers = static_cast<double *>(call->workspace);
    a.counts = reinterpret_cast<uint32_t *>(a.numbers + a.blocks * NUMBERS);
    a.total_numbers = static_cast<double *>(call->out[0].data);
    a.total_counts = static_cast<int64_t *>(call->out[1].data);
    return a;
}

mixt_status run_stats(const mixt__call *call)
{
    const mixt__tensor_stats_attrs *at = static_cast<const mixt__tensor_stats_attrs *>(call->attrs);
    job a = job_of(call);
    a.number_count = MIXT_STATS_NUMBERS;
    a.count_count = MIXT_STATS_COUNTS;
    a.largest = -1;
    for (int t = 0; t < MIXT_STATS_TARGETS; t++) {
        a.beyond[t] = mixt__fp32_bits(mixt__dtype_beyond(at->targets[t]));
        a.flushed[t] = mixt__fp32_bits(mixt__dtype_flushed(at->targets[t]));
        a.targets = a.targets || at->targets[t] != MIXT_DTYPE_NONE;
    }
    stats<<<a.blocks, THREADS, 0, mixt__cuda_of(call)->stream>>>(a);
    finish<<<a.number_count + a.count_count, THREADS, 0, mixt__cuda_of(call)->stream>>>(a);
    return mixt__cuda_launched("tensor_stats");
}

mixt_status run_error(const mixt__call *call)
{
    job a = job_of(call);
    a.number_count = MIXT_DIFF_NUMBERS;
    a.count_count = MIXT_DIFF_COUNTS;
    a.largest = MIXT_DIFF_LARGEST;
    differences<<<a.blocks, THREADS, 0, mixt__cuda_of(call)->stream>>>(a);
    finish<<<a.number_count + a.count_count, THREADS, 0, mixt__cuda_of(call)->stream>>>(a);
    return mixt__cuda_launched("tensor_error");
}

const mixt__kernel stats_blocks = {.name = "blocks", .prepare = prepare, .run = run_stats};
const mixt__kernel error_blocks = {.name = "blocks", .prepare = prepare, .run = run_error};

} // namespace

extern "C" const mixt__kernel *const mixt__cuda_tensor_stats_kernels[] = {&stats_blocks, nullptr};
extern "C" const mixt__kernel *const mixt__cuda_tensor_error_kernels[] = {&error_blocks, nullptr};
