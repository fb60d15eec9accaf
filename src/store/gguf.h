/* GGUF files, as llama.cpp reads them: metadata as typed keys, then a table of tensors, then their data.
 *
 * Tensors are made and packed piece by piece while they are written, so that none need be held whole. Not here: which
 * keys and names a model has (gguf_model.h).
 */
#ifndef MIXT_STORE_GGUF_H
#define MIXT_STORE_GGUF_H

#include "mixt/types.h"

#include <stdint.h>

/** Formats of tensors, by the numbers that files have for them. */
typedef enum mixt__gguf_type {
    MIXT_GGUF_F32 = 0,
    MIXT_GGUF_F16 = 1,
    MIXT_GGUF_Q4_0 = 2, // blocks of 32: an FP16 scale, 4 bits a number
    MIXT_GGUF_Q8_0 = 8, // blocks of 32: an FP16 scale, 8 bits a number
    MIXT_GGUF_BF16 = 30,
} mixt__gguf_type;

enum { MIXT_GGUF_BLOCK = 32, MIXT_GGUF_RANK = 4 };

/** The type of a name ("q8_0"), -1 where there is none; and back. */
int mixt__gguf_type_parse(const char *name);
const char *mixt__gguf_type_name(mixt__gguf_type type);
/** What llama.cpp calls a file most of whose tensors have this type (general.file_type). */
uint32_t mixt__gguf_file_type(mixt__gguf_type type);
/** Numbers that are packed together. */
int64_t mixt__gguf_block(mixt__gguf_type type);
/** Bytes of `count` numbers, whole blocks. */
size_t mixt__gguf_bytes(mixt__gguf_type type, int64_t count);
/** Packs finite numbers, by all threads. A number that has no place in the format is MIXT_ERROR_DTYPE, `name` in its
 *  message. */
mixt_status mixt__gguf_pack(mixt__gguf_type type, const char *name, const float *values, int64_t count, void *packed);

/* ---- metadata ---- */

/** Types of metadata. */
typedef enum mixt__gguf_kind {
    MIXT_GGUF_UINT32 = 4,
    MIXT_GGUF_INT32 = 5,
    MIXT_GGUF_FLOAT32 = 6,
    MIXT_GGUF_BOOL = 7,
    MIXT_GGUF_STRING = 8,
    MIXT_GGUF_ARRAY = 9,
} mixt__gguf_kind;

/** Keys with values, as bytes of the file. What there was no memory for is known at the end. */
typedef struct mixt__gguf_fields {
    unsigned char *bytes;
    int64_t size, capacity, count;
    bool short_of_memory;
} mixt__gguf_fields;

void mixt__gguf_put_uint(mixt__gguf_fields *fields, const char *key, uint32_t value);
void mixt__gguf_put_float(mixt__gguf_fields *fields, const char *key, double value);
void mixt__gguf_put_bool(mixt__gguf_fields *fields, const char *key, bool value);
void mixt__gguf_put_text(mixt__gguf_fields *fields, const char *key, const char *text);
/** Begins an array, whose `count` elements must follow. */
void mixt__gguf_put_array(mixt__gguf_fields *fields, const char *key, mixt__gguf_kind kind, int64_t count);
void mixt__gguf_add_text(mixt__gguf_fields *fields, const void *text, int64_t size);
void mixt__gguf_add_int(mixt__gguf_fields *fields, int32_t value);
void mixt__gguf_add_float(mixt__gguf_fields *fields, double value);
void mixt__gguf_add_bool(mixt__gguf_fields *fields, bool value);
void mixt__gguf_fields_free(mixt__gguf_fields *fields);

/* ---- files ---- */

typedef struct mixt__gguf_tensor {
    const char *name;
    mixt__gguf_type type;
    int rank;
    int64_t dims[MIXT_GGUF_RANK]; // row-major, the first one outermost
    bool whole;                   // is asked for at once
} mixt__gguf_tensor;

/** Gives rows first, first + 1, … of a tensor; one of rank 1 is a single row. */
typedef mixt_status mixt__gguf_rows_fn(void *argument, int64_t index, int64_t first, int64_t rows, float *values);

/** Writes a file, all or nothing.
 *  @param bytes of the file; may be NULL */
mixt_status mixt__gguf_write(const char *path, bool overwrite, const mixt__gguf_fields *fields,
                             const mixt__gguf_tensor *tensors, int64_t count, mixt__gguf_rows_fn *rows, void *argument,
                             int64_t *bytes);

#endif
