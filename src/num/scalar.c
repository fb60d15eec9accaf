/* Single values: the public functions, and access to one element of an array of any format. */
#include "num/num.h"

#include "num/reference.h"
#include "num/wide.h"

uint16_t mixt_fp16_from_fp32(float value)
{
    return fp16_narrow(mixt__fp32_bits(value));
}

float mixt_fp16_to_fp32(uint16_t bits)
{
    return mixt__fp32_of_bits(fp16_widen(bits));
}

uint16_t mixt_bf16_from_fp32(float value)
{
    return bf16_narrow(mixt__fp32_bits(value));
}

float mixt_bf16_to_fp32(uint16_t bits)
{
    return mixt__bf16_widen(bits);
}

uint8_t mixt_fp8_e4m3_from_fp32(float value)
{
    return e4m3_narrow(mixt__fp32_bits(value));
}

float mixt_fp8_e4m3_to_fp32(uint8_t bits)
{
    return mixt__fp32_of_bits(e4m3_widen(bits));
}

uint8_t mixt_fp8_e5m2_from_fp32(float value)
{
    return e5m2_narrow(mixt__fp32_bits(value));
}

float mixt_fp8_e5m2_to_fp32(uint8_t bits)
{
    return mixt__fp32_of_bits(e5m2_widen(bits));
}

float mixt_tf32_round(float value)
{
    return mixt__fp32_of_bits(tf32_narrow(mixt__fp32_bits(value)));
}

/** FP32, FP16 and BF16 by themselves: a value that a kernel over arrays leaves in memory, masked, is slow to read back,
 *  and plain kernels do nothing else. */
float mixt__load(const void *array, mixt_dtype dtype, int64_t index)
{
    if (dtype == MIXT_DTYPE_FP32)
        return ((const float *)array)[index];
    if (dtype == MIXT_DTYPE_BF16)
        return mixt__bf16_widen(((const uint16_t *)array)[index]);
    if (dtype == MIXT_DTYPE_FP16)
        return mixt_fp16_to_fp32(((const uint16_t *)array)[index]);
    const char *element = (const char *)array + index * (int64_t)mixt_dtype_size(dtype);
    mixt__widen_fn *widen = mixt__widen(dtype);
    float value = 0;
    if (widen) {
        widen(&value, element, 1);
    } else if (mixt__dtype_is_wide(dtype)) {
        double wide;
        mixt__wide_load(&wide, element, dtype, 1);
        value = (float)wide;
    }
    return value;
}

void mixt__store(void *array, mixt_dtype dtype, int64_t index, float value)
{
    char *element = (char *)array + index * (int64_t)mixt_dtype_size(dtype);
    mixt__narrow_fn *narrow = mixt__narrow(dtype);
    if (narrow)
        narrow(element, &value, 1);
    else if (mixt__dtype_is_wide(dtype))
        mixt__wide_store(element, dtype, &value, 1);
}
