/* How kernels over rows see a contiguous tensor: all dimensions but the last are rows. */
#ifndef MIXT_BACKEND_CPU_CORE_TENSOR_H
#define MIXT_BACKEND_CPU_CORE_TENSOR_H

#include "backend/backend.h"
#include "num/num.h"

static inline int64_t mixt__tensor_cols(const mixt__tensor *tensor)
{
    return tensor->shape.rank ? tensor->shape.dims[tensor->shape.rank - 1] : 1;
}

static inline int64_t mixt__tensor_rows(const mixt__tensor *tensor)
{
    int64_t rows = 1;
    for (int i = 0; i + 1 < tensor->shape.rank; i++)
        rows *= tensor->shape.dims[i];
    return rows;
}

static inline bool mixt__tensor_is_pair(const mixt__tensor *tensor)
{
    return tensor->scale_kind != MIXT_SCALE_NONE;
}

/** Whether its numbers have one scale for all. */
static inline bool mixt__tensor_is_scaled(const mixt__tensor *tensor)
{
    return tensor->scale_kind == MIXT_SCALE_TENSOR;
}

/** Element `index` of a tensor, which may be a pair with one scale or one for each index of its first dimension; for
 *  plain kernels. */
static inline float mixt__tensor_load(const mixt__tensor *tensor, int64_t index)
{
    if (tensor->dtype == MIXT_DTYPE_NF4) {
        float value;
        mixt__nf4_row(tensor->data, tensor->scales, tensor->strides[0], index / tensor->strides[0],
                      index % tensor->strides[0], 1, &value);
        return value;
    }
    float number = mixt__load(tensor->data, tensor->dtype, index);
    if (!mixt__tensor_is_pair(tensor))
        return number;
    return number * tensor->scales[tensor->scale_kind == MIXT_SCALE_TENSOR ? 0 : index / tensor->strides[0]];
}

static inline bool mixt__call_adds(const mixt__call *call, int output)
{
    return call->accumulate >> output & 1;
}

#endif
