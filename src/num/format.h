/* What each number format is, and what may be done with it: one row a format.
 *
 * Whoever must know whether a format is possible somewhere asks here, and goes over all formats with the same question
 * where it needs a list. A new format is a new row.
 */
#ifndef MIXT_NUM_FORMAT_H
#define MIXT_NUM_FORMAT_H

#include "mixt/types.h"

/** What numbers of a format are multiplied by to become values. */
typedef enum mixt__scale_kind {
    MIXT_SCALE_NONE,    // they are the values
    MIXT_SCALE_TENSOR,  // one number for all of a tensor
    MIXT_SCALE_CHANNEL, // one for each index of the first dimension: of a weight, for each output
    MIXT_SCALE_BLOCK,   // one for each run of so many elements along the last dimension
    MIXT_SCALE_NESTED,  // the same, which are themselves numbers with scales: see num/nf4.h
} mixt__scale_kind;

/** What may be done in a format. */
enum {
    MIXT_MAY_MULTIPLY_CPU = 1 << 0,  // operands of matrix work are multiplied in it on the CPU
    MIXT_MAY_MULTIPLY_CUDA = 1 << 1, // … on a GPU
    MIXT_MAY_MULTIPLY = MIXT_MAY_MULTIPLY_CPU | MIXT_MAY_MULTIPLY_CUDA, // a policy may name it
    MIXT_MAY_HOLD = 1 << 2, // values of a model lie in it; weights are exported, gradients travel in it
    MIXT_MAY_COPY = 1 << 3, // a parameter may have a working copy in it
    MIXT_MAY_KEEP = 1 << 4, // activations may wait in it for the backward pass
};

typedef struct mixt__format {
    const char *name;
    size_t size;                      // bytes of an element
    int together;                     // elements that share those bytes; 0: each has its own
    int exponent_bits, mantissa_bits; // of a float; 0 of integers
    bool is_float;
    mixt_dtype stored;  // the format that lies in memory: TF32 is a way to multiply FP32 numbers
    mixt_dtype carrier; // of values around matrix work in it: FP32 of TF32, BF16 of FP8; else itself
    double max, min_normal, min_subnormal, roundoff; // of integers: the largest, one step, one step, half a step
    bool loss_scaling;                               // gradients in it need the loss scaled
    mixt__scale_kind scale;                          // what it needs to hold numbers of any size
    unsigned may;
    const char *frozen; // what `train.frozen` calls it; NULL: frozen weights are not kept in it because of a wish
    int preference;     // of the formats to train in below FP32: 1 is tried first. 0: none of them
} mixt__format;

/** The row of a format; of anything else that of MIXT_DTYPE_NONE. */
const mixt__format *mixt__format_of(mixt_dtype dtype);

/** The format that a wish about frozen weights names: "int8", "fp8", "nf4"; of any other word NONE. */
mixt_dtype mixt__format_of_frozen(const char *word);

/** Bytes of so many elements. */
static inline size_t mixt__format_bytes(mixt_dtype dtype, int64_t count)
{
    const mixt__format *f = mixt__format_of(dtype);
    int64_t together = f->together ? f->together : 1;
    return (size_t)((count + together - 1) / together) * f->size;
}

/** Whether any of these things may be done in a format. */
static inline bool mixt__format_may(mixt_dtype dtype, unsigned what)
{
    return mixt__format_of(dtype)->may & what;
}

/** Whether it is a float of fewer bytes than FP32. */
static inline bool mixt__format_low(mixt_dtype dtype)
{
    return mixt__format_of(dtype)->is_float && mixt__format_of(dtype)->size < sizeof(float);
}

/** Whether it is a float that ends before FP32 does: numbers of a training reach its end. */
static inline bool mixt__format_narrow(mixt_dtype dtype)
{
    return mixt__format_of(dtype)->is_float && mixt__format_of(dtype)->exponent_bits < 8;
}

/** Formats to train in below FP32, the one to try first at index 0: those that halve the bytes, the one that needs no
 *  loss scaling before the one that does, then those that are only multiplied in. NONE after the last. */
mixt_dtype mixt__format_lower(int index);

/** The format of so many bytes in which activations wait best: one that ends where FP32 does, if there is any. NONE. */
mixt_dtype mixt__format_keep(size_t bytes);

/** "fp32, fp16 or bf16": the names of all formats in which one of these things may be done. @return text */
const char *mixt__format_names(unsigned what, const char *joint, char *text, size_t size);
enum { MIXT_FORMAT_NAMES = 128 }; // bytes that such a list takes at most

/** The format in which numbers of a format lie in memory. */
static inline mixt_dtype mixt__dtype_stored(mixt_dtype dtype)
{
    return mixt__format_of(dtype)->stored;
}

/** The format of the values that matrix work in a format takes and gives. */
static inline mixt_dtype mixt__dtype_carrier(mixt_dtype dtype)
{
    return mixt__format_of(dtype)->carrier;
}

/** Whether operands that are multiplied in it have a scale each: FP8. */
static inline bool mixt__format_scales_operands(mixt_dtype dtype)
{
    return mixt__dtype_carrier(dtype) != dtype && mixt__format_of(dtype)->scale != MIXT_SCALE_NONE;
}

/** The format of what flows backwards where forward work is in a format and nobody says another: of FP8 E4M3, which
 *  ends early, E5M2; else itself. */
static inline mixt_dtype mixt__format_backward(mixt_dtype dtype)
{
    return dtype == MIXT_DTYPE_FP8_E4M3 ? MIXT_DTYPE_FP8_E5M2 : dtype;
}

/** Whether a format is a way to multiply: the values around it are in another. */
static inline bool mixt__dtype_way(mixt_dtype dtype)
{
    return mixt__dtype_carrier(dtype) != dtype;
}

#endif
