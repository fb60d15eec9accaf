/* Finding bitsandbytes' tensors of a weight, checking them, reading their values. */
#include "store/nf4_file.h"

#include "base/alloc.h"
#include "base/status.h"
#include "mixt/num.h"
#include "store/json.h"

#include <stdio.h>
#include <string.h>

#define STATE ".quant_state.bitsandbytes__nf4"

static const char *const beside[] = {".absmax", ".quant_map", ".nested_absmax", ".nested_quant_map", STATE};

static mixt_status bad(const char *path, const char *name, const char *what)
{
    return mixt__fail(MIXT_ERROR_FORMAT, "%s: weight '%s' in 4 bits: %s", path, name, what);
}

static const mixt__file_tensor *find(const mixt__safetensors *file, const char *weight, const char *end)
{
    char name[1200];
    return snprintf(name, sizeof name, "%s%s", weight, end) < (int)sizeof name ? mixt__safetensors_find(file, name)
                                                                               : NULL;
}

/** Whether a tensor belongs to a weight in 4 bits, and is none itself. */
static bool is_beside(const mixt__safetensors *file, const mixt__file_tensor *t)
{
    char weight[1200];
    size_t length = strlen(t->name);
    for (size_t i = 0; i < sizeof beside / sizeof beside[0]; i++) {
        size_t end = strlen(beside[i]);
        if (length <= end || length - end >= sizeof weight || strcmp(t->name + length - end, beside[i]))
            continue;
        memcpy(weight, t->name, length - end);
        weight[length - end] = '\0';
        if (find(file, weight, STATE) && mixt__safetensors_find(file, weight))
            return true;
    }
    return false;
}

/** What the JSON says: the shape, and the offset of magnitudes. */
static mixt_status read_state(const char *path, const mixt__file_tensor *state, const char *name,
                              mixt__file_tensor *shown, float *offset)
{
    json_t *o;
    MIXT_TRY(mixt__json_parse(path, state->data, state->bytes, JSON_REJECT_DUPLICATES, &o));
    const json_t *shape = json_object_get(o, "shape"), *block = json_object_get(o, "blocksize"),
                 *nested = json_object_get(o, "nested_blocksize");
    mixt_status status = MIXT_OK;
    bool sizes = json_integer_value(block) == MIXT_NF4_BLOCK &&
                 (!nested || json_integer_value(nested) == MIXT_NF4_NESTED) && json_array_size(shape) == 2;
    for (size_t i = 0; sizes && i < 2; i++)
        shown->dims[i] = json_integer_value(json_array_get(shape, i));
    if (!sizes)
        status = bad(path, name, "only matrices in blocks of 64, with scales in blocks of 256, are read");
    *offset = (float)json_number_value(json_object_get(o, "nested_offset"));
    json_decref(o);
    return status;
}

static bool same_map(const mixt__file_tensor *map, const float *numbers, int64_t count)
{
    return map && map->dtype == MIXT_DTYPE_FP32 && map->bytes == (size_t)count * sizeof *numbers &&
           !memcmp(map->data, numbers, map->bytes);
}

static bool has_bytes(const mixt__file_tensor *t, mixt_dtype dtype, int64_t count)
{
    return t && t->dtype == dtype && t->bytes == (size_t)count * mixt_dtype_size(dtype);
}

static mixt_status show_one(const char *path, mixt__safetensors *file, const mixt__file_tensor *t,
                            mixt__file_tensor *shown)
{
    const mixt__file_tensor *absmax = find(file, t->name, ".absmax"), *nested = find(file, t->name, ".nested_absmax");
    mixt__nf4_stored *s = mixt__safetensors_room(file, sizeof *s);
    if (!s)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to open it", path);
    *s = (mixt__nf4_stored){.codes = t->data};
    shown->rank = 2;
    MIXT_TRY(read_state(path, find(file, t->name, STATE), t->name, shown, &s->offset));
    mixt__nf4_matrix m = {.rows = shown->dims[0], .cols = shown->dims[1]};
    if (!mixt__nf4_fits(&m) || m.rows > INT32_MAX || m.cols > INT32_MAX)
        return bad(path, t->name, "its rows must hold whole blocks of 64");
    s->blocks = m.rows * (m.cols / MIXT_NF4_BLOCK);
    s->nested_count = (s->blocks + MIXT_NF4_NESTED - 1) / MIXT_NF4_NESTED;
    if (!has_bytes(t, MIXT_DTYPE_UINT8, m.rows * m.cols / 2))
        return bad(path, t->name, "it has not half a byte for each of its numbers");
    if (!same_map(find(file, t->name, ".quant_map"), mixt__nf4_numbers, 16))
        return bad(path, t->name, "its numbers (quant_map) are not NF4's");
    if (nested ? !has_bytes(absmax, MIXT_DTYPE_UINT8, s->blocks) : !has_bytes(absmax, MIXT_DTYPE_FP32, s->blocks))
        return bad(path, t->name, "its magnitudes (absmax) are missing, or not one for each block");
    if (nested && (!has_bytes(nested, MIXT_DTYPE_FP32, s->nested_count) ||
                   !same_map(find(file, t->name, ".nested_quant_map"), mixt__nf4_dynamic, 256)))
        return bad(path, t->name, "its scales (nested_absmax, nested_quant_map) are not as bitsandbytes has them");
    s->magnitude = nested ? absmax->data : NULL;
    s->plain = nested ? NULL : absmax->data;
    s->nested = nested ? nested->data : NULL;
    shown->dtype = MIXT_DTYPE_NF4;
    shown->bytes = (size_t)(m.rows * m.cols);
    shown->data = (const void *)s;
    return MIXT_OK;
}

mixt_status mixt__nf4_show(const char *path, mixt__safetensors *file)
{
    bool any = false;
    for (int64_t i = 0; i < file->count && !any; i++)
        any = file->tensors[i].dtype == MIXT_DTYPE_UINT8 && find(file, file->tensors[i].name, STATE);
    if (!any)
        return MIXT_OK;
    mixt__file_tensor *shown = mixt__safetensors_room(file, (size_t)(file->count + 1) * sizeof *shown);
    int64_t count = 0;
    if (!shown)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to open it", path);
    for (int64_t i = 0; i < file->count; i++) {
        const mixt__file_tensor *t = &file->tensors[i];
        if (is_beside(file, t))
            continue;
        shown[count] = *t;
        if (find(file, t->name, STATE))
            MIXT_TRY(show_one(path, file, t, &shown[count]));
        count++;
    }
    file->tensors = shown;
    file->count = count;
    return MIXT_OK;
}

/** Writes its magnitudes and scales into a matrix of one part. */
static void put_scales(const mixt__nf4_stored *s, mixt__nf4_part *part)
{
    memcpy(part->nested, s->nested, (size_t)s->nested_count * sizeof *s->nested);
    memcpy(part->magnitude, s->magnitude, (size_t)s->blocks);
    *part->offset = s->offset;
}

static mixt_status plain_values(const mixt__nf4_stored *s, float *values)
{
    for (int64_t b = 0; b < s->blocks; b++)
        for (int i = 0; i < MIXT_NF4_BLOCK; i++) {
            uint8_t two = s->codes[(b * MIXT_NF4_BLOCK + i) / 2];
            values[b * MIXT_NF4_BLOCK + i] = mixt__nf4_numbers[i % 2 ? two & 15 : two >> 4] * s->plain[b];
        }
    return MIXT_OK;
}

mixt_status mixt__nf4_tensor_values(const mixt__file_tensor *t, float *values)
{
    if (t->dtype != MIXT_DTYPE_NF4)
        return mixt_convert(values, MIXT_DTYPE_FP32, t->data, t->dtype, (int64_t)(t->bytes / mixt_dtype_size(t->dtype)),
                            NULL);
    const mixt__nf4_stored *s = t->data;
    if (s->plain)
        return plain_values(s, values);
    mixt__nf4_matrix m = {.rows = t->dims[0], .cols = t->dims[1]};
    mixt__nf4_part part;
    float *scales = mixt__alloc((size_t)mixt__nf4_words(&m) * sizeof *scales);
    if (!scales)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the scales of '%s'", t->name);
    mixt__nf4_lay_out(&m, scales);
    (void)mixt__nf4_part_at(scales, m.cols, 0, &part);
    put_scales(s, &part);
    mixt__nf4_values(&m, s->codes, scales, values);
    mixt__free(scales);
    return MIXT_OK;
}

bool mixt__nf4_put(const mixt__file_tensor *t, const mixt__nf4_matrix *m, int64_t row, uint8_t *codes, float *scales)
{
    const mixt__nf4_stored *s = t->dtype == MIXT_DTYPE_NF4 ? t->data : NULL;
    mixt__nf4_part part;
    if (!s || s->plain || t->dims[1] != m->cols)
        return false;
    for (int i = 0; mixt__nf4_part_at(scales, m->cols, i, &part); i++)
        if (part.row == row && part.rows == t->dims[0]) {
            memcpy(codes + row * m->cols / 2, s->codes, (size_t)(part.rows * m->cols / 2));
            put_scales(s, &part);
            return true;
        }
    return false;
}
