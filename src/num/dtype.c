/* The table of number formats, and the questions that it answers. */
#include "num/format.h"
#include "num/num.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

#define FLOAT(bytes, exponents, mantissas)                                                                             \
    .size = (bytes), .exponent_bits = (exponents), .mantissa_bits = (mantissas), .is_float = true
#define INTEGER(bytes, most) .size = (bytes), .max = (most), .min_normal = 1, .min_subnormal = 1, .roundoff = 0.5
/** What any format that values lie in may do. */
#define HOLD (MIXT_MAY_MULTIPLY | MIXT_MAY_HOLD | MIXT_MAY_KEEP)

static const mixt__format table[MIXT_DTYPE_COUNT] = {
    [MIXT_DTYPE_NONE] = {.name = "none", .stored = MIXT_DTYPE_NONE, .carrier = MIXT_DTYPE_NONE},
    [MIXT_DTYPE_FP32] = {.name = "fp32",
                         FLOAT(4, 8, 23),
                         .stored = MIXT_DTYPE_FP32,
                         .carrier = MIXT_DTYPE_FP32,
                         .max = FLT_MAX,
                         .min_normal = FLT_MIN,
                         .min_subnormal = 0x1p-149,
                         .roundoff = 0x1p-24,
                         .may = HOLD},
    [MIXT_DTYPE_TF32] = {.name = "tf32",
                         FLOAT(4, 8, 10),
                         .stored = MIXT_DTYPE_FP32,
                         .carrier = MIXT_DTYPE_FP32,
                         .max = 0x1.ffcp127,
                         .min_normal = FLT_MIN,
                         .min_subnormal = 0x1p-136,
                         .roundoff = 0x1p-11,
                         .may = MIXT_MAY_MULTIPLY,
                         .preference = 3},
    [MIXT_DTYPE_FP16] = {.name = "fp16",
                         FLOAT(2, 5, 10),
                         .stored = MIXT_DTYPE_FP16,
                         .carrier = MIXT_DTYPE_FP16,
                         .max = 65504,
                         .min_normal = 0x1p-14,
                         .min_subnormal = 0x1p-24,
                         .roundoff = 0x1p-11,
                         .loss_scaling = true,
                         .may = HOLD | MIXT_MAY_COPY,
                         .preference = 2},
    [MIXT_DTYPE_BF16] = {.name = "bf16",
                         FLOAT(2, 8, 7),
                         .stored = MIXT_DTYPE_BF16,
                         .carrier = MIXT_DTYPE_BF16,
                         .max = 0x1.fep127,
                         .min_normal = FLT_MIN,
                         .min_subnormal = 0x1p-133,
                         .roundoff = 0x1p-8,
                         .may = HOLD | MIXT_MAY_COPY,
                         .preference = 1},
    [MIXT_DTYPE_FP8_E4M3] = {.name = "fp8_e4m3",
                             FLOAT(1, 4, 3),
                             .stored = MIXT_DTYPE_FP8_E4M3,
                             .carrier = MIXT_DTYPE_BF16,
                             .max = 448,
                             .min_normal = 0x1p-6,
                             .min_subnormal = 0x1p-9,
                             .roundoff = 0x1p-4,
                             .scale = MIXT_SCALE_CHANNEL, // of a weight; activations have one for the tensor
                             .frozen = "fp8",
                             .may = MIXT_MAY_MULTIPLY_CPU | MIXT_MAY_KEEP},
    [MIXT_DTYPE_FP8_E5M2] = {.name = "fp8_e5m2",
                             FLOAT(1, 5, 2),
                             .stored = MIXT_DTYPE_FP8_E5M2,
                             .carrier = MIXT_DTYPE_BF16,
                             .max = 57344,
                             .min_normal = 0x1p-14,
                             .min_subnormal = 0x1p-16,
                             .roundoff = 0x1p-3,
                             .scale = MIXT_SCALE_TENSOR,
                             .may = MIXT_MAY_MULTIPLY_CPU},
    [MIXT_DTYPE_INT8] = {.name = "int8",
                         INTEGER(1, INT8_MAX),
                         .stored = MIXT_DTYPE_INT8,
                         .carrier = MIXT_DTYPE_INT8,
                         .frozen = "int8",
                         .scale = MIXT_SCALE_CHANNEL},
    [MIXT_DTYPE_UINT8] = {.name = "uint8",
                          INTEGER(1, UINT8_MAX),
                          .stored = MIXT_DTYPE_UINT8,
                          .carrier = MIXT_DTYPE_UINT8,
                          .scale = MIXT_SCALE_TENSOR},
    [MIXT_DTYPE_INT32] = {.name = "int32",
                          INTEGER(4, INT32_MAX),
                          .stored = MIXT_DTYPE_INT32,
                          .carrier = MIXT_DTYPE_INT32},
    [MIXT_DTYPE_INT64] = {.name = "int64", INTEGER(8, 0x1p63), .stored = MIXT_DTYPE_INT64, .carrier = MIXT_DTYPE_INT64},
    [MIXT_DTYPE_FP64] = {.name = "fp64",
                         FLOAT(8, 11, 52),
                         .stored = MIXT_DTYPE_FP64,
                         .carrier = MIXT_DTYPE_FP64,
                         .max = DBL_MAX,
                         .min_normal = DBL_MIN,
                         .min_subnormal = 0x1p-1074,
                         .roundoff = 0x1p-53},
    [MIXT_DTYPE_NF4] = {.name = "nf4",
                        .size = 1,
                        .together = 2,
                        .stored = MIXT_DTYPE_NF4,
                        .carrier = MIXT_DTYPE_NF4,
                        .max = 1,
                        .min_normal = 0x1p-4,
                        .min_subnormal = 0x1p-4,
                        .roundoff = 0x1p-3,
                        .frozen = "nf4",
                        .scale = MIXT_SCALE_NESTED},
};

const mixt__format *mixt__format_of(mixt_dtype dtype)
{
    bool known = (unsigned)dtype < MIXT_DTYPE_COUNT;
    return &table[known ? dtype : MIXT_DTYPE_NONE];
}

mixt_dtype mixt__format_of_frozen(const char *word)
{
    for (int i = 0; word && i < MIXT_DTYPE_COUNT; i++)
        if (table[i].frozen && !strcmp(word, table[i].frozen))
            return (mixt_dtype)i;
    return MIXT_DTYPE_NONE;
}

mixt_dtype mixt__format_lower(int index)
{
    for (int i = 0; i < MIXT_DTYPE_COUNT; i++)
        if (index >= 0 && table[i].preference == index + 1)
            return (mixt_dtype)i;
    return MIXT_DTYPE_NONE;
}

mixt_dtype mixt__format_keep(size_t bytes)
{
    mixt_dtype best = MIXT_DTYPE_NONE;
    for (int i = 0; i < MIXT_DTYPE_COUNT; i++) {
        mixt_dtype dtype = (mixt_dtype)i;
        bool kept = table[i].size == bytes && mixt__format_may(dtype, MIXT_MAY_KEEP);
        if (kept && (best == MIXT_DTYPE_NONE || (mixt__format_narrow(best) && !mixt__format_narrow(dtype))))
            best = dtype;
    }
    return best;
}

const char *mixt__format_names(unsigned what, const char *joint, char *text, size_t size)
{
    int left = 0;
    size_t used = 0;
    for (int i = 0; i < MIXT_DTYPE_COUNT; i++)
        left += (table[i].may & what) != 0;
    *text = '\0';
    for (int i = 0; i < MIXT_DTYPE_COUNT && used < size; i++) {
        if (!(table[i].may & what))
            continue;
        left--;
        used += (size_t)snprintf(text + used, size - used, "%s%s%s%s", table[i].name, left > 1 ? ", " : "",
                                 left == 1 ? " " : "", left == 1 ? joint : "");
        if (left == 1 && used < size)
            used += (size_t)snprintf(text + used, size - used, " ");
    }
    return text;
}

size_t mixt_dtype_size(mixt_dtype dtype)
{
    return mixt__format_of(dtype)->size;
}

const char *mixt_dtype_name(mixt_dtype dtype)
{
    return mixt__format_of(dtype)->name;
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
    return mixt__format_of(dtype)->is_float;
}

double mixt__dtype_roundoff(mixt_dtype dtype)
{
    return mixt__format_of(dtype)->roundoff;
}

double mixt__dtype_max(mixt_dtype dtype)
{
    return mixt__format_of(dtype)->max;
}

double mixt__dtype_min_subnormal(mixt_dtype dtype)
{
    return mixt__format_of(dtype)->min_subnormal;
}

bool mixt__dtype_has_scale(mixt_dtype dtype)
{
    return mixt__format_of(dtype)->scale != MIXT_SCALE_NONE;
}

float mixt__dtype_beyond(mixt_dtype dtype)
{
    const mixt__format *f = mixt__format_of(dtype);
    if (!f->is_float || dtype == MIXT_DTYPE_FP32 || dtype == MIXT_DTYPE_FP64)
        return INFINITY;
    int exponent;
    frexp(f->max, &exponent);
    // half a step beyond the largest number, which ties to the infinity that it would be; E4M3 has none, and its
    // largest number is the even one
    float limit = (float)(f->max + ldexp(f->roundoff, exponent - 1));
    return dtype == MIXT_DTYPE_FP8_E4M3 ? nextafterf(limit, INFINITY) : limit;
}

float mixt__dtype_flushed(mixt_dtype dtype)
{
    const mixt__format *f = mixt__format_of(dtype);
    bool wide = !f->is_float || dtype == MIXT_DTYPE_FP32 || dtype == MIXT_DTYPE_FP64;
    return wide ? 0.0f : (float)(f->min_subnormal / 2);
}
