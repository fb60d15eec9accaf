/* NumPy arrays as inputs, labels or values. Bytes stay bytes, other numbers become FP32.
 *
 * Arrays are copied out of the mapped file: a file that shrinks under a running program must not end it.
 */
#include "data/table/npy.h"

#include "mixt/num.h"

#include <math.h>
#include <string.h>

/** One element as FP64; `at` may have any alignment. FP64 holds all but the last bits of large INT64 exactly. */
static double element_at(const void *at, const mixt__npy *file)
{
    union {
        uint8_t byte;
        int8_t small;
        uint16_t half;
        int16_t short_integer;
        float single;
        double wide;
        int32_t integer;
        uint32_t positive;
        int64_t large;
    } value;
    memcpy(&value, at, file->element);
    switch (file->numbers) {
    case MIXT_NPY_BOOL:
        return value.byte != 0;
    case MIXT_NPY_INT16:
        return value.short_integer;
    case MIXT_NPY_UINT16:
        return value.half;
    case MIXT_NPY_UINT32:
        return value.positive;
    default:
        break;
    }
    switch (file->tensor.dtype) {
    case MIXT_DTYPE_UINT8:
        return value.byte;
    case MIXT_DTYPE_INT8:
        return value.small;
    case MIXT_DTYPE_FP16:
        return mixt_fp16_to_fp32(value.half);
    case MIXT_DTYPE_FP64:
        return value.wide;
    case MIXT_DTYPE_INT32:
        return value.integer;
    case MIXT_DTYPE_INT64:
        return (double)value.large;
    default:
        return value.single;
    }
}

static int64_t element_count(const mixt__npy *file)
{
    return (int64_t)(file->tensor.bytes / file->element);
}

/** All elements as FP32, every one finite. */
static mixt_status to_floats(const mixt__npy *file, const char *path, float **floats)
{
    const mixt__file_tensor *tensor = &file->tensor;
    int64_t count = element_count(file);
    *floats = mixt__alloc_uninit((size_t)count * sizeof(float));
    if (!*floats)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for %lld elements", path, (long long)count);
    for (int64_t i = 0; i < count; i++) {
        size_t offset = (size_t)i * file->element;
        double value = element_at((const unsigned char *)tensor->data + offset, file);
        (*floats)[i] = (float)value;
        if (!isfinite((*floats)[i])) {
            mixt__free(*floats);
            *floats = NULL;
            return mixt__fail(MIXT_ERROR_DATA, "%s: offset %zu (sample %lld): %g is not finite in FP32", path,
                              file->start + offset, (long long)(i / (count / tensor->dims[0])), value);
        }
    }
    return MIXT_OK;
}

static mixt_status check_rank(const char *path, const mixt__npy *file, int least, int most)
{
    mixt__dims_text shape = mixt__dims_print(file->tensor.rank, file->tensor.dims);
    if (file->tensor.rank < least || file->tensor.rank > most)
        return mixt__fail(MIXT_ERROR_DATA, "%s: shape %s, expected %d to %d dimensions, samples first", path,
                          shape.text, least, most);
    if (element_count(file) == 0)
        return mixt__fail(MIXT_ERROR_DATA, "%s: shape %s has no elements", path, shape.text);
    return MIXT_OK;
}

static mixt_status open_array(const char *path, mixt__npy *file)
{
    if (mixt__path_is_directory(path))
        return mixt__fail(MIXT_ERROR_FILE, "%s: is a directory, expected a .npy file", path);
    return mixt__npy_open_numbers(path, file);
}

/** Whether each row is 0 but for one 1. */
static bool are_one_hot(const float *values, int64_t rows, int64_t width)
{
    for (int64_t r = 0; r < rows; r++) {
        int64_t ones = 0, others = 0;
        for (int64_t c = 0; c < width; c++) {
            ones += values[r * width + c] == 1;
            others += values[r * width + c] != 1 && values[r * width + c] != 0;
        }
        if (ones != 1 || others)
            return false;
    }
    return true;
}

/** Puts the class of each row in the place of the rows. */
static void from_one_hot(float *values, int64_t rows, int64_t width)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < width; c++)
            if (values[r * width + c] == 1) {
                values[r] = (float)c;
                break;
            }
}

mixt_status mixt__npy_take_targets(mixt_data *data, const char *path, const mixt__npy *file, mixt__table *table)
{
    const char *images = table->path;
    MIXT_TRY(check_rank(path, file, 1, 2));
    int64_t rows = file->tensor.dims[0], width = element_count(file) / rows;
    float *values = NULL;
    if (rows != table->rows)
        return mixt__fail(MIXT_ERROR_DATA, "%s: %lld labels, but %s holds %lld samples", path, (long long)rows, images,
                          (long long)table->rows);
    MIXT_TRY(to_floats(file, path, &values));
    if (width > 1 && data->options.target != MIXT_TARGET_VALUES && are_one_hot(values, rows, width)) {
        width = 1;
        from_one_hot(values, rows, element_count(file) / rows);
    }
    if (width > 1 && data->options.target == MIXT_TARGET_CLASS) {
        mixt__free(values);
        return mixt__fail(MIXT_ERROR_DATA, "%s: %lld numbers per sample, expected one class, or a 1 among zeros", path,
                          (long long)width);
    }
    if (width > 1) {
        table->values = values;
        table->value_count = width;
        return MIXT_OK;
    }
    table->path = path;
    mixt_status status = mixt__table_take_targets(data, table, values, data->options.target, NULL);
    table->path = images;
    return status;
}

mixt_status mixt__npy_take_inputs(const char *path, const mixt__npy *file, mixt__table *table)
{
    const mixt__file_tensor *tensor = &file->tensor;
    MIXT_TRY(check_rank(path, file, 2, MIXT_MAX_RANK));
    table->path = path;
    table->rows = tensor->dims[0];
    table->rank = tensor->rank - 1;
    memcpy(table->dims, tensor->dims + 1, (size_t)table->rank * sizeof(int64_t));
    if (table->rank == 2)
        table->dims[table->rank++] = 1; // grey images have one channel
    mixt_status status = MIXT_OK;
    if (tensor->dtype == MIXT_DTYPE_UINT8) {
        table->dtype = MIXT_DTYPE_UINT8;
        table->block = mixt__alloc_uninit(tensor->bytes);
        if (table->block)
            memcpy(table->block, tensor->data, tensor->bytes);
        else
            status = mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for %zu bytes", path, tensor->bytes);
    } else {
        float *floats;
        table->dtype = MIXT_DTYPE_FP32;
        table->whole = file->numbers != MIXT_NPY_DTYPE || tensor->dtype == MIXT_DTYPE_INT8 ||
                       tensor->dtype == MIXT_DTYPE_INT32 || tensor->dtype == MIXT_DTYPE_INT64;
        status = to_floats(file, path, &floats);
        table->block = floats;
    }
    table->input = table->block;
    return status;
}

mixt_status mixt__npy_read_inputs(const char *path, mixt__table *table)
{
    mixt__npy file;
    MIXT_TRY(open_array(path, &file));
    mixt_status status = mixt__npy_take_inputs(path, &file, table);
    mixt__npy_close(&file);
    return status;
}
