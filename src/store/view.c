/* Rows of tensors that a file has as they are wanted. */
#include "store/view.h"

#include "base/alloc.h"
#include "base/status.h"
#include "mixt/num.h"

#include <string.h>

typedef struct file_view {
    mixt__view view;
    mixt__safetensors *file;
} file_view;

static mixt_status rows(mixt__view *view, int64_t index, int64_t first, int64_t count, float *values)
{
    const file_view *v = (const file_view *)view;
    const mixt__file_tensor *t = &v->file->tensors[index];
    int64_t all = mixt__file_tensor_count(t->dtype, t->rank, t->dims), row = t->rank ? all / t->dims[0] : 1;
    const char *data = (const char *)t->data + (size_t)(first * row) * mixt_dtype_size(t->dtype);
    MIXT_TRY(mixt_convert(values, MIXT_DTYPE_FP32, data, t->dtype, count * row, NULL));
    return mixt__safetensors_check(v->file);
}

static void close(mixt__view *view)
{
    file_view *v = (file_view *)view;
    mixt__safetensors_close(v->file);
    mixt__free(v);
}

mixt_status mixt__view_open(const char *path, mixt__view **view)
{
    *view = NULL;
    file_view *v = mixt__alloc(sizeof *v);
    if (!v)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to read it", path);
    mixt_status status = mixt__safetensors_open_weights(path, &v->file);
    if (status != MIXT_OK) {
        mixt__free(v);
        return status;
    }
    v->view = (mixt__view){.tensors = v->file->tensors, .count = v->file->count, .rows = rows, .close = close};
    *view = &v->view;
    return MIXT_OK;
}

void mixt__view_close(mixt__view *view)
{
    if (view)
        view->close(view);
}
