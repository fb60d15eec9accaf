/* The product with a weight of numbers and scales: "scaled" writes its values, in the other operand's format, into the
 * workspace, and the best of the other candidates multiplies them. The workspace is shared by all ops of a step, so
 * that one weight at a time is there in full.
 *
 * A block of 256 threads takes rows of the weight in turn, four numbers a thread where rows allow it. Reads a byte and
 * writes two (FP32: four) an element, before a product that reads each of them again. NF4 (num/nf4.h) has half a byte
 * an element, of which a thread takes two.
 */
#include "backend/cuda/core/device.cuh"
#include "backend/cuda/gemm/matmul.h"
#include "backend/cuda/kernels.h"
#include "base/alloc.h"
#include "base/status.h"
#include "num/nf4_tables.h"

#include <string.h>

enum { THREADS = 256, MOST_BLOCKS = 65536, INPUTS = 5, ALIGNMENT = 256 };

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    scale_rows(T *dst, const int8_t *numbers, const float *scales, int64_t rows, int64_t cols)
{
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        float scale = scales[row];
        const int8_t *src = numbers + row * cols;
        if (cols % 4 == 0)
            for (int64_t i = 4 * (int64_t)threadIdx.x; i < cols; i += 4 * THREADS) {
                char4 four = *reinterpret_cast<const char4 *>(src + i);
                dst[row * cols + i] = from_float<T>((float)four.x * scale);
                dst[row * cols + i + 1] = from_float<T>((float)four.y * scale);
                dst[row * cols + i + 2] = from_float<T>((float)four.z * scale);
                dst[row * cols + i + 3] = from_float<T>((float)four.w * scale);
            }
        else
            for (int64_t i = threadIdx.x; i < cols; i += THREADS)
                dst[row * cols + i] = from_float<T>((float)src[i] * scale);
    }
}

/** Where a part of an NF4 weight has its scales: num/nf4.h. */
typedef struct nf4_part {
    const float *nested, *offset;
    const unsigned char *magnitude;
    int64_t row;
} nf4_part;

static __device__ nf4_part part_of_row(const float *scales, int64_t cols, int64_t row)
{
    const int *rows = reinterpret_cast<const int *>(scales);
    const float *at = scales + MIXT_NF4_PARTS;
    int64_t first = 0;
    for (int i = 0; i + 1 < MIXT_NF4_PARTS && rows[i + 1] && row >= first + rows[i]; i++) {
        int64_t blocks = rows[i] * (cols / MIXT_NF4_BLOCK);
        at += (blocks + MIXT_NF4_NESTED - 1) / MIXT_NF4_NESTED + 1 + (blocks + 3) / 4;
        first += rows[i];
    }
    int64_t count = 0; // rows of the part
    int64_t begin = 0;
    for (int i = 0; i < MIXT_NF4_PARTS && rows[i]; begin += rows[i], i++)
        if (begin == first)
            count = rows[i];
    int64_t nested = (count * (cols / MIXT_NF4_BLOCK) + MIXT_NF4_NESTED - 1) / MIXT_NF4_NESTED;
    return nf4_part{at, at + nested, reinterpret_cast<const unsigned char *>(at + nested + 1), first};
}

/** A block of threads takes rows in turn, two numbers a thread. @param tables 16 numbers, then 256 */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    scale_nf4(T *dst, const unsigned char *codes, const float *scales, int64_t rows, int64_t cols)
{
    static constexpr float numbers[16] = {MIXT_NF4_NUMBERS};
    static constexpr float dynamic[256] = {MIXT_NF4_DYNAMIC};
    __shared__ float near[16], far[256];
    for (int i = threadIdx.x; i < 256; i += THREADS)
        far[i] = dynamic[i];
    if (threadIdx.x < 16)
        near[threadIdx.x] = numbers[threadIdx.x];
    __syncthreads();
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        nf4_part part = part_of_row(scales, cols, row);
        for (int64_t i = 2 * (int64_t)threadIdx.x; i < cols; i += 2 * THREADS) {
            int64_t block = ((row - part.row) * cols + i) / MIXT_NF4_BLOCK;
            float magnitude =
                __fadd_rn(__fmul_rn(far[part.magnitude[block]], part.nested[block / MIXT_NF4_NESTED]), *part.offset);
            unsigned char two = codes[(row * cols + i) / 2];
            dst[row * cols + i] = from_float<T>(near[two >> 4] * magnitude);
            dst[row * cols + i + 1] = from_float<T>(near[two & 15] * magnitude);
        }
    }
}

typedef struct scaled_plan {
    const mixt__kernel *kernel; // that multiplies
    void *state;                // its own
    size_t bytes;               // of the weight's values, before its workspace
} scaled_plan;

/** The same product of a plain weight. @param in room for its inputs */
static mixt__call plain_call(const mixt__call *call, mixt__tensor *in)
{
    mixt__call inner = *call;
    memcpy(in, call->in, (size_t)call->in_count * sizeof *in);
    in[1].dtype = in[0].dtype;
    in[1].scale_kind = MIXT_SCALE_NONE;
    in[1].scales = NULL;
    in[1].data = NULL;
    inner.in = in;
    return inner;
}

static const mixt__kernel *kernel_of(const mixt__call *inner, const char **reason)
{
    for (int i = 0; mixt__cuda_matmul_kernels[i]; i++)
        if (mixt__cuda_matmul_kernels[i]->supports(inner, reason))
            return mixt__cuda_matmul_kernels[i];
    return NULL;
}

static bool supports(const mixt__call *call, const char **reason)
{
    const mixt__tensor *weight = &call->in[1];
    mixt__tensor in[INPUTS];
    if (weight->scale_kind == MIXT_SCALE_NONE)
        *reason = "the weight has no scales";
    else if (call->in[0].scale_kind != MIXT_SCALE_NONE)
        *reason = "no products of operands in FP8 here";
    else if ((weight->dtype != MIXT_DTYPE_INT8 && weight->dtype != MIXT_DTYPE_NF4) || !weight->contiguous)
        *reason = "only for weights of int8 with a scale for each row, or of nf4";
    else {
        mixt__call inner = plain_call(call, in);
        return kernel_of(&inner, reason) != NULL;
    }
    return false;
}

static mixt_status prepare(mixt__call *call, mixt__arena *arena)
{
    mixt__tensor in[INPUTS];
    mixt__call inner = plain_call(call, in);
    const char *reason;
    scaled_plan *plan = static_cast<scaled_plan *>(mixt__arena_alloc(arena, sizeof *plan));
    if (!plan)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the plan of a matrix product");
    size_t bytes = (size_t)mixt__tensor_count(&in[1]) * mixt_dtype_size(in[1].dtype);
    plan->kernel = kernel_of(&inner, &reason);
    plan->bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (plan->kernel->prepare)
        MIXT_TRY(plan->kernel->prepare(&inner, arena));
    plan->state = inner.state;
    call->state = plan;
    call->workspace_bytes = plan->bytes + inner.workspace_bytes;
    call->tensor_cores = inner.tensor_cores;
    return MIXT_OK;
}

static mixt_status run(const mixt__call *call)
{
    const scaled_plan *plan = static_cast<const scaled_plan *>(call->state);
    const mixt__tensor *weight = &call->in[1];
    mixt__tensor in[INPUTS];
    mixt__call inner = plain_call(call, in);
    int64_t rows = weight->shape.dims[0], cols = weight->shape.dims[1];
    unsigned blocks = (unsigned)(rows < MOST_BLOCKS ? rows : MOST_BLOCKS);
    in[1].data = call->workspace;
    inner.state = plan->state;
    inner.workspace = static_cast<char *>(call->workspace) + plan->bytes;
    inner.workspace_bytes = call->workspace_bytes - plan->bytes;
    if (rows && cols && weight->dtype == MIXT_DTYPE_NF4) {
        const unsigned char *codes = static_cast<const unsigned char *>(weight->data);
        DISPATCH(in[1].dtype, T,
                 scale_nf4<<<blocks, THREADS, 0, mixt__cuda_of(call)->stream>>>(static_cast<T *>(in[1].data), codes,
                                                                                weight->scales, rows, cols));
        MIXT_TRY(mixt__cuda_launched("scale_nf4"));
    } else if (rows && cols) {
        const int8_t *numbers = static_cast<const int8_t *>(weight->data);
        DISPATCH(in[1].dtype, T,
                 scale_rows<<<blocks, THREADS, 0, mixt__cuda_of(call)->stream>>>(static_cast<T *>(in[1].data), numbers,
                                                                                 weight->scales, rows, cols));
        MIXT_TRY(mixt__cuda_launched("scale_rows"));
    }
    return plan->kernel->run(&inner);
}

extern "C" const mixt__kernel mixt__cuda_matmul_scaled = {
    .name = "scaled", .supports = supports, .prepare = prepare, .run = run};
