/* Finding the scales of a tensor, and its values. */
#include "store/pairs.h"

#include "base/alloc.h"
#include "base/status.h"
#include "mixt/num.h"
#include "num/quantise.h"

#include <stdio.h>
#include <string.h>

static int64_t elements(const mixt__file_tensor *t)
{
    return (int64_t)(t->bytes / mixt_dtype_size(t->dtype));
}

/** Whether it holds numbers that mean nothing without scales. */
static bool is_pair(const mixt__file_tensor *t)
{
    return mixt__format_of(t->dtype)->scale == MIXT_SCALE_CHANNEL;
}

mixt_status mixt__pair_scales(const mixt__safetensors *file, const mixt__file_tensor *t, const float **scales)
{
    char name[1200];
    *scales = NULL;
    if (!is_pair(t))
        return MIXT_OK;
    snprintf(name, sizeof name, "%s%s", MIXT_PAIR_SCALE, t->name);
    const mixt__file_tensor *s = mixt__safetensors_find(file, name);
    if (!s || s->dtype != MIXT_DTYPE_FP32 || s->rank != 1 || t->rank < 1 || s->dims[0] != t->dims[0])
        return mixt__fail(MIXT_ERROR_FORMAT, "'%s' is %s, and there is no tensor '%s' of an FP32 scale for each row",
                          t->name, mixt_dtype_name(t->dtype), name);
    *scales = s->data;
    return MIXT_OK;
}

mixt_status mixt__pair_values(const mixt__safetensors *file, const mixt__file_tensor *t, float *values)
{
    const float *scales;
    MIXT_TRY(mixt__pair_scales(file, t, &scales));
    if (!scales)
        return mixt_convert(values, MIXT_DTYPE_FP32, t->data, t->dtype, elements(t), NULL);
    if (t->dims[0])
        mixt__dequantise_rows(values, t->data, t->dtype, scales, t->dims[0], elements(t) / t->dims[0]);
    return MIXT_OK;
}

/** Whether a tensor holds the scales of another one. */
static bool is_scale(const mixt__safetensors *file, const mixt__file_tensor *t)
{
    const size_t length = strlen(MIXT_PAIR_SCALE);
    const mixt__file_tensor *of =
        strncmp(t->name, MIXT_PAIR_SCALE, length) ? NULL : mixt__safetensors_find(file, t->name + length);
    return of && is_pair(of);
}

static mixt_status widen(mixt__safetensors *file, const mixt__file_tensor *from, mixt__file_tensor *to)
{
    size_t bytes = (size_t)elements(from) * sizeof(float);
    float *values = mixt__safetensors_room(file, bytes + 1);
    if (!values)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the values of '%s'", from->name);
    *to = *from;
    to->dtype = MIXT_DTYPE_FP32;
    to->bytes = bytes;
    to->data = values;
    return mixt__pair_values(file, from, values);
}

mixt_status mixt__pairs_widen(const char *path, mixt__safetensors *file)
{
    mixt__file_tensor *shown = mixt__safetensors_room(file, (size_t)(file->count + 1) * sizeof *shown);
    mixt_status status = shown ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory to open it");
    int64_t count = 0;
    for (int64_t i = 0; status == MIXT_OK && i < file->count; i++) {
        const mixt__file_tensor *t = &file->tensors[i];
        if (is_scale(file, t))
            continue;
        shown[count] = *t;
        status = is_pair(t) ? widen(file, t, &shown[count]) : MIXT_OK;
        count++;
    }
    if (status != MIXT_OK)
        return mixt__fail_context(status, "%s", path);
    file->tensors = shown;
    file->count = count;
    return MIXT_OK;
}
