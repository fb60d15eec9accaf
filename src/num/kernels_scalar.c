/* Array conversions in plain C: one element at a time, through memcpy because any alignment is allowed. */
#include "num/kernels.h"

#include "num/reference.h"

static float load_fp32(const float *src, int64_t i)
{
    float value;
    memcpy(&value, (const char *)src + 4 * i, sizeof value);
    return value;
}

static uint16_t load_16(const void *src, int64_t i)
{
    uint16_t bits;
    memcpy(&bits, (const char *)src + 2 * i, sizeof bits);
    return bits;
}

static void store_32(void *dst, int64_t i, uint32_t bits)
{
    memcpy((char *)dst + 4 * i, &bits, sizeof bits);
}

static void store_16(void *dst, int64_t i, uint16_t bits)
{
    memcpy((char *)dst + 2 * i, &bits, sizeof bits);
}

static void fp32_widen_array(float *dst, const void *src, int64_t count)
{
    if (dst != src)
        memcpy((void *)dst, src, (size_t)count * 4);
}

static void fp16_widen_array(float *dst, const void *src, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        store_32(dst, i, fp16_widen(load_16(src, i)));
}

static void bf16_widen_array(float *dst, const void *src, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        store_32(dst, i, (uint32_t)load_16(src, i) << 16);
}

static void e4m3_widen_array(float *dst, const void *src, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        store_32(dst, i, e4m3_widen(((const uint8_t *)src)[i]));
}

static void e5m2_widen_array(float *dst, const void *src, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        store_32(dst, i, e5m2_widen(((const uint8_t *)src)[i]));
}

static void int8_widen_array(float *dst, const void *src, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        store_32(dst, i, mixt__fp32_bits((float)((const int8_t *)src)[i]));
}

static void uint8_widen_array(float *dst, const void *src, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        store_32(dst, i, mixt__fp32_bits((float)((const uint8_t *)src)[i]));
}

static void fp32_narrow_array(void *dst, const float *src, int64_t count)
{
    fp32_widen_array(dst, src, count);
}

static void tf32_narrow_array(void *dst, const float *src, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        store_32(dst, i, tf32_narrow(mixt__fp32_bits(load_fp32(src, i))));
}

static void fp16_narrow_array(void *dst, const float *src, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        store_16(dst, i, fp16_narrow(mixt__fp32_bits(load_fp32(src, i))));
}

static void bf16_narrow_array(void *dst, const float *src, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        store_16(dst, i, bf16_narrow(mixt__fp32_bits(load_fp32(src, i))));
}

static void e4m3_narrow_array(void *dst, const float *src, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        ((uint8_t *)dst)[i] = e4m3_narrow(mixt__fp32_bits(load_fp32(src, i)));
}

static void e5m2_narrow_array(void *dst, const float *src, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        ((uint8_t *)dst)[i] = e5m2_narrow(mixt__fp32_bits(load_fp32(src, i)));
}

static void int8_narrow_array(void *dst, const float *src, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        ((int8_t *)dst)[i] = (int8_t)integer_narrow(load_fp32(src, i), INT8_MIN, INT8_MAX);
}

static void uint8_narrow_array(void *dst, const float *src, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        ((uint8_t *)dst)[i] = (uint8_t)integer_narrow(load_fp32(src, i), 0, UINT8_MAX);
}

const mixt__num_kernels mixt__num_kernels_scalar = {
    .widen = {[MIXT_DTYPE_FP32] = fp32_widen_array,
              [MIXT_DTYPE_TF32] = fp32_widen_array,
              [MIXT_DTYPE_FP16] = fp16_widen_array,
              [MIXT_DTYPE_BF16] = bf16_widen_array,
              [MIXT_DTYPE_FP8_E4M3] = e4m3_widen_array,
              [MIXT_DTYPE_FP8_E5M2] = e5m2_widen_array,
              [MIXT_DTYPE_INT8] = int8_widen_array,
              [MIXT_DTYPE_UINT8] = uint8_widen_array},
    .narrow = {[MIXT_DTYPE_FP32] = fp32_narrow_array,
               [MIXT_DTYPE_TF32] = tf32_narrow_array,
               [MIXT_DTYPE_FP16] = fp16_narrow_array,
               [MIXT_DTYPE_BF16] = bf16_narrow_array,
               [MIXT_DTYPE_FP8_E4M3] = e4m3_narrow_array,
               [MIXT_DTYPE_FP8_E5M2] = e5m2_narrow_array,
               [MIXT_DTYPE_INT8] = int8_narrow_array,
               [MIXT_DTYPE_UINT8] = uint8_narrow_array},
};
