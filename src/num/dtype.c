/* The table of number formats: names, sizes and limits. */
#include "num/num.h"

#include <float.h>
#include <math.h>

typedef struct dtype_record {
    const char *name;
    size_t size;
    bool is_float;
    double roundoff, max, min_subnormal; // for integers: half a step, the largest value, one step
} dtype_record;

static const dtype_record table[MIXT_DTYPE_COUNT] = {
    [MIXT_DTYPE_NONE] = {"none", 0, false, 0, 0, 0},
    [MIXT_DTYPE_FP32] = {"fp32", 4, true, 0x1p-24, FLT_MAX, 0x1p-149},
    [MIXT_DTYPE_TF32] = {"tf32", 4, true, 0x1p-11, 0x1.ffcp127, 0x1p-136},
    [MIXT_DTYPE_FP16] = {"fp16", 2, true, 0x1p-11, 65504, 0x1p-24},
    [MIXT_DTYPE_BF16] = {"bf16", 2, true, 0x1p-8, 0x1.fep127, 0x1p-133},
    [MIXT_DTYPE_FP8_E4M3] = {"fp8_e4m3", 1, true, 0x1p-4, 448, 0x1p-9},
    [MIXT_DTYPE_FP8_E5M2] = {"fp8_e5m2", 1, true, 0x1p-3, 57344, 0x1p-16},
    [MIXT_DTYPE_INT8] = {"int8", 1, false, 0.5, INT8_MAX, 1},
    [MIXT_DTYPE_UINT8] = {"uint8", 1, false, 0.5, UINT8_MAX, 1},
    [MIXT_DTYPE_INT32] = {"int32", 4, false, 0.5, INT32_MAX, 1},
    [MIXT_DTYPE_INT64] = {"int64", 8, false, 0.5, 0x1p63, 1},
    [MIXT_DTYPE_FP64] = {"fp64", 8, true, 0x1p-53, DBL_MAX, 0x1p-1074},
};

static const dtype_record *record_of(mixt_dtype dtype)
{
    bool known = (unsigned)dtype < MIXT_DTYPE_COUNT;
    return &table[known ? dtype : MIXT_DTYPE_NONE];
}

size_t mixt_dtype_size(mixt_dtype dtype)
{
    return record_of(dtype)->size;
}

const char *mixt_dtype_name(mixt_dtype dtype)
{
    return record_of(dtype)->name;
}

mixt_dtype mixt_dtype_parse(const char *name)
{
    for (int i = MIXT_DTYPE_NONE + 1; name && i < MIXT_DTYPE_COUNT; i++)
        if (!strcmp(name, table[i].name))
            return (mixt_dtype)i;
    return MIXT_DTYPE_NONE;
}

bool mixt_dtype_is_float(mixt_dtype dtype)
{
    return record_of(dtype)->is_float;
}

double mixt__dtype_roundoff(mixt_dtype dtype)
{
    return record_of(dtype)->roundoff;
}

double mixt__dtype_max(mixt_dtype dtype)
{
    return record_of(dtype)->max;
}

double mixt__dtype_min_subnormal(mixt_dtype dtype)
{
    return record_of(dtype)->min_subnormal;
}

float mixt__dtype_beyond(mixt_dtype dtype)
{
    const dtype_record *r = record_of(dtype);
    if (!r->is_float || dtype == MIXT_DTYPE_FP32 || dtype == MIXT_DTYPE_FP64)
        return INFINITY;
    int exponent;
    frexp(r->max, &exponent);
    // half a step beyond the largest number, which ties to the infinity that it would be; E4M3 has none, and its
    // largest number is the even one
    float limit = (float)(r->max + ldexp(r->roundoff, exponent - 1));
    return dtype == MIXT_DTYPE_FP8_E4M3 ? nextafterf(limit, INFINITY) : limit;
}

float mixt__dtype_flushed(mixt_dtype dtype)
{
    const dtype_record *r = record_of(dtype);
    bool wide = !r->is_float || dtype == MIXT_DTYPE_FP32 || dtype == MIXT_DTYPE_FP64;
    return wide ? 0.0f : (float)(r->min_subnormal / 2);
}
