/* slice_grad: zeros but for the slice; or, into a parameter gradient, an addition to the slice alone.
 *
 * Around the sliced dimension a tensor is (outer, full, inner): rows of full · inner elements, of which one stretch is
 * the slice. Blocks along x share a row, blocks along y the rows. Bytes moved: the output and the slice once.
 */
#include "backend/cuda/core/any_format.cuh"

#include "backend/cuda/kernels.h"

namespace
{

enum { THREADS = 256, MOST_ROWS = 65535 };

/** In elements of the kernel's type. */
struct stretch {
    int64_t outer, whole, before, length;
};

/** One format, overwritten: E is as wide as everything divides. */
template <typename E> __global__ void __launch_bounds__(THREADS) slice_grad_move(E *dst, const E *src, const stretch s)
{
    int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x, from = i - s.before;
    if (i >= s.whole)
        return;
    for (int64_t o = blockIdx.y; o < s.outer; o += gridDim.y)
        dst[o * s.whole + i] = from >= 0 && from < s.length ? src[o * s.length + from] : E{};
}

/** Any two formats, overwritten or (FP32) added to. */
__global__ void __launch_bounds__(THREADS) slice_grad_convert(void *dst, mixt_dtype dst_dtype, const void *src,
                                                              mixt_dtype src_dtype, const stretch s, bool add)
{
    int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x + (add ? s.before : 0), from = i - s.before;
    if (i >= (add ? s.before + s.length : s.whole))
        return;
    for (int64_t o = blockIdx.y; o < s.outer; o += gridDim.y) {
        bool inside = from >= 0 && from < s.length;
        float value = inside ? load_any(src, src_dtype, o * s.length + from) : 0.0f;
        if (add)
            value += static_cast<float *>(dst)[o * s.whole + i];
        store_any(dst, dst_dtype, o * s.whole + i, value);
    }
}

dim3 grid(int64_t columns, int64_t outer)
{
    return dim3(static_cast<unsigned>(mixt__ceil_div(columns, THREADS)),
                static_cast<unsigned>(outer < MOST_ROWS ? outer : MOST_ROWS));
}

template <typename E> void move(const mixt__call *call, const stretch &s)
{
    slice_grad_move<<<grid(s.whole, s.outer), THREADS, 0, mixt__cuda_of(call)->stream>>>(
        static_cast<E *>(call->out[0].data), static_cast<const E *>(call->in[0].data), s);
}

void move_widest(const mixt__call *call, stretch s)
{
    int64_t size = static_cast<int64_t>(mixt_dtype_size(call->out[0].dtype));
    int64_t all = static_cast<int64_t>(reinterpret_cast<uintptr_t>(call->out[0].data) |
                                       reinterpret_cast<uintptr_t>(call->in[0].data)) |
                  s.whole * size | s.before * size | s.length * size;
    int64_t wide = all % 16 == 0 ? 16 : all % 4 == 0 ? 4 : size;
    if (wide < size)
        wide = size;
    s = {s.outer, s.whole * size / wide, s.before * size / wide, s.length * size / wide};
    if (wide == 16)
        move<uint4>(call, s);
    else if (wide == 4)
        move<uint32_t>(call, s);
    else if (wide == 2)
        move<uint16_t>(call, s);
}

mixt_status run(const mixt__call *call)
{
    const mixt__slice_attrs *at = static_cast<const mixt__slice_attrs *>(call->attrs);
    const mixt__tensor *src = &call->in[0], *dst = &call->out[0];
    stretch s = {1, 1, at->begin, at->end - at->begin};
    for (int d = 0; d < dst->shape.rank; d++) {
        if (d < at->axis)
            s.outer *= dst->shape.dims[d];
        else
            s.whole *= dst->shape.dims[d];
        if (d > at->axis) {
            s.before *= dst->shape.dims[d];
            s.length *= dst->shape.dims[d];
        }
    }
    bool add = call->accumulate & 1;
    if (s.outer * s.whole == 0)
        return MIXT_OK;
    if (!add && src->dtype == dst->dtype)
        move_widest(call, s);
    else
        slice_grad_convert<<<grid(add ? s.length : s.whole, s.outer), THREADS, 0, mixt__cuda_of(call)->stream>>>(
            dst->data, dst->dtype, src->data, src->dtype, s, add);
    return mixt__cuda_launched("slice_grad");
}

const mixt__kernel stretches = {.name = "stretches", .run = run};

} // namespace

extern "C" const mixt__kernel *const mixt__cuda_slice_grad_kernels[] = {&stretches, nullptr};
