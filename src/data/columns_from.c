/* Named arrays of a program as a data set.
 *
 * Everything is checked when the set is opened, so that reading it cannot fail.
 */
#include "data/columns.h"

#include <math.h>
#include <string.h>

static mixt_status no_memory(const mixt_data *data)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "%s:%s: no memory for its samples", data->kind->name, data->path);
}

/* ---- checks ---- */

static mixt_status check_name(const char *set, const mixt_data_column *columns, int index)
{
    const char *name = columns[index].name;
    if (!name || !*name || strlen(name) >= 24 || strchr(name, '.'))
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%s: column %d needs a name of 1 to 23 bytes without a dot", set, index);
    for (int i = 0; i < index; i++)
        if (!strcmp(columns[i].name, name))
            return mixt__fail(MIXT_ERROR_ARGUMENT, "%s: two columns are called '%s'", set, name);
    return MIXT_OK;
}

/** Lengths of samples; the longest, where the shape leaves it open, and how many steps they have together. */
static mixt_status check_lengths(const char *set, const mixt_data_column *c, int64_t samples, int64_t *longest,
                                 int64_t *steps)
{
    int64_t bound = *longest ? *longest : INT32_MAX, largest = 1;
    *steps = 0;
    if (c->rank < 1 || *longest < 0)
        return mixt__fail(MIXT_ERROR_SHAPE, "%s: column '%s' has lengths, which need a first dimension from 0", set,
                          c->name);
    for (int64_t i = 0; i < samples; i++) {
        if (c->lengths[i] < 0 || c->lengths[i] > bound)
            return mixt__fail(MIXT_ERROR_DATA, "%s: column '%s': sample %lld has length %d: expected 0 to %lld", set,
                              c->name, (long long)i, c->lengths[i], (long long)bound);
        largest = c->lengths[i] > largest ? c->lengths[i] : largest;
        *steps += c->lengths[i];
    }
    *longest = *longest ? *longest : largest;
    return MIXT_OK;
}

static mixt_status check_column(const char *set, const mixt_data_column *c, int64_t samples, mixt_data_array *array,
                                int64_t *count)
{
    int64_t numbers, steps = 0;
    if (c->dtype != MIXT_DTYPE_NONE && c->dtype != MIXT_DTYPE_FP32 && c->dtype != MIXT_DTYPE_INT32)
        return mixt__fail(MIXT_ERROR_DTYPE, "%s: column '%s' of %s: expected fp32 or int32", set, c->name,
                          mixt_dtype_name(c->dtype));
    if (c->rank < 0 || c->rank >= MIXT_MAX_RANK || !c->values)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%s: column '%s' needs .values and 0 to %d dimensions", set, c->name,
                          MIXT_MAX_RANK - 1);
    memcpy(array->dims, c->dims, (size_t)c->rank * sizeof *c->dims);
    if (c->lengths)
        MIXT_TRY(check_lengths(set, c, samples, &array->dims[0], &steps));
    for (int i = c->lengths != NULL; i < c->rank; i++)
        if (c->dims[i] < 1)
            return mixt__fail(MIXT_ERROR_SHAPE, "%s: dimension %d of column '%s' is %lld: must be at least 1", set, i,
                              c->name, (long long)c->dims[i]);
    if (!mixt__shape_elements(c->rank, array->dims, &array->elements) ||
        !mixt__shape_elements(2, (int64_t[]){samples, array->elements}, &numbers))
        return mixt__fail(MIXT_ERROR_SHAPE, "%s: column '%s': %lld samples of this shape are too large", set, c->name,
                          (long long)samples);
    if (c->ids < 0 || c->ids > INT32_MAX)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%s: column '%s': %lld ids", set, c->name, (long long)c->ids);
    *count = c->lengths ? steps * (array->elements / array->dims[0]) : numbers;
    return MIXT_OK;
}

/** Numbers that a model may get; the largest id of whole ones. */
static mixt_status check_values(const char *set, const mixt_data_column *c, int64_t count, int64_t *ids)
{
    const int32_t *whole = c->values;
    const float *real = c->values;
    int64_t bound = c->ids ? c->ids : INT32_MAX, largest = -1;
    for (int64_t i = 0; i < count; i++) {
        if (c->dtype != MIXT_DTYPE_INT32) {
            if (!isfinite(real[i]) && !(c->target && isnan(real[i])))
                return mixt__fail(MIXT_ERROR_DATA, "%s: column '%s': number %lld is %g: expected a finite one", set,
                                  c->name, (long long)i, (double)real[i]);
            continue;
        }
        if (whole[i] >= bound || (whole[i] < 0 && !c->target))
            return mixt__fail(MIXT_ERROR_DATA, "%s: column '%s': number %lld is %d: expected 0 to %lld", set, c->name,
                              (long long)i, whole[i], (long long)bound - 1);
        largest = whole[i] > largest ? whole[i] : largest;
    }
    *ids = c->dtype != MIXT_DTYPE_INT32 ? 0 : c->ids ? c->ids : largest + 1;
    return MIXT_OK;
}

/* ---- opening ---- */

/** Where samples of these lengths begin, each of `step` elements. */
static bool take_lengths(const int32_t *lengths, int64_t rows, int64_t step, mixt__column *to)
{
    to->begin = mixt__alloc((size_t)(rows + 1) * sizeof *to->begin);
    for (int64_t i = 0; to->begin && i < rows; i++)
        to->begin[i + 1] = to->begin[i] + lengths[i] * step;
    return to->begin != NULL;
}

static mixt_status take_column(mixt_data *data, const mixt__column *from, int64_t rows, mixt__column *to)
{
    static const char *const endings[] = {"", ".length", ".mask"};
    const mixt_data_array *a = &from->array;
    *to = (mixt__column){.array = *a, .source = from->source, .of = from->of};
    to->array.name = mixt__arena_printf(&data->arena, "%s%s", a->name, endings[from->source]);
    if (!to->array.name)
        return no_memory(data);
    if (from->source != MIXT_COLUMN_VALUES)
        return MIXT_OK;
    if (from->lengths && !take_lengths(from->lengths, rows, a->elements / a->dims[0], to))
        return no_memory(data);
    size_t bytes = (size_t)(to->begin ? to->begin[rows] : rows * a->elements) * 4;
    to->values = mixt__alloc_uninit(bytes);
    if (!to->values)
        return no_memory(data);
    memcpy(to->values, from->values, bytes);
    return MIXT_OK;
}

static mixt_status open(mixt_data *data)
{
    mixt__columns made = {.rows = data->columns->rows};
    mixt_status status = MIXT_OK;
    if (!data->options.split)
        data->part = MIXT_PART_ALL;
    for (int i = 0; status == MIXT_OK && i < data->columns->count; i++) {
        made.count++;
        status = take_column(data, &data->columns->column[i], made.rows, &made.column[i]);
    }
    if (status == MIXT_OK)
        status = mixt__columns_share(data, &made);
    if (status == MIXT_OK)
        return mixt__columns_adopt(data, &made);
    mixt__columns_free(&made);
    return status;
}

static const mixt__data_kind kind = {
    .name = "columns",
    .what = "named arrays of the program",
    .uses = MIXT_DATA_NUMBERS, // one caller may have arrays of other kinds too
    .open = open,
    .arrays = mixt__columns_arrays,
    .length = mixt__columns_length,
    .close = mixt__columns_close,
    .raw = mixt__columns_raw,
};

/** What goes with a column of different lengths: lengths, and of an input a mask. */
static void add_companions(mixt__columns *made, int of)
{
    const mixt_data_array *a = &made->column[of].array;
    made->column[made->count++] =
        (mixt__column){.array = {.name = a->name, .target = a->target, .dtype = MIXT_DTYPE_INT32, .elements = 1},
                       .source = MIXT_COLUMN_LENGTH,
                       .of = of};
    made->column[made->count - 1].array.ids = a->dims[0] + 1;
    if (a->target)
        return;
    made->column[made->count++] = (mixt__column){
        .array = {.name = a->name, .dtype = MIXT_DTYPE_FP32, .rank = 1, .dims = {a->dims[0]}, .elements = a->dims[0]},
        .source = MIXT_COLUMN_MASK,
        .of = of};
}

/** Inputs, or targets, behind what is there. */
static mixt_status add_columns(const char *set, const mixt_data_column *columns, int count, bool target,
                               mixt__columns *made)
{
    for (int i = 0; i < count; i++) {
        const mixt_data_column *c = &columns[i];
        int64_t numbers = 0;
        if (c->target != target)
            continue;
        if (made->count + (c->lengths ? 3 - target : 1) > MIXT_DATA_ARRAYS_MAX)
            return mixt__fail(MIXT_ERROR_ARGUMENT, "%s: more than %d arrays, lengths and masks included", set,
                              MIXT_DATA_ARRAYS_MAX);
        int at = made->count++;
        mixt__column *to = &made->column[at];
        to->array = (mixt_data_array){.name = c->name, .target = target, .rank = c->rank};
        to->array.dtype = c->dtype == MIXT_DTYPE_NONE ? MIXT_DTYPE_FP32 : c->dtype;
        MIXT_TRY(check_name(set, columns, i));
        MIXT_TRY(check_column(set, c, made->rows, &to->array, &numbers));
        MIXT_TRY(check_values(set, c, numbers, &to->array.ids));
        to->values = (void *)(uintptr_t)c->values;
        to->lengths = c->lengths;
        if (c->lengths)
            add_companions(made, at);
    }
    return MIXT_OK;
}

mixt_status mixt_data_from_columns(const char *name, const mixt_data_column *columns, int count, int64_t samples,
                                   const mixt_data_options *options, mixt_data **data)
{
    mixt__columns made = {.rows = samples};
    const char *set = name ? name : "memory";
    MIXT_TRY(mixt__need(data));
    *data = NULL;
    MIXT_TRY(mixt__need(columns));
    if (samples < 1 || count < 2 || count > MIXT_DATA_ARRAYS_MAX)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%s: %lld samples of %d columns: expected at least 1 of 2 to %d", set,
                          (long long)samples, count, MIXT_DATA_ARRAYS_MAX);
    MIXT_TRY(add_columns(set, columns, count, false, &made));
    int inputs = made.count;
    MIXT_TRY(add_columns(set, columns, count, true, &made));
    if (!inputs || inputs == made.count)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%s: columns need at least one input and one target", set);
    return mixt__data_open_columns(&kind, name, &made, options, data);
}
