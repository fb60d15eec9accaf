/* Writing GGUF, version 3, little-endian: header, metadata, table of tensors, data at multiples of 32 bytes. */
#include "store/gguf.h"

#include "base/alloc.h"
#include "base/status.h"
#include "store/file.h"
#include "store/tensor.h"

#include <string.h>

enum { VERSION = 3, ALIGNMENT = 32, PIECE = 1 << 20 }; // PIECE: numbers that are made and packed at once

/* ---- metadata ---- */

static void append(mixt__gguf_fields *f, const void *bytes, size_t size)
{
    if (f->size + (int64_t)size > f->capacity) {
        int64_t capacity = 2 * f->capacity + (int64_t)size + 256;
        unsigned char *grown = mixt__realloc(f->bytes, (size_t)capacity);
        if (!grown) {
            f->short_of_memory = true;
            return;
        }
        f->bytes = grown;
        f->capacity = capacity;
    }
    if (size)
        memcpy(f->bytes + f->size, bytes, size);
    f->size += (int64_t)size;
}

/** The lowest `size` bytes of a number, the least first. */
static void append_number(mixt__gguf_fields *f, uint64_t value, int size)
{
    unsigned char bytes[8];
    for (int i = 0; i < size; i++)
        bytes[i] = (unsigned char)(value >> (8 * i));
    append(f, bytes, (size_t)size);
}

static void append_text(mixt__gguf_fields *f, const void *text, int64_t size)
{
    append_number(f, (uint64_t)size, 8);
    append(f, text, (size_t)size);
}

static void begin(mixt__gguf_fields *f, const char *key, mixt__gguf_kind kind)
{
    append_text(f, key, (int64_t)strlen(key));
    append_number(f, kind, 4);
    f->count++;
}

void mixt__gguf_put_uint(mixt__gguf_fields *f, const char *key, uint32_t value)
{
    begin(f, key, MIXT_GGUF_UINT32);
    append_number(f, value, 4);
}

void mixt__gguf_put_float(mixt__gguf_fields *f, const char *key, double value)
{
    begin(f, key, MIXT_GGUF_FLOAT32);
    mixt__gguf_add_float(f, value);
}

void mixt__gguf_put_bool(mixt__gguf_fields *f, const char *key, bool value)
{
    begin(f, key, MIXT_GGUF_BOOL);
    append_number(f, value, 1);
}

void mixt__gguf_put_text(mixt__gguf_fields *f, const char *key, const char *text)
{
    begin(f, key, MIXT_GGUF_STRING);
    append_text(f, text, (int64_t)strlen(text));
}

void mixt__gguf_put_array(mixt__gguf_fields *f, const char *key, mixt__gguf_kind kind, int64_t count)
{
    begin(f, key, MIXT_GGUF_ARRAY);
    append_number(f, kind, 4);
    append_number(f, (uint64_t)count, 8);
}

void mixt__gguf_add_text(mixt__gguf_fields *f, const void *text, int64_t size)
{
    append_text(f, text, size);
}

void mixt__gguf_add_int(mixt__gguf_fields *f, int32_t value)
{
    append_number(f, (uint32_t)value, 4);
}

void mixt__gguf_add_float(mixt__gguf_fields *f, double value)
{
    float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    append_number(f, bits, 4);
}

void mixt__gguf_add_bool(mixt__gguf_fields *f, bool value)
{
    append_number(f, value, 1);
}

void mixt__gguf_fields_free(mixt__gguf_fields *f)
{
    mixt__free(f->bytes);
    *f = (mixt__gguf_fields){0};
}

/* ---- the table of tensors ---- */

static int64_t padded(int64_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static int64_t rows_of(const mixt__gguf_tensor *t)
{
    int64_t rows = 1;
    for (int d = 0; d + 1 < t->rank; d++)
        rows *= t->dims[d];
    return rows;
}

static mixt_status check_tensor(const char *path, const mixt__gguf_tensor *t)
{
    int64_t block = mixt__gguf_block(t->type);
    if (t->rank < 1 || t->rank > MIXT_GGUF_RANK || mixt__file_tensor_count(MIXT_DTYPE_FP32, t->rank, t->dims) < 1)
        return mixt__fail(MIXT_ERROR_SHAPE, "%s: tensor '%s' has a shape that GGUF cannot hold", path, t->name);
    if (strlen(t->name) > 63)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s: '%s' is longer than GGUF's names, 63 bytes", path, t->name);
    if (t->dims[t->rank - 1] % block)
        return mixt__fail(MIXT_ERROR_SHAPE, "%s: tensor '%s': rows of %lld are not whole blocks of %lld", path, t->name,
                          (long long)t->dims[t->rank - 1], (long long)block);
    return MIXT_OK;
}

static mixt_status write_head(mixt__file_writer *writer, const mixt__gguf_fields *fields,
                              const mixt__gguf_tensor *tensors, int64_t count, int64_t *bytes)
{
    mixt__gguf_fields head = {0};
    int64_t offset = 0;
    append(&head, "GGUF", 4);
    append_number(&head, VERSION, 4);
    append_number(&head, (uint64_t)count, 8);
    append_number(&head, (uint64_t)fields->count, 8);
    append(&head, fields->bytes, (size_t)fields->size);
    for (int64_t i = 0; i < count; i++) {
        const mixt__gguf_tensor *t = &tensors[i];
        append_text(&head, t->name, (int64_t)strlen(t->name));
        append_number(&head, (uint64_t)t->rank, 4);
        for (int d = t->rank - 1; d >= 0; d--) // there the innermost dimension comes first
            append_number(&head, (uint64_t)t->dims[d], 8);
        append_number(&head, t->type, 4);
        append_number(&head, (uint64_t)offset, 8);
        offset += padded((int64_t)mixt__gguf_bytes(t->type, rows_of(t) * t->dims[t->rank - 1]));
    }
    while (head.size % ALIGNMENT && !head.short_of_memory)
        append_number(&head, 0, 1);
    *bytes = head.size + offset;
    mixt_status status = head.short_of_memory || fields->short_of_memory
                             ? mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for what it begins with", writer->path)
                             : mixt__file_writer_append(writer, head.bytes, (size_t)head.size);
    mixt__gguf_fields_free(&head);
    return status;
}

/* ---- data ---- */

typedef struct room {
    float *values;
    void *packed;
    int64_t capacity;
} room;

static mixt_status make_room(room *r, int64_t count)
{
    if (count <= r->capacity)
        return MIXT_OK;
    mixt__free(r->values);
    mixt__free(r->packed);
    r->values = mixt__alloc_uninit((size_t)count * sizeof *r->values);
    r->packed = mixt__alloc_uninit((size_t)count * sizeof *r->values);
    r->capacity = r->values && r->packed ? count : 0;
    return r->capacity ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for a tensor of %lld", (long long)count);
}

static mixt_status write_tensor(mixt__file_writer *writer, const mixt__gguf_tensor *t, int64_t index, room *r,
                                mixt__gguf_rows_fn *rows, void *argument)
{
    static const unsigned char zeros[ALIGNMENT];
    int64_t all = rows_of(t), row = t->dims[t->rank - 1], piece = t->whole ? all : PIECE / row;
    piece = piece < 1 ? 1 : piece > all ? all : piece;
    MIXT_TRY(make_room(r, piece * row));
    for (int64_t first = 0; first < all; first += piece) {
        int64_t some = all - first < piece ? all - first : piece;
        MIXT_TRY(rows(argument, index, first, some, r->values));
        MIXT_TRY(mixt__gguf_pack(t->type, t->name, r->values, some * row, r->packed));
        MIXT_TRY(mixt__file_writer_append(writer, r->packed, mixt__gguf_bytes(t->type, some * row)));
    }
    int64_t bytes = (int64_t)mixt__gguf_bytes(t->type, all * row);
    return mixt__file_writer_append(writer, zeros, (size_t)(padded(bytes) - bytes));
}

mixt_status mixt__gguf_write(const char *path, bool overwrite, const mixt__gguf_fields *fields,
                             const mixt__gguf_tensor *tensors, int64_t count, mixt__gguf_rows_fn *rows, void *argument,
                             int64_t *bytes)
{
    mixt__file_writer writer = {.fd = -1};
    mixt_status status = MIXT_OK;
    int64_t size = 0;
    room r = {0};
    for (int64_t i = 0; i < count; i++)
        MIXT_TRY(check_tensor(path, &tensors[i]));
    MIXT_TRY_CLEANUP(mixt__file_writer_open(&writer, path, overwrite));
    MIXT_TRY_CLEANUP(write_head(&writer, fields, tensors, count, &size));
    for (int64_t i = 0; i < count; i++)
        MIXT_TRY_CLEANUP(write_tensor(&writer, &tensors[i], i, &r, rows, argument));
    status = mixt__file_writer_commit(&writer);
    if (bytes)
        *bytes = size;
cleanup:
    mixt__file_writer_abandon(&writer);
    mixt__free(r.values);
    mixt__free(r.packed);
    return status;
}
