/* Writing frozen parameters to a file, finding them in a checkpoint. */
#include "train/frozen_file.h"

#include "base/alloc.h"
#include "base/status.h"
#include "store/checksum.h"
#include "store/file.h"
#include "store/pairs.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct listing {
    const mixt__params *params;
    mixt__arena arena; // names of scales
    mixt__file_tensor *tensors;
    int32_t *index; // by tensor: its parameter
    bool *scales;   // … whose scales it holds, not its numbers
    int64_t count;
    void *buffer; // of one tensor
} listing;

/** A tensor that holds a parameter's numbers, or its scales. @return its bytes */
static size_t add(listing *l, int32_t param, mixt_dtype dtype, bool scales, const char *name, const mixt__shape *shape)
{
    mixt__file_tensor *t = &l->tensors[l->count];
    *t = (mixt__file_tensor){.name = name, .dtype = dtype, .rank = shape->rank};
    memcpy(t->dims, shape->dims, (size_t)t->rank * sizeof t->dims[0]);
    l->index[l->count] = param;
    l->scales[l->count++] = scales;
    return (size_t)mixt__shape_count(shape) * mixt_dtype_size(dtype);
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/** Wide elements first, as such files have them. @return bytes of the largest tensor; 0: memory ended */
static size_t list(const mixt__params *p, listing *l)
{
    size_t most = 1;
    for (int32_t i = 0; i < p->count; i++) {
        int64_t rows = 0;
        if (!mixt__params_is_frozen(p, i) || !mixt__frozen_scales(p, i, &rows))
            continue;
        const char *name = mixt__arena_printf(&l->arena, "%s%s", MIXT_PAIR_SCALE, p->table[i].name);
        if (!name)
            return 0;
        most = larger(most, add(l, i, MIXT_DTYPE_FP32, true, name, &(mixt__shape){1, {rows}}));
    }
    for (size_t size = sizeof(float); size; size /= 2)
        for (int32_t i = 0; i < p->count; i++) {
            const mixt__param *param = &p->table[i];
            mixt_dtype home = p->frozen.home[i];
            if (home == MIXT_DTYPE_NONE || mixt_dtype_size(home) != size)
                continue;
            mixt__shape shape = param->shape;
            if (home == MIXT_DTYPE_NF4) // two numbers a byte
                shape.dims[1] /= 2;
            most =
                larger(most, add(l, i, home == MIXT_DTYPE_NF4 ? MIXT_DTYPE_UINT8 : home, false, param->name, &shape));
        }
    return most;
}

static mixt_status fetch(void *argument, int64_t index, const void **data)
{
    listing *l = argument;
    const mixt__params *p = l->params;
    int32_t param = l->index[index];
    mixt_dtype home;
    int64_t count;
    const void *numbers = mixt__frozen_place(p, param, &home), *scales = mixt__frozen_scales(p, param, &count);
    *data = l->buffer;
    if (l->scales[index])
        return mixt__device_download(p->device, l->buffer, scales, (size_t)count * sizeof(float));
    return mixt__device_download(p->device, l->buffer, numbers, mixt__format_bytes(home, p->table[param].count));
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
    size_t n = 2 * (size_t)p->count + 1;
    listing l = {.params = p, .tensors = mixt__alloc(n * sizeof *l.tensors), .index = mixt__alloc(n * sizeof *l.index)};
    l.scales = mixt__alloc(n * sizeof *l.scales);
    size_t most = l.tensors && l.index && l.scales ? list(p, &l) : 0;
    if (most)
        l.buffer = mixt__alloc_uninit(most);
    mixt_status status = l.buffer ? mixt__safetensors_write_from(path, l.tensors, l.count, NULL, true, fetch, &l)
                                  : mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to write the frozen parameters", path);
    mixt__arena_free(&l.arena);
    mixt__free(l.tensors);
    mixt__free(l.scales);
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
    if (!mixt__params_have_frozen(p) || file->elsewhere)
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

/** Whether a tensor holds codes of NF4 of a parameter, with its scales beside it. */
static bool is_nf4(const mixt__safetensors *file, const mixt__file_tensor *t, const mixt__param *param,
                   const mixt__file_tensor **scales)
{
    char name[1200];
    mixt__nf4_matrix matrix = mixt__param_matrix(param);
    snprintf(name, sizeof name, "%s%s", MIXT_PAIR_SCALE, param->name);
    *scales = mixt__safetensors_find(file, name);
    return t->dtype == MIXT_DTYPE_UINT8 && t->rank == 2 && mixt__nf4_fits(&matrix) && *scales &&
           (*scales)->dtype == MIXT_DTYPE_FP32 && t->dims[0] == matrix.rows && t->dims[1] == matrix.cols / 2 &&
           (*scales)->bytes == (size_t)mixt__nf4_words(&matrix) * sizeof(float);
}

mixt_status mixt__frozen_file_find(const mixt__checkpoint *c, const mixt__param *param, mixt__frozen_tensor *found)
{
    char name[1200];
    const float *scales = NULL;
    snprintf(name, sizeof name, "%s%s", MIXT_STATE_STATISTICS, param->name);
    const mixt__file_tensor *t = c->frozen ? mixt__safetensors_find(c->frozen, param->name) : NULL;
    found->file = t ? c->frozen : c->state;
    found->tensor = t = t ? t : mixt__safetensors_find(c->state, name);
    if (!t)
        return mixt__fail(MIXT_ERROR_FORMAT, "frozen parameter '%s' is missing: it is of another model", param->name);
    found->count = 2;
    if (is_nf4(found->file, t, param, &found->nf4))
        return MIXT_OK;
    found->nf4 = NULL;
    MIXT_TRY(mixt__pair_scales(found->file, t, &scales));
    found->count = scales ? 2 : 1;
    bool same = t->rank == param->shape.rank && (scales || mixt_dtype_is_float(t->dtype));
    for (int i = 0; same && i < t->rank; i++)
        same = t->dims[i] == param->shape.dims[i];
    char wanted[128];
    return same ? MIXT_OK
                : mixt__fail(MIXT_ERROR_FORMAT, "frozen parameter '%s' is %s %s, the model has %s", param->name,
                             mixt_dtype_name(t->dtype), mixt__dims_print(t->rank, t->dims).text,
                             mixt__shape_text(&param->shape, wanted, sizeof wanted));
}

mixt_status mixt__frozen_file_put(mixt__params *p, int32_t index, const mixt__frozen_tensor *found)
{
    int64_t count = p->table[index].count;
    if (found->nf4 && p->frozen.home[index] == MIXT_DTYPE_NF4)
        return mixt__frozen_set_kept(p, index, found->tensor->data, found->nf4->data);
    float *values = mixt__alloc_uninit((size_t)count * sizeof *values + 1);
    mixt__nf4_matrix matrix = mixt__param_matrix(&p->table[index]);
    mixt_status status = MIXT_OK;
    if (values && found->nf4)
        mixt__nf4_values(&matrix, found->tensor->data, found->nf4->data, values);
    else
        status = values ? mixt__pair_values(found->file, found->tensor, values)
                        : mixt__fail(MIXT_ERROR_MEMORY, "no memory to read '%s'", p->table[index].name);
    if (status == MIXT_OK)
        status = mixt__frozen_set(p, index, values);
    mixt__free(values);
    return status;
}

static mixt_status restore_all(mixt__params *p, const mixt__checkpoint *c)
{
    for (int32_t i = 0; i < p->count; i++) {
        mixt__frozen_tensor found;
        if (!mixt__params_is_frozen(p, i))
            continue;
        MIXT_TRY(mixt__frozen_file_find(c, &p->table[i], &found));
        MIXT_TRY(mixt__frozen_file_put(p, i, &found));
    }
    return MIXT_OK;
}

mixt_status mixt__frozen_file_restore(mixt__params *p, mixt__frozen_file *file)
{
    mixt__frozen_file now = {.bytes = 0};
    mixt__safetensors *tensors = NULL;
    if (!*file->path)
        return mixt__fail(MIXT_ERROR_STATE, "frozen parameters are in no file yet");
    MIXT_TRY(measure(file->path, &now));
    if (now.bytes != file->bytes || now.sum != file->sum)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: is not what was written", file->path);
    MIXT_TRY(mixt__safetensors_open(file->path, &tensors));
    mixt_status status = restore_all(p, &(mixt__checkpoint){.frozen = tensors, .state = tensors});
    mixt__safetensors_close(tensors);
    file->version = p->frozen.version;
    return status;
}
