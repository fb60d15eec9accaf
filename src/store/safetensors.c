/* Reading safetensors: the header as JSON, each tensor checked alone, then all of them against the file. */
#include "store/safetensors.h"

#include "base/alloc.h"
#include "base/status.h"
#include "num/format.h"
#include "store/file.h"
#include "store/json.h"
#include "store/pairs.h"
#include "store/shards.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PREFIX = 8, HEADER_LIMIT = MIXT_SAFETENSORS_HEADER_MOST };

static const struct {
    const char *name;
    mixt_dtype dtype;
} dtype_names[] = {
    {"F32", MIXT_DTYPE_FP32},  {"F16", MIXT_DTYPE_FP16},         {"BF16", MIXT_DTYPE_BF16},
    {"F64", MIXT_DTYPE_FP64},  {"F8_E4M3", MIXT_DTYPE_FP8_E4M3}, {"F8_E5M2", MIXT_DTYPE_FP8_E5M2},
    {"I8", MIXT_DTYPE_INT8},   {"U8", MIXT_DTYPE_UINT8},         {"I32", MIXT_DTYPE_INT32},
    {"I64", MIXT_DTYPE_INT64},
};
enum { DTYPE_NAMES = sizeof dtype_names / sizeof dtype_names[0] };

struct mixt__safetensors_storage {
    mixt__file_map map;
    mixt__arena arena;
    mixt__safetensors **parts; // of several files joined into one
    int64_t part_count;
};

/** What the checks need to know; lives during open only. */
typedef struct reader {
    const char *path;
    const unsigned char *data; // after the header
    int64_t data_offset, data_bytes;
    mixt__arena *arena;
} reader;

const char *mixt__safetensors_dtype_name(mixt_dtype dtype)
{
    for (int i = 0; i < DTYPE_NAMES; i++)
        if (dtype_names[i].dtype == mixt__dtype_stored(dtype))
            return dtype_names[i].name;
    return NULL;
}

mixt_dtype mixt__safetensors_dtype_parse(const char *name)
{
    for (int i = 0; i < DTYPE_NAMES; i++)
        if (!strcmp(dtype_names[i].name, name))
            return dtype_names[i].dtype;
    return MIXT_DTYPE_NONE;
}

static mixt_status out_of_memory(const reader *r)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for its header", r->path);
}

static mixt_status read_dtype(const reader *r, const json_t *record, mixt__file_tensor *tensor)
{
    const char *name = json_string_value(json_object_get(record, "dtype"));
    if (!name)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: tensor '%s': \"dtype\" is missing or is not a string", r->path,
                          tensor->name);
    tensor->dtype = mixt__safetensors_dtype_parse(name);
    if (tensor->dtype == MIXT_DTYPE_NONE)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED,
                          "%s: tensor '%s': dtype '%s' is not one that mixt reads (F64, F32, F16, BF16, F8_E4M3, "
                          "F8_E5M2, I64, I32, I8, U8)",
                          r->path, tensor->name, name);
    return MIXT_OK;
}

static mixt_status read_shape(const reader *r, const json_t *record, mixt__file_tensor *tensor)
{
    const json_t *shape = json_object_get(record, "shape");
    if (!json_is_array(shape))
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: tensor '%s': \"shape\" is missing or is not an array", r->path,
                          tensor->name);
    if (json_array_size(shape) > MIXT__FILE_RANK)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s: tensor '%s': has %zu dimensions, mixt reads up to %d", r->path,
                          tensor->name, json_array_size(shape), MIXT__FILE_RANK);
    tensor->rank = (int)json_array_size(shape);
    for (int i = 0; i < tensor->rank; i++) {
        const json_t *dim = json_array_get(shape, (size_t)i);
        if (!json_is_integer(dim) || json_integer_value(dim) < 0)
            return mixt__fail(MIXT_ERROR_FORMAT,
                              "%s: tensor '%s': dimension %d of its shape is not a whole number of "
                              "at least 0",
                              r->path, tensor->name, i);
        tensor->dims[i] = json_integer_value(dim);
    }
    return MIXT_OK;
}

static mixt_status read_place(const reader *r, const json_t *record, mixt__file_tensor *tensor)
{
    const json_t *offsets = json_object_get(record, "data_offsets");
    const json_t *first = json_array_get(offsets, 0), *last = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(first) || !json_is_integer(last))
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: tensor '%s': \"data_offsets\" is missing or is not two whole numbers",
                          r->path, tensor->name);
    int64_t begin = json_integer_value(first), end = json_integer_value(last);
    if (begin < 0 || end < begin || end > r->data_bytes)
        return mixt__fail(
            MIXT_ERROR_FORMAT,
            "%s: tensor '%s': data_offsets [%lld, %lld] are not within the %lld bytes of data that follow "
            "the header (from file offset %lld)%s",
            r->path, tensor->name, (long long)begin, (long long)end, (long long)r->data_bytes,
            (long long)r->data_offset,
            end > r->data_bytes && begin >= 0 ? ": the file was cut short, copy it again" : "");
    int64_t count = mixt__file_tensor_count(tensor->dtype, tensor->rank, tensor->dims);
    mixt__dims_text shape = mixt__dims_print(tensor->rank, tensor->dims);
    if (count < 0)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: tensor '%s': shape %s is too large for any file", r->path,
                          tensor->name, shape.text);
    int64_t bytes = count * (int64_t)mixt_dtype_size(tensor->dtype);
    if (bytes != end - begin)
        return mixt__fail(MIXT_ERROR_FORMAT,
                          "%s: tensor '%s': shape %s of %s needs %lld bytes, but data_offsets [%lld, %lld] give %lld",
                          r->path, tensor->name, shape.text, mixt_dtype_name(tensor->dtype), (long long)bytes,
                          (long long)begin, (long long)end, (long long)(end - begin));
    tensor->bytes = (size_t)bytes;
    tensor->data = r->data + begin;
    return MIXT_OK;
}

static mixt_status read_tensor(const reader *r, const char *name, const json_t *record, mixt__file_tensor *tensor)
{
    tensor->name = mixt__arena_strdup(r->arena, name);
    if (!tensor->name)
        return out_of_memory(r);
    if (!json_is_object(record))
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: tensor '%s': its header entry is not an object", r->path, name);
    if (json_object_size(record) > 3)
        return mixt__fail(MIXT_ERROR_FORMAT,
                          "%s: tensor '%s': its header entry has more than dtype, shape and data_offsets", r->path,
                          name);
    MIXT_TRY(read_dtype(r, record, tensor));
    MIXT_TRY(read_shape(r, record, tensor));
    return read_place(r, record, tensor);
}

static mixt_status read_metadata(const reader *r, json_t *map, mixt__metadata *metadata)
{
    if (!json_is_object(map))
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: \"__metadata__\" is not an object", r->path);
    mixt__text_pair *pairs = mixt__arena_alloc(r->arena, (json_object_size(map) + 1) * sizeof *pairs);
    if (!pairs)
        return out_of_memory(r);
    const char *key;
    json_t *value;
    int64_t count = 0;
    json_object_foreach(map, key, value)
    {
        if (!json_is_string(value))
            return mixt__fail(MIXT_ERROR_FORMAT, "%s: metadata '%s' is not a string", r->path, key);
        pairs[count].key = mixt__arena_strdup(r->arena, key);
        pairs[count].value = mixt__arena_strdup(r->arena, json_string_value(value));
        if (!pairs[count].key || !pairs[count].value)
            return out_of_memory(r);
        count++;
    }
    *metadata = (mixt__metadata){pairs, count};
    return MIXT_OK;
}

static int compare_places(const void *a, const void *b)
{
    const mixt__file_tensor *x = a, *y = b;
    if (x->data != y->data)
        return (uintptr_t)x->data < (uintptr_t)y->data ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes); // empty ones first
}

/** After sorting by place: no overlap, no hole, nothing left over. */
static mixt_status check_places(const reader *r, const mixt__file_tensor *tensors, int64_t count)
{
    int64_t expected = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t begin = (int64_t)((uintptr_t)tensors[i].data - (uintptr_t)r->data);
        if (begin != expected)
            return mixt__fail(MIXT_ERROR_FORMAT, "%s: tensor '%s' starts at data offset %lld, expected %lld: %s",
                              r->path, tensors[i].name, (long long)begin, (long long)expected,
                              begin < expected ? "it overlaps the one before" : "there is a hole before it");
        expected = begin + (int64_t)tensors[i].bytes;
    }
    if (expected != r->data_bytes)
        return mixt__fail(
            MIXT_ERROR_FORMAT,
            "%s: the tensors end at data offset %lld, but the file has %lld bytes of data (%lld too many)", r->path,
            (long long)expected, (long long)r->data_bytes, (long long)(r->data_bytes - expected));
    return MIXT_OK;
}

static mixt_status read_header(const reader *r, json_t *header, mixt__safetensors *file)
{
    mixt__file_tensor *tensors = mixt__arena_alloc(r->arena, (json_object_size(header) + 1) * sizeof *tensors);
    if (!tensors)
        return out_of_memory(r);
    const char *name;
    json_t *record;
    int64_t count = 0;
    json_object_foreach(header, name, record)
    {
        if (!strcmp(name, "__metadata__"))
            MIXT_TRY(read_metadata(r, record, &file->metadata));
        else
            MIXT_TRY(read_tensor(r, name, record, &tensors[count++]));
    }
    qsort(tensors, (size_t)count, sizeof *tensors, compare_places);
    file->tensors = tensors;
    file->count = count;
    return check_places(r, tensors, count);
}

/** The JSON header, or NULL after recording what is wrong with it. */
static json_t *parse_header(const char *path, const mixt__file_map *map, uint64_t *header_bytes, mixt_status *status)
{
    uint64_t bytes = 0;
    if (map->bytes < PREFIX) {
        *status = mixt__fail(MIXT_ERROR_FORMAT,
                             "%s: has %zu bytes, too short for the 8-byte header length of a "
                             "safetensors file",
                             path, map->bytes);
        return NULL;
    }
    for (int i = 0; i < PREFIX; i++)
        bytes |= (uint64_t)map->data[i] << (8 * i);
    if (bytes < 2 || bytes > HEADER_LIMIT || bytes > map->bytes - PREFIX) {
        *status = mixt__fail(MIXT_ERROR_FORMAT,
                             "%s: header length %llu at offset 0 is not possible (expected 2 to %d, and no more than "
                             "the %zu bytes that follow): damaged, cut short or not a safetensors file",
                             path, (unsigned long long)bytes, HEADER_LIMIT, map->bytes - PREFIX);
        return NULL;
    }
    json_error_t error;
    const char *text = (const char *)map->data + PREFIX;
    json_t *header = text[0] == '{' ? mixt__json_load(text, (size_t)bytes, JSON_REJECT_DUPLICATES, &error) : NULL;
    if (!header && text[0] == '{' && json_error_code(&error) == json_error_out_of_memory)
        *status = mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to read its header", path);
    else if (!header)
        *status = mixt__fail(MIXT_ERROR_FORMAT, "%s: header at offset %d is not a JSON object: %s", path,
                             PREFIX + (text[0] == '{' ? error.position : 0),
                             text[0] == '{' ? error.text : "it does not start with '{'");
    *header_bytes = bytes;
    return header;
}

mixt_status mixt__safetensors_open(const char *path, mixt__safetensors **result)
{
    *result = NULL;
    mixt__safetensors *file = mixt__alloc(sizeof *file);
    struct mixt__safetensors_storage *storage = mixt__alloc(sizeof *storage);
    json_t *header = NULL;
    mixt_status status = MIXT_OK;
    if (!file || !storage) {
        mixt__free(file);
        mixt__free(storage);
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to open it", path);
    }
    file->storage = storage;
    MIXT_TRY_CLEANUP(mixt__file_map_open(path, &storage->map));
    uint64_t header_bytes;
    header = parse_header(path, &storage->map, &header_bytes, &status);
    if (!header)
        goto cleanup;
    const reader r = {.path = path,
                      .data = storage->map.data + PREFIX + header_bytes,
                      .data_offset = (int64_t)(PREFIX + header_bytes),
                      .data_bytes = (int64_t)(storage->map.bytes - PREFIX - header_bytes),
                      .arena = &storage->arena};
    status = read_header(&r, header, file);
cleanup:
    json_decref(header);
    if (status == MIXT_OK)
        *result = file;
    else
        mixt__safetensors_close(file);
    return status;
}

mixt_status mixt__safetensors_join(mixt__safetensors *const *parts, int64_t count, const mixt__file_tensor *tensors,
                                   int64_t tensor_count, mixt__safetensors **result)
{
    mixt__safetensors *file = mixt__alloc(sizeof *file);
    struct mixt__safetensors_storage *storage = mixt__alloc(sizeof *storage);
    mixt__safetensors **own = mixt__alloc((size_t)count * sizeof *own);
    mixt__file_tensor *copies =
        storage ? mixt__arena_alloc(&storage->arena, (size_t)tensor_count * sizeof *copies) : NULL;
    *result = NULL;
    if (!file || !own || !copies) {
        if (storage)
            mixt__arena_free(&storage->arena);
        mixt__free(storage);
        mixt__free(own);
        mixt__free(file);
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to join %lld files of weights", (long long)count);
    }
    memcpy(own, parts, (size_t)count * sizeof *own);
    memcpy(copies, tensors, (size_t)tensor_count * sizeof *copies);
    storage->parts = own;
    storage->part_count = count;
    *file = (mixt__safetensors){.tensors = copies, .count = tensor_count, .storage = storage};
    file->metadata = parts[0]->metadata;
    *result = file;
    return MIXT_OK;
}

/** What a tensor of a checkpoint's state is called among the weights; NULL: it is none. */
static const char *weight_name(const char *name)
{
    static const char *const prefixes[] = {MIXT_STATE_MASTER, MIXT_STATE_STATISTICS};
    for (int i = 0; i < 2; i++)
        if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
            return name + strlen(prefixes[i]);
    return NULL;
}

/** Adds the frozen parameters that stand in a file beside a checkpoint's state, where there is one. */
static mixt_status add_frozen(const char *path, mixt__safetensors **file)
{
    static const mixt__text_pair trained[] = {{"format", "mixt"}, {MIXT_HOLDS, MIXT_HOLDS_TRAINED}};
    const char *slash = strrchr(path, '/');
    char beside[4096];
    mixt__safetensors *frozen, *both = NULL;
    int length = snprintf(beside, sizeof beside, "%.*sfrozen.safetensors", slash ? (int)(slash - path) + 1 : 0, path);
    bool adapters = false;
    for (int64_t i = 0; i < (*file)->count && !adapters; i++) {
        size_t used = strlen((*file)->tensors[i].name);
        adapters = used > 7 && !strcmp((*file)->tensors[i].name + used - 7, ".lora_a");
    }
    bool alone = length < 0 || length >= (int)sizeof beside || access(beside, F_OK);
    if (alone && adapters) // what they stand beside is where the run began
        (*file)->metadata = (mixt__metadata){.pairs = trained, .count = 2};
    if (alone)
        return MIXT_OK;
    MIXT_TRY(mixt__safetensors_open(beside, &frozen));
    mixt_status status = mixt__pairs_widen(beside, frozen);
    int64_t count = (*file)->count + frozen->count;
    mixt__file_tensor *all = status == MIXT_OK ? mixt__alloc((size_t)(count + 1) * sizeof *all) : NULL;
    if (status == MIXT_OK && !all)
        status = mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to open it", beside);
    if (all) {
        memcpy(all, (*file)->tensors, (size_t)(*file)->count * sizeof *all);
        memcpy(all + (*file)->count, frozen->tensors, (size_t)frozen->count * sizeof *all);
        mixt__safetensors *parts[] = {*file, frozen};
        status = mixt__safetensors_join(parts, 2, all, count, &both);
    }
    mixt__free(all);
    if (status == MIXT_OK)
        *file = both;
    else
        mixt__safetensors_close(frozen);
    return status;
}

mixt_status mixt__safetensors_open_weights(const char *path, mixt__safetensors **file)
{
    static const mixt__text_pair own[] = {{"format", "mixt"}};
    if (mixt__shards_is_index(path))
        return mixt__shards_open(path, file);
    MIXT_TRY(mixt__safetensors_open(path, file));
    mixt__safetensors *f = *file;
    bool state = false;
    for (int64_t i = 0; i < f->count; i++)
        state |= !strncmp(f->tensors[i].name, MIXT_STATE_MASTER, strlen(MIXT_STATE_MASTER));
    mixt__file_tensor *weights =
        state ? mixt__arena_alloc(&f->storage->arena, (size_t)f->count * sizeof *weights) : NULL;
    if (state && !weights) {
        mixt__safetensors_close(f);
        *file = NULL;
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to open it", path);
    }
    int64_t count = 0;
    for (int64_t i = 0; state && i < f->count; i++) {
        const char *name = weight_name(f->tensors[i].name);
        weights[count] = f->tensors[i];
        weights[count].name = name;
        count += name != NULL;
    }
    if (state) {
        f->tensors = weights;
        f->count = count;
        f->metadata = (mixt__metadata){.pairs = own, .count = 1};
    }
    mixt_status status = state ? add_frozen(path, file) : MIXT_OK;
    if (status != MIXT_OK) {
        mixt__safetensors_close(*file);
        *file = NULL;
    }
    return status;
}

void *mixt__safetensors_room(mixt__safetensors *file, size_t bytes)
{
    return mixt__arena_alloc(&file->storage->arena, bytes);
}

const mixt__file_tensor *mixt__safetensors_find(const mixt__safetensors *file, const char *name)
{
    for (int64_t i = 0; i < file->count; i++)
        if (!strcmp(file->tensors[i].name, name))
            return &file->tensors[i];
    return NULL;
}

const char *mixt__safetensors_metadata(const mixt__safetensors *file, const char *key)
{
    for (int64_t i = 0; i < file->metadata.count; i++)
        if (!strcmp(file->metadata.pairs[i].key, key))
            return file->metadata.pairs[i].value;
    return NULL;
}

mixt_status mixt__safetensors_check(const mixt__safetensors *file)
{
    if (!file)
        return MIXT_OK;
    for (int64_t i = 0; i < file->storage->part_count; i++)
        MIXT_TRY(mixt__safetensors_check(file->storage->parts[i]));
    return mixt__file_map_check(&file->storage->map);
}

void mixt__safetensors_close(mixt__safetensors *file)
{
    if (!file)
        return;
    for (int64_t i = 0; i < file->storage->part_count; i++)
        mixt__safetensors_close(file->storage->parts[i]);
    mixt__free(file->storage->parts);
    mixt__file_map_close(&file->storage->map);
    mixt__arena_free(&file->storage->arena);
    mixt__free(file->storage);
    mixt__free(file);
}
