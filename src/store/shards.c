/* Weights cut into several safetensors files: an index (model.safetensors.index.json) says which tensor is in which.
 *
 * The files are opened as one. Every tensor that the index names must be in its file; what else a file holds is left
 * out, as the index is what the writer meant.
 */
#include "store/shards.h"

#include "base/alloc.h"
#include "base/status.h"
#include "store/file.h"
#include "store/json.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/** What is open while an index is read; the parts go to the result. */
typedef struct shards {
    const char *index;
    mixt__safetensors **parts;
    const char **names; // of the parts, from the index
    int64_t count, capacity, name_capacity;
    mixt__file_tensor *tensors;
    int64_t tensor_count;
} shards;

static mixt_status no_memory(const shards *s)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to open its files", s->index);
}

/** A file of the index, opened at its first tensor. */
static mixt_status part_of(shards *s, const char *name, mixt__safetensors **part)
{
    char path[4400];
    for (int64_t i = 0; i < s->count; i++)
        if (!strcmp(s->names[i], name)) {
            *part = s->parts[i];
            return MIXT_OK;
        }
    if (!*name || strchr(name, '/'))
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: names '%s', but there is no such file beside it", s->index, name);
    if (!mixt__grow((void **)&s->parts, &s->capacity, s->count, sizeof *s->parts) ||
        !mixt__grow((void **)&s->names, &s->name_capacity, s->count, sizeof *s->names))
        return no_memory(s);
    const char *slash = strrchr(s->index, '/');
    int folder = slash ? (int)(slash - s->index) + 1 : 0;
    if (snprintf(path, sizeof path, "%.*s%s", folder, s->index, name) >= (int)sizeof path)
        return mixt__fail(MIXT_ERROR_FILE, "%s: the path is too long", s->index);
    if (access(path, F_OK))
        return mixt__fail(MIXT_ERROR_FILE,
                          "%s: is not there, and %s names it: the folder is not complete, copy it again", path,
                          s->index);
    MIXT_TRY(mixt__safetensors_open(path, part));
    s->names[s->count] = name;
    s->parts[s->count++] = *part;
    return MIXT_OK;
}

static mixt_status read_map(shards *s, json_t *map)
{
    const char *tensor;
    json_t *file;
    s->tensors = mixt__alloc((json_object_size(map) + 1) * sizeof *s->tensors);
    if (!s->tensors)
        return no_memory(s);
    json_object_foreach(map, tensor, file)
    {
        mixt__safetensors *part = NULL;
        if (!json_is_string(file))
            return mixt__fail(MIXT_ERROR_FORMAT, "%s: the file name of tensor '%s' is not a text", s->index, tensor);
        MIXT_TRY(part_of(s, json_string_value(file), &part));
        const mixt__file_tensor *found = mixt__safetensors_find(part, tensor);
        if (!found)
            return mixt__fail(MIXT_ERROR_FORMAT, "%s: tensor '%s' is not in %s", s->index, tensor,
                              json_string_value(file));
        s->tensors[s->tensor_count++] = *found;
    }
    return s->tensor_count ? MIXT_OK : mixt__fail(MIXT_ERROR_FORMAT, "%s: names no tensors", s->index);
}

static mixt_status load_index(const char *path, json_t **index)
{
    mixt__file_map map;
    MIXT_TRY(mixt__file_map_open(path, &map));
    mixt_status status = mixt__json_parse(path, map.data, map.bytes, JSON_REJECT_DUPLICATES, index);
    mixt__file_map_close(&map);
    MIXT_TRY(status);
    return json_is_object(json_object_get(*index, "weight_map"))
               ? MIXT_OK
               : mixt__fail(MIXT_ERROR_FORMAT, "%s: has no weight_map, which says where each tensor is", path);
}

bool mixt__shards_is_index(const char *path)
{
    static const char ending[] = ".index.json";
    size_t length = strlen(path), end = sizeof ending - 1;
    return length > end && !strcmp(path + length - end, ending);
}

mixt_status mixt__shards_open(const char *path, mixt__safetensors **file)
{
    shards s = {.index = path};
    json_t *index = NULL;
    *file = NULL;
    mixt_status status = load_index(path, &index);
    if (status == MIXT_OK)
        status = read_map(&s, json_object_get(index, "weight_map"));
    if (status == MIXT_OK)
        status = mixt__safetensors_join(s.parts, s.count, s.tensors, s.tensor_count, file);
    for (int64_t i = 0; status != MIXT_OK && i < s.count; i++)
        mixt__safetensors_close(s.parts[i]);
    mixt__free(s.parts);
    mixt__free(s.names);
    mixt__free(s.tensors);
    json_decref(index);
    return status;
}
