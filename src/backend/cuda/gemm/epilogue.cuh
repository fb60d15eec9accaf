/* What our own product kernels do to a result before it is stored. */
#ifndef MIXT_BACKEND_CUDA_GEMM_EPILOGUE_CUH
#define MIXT_BACKEND_CUDA_GEMM_EPILOGUE_CUH

#include "backend/cuda/core/device.cuh"
#include "backend/cuda/gemm/matmul.h"

/** Where a result goes and what joins it on the way; all of the result's shape, contiguous. */
typedef struct epilogue_args {
    const void *bias, *addend, *pre; // NULL: none
    void *dst, *aux;
    mixt_dtype bias_dtype, addend_dtype, pre_dtype, dst_dtype, aux_dtype;
    mixt__epilogue kind;
    float alpha;
    bool accumulate;
} epilogue_args;

static inline epilogue_args epilogue_of(const mixt__call *call)
{
    const mixt__matmul_attrs *at = static_cast<const mixt__matmul_attrs *>(call->attrs);
    const mixt__tensor *bias = mixt__cuda_product_bias(call), *addend = mixt__cuda_product_addend(call),
                       *pre = mixt__cuda_product_pre(call), *aux = call->out_count > 1 ? &call->out[1] : NULL;
    epilogue_args e = {};
    e.bias = bias ? bias->data : NULL;
    e.bias_dtype = bias ? bias->dtype : MIXT_DTYPE_FP32;
    e.addend = addend ? addend->data : NULL;
    e.addend_dtype = addend ? addend->dtype : MIXT_DTYPE_FP32;
    e.pre = pre ? pre->data : NULL;
    e.pre_dtype = pre ? pre->dtype : MIXT_DTYPE_FP32;
    e.aux = aux ? aux->data : NULL;
    e.aux_dtype = aux ? aux->dtype : MIXT_DTYPE_FP32;
    e.dst = call->out[0].data;
    e.dst_dtype = call->out[0].dtype;
    e.kind = at->epilogue;
    e.alpha = at->alpha;
    e.accumulate = call->accumulate & 1;
    return e;
}

static __device__ __forceinline__ float load_any(const void *data, mixt_dtype dtype, int64_t i)
{
    if (dtype == MIXT_DTYPE_FP32)
        return static_cast<const float *>(data)[i];
    return dtype == MIXT_DTYPE_BF16 ? to_float(static_cast<const bf16 *>(data)[i])
                                    : to_float(static_cast<const fp16 *>(data)[i]);
}

static __device__ __forceinline__ void store_any(void *data, mixt_dtype dtype, int64_t i, float x)
{
    if (dtype == MIXT_DTYPE_FP32)
        static_cast<float *>(data)[i] = x;
    else if (dtype == MIXT_DTYPE_BF16)
        static_cast<bf16 *>(data)[i] = from_float<bf16>(x);
    else
        static_cast<fp16 *>(data)[i] = from_float<fp16>(x);
}

#define GELU_A 1.5957691216057308f   // 2·sqrt(2/pi)
#define GELU_B 0.071354816272600256f // 0.044715 times that

/** x · sigmoid(2u), u = sqrt(2/pi)·(x + 0.044715·x³): the tanh form without its cancellation. */
static __device__ __forceinline__ float gelu(float x)
{
    return x / (1.0f + expf(-x * fmaf(GELU_B, x * x, GELU_A)));
}

/** s + x·s·(1 - s)·2u', s = sigmoid(2u). Past the bound both limits are reached. */
static __device__ __forceinline__ float gelu_slope(float x)
{
    float size = fminf(fabsf(x), 11.0f), square = size * size;
    float e = expf(-size * fmaf(GELU_B, square, GELU_A)), q = 1.0f / (1.0f + e), p = e * q;
    float slope = fmaf(p * q, copysignf(size, x) * fmaf(3.0f * GELU_B, square, GELU_A), x < 0.0f ? p : q);
    return isnan(x) ? x : slope;
}

/** Element i = (row, column) of the result, from the bare sum. */
static __device__ __forceinline__ void finish(const epilogue_args &e, int64_t i, int64_t column, float sum)
{
    float x = e.alpha * sum;
    if (e.bias)
        x += load_any(e.bias, e.bias_dtype, column);
    if (e.addend)
        x += load_any(e.addend, e.addend_dtype, i);
    if (e.kind == MIXT_EPILOGUE_RELU)
        x = x <= 0.0f ? 0.0f : x; // NaN stays
    if (e.kind == MIXT_EPILOGUE_GELU) {
        store_any(e.aux, e.aux_dtype, i, x);
        x = gelu(x);
    }
    if (e.kind == MIXT_EPILOGUE_GELU_GRAD)
        x *= gelu_slope(load_any(e.pre, e.pre_dtype, i));
    if (e.accumulate)
        x += load_any(e.dst, e.dst_dtype, i);
    store_any(e.dst, e.dst_dtype, i, x);
}

/* ---- four neighbours at once ---- */

/** What joins four neighbouring results, read ahead of them. */
typedef struct joining4 {
    float added[4], slope[4], old[4];
} joining4;

/** The first `count` of four elements; `vector`: all four may be read at once. */
static __device__ __forceinline__ void load4(float (&x)[4], const void *data, mixt_dtype dtype, int64_t i, int count,
                                             bool vector)
{
    if (vector && count == 4 && dtype == MIXT_DTYPE_FP32) {
        float4 v = *reinterpret_cast<const float4 *>(static_cast<const float *>(data) + i);
        x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w;
        return;
    }
    if (vector && count == 4) {
        uint2 v = *reinterpret_cast<const uint2 *>(static_cast<const uint16_t *>(data) + i);
        uint16_t parts[4] = {(uint16_t)v.x, (uint16_t)(v.x >> 16), (uint16_t)v.y, (uint16_t)(v.y >> 16)};
#pragma unroll
        for (int j = 0; j < 4; j++)
            x[j] = load_any(parts, dtype, j);
        return;
    }
#pragma unroll
    for (int j = 0; j < 4; j++)
        x[j] = j < count ? load_any(data, dtype, i + j) : 0.0f;
}

static __device__ __forceinline__ void store4(void *data, mixt_dtype dtype, int64_t i, int count, bool vector,
                                              const float (&x)[4])
{
    if (vector && count == 4) {
        if (dtype == MIXT_DTYPE_FP32) {
            *reinterpret_cast<float4 *>(static_cast<float *>(data) + i) = make_float4(x[0], x[1], x[2], x[3]);
        } else {
            uint16_t v[4];
#pragma unroll
            for (int j = 0; j < 4; j++)
                store_any(v, dtype, j, x[j]);
            *reinterpret_cast<uint2 *>(static_cast<uint16_t *>(data) + i) =
                make_uint2(v[0] | (uint32_t)v[1] << 16, v[2] | (uint32_t)v[3] << 16);
        }
        return;
    }
#pragma unroll
    for (int j = 0; j < 4; j++)
        if (j < count)
            store_any(data, dtype, i + j, x[j]);
}

static __device__ __forceinline__ joining4 joining_load(const epilogue_args &e, int64_t i, int64_t column, int count,
                                                        bool vector)
{
    joining4 r = {};
    float x[4];
    if (e.bias)
        load4(r.added, e.bias, e.bias_dtype, column, count, vector);
    if (e.addend) {
        load4(x, e.addend, e.addend_dtype, i, count, vector);
#pragma unroll
        for (int j = 0; j < 4; j++)
            r.added[j] += x[j];
    }
    if (e.kind == MIXT_EPILOGUE_GELU_GRAD) {
        load4(x, e.pre, e.pre_dtype, i, count, vector);
#pragma unroll
        for (int j = 0; j < 4; j++)
            r.slope[j] = gelu_slope(x[j]);
    }
    if (e.accumulate)
        load4(r.old, e.dst, e.dst_dtype, i, count, vector);
    return r;
}

static __device__ __forceinline__ void finish4(const epilogue_args &e, const joining4 &r, int64_t i, int count,
                                               bool vector, float (&x)[4])
{
#pragma unroll
    for (int j = 0; j < 4; j++)
        x[j] = fmaf(e.alpha, x[j], r.added[j]);
    if (e.kind == MIXT_EPILOGUE_GELU)
        store4(e.aux, e.aux_dtype, i, count, vector, x);
#pragma unroll
    for (int j = 0; j < 4; j++) {
        if (e.kind == MIXT_EPILOGUE_RELU)
            x[j] = x[j] <= 0.0f ? 0.0f : x[j]; // NaN stays
        else if (e.kind == MIXT_EPILOGUE_GELU)
            x[j] = gelu(x[j]);
        else if (e.kind == MIXT_EPILOGUE_GELU_GRAD)
            x[j] *= r.slope[j];
        x[j] += r.old[j];
    }
    store4(e.dst, e.dst_dtype, i, count, vector, x);
}

#endif
