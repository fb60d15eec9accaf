/* reshape, transpose, slice, split and concat where they must move data: strided copies. */
#include "backend/cuda/kernels.h"
#include "backend/cuda/movement/strided_copy.h"
#include "base/status.h"

#include <string.h>

/** A copy of the whole of `dst` from the start of `src`, whose strides the caller puts right. */
static mixt__cuda_copy copy_of(const mixt__tensor *src, const mixt__tensor *dst)
{
    mixt__cuda_copy copy = {
        .rank = dst->shape.rank, .src = src->data, .dst = dst->data, .size = (int)mixt_dtype_size(dst->dtype)};
    memcpy(copy.dims, dst->shape.dims, sizeof copy.dims);
    memcpy(copy.src_strides, src->strides, sizeof copy.src_strides);
    memcpy(copy.dst_strides, dst->strides, sizeof copy.dst_strides);
    return copy;
}

/** Elements keep their row-major order, so the output is filled as if it had the input's shape. */
static mixt_status reshape(const mixt__call *call)
{
    const mixt__tensor *src = &call->in[0];
    mixt__cuda_copy copy = copy_of(src, &call->out[0]);
    int64_t stride = 1;
    copy.rank = src->shape.rank;
    memcpy(copy.dims, src->shape.dims, sizeof copy.dims);
    for (int d = copy.rank - 1; d >= 0; d--) {
        copy.dst_strides[d] = stride;
        stride *= copy.dims[d];
    }
    return mixt__cuda_copy_run(mixt__cuda_of(call), copy);
}

static mixt_status transpose(const mixt__call *call)
{
    const mixt__transpose_attrs *at = call->attrs;
    mixt__cuda_copy copy = copy_of(&call->in[0], &call->out[0]);
    for (int d = 0; d < copy.rank; d++)
        copy.src_strides[d] = call->in[0].strides[at->order[d]];
    return mixt__cuda_copy_run(mixt__cuda_of(call), copy);
}

static mixt_status slice(const mixt__call *call)
{
    const mixt__slice_attrs *at = call->attrs;
    mixt__cuda_copy copy = copy_of(&call->in[0], &call->out[0]);
    copy.src += at->begin * call->in[0].strides[at->axis] * copy.size;
    return mixt__cuda_copy_run(mixt__cuda_of(call), copy);
}

static mixt_status split(const mixt__call *call)
{
    int last = call->in[0].shape.rank - 1;
    int64_t begin = 0;
    for (int o = 0; o < call->out_count; o++) {
        mixt__cuda_copy copy = copy_of(&call->in[0], &call->out[o]);
        copy.src += begin * call->in[0].strides[last] * copy.size;
        MIXT_TRY(mixt__cuda_copy_run(mixt__cuda_of(call), copy));
        begin += copy.dims[last];
    }
    return MIXT_OK;
}

static mixt_status concat(const mixt__call *call)
{
    const mixt__concat_attrs *at = call->attrs;
    int64_t begin = 0;
    for (int i = 0; i < call->in_count; i++) {
        mixt__cuda_copy copy = copy_of(&call->in[i], &call->out[0]);
        memcpy(copy.dims, call->in[i].shape.dims, sizeof copy.dims);
        copy.dst += begin * call->out[0].strides[at->axis] * copy.size;
        MIXT_TRY(mixt__cuda_copy_run(mixt__cuda_of(call), copy));
        begin += copy.dims[at->axis];
    }
    return MIXT_OK;
}

#define VIEW_KERNELS(op)                                                                                               \
    static const mixt__kernel op##_copy = {.name = "copy", .run = op};                                                 \
    const mixt__kernel *const mixt__cuda_##op##_kernels[] = {&op##_copy, NULL}

VIEW_KERNELS(reshape);
VIEW_KERNELS(transpose);
VIEW_KERNELS(slice);
VIEW_KERNELS(split);
VIEW_KERNELS(concat);
