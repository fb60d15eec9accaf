/* Writing safetensors: lay the tensors out, write the header, then each tensor's data as it is fetched. */
#include "store/safetensors.h"

#include "base/alloc.h"
#include "base/status.h"
#include "store/file.h"
#include "store/json.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

typedef struct layout {
    int64_t *order; // order[i]: the tensor whose data is i-th
    json_t *header;
} layout;

static mixt_status check_tensor(const char *path, const mixt__file_tensor *tensor)
{
    const char *name = tensor->name ? tensor->name : "";
    if (!*name || !strcmp(name, "__metadata__"))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%s: '%s' cannot be a tensor's name", path, name);
    if (!mixt__safetensors_dtype_name(tensor->dtype))
        return mixt__fail(MIXT_ERROR_DTYPE, "%s: tensor '%s': safetensors cannot hold format %s", path, name,
                          mixt_dtype_name(tensor->dtype));
    if (tensor->rank < 0 || tensor->rank > MIXT__FILE_RANK)
        return mixt__fail(MIXT_ERROR_SHAPE, "%s: tensor '%s': rank %d is not within 0 to %d", path, name, tensor->rank,
                          MIXT__FILE_RANK);
    if (mixt__file_tensor_count(tensor->dtype, tensor->rank, tensor->dims) < 0)
        return mixt__fail(MIXT_ERROR_SHAPE, "%s: tensor '%s': shape %s is not possible", path, name,
                          mixt__dims_print(tensor->rank, tensor->dims).text);
    return MIXT_OK;
}

/** Stable: elements of 8 bytes first, then 4, 2, 1. */
static mixt_status order_tensors(const char *path, const mixt__file_tensor *tensors, int64_t count, layout *l)
{
    l->order = mixt__alloc(((size_t)count + 1) * sizeof *l->order);
    if (!l->order)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to write %lld tensors", path, (long long)count);
    for (int64_t i = 0; i < count; i++)
        MIXT_TRY(check_tensor(path, &tensors[i]));
    int64_t used = 0;
    for (size_t size = 8; size > 0; size /= 2)
        for (int64_t i = 0; i < count; i++)
            if (mixt_dtype_size(tensors[i].dtype) == size)
                l->order[used++] = i;
    return MIXT_OK;
}

static size_t bytes_of(const mixt__file_tensor *tensor)
{
    return (size_t)mixt__file_tensor_count(tensor->dtype, tensor->rank, tensor->dims) * mixt_dtype_size(tensor->dtype);
}

static mixt_status build_header(const char *path, const mixt__file_tensor *tensors, int64_t count,
                                const mixt__metadata *metadata, layout *l)
{
    l->header = json_object();
    bool ok = l->header != NULL;
    if (ok && metadata && metadata->count > 0) {
        json_t *map = json_object();
        for (int64_t i = 0; i < metadata->count; i++)
            ok = ok && !mixt__json_set_text(map, metadata->pairs[i].key, metadata->pairs[i].value);
        ok = !mixt__json_set(l->header, "__metadata__", map) && ok;
    }
    json_int_t offset = 0;
    for (int64_t i = 0; ok && i < count; i++) {
        const mixt__file_tensor *tensor = &tensors[l->order[i]];
        if (json_object_get(l->header, tensor->name))
            return mixt__fail(MIXT_ERROR_ARGUMENT, "%s: two tensors are called '%s'", path, tensor->name);
        json_t *shape = json_array();
        for (int d = 0; d < tensor->rank; d++)
            ok = !mixt__json_add(shape, json_integer(tensor->dims[d])) && ok;
        json_int_t end = offset + (json_int_t)bytes_of(tensor);
        json_t *record = json_pack("{s:s, s:o, s:[I, I]}", "dtype", mixt__safetensors_dtype_name(tensor->dtype),
                                   "shape", shape, "data_offsets", offset, end);
        ok = !mixt__json_set(l->header, tensor->name, record) && ok;
        offset = end;
    }
    if (!ok)
        return mixt__fail(MIXT_ERROR_ARGUMENT,
                          "%s: header cannot be made: a name or metadata text is not UTF-8, or memory ran out", path);
    return MIXT_OK;
}

/** Length and JSON, with spaces so that the data starts at a multiple of 8. */
static mixt_status print_header(const char *path, const json_t *header, char **text, size_t *bytes)
{
    enum { PREFIX = 8 };
    char *json = mixt__json_dumps(header, JSON_COMPACT);
    size_t length = json ? strlen(json) : 0, padded = (length + 7) / 8 * 8;
    *text = json ? mixt__alloc(PREFIX + padded) : NULL;
    *bytes = PREFIX + padded;
    for (int i = 0; *text && i < PREFIX; i++)
        (*text)[i] = (char)(unsigned char)((uint64_t)padded >> (8 * i));
    if (*text) {
        memcpy(*text + PREFIX, json, length);
        memset(*text + PREFIX + length, ' ', padded - length);
    }
    free(json);
    return *text ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for its header", path);
}

mixt_status mixt__safetensors_header(const char *path, const mixt__file_tensor *tensors, int64_t count, char **text,
                                     size_t *bytes)
{
    layout l = {0};
    *text = NULL;
    mixt_status status = order_tensors(path, tensors, count, &l);
    if (status == MIXT_OK)
        status = build_header(path, tensors, count, NULL, &l);
    if (status == MIXT_OK)
        status = print_header(path, l.header, text, bytes);
    json_decref(l.header);
    mixt__free(l.order);
    return status;
}

static mixt_status write_header(mixt__file_writer *writer, const json_t *header)
{
    char *text;
    size_t bytes;
    MIXT_TRY(print_header(writer->path, header, &text, &bytes));
    mixt_status status = mixt__file_writer_append(writer, text, bytes);
    mixt__free(text);
    return status;
}

mixt_status mixt__safetensors_write_from(const char *path, const mixt__file_tensor *tensors, int64_t count,
                                         const mixt__metadata *metadata, bool overwrite, mixt__tensor_fetch_fn *fetch,
                                         void *argument)
{
    layout l = {0};
    mixt__file_writer writer = {.fd = -1};
    mixt_status status;
    MIXT_TRY_CLEANUP(order_tensors(path, tensors, count, &l));
    MIXT_TRY_CLEANUP(build_header(path, tensors, count, metadata, &l));
    MIXT_TRY_CLEANUP(mixt__file_writer_open(&writer, path, overwrite));
    MIXT_TRY_CLEANUP(write_header(&writer, l.header));
    for (int64_t i = 0; i < count; i++) {
        const void *data = NULL;
        MIXT_TRY_CLEANUP(fetch(argument, l.order[i], &data));
        MIXT_TRY_CLEANUP(mixt__file_writer_append(&writer, data, bytes_of(&tensors[l.order[i]])));
    }
    status = mixt__file_writer_commit(&writer);
cleanup:
    mixt__file_writer_abandon(&writer);
    json_decref(l.header);
    mixt__free(l.order);
    return status;
}

static mixt_status fetch_own(void *argument, int64_t index, const void **data)
{
    const mixt__file_tensor *tensors = argument;
    *data = tensors[index].data;
    return MIXT_OK;
}

mixt_status mixt__safetensors_write(const char *path, const mixt__file_tensor *tensors, int64_t count,
                                    const mixt__metadata *metadata)
{
    return mixt__safetensors_write_from(path, tensors, count, metadata, true, fetch_own, (void *)(uintptr_t)tensors);
}
