/* Writing frozen parameters to a file, finding them in a checkpoint. */
#include "train/frozen_file.h"

#include "base/alloc.h"
#include "base/status.h"
#include "mixt/num.h"
#include "store/checksum.h"
#include "store/file.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct listing {
    const mixt__params *params;
    mixt__file_tensor *tensors;
    int32_t *index; // by tensor
    int64_t count;
    void *buffer; // of one parameter
} listing;

/** Wide elements first, as such files have them. @return bytes of the largest parameter */
static size_t list(const mixt__params *p, listing *l)
{
    size_t most = 1;
    for (size_t size = sizeof(float); size; size /= 2)
        for (int32_t i = 0; i < p->count; i++) {
            const mixt__param *param = &p->table[i];
            mixt_dtype home = p->frozen.home[i];
            if (home == MIXT_DTYPE_NONE || mixt_dtype_size(home) != size)
                continue;
            mixt__file_tensor *t = &l->tensors[l->count];
            *t = (mixt__file_tensor){.name = param->name, .dtype = home, .rank = param->shape.rank};
            memcpy(t->dims, param->shape.dims, (size_t)t->rank * sizeof t->dims[0]);
            l->index[l->count++] = i;
            most = (size_t)param->count * size > most ? (size_t)param->count * size : most;
        }
    return most;
}

static mixt_status fetch(void *argument, int64_t index, const void **data)
{
    listing *l = argument;
    const mixt__params *p = l->params;
    int32_t param = l->index[index];
    mixt_dtype home;
    const void *place = mixt__frozen_place(p, param, &home);
    *data = l->buffer;
    return mixt__device_download(p->device, l->buffer, place, (size_t)p->table[param].count * mixt_dtype_size(home));
}

/** Its length and checksum, as the disk has it. */
static mixt_status measure(const char *path, mixt__frozen_file *file)
{
    mixt__file_map map;
    MIXT_TRY(mixt__file_map_open(path, &map));
    file->bytes = map.bytes;
    file->sum = mixt__checksum(map.data, map.bytes);
    mixt__file_map_close(&map);
    return MIXT_OK;
}

mixt_status mixt__frozen_file_write(const mixt__params *p, const char *path, mixt__frozen_file *file)
{
    size_t n = (size_t)p->count + 1;
    listing l = {.params = p, .tensors = mixt__alloc(n * sizeof *l.tensors), .index = mixt__alloc(n * sizeof *l.index)};
    if (l.tensors && l.index)
        l.buffer = mixt__alloc_uninit(list(p, &l));
    mixt_status status =
        l.buffer ? mixt__safetensors_write_from(path, l.tensors, l.count, NULL, true, fetch, &l)
                 : mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to write the frozen parameters", path);
    mixt__free(l.tensors);
    mixt__free(l.index);
    mixt__free(l.buffer);
    *file = (mixt__frozen_file){.version = p->frozen.version};
    snprintf(file->path, sizeof file->path, "%s", path);
    return status == MIXT_OK ? measure(path, file) : status;
}

mixt_status mixt__frozen_file_add(const mixt__params *p, const char *folder, mixt__frozen_file *file,
                                  mixt__checkpoint_file *files, int64_t *count)
{
    char path[sizeof file->path];
    if (!mixt__params_have_frozen(p))
        return MIXT_OK;
    if (snprintf(path, sizeof path, "%s/%s", folder, MIXT_CHECKPOINT_FROZEN) >= (int)sizeof path)
        return mixt__fail(MIXT_ERROR_FILE, "%.60s…: the path is too long", folder);
    bool there = file->version == p->frozen.version && !strcmp(file->path, path) && !access(path, R_OK);
    if (!there)
        MIXT_TRY(mixt__frozen_file_write(p, path, file));
    files[(*count)++] = (mixt__checkpoint_file){
        .name = MIXT_CHECKPOINT_FROZEN, .bytes = file->bytes, .from = file->path, .sum = file->sum};
    return MIXT_OK;
}

mixt_status mixt__frozen_file_find(const mixt__checkpoint *c, const mixt__param *param,
                                   const mixt__file_tensor **tensor, bool *in_state)
{
    char name[1200];
    snprintf(name, sizeof name, "%s%s", MIXT_STATE_STATISTICS, param->name);
    const mixt__file_tensor *t = c->frozen ? mixt__safetensors_find(c->frozen, param->name) : NULL;
    *in_state = !t;
    *tensor = t = t ? t : mixt__safetensors_find(c->state, name);
    if (!t)
        return mixt__fail(MIXT_ERROR_FORMAT, "frozen parameter '%s' is missing: it is of another model", param->name);
    bool same = t->rank == param->shape.rank && mixt_dtype_is_float(t->dtype);
    for (int i = 0; same && i < t->rank; i++)
        same = t->dims[i] == param->shape.dims[i];
    char wanted[128];
    return same ? MIXT_OK
                : mixt__fail(MIXT_ERROR_FORMAT, "frozen parameter '%s' is %s %s, the model has %s", param->name,
                             mixt_dtype_name(t->dtype), mixt__dims_print(t->rank, t->dims).text,
                             mixt__shape_text(&param->shape, wanted, sizeof wanted));
}

mixt_status mixt__frozen_file_put(mixt__params *p, int32_t index, const mixt__file_tensor *tensor)
{
    int64_t count = p->table[index].count;
    float *values = mixt__alloc_uninit((size_t)count * sizeof *values + 1);
    mixt_status status = values ? mixt_convert(values, MIXT_DTYPE_FP32, tensor->data, tensor->dtype, count, NULL)
                                : mixt__fail(MIXT_ERROR_MEMORY, "no memory to read '%s'", p->table[index].name);
    if (status == MIXT_OK)
        status = mixt__frozen_set(p, index, values);
    mixt__free(values);
    return status;
}
