/* Numbers as GGUF packs them. A block of 32 has one scale, rounded to FP16 behind the numbers: these are rounded by the
 * scale before that, as ggml's reference does. */
#include "store/gguf.h"

#include "base/status.h"
#include "base/threads.h"
#include "mixt/num.h"
#include "num/format.h"
#include "num/num.h"

#include <math.h>
#include <string.h>

typedef struct kind {
    const char *name;
    mixt__gguf_type type;
    uint32_t file_type;
    int64_t block;
    size_t bytes; // of a block
    mixt_dtype dtype;
} kind;

static const kind kinds[] = {
    {"f32", MIXT_GGUF_F32, 0, 1, 4, MIXT_DTYPE_FP32},
    {"f16", MIXT_GGUF_F16, 1, 1, 2, MIXT_DTYPE_FP16},
    {"bf16", MIXT_GGUF_BF16, 32, 1, 2, MIXT_DTYPE_BF16},
    {"q8_0", MIXT_GGUF_Q8_0, 7, MIXT_GGUF_BLOCK, 2 + MIXT_GGUF_BLOCK, MIXT_DTYPE_NONE},
    {"q4_0", MIXT_GGUF_Q4_0, 2, MIXT_GGUF_BLOCK, 2 + MIXT_GGUF_BLOCK / 2, MIXT_DTYPE_NONE},
};

enum { KINDS = sizeof kinds / sizeof kinds[0] };

static const kind *kind_of(mixt__gguf_type type)
{
    const kind *k = kinds;
    while (k < kinds + KINDS - 1 && k->type != type)
        k++;
    return k;
}

int mixt__gguf_type_parse(const char *name)
{
    for (int i = 0; i < KINDS; i++)
        if (!strcmp(kinds[i].name, name))
            return (int)kinds[i].type;
    return -1;
}

const char *mixt__gguf_type_name(mixt__gguf_type type)
{
    return kind_of(type)->name;
}

uint32_t mixt__gguf_file_type(mixt__gguf_type type)
{
    return kind_of(type)->file_type;
}

int64_t mixt__gguf_block(mixt__gguf_type type)
{
    return kind_of(type)->block;
}

size_t mixt__gguf_bytes(mixt__gguf_type type, int64_t count)
{
    return (size_t)(count / kind_of(type)->block) * kind_of(type)->bytes;
}

/* ---- blocks ---- */

/** The number of a block that is largest by its absolute value, the first of them. */
static float largest(const float *x)
{
    float most = 0;
    for (int i = 0; i < MIXT_GGUF_BLOCK; i++)
        most = fabsf(x[i]) > fabsf(most) ? x[i] : most;
    return most;
}

/** What numbers are multiplied by; 0 where the scale is, or has no inverse: its FP16 is 0 too then. */
static float inverse(float scale)
{
    float inverted = scale != 0 ? 1.0f / scale : 0;
    return isfinite(inverted) ? inverted : 0;
}

static void put_scale(unsigned char *packed, float scale)
{
    uint16_t half;
    (void)mixt_convert(&half, MIXT_DTYPE_FP16, &scale, MIXT_DTYPE_FP32, 1, NULL);
    packed[0] = (unsigned char)half;
    packed[1] = (unsigned char)(half >> 8);
}

static float scale_q8(const float *x)
{
    return fabsf(largest(x)) / 127;
}

static void pack_q8(const float *x, unsigned char *packed)
{
    float scale = scale_q8(x), by = inverse(scale);
    put_scale(packed, scale);
    for (int i = 0; i < MIXT_GGUF_BLOCK; i++)
        packed[2 + i] = (unsigned char)(signed char)roundf(x[i] * by); // halves away from 0
}

static float scale_q4(const float *x)
{
    return largest(x) / -8;
}

/** 4 bits: 8 stands for 0, and the largest number, which becomes 0, has the whole range on its side. */
static unsigned quarter(float scaled)
{
    int bits = (int)(scaled + 8.5f);
    return (unsigned)(bits > 15 ? 15 : bits);
}

static void pack_q4(const float *x, unsigned char *packed)
{
    float scale = scale_q4(x), by = inverse(scale);
    put_scale(packed, scale);
    for (int i = 0; i < MIXT_GGUF_BLOCK / 2; i++)
        packed[2 + i] = (unsigned char)(quarter(x[i] * by) | quarter(x[i + MIXT_GGUF_BLOCK / 2] * by) << 4);
}

typedef struct job {
    const float *values;
    unsigned char *packed;
    size_t bytes;
    bool four;
} job;

static void pack_some(void *argument, int64_t first, int64_t end, int thread)
{
    const job *j = argument;
    (void)thread;
    for (int64_t b = first; b < end; b++)
        (j->four ? pack_q4 : pack_q8)(j->values + b * MIXT_GGUF_BLOCK, j->packed + (size_t)b * j->bytes);
}

/* ---- what has no place ---- */

static mixt_status refuse(mixt__gguf_type type, const char *name, float value)
{
    return mixt__fail(MIXT_ERROR_DTYPE, "tensor '%s' holds %g, beyond what %s can hold: choose bf16 or f32", name,
                      (double)value, mixt__gguf_type_name(type));
}

static mixt_status check_range(mixt__gguf_type type, const char *name, const float *values, int64_t count)
{
    const float limit = mixt__dtype_beyond(MIXT_DTYPE_FP16); // from here on it rounds to infinity
    bool half = type == MIXT_GGUF_F16, blocks = type == MIXT_GGUF_Q8_0 || type == MIXT_GGUF_Q4_0;
    for (int64_t i = 0; half && i < count; i++)
        if (fabsf(values[i]) >= limit)
            return refuse(type, name, values[i]);
    for (int64_t i = 0; blocks && i < count; i += MIXT_GGUF_BLOCK)
        if (fabsf(type == MIXT_GGUF_Q8_0 ? scale_q8(values + i) : scale_q4(values + i)) >= limit)
            return refuse(type, name, largest(values + i));
    return MIXT_OK;
}

mixt_status mixt__gguf_pack(mixt__gguf_type type, const char *name, const float *values, int64_t count, void *packed)
{
    const kind *k = kind_of(type);
    MIXT_TRY(check_range(type, name, values, count));
    if (k->dtype != MIXT_DTYPE_NONE)
        return mixt_convert(packed, k->dtype, values, MIXT_DTYPE_FP32, count, NULL);
    job j = {values, packed, k->bytes, type == MIXT_GGUF_Q4_0};
    mixt__parallel(count / MIXT_GGUF_BLOCK, 4096, pack_some, &j);
    return MIXT_OK;
}
