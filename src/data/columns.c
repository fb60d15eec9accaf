/* Named arrays in memory as a data set: of a program, or what a reader made of its files.
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

/* ---- a set of columns ---- */

mixt_status mixt__columns_share(mixt_data *data, mixt__columns *c)
{
    mixt__shares shares;
    MIXT_TRY(mixt__shares_of(data, c->rows, false, false, &shares));
    int64_t counts[] = {shares.train, shares.val, shares.test, shares.train};
    data->info.samples = counts[data->part];
    if (!data->info.samples)
        return mixt__part_missing(data);
    if (data->info.samples == c->rows)
        return MIXT_OK;
    c->chosen = mixt__alloc_uninit((size_t)data->info.samples * sizeof *c->chosen);
    if (!c->chosen)
        return no_memory(data);
    for (int64_t row = 0, next = 0; row < c->rows; row++)
        if (mixt__part_of_row(&shares, row) == data->part)
            c->chosen[next++] = row;
    return MIXT_OK;
}

/** The first target says what is predicted. */
static void describe_target(mixt_data_info *info)
{
    int first = 0;
    while (!info->arrays[first].target)
        first++;
    const mixt_data_array *a = &info->arrays[first];
    bool labels = a->dtype == MIXT_DTYPE_INT32;
    info->target = !labels ? MIXT_TARGET_VALUES : a->rank ? MIXT_TARGET_TOKENS : MIXT_TARGET_CLASS;
    info->classes = labels ? a->ids : 0;
}

void mixt__columns_free(mixt__columns *c)
{
    for (int i = 0; i < c->count; i++)
        mixt__free(c->column[i].values);
    mixt__free(c->chosen);
}

mixt_status mixt__columns_adopt(mixt_data *data, mixt__columns *columns)
{
    mixt__columns *c = data->state = mixt__alloc(sizeof *c);
    mixt_data_array *arrays = mixt__arena_alloc(&data->arena, MIXT_DATA_ARRAYS_MAX * sizeof *arrays);
    if (c)
        *c = *columns;
    else
        mixt__columns_free(columns);
    if (!c || !arrays)
        return no_memory(data);
    for (int i = 0; i < c->count; i++)
        arrays[i] = c->column[i].array;
    data->info.arrays = arrays;
    data->info.array_count = c->count;
    describe_target(&data->info);
    return MIXT_OK;
}

mixt_status mixt__columns_arrays(const mixt_data *data, int64_t index, int64_t epoch, char *const *at)
{
    const mixt__columns *c = data->state;
    int64_t row = c->chosen ? c->chosen[index] : index;
    (void)epoch;
    for (int i = 0; i < c->count; i++) {
        size_t bytes = (size_t)c->column[i].array.elements * 4;
        memcpy(at[i], (const char *)c->column[i].values + (size_t)row * bytes, bytes);
    }
    return MIXT_OK;
}

const void *mixt__columns_raw(const mixt_data *data, int index, size_t *bytes)
{
    const mixt__columns *c = data->state;
    if (index == c->count && c->chosen) {
        *bytes = (size_t)data->info.samples * sizeof *c->chosen;
        return c->chosen;
    }
    if (index >= c->count)
        return NULL;
    *bytes = (size_t)(c->rows * c->column[index].array.elements) * 4;
    return c->column[index].values;
}

void mixt__columns_close(mixt_data *data)
{
    if (data->state)
        mixt__columns_free(data->state);
    mixt__free(data->state);
    data->state = NULL;
}

/* ---- of a program ---- */

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

static mixt_status check_column(const char *set, const mixt_data_column *c, int64_t samples, int64_t *elements)
{
    int64_t numbers;
    if (c->dtype != MIXT_DTYPE_NONE && c->dtype != MIXT_DTYPE_FP32 && c->dtype != MIXT_DTYPE_INT32)
        return mixt__fail(MIXT_ERROR_DTYPE, "%s: column '%s' of %s: expected fp32 or int32", set, c->name,
                          mixt_dtype_name(c->dtype));
    if (c->rank < 0 || c->rank >= MIXT_MAX_RANK || !c->values)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%s: column '%s' needs .values and 0 to %d dimensions", set, c->name,
                          MIXT_MAX_RANK - 1);
    for (int i = 0; i < c->rank; i++)
        if (c->dims[i] < 1)
            return mixt__fail(MIXT_ERROR_SHAPE, "%s: dimension %d of column '%s' is %lld: must be at least 1", set, i,
                              c->name, (long long)c->dims[i]);
    if (!mixt__shape_elements(c->rank, c->dims, elements) ||
        !mixt__shape_elements(2, (int64_t[]){samples, *elements}, &numbers))
        return mixt__fail(MIXT_ERROR_SHAPE, "%s: column '%s': %lld samples of this shape are too large", set, c->name,
                          (long long)samples);
    return c->ids < 0 || c->ids > INT32_MAX
               ? mixt__fail(MIXT_ERROR_ARGUMENT, "%s: column '%s': %lld ids", set, c->name, (long long)c->ids)
               : MIXT_OK;
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

static mixt_status take_column(mixt_data *data, const mixt__column *from, int64_t rows, mixt__column *to)
{
    size_t bytes = (size_t)(rows * from->array.elements) * 4;
    to->array = from->array;
    to->array.name = mixt__arena_strdup(&data->arena, from->array.name);
    to->values = mixt__alloc_uninit(bytes);
    if (!to->array.name || !to->values)
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
    .what = "named arrays of a program",
    .open = open,
    .arrays = mixt__columns_arrays,
    .close = mixt__columns_close,
    .raw = mixt__columns_raw,
};

/** Inputs, or targets, behind what is there. */
static mixt_status add_columns(const char *set, const mixt_data_column *columns, int count, bool target,
                               mixt__columns *made)
{
    for (int i = 0; i < count; i++) {
        const mixt_data_column *c = &columns[i];
        if (c->target != target)
            continue;
        mixt__column *to = &made->column[made->count++];
        to->array = (mixt_data_array){.name = c->name, .target = target, .rank = c->rank};
        to->array.dtype = c->dtype == MIXT_DTYPE_NONE ? MIXT_DTYPE_FP32 : c->dtype;
        memcpy(to->array.dims, c->dims, (size_t)(c->rank > 0 ? c->rank : 0) % MIXT_MAX_RANK * sizeof *c->dims);
        MIXT_TRY(check_name(set, columns, i));
        MIXT_TRY(check_column(set, c, made->rows, &to->array.elements));
        MIXT_TRY(check_values(set, c, made->rows * to->array.elements, &to->array.ids));
        to->values = (void *)(uintptr_t)c->values;
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
