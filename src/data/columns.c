/* Named arrays in memory as a data set: of a program (columns_from.c), or what a reader made of its files.
 *
 * Samples of different lengths lie one behind the other and are padded when they are read.
 */
#include "data/columns.h"

#include <math.h>
#include <string.h>

static mixt_status no_memory(const mixt_data *data)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "%s:%s: no memory for its samples", data->kind->name, data->path);
}

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
    for (int i = 0; i < c->count; i++) {
        mixt__free(c->column[i].values);
        mixt__free(c->column[i].begin);
    }
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

/** Elements of one step along a sample's first dimension. */
static int64_t step_of(const mixt_data_array *a)
{
    return a->rank && a->dims[0] ? a->elements / a->dims[0] : 1;
}

/** What stands behind a sample that is shorter: nothing for a model, and nothing that a loss counts. */
static void pad(const mixt_data_array *a, int64_t from, void *at)
{
    for (int64_t i = from; i < a->elements; i++) {
        if (a->target && a->dtype == MIXT_DTYPE_INT32)
            ((int32_t *)at)[i] = -1;
        else
            ((float *)at)[i] = a->target ? NAN : 0.0f; // 0 is the same in both formats
    }
}

static void write_values(const mixt__column *c, const mixt_data_array *as, int64_t row, void *at)
{
    int64_t begin = c->begin ? c->begin[row] : row * c->array.elements;
    int64_t count = c->begin ? c->begin[row + 1] - begin : c->array.elements;
    memcpy(at, (const char *)c->values + (size_t)begin * 4, (size_t)count * 4);
    pad(as, count, at);
}

static int64_t length_of(const mixt__column *c, int64_t row)
{
    return (c->begin[row + 1] - c->begin[row]) / step_of(&c->array);
}

int64_t mixt__columns_length(const mixt_data *data, int64_t index, int array)
{
    const mixt__columns *c = data->state;
    int64_t row = c->chosen ? c->chosen[index] : index;
    const mixt__column *column = &c->column[array];
    if (column->source == MIXT_COLUMN_MASK)
        column = &c->column[column->of];
    return column->source == MIXT_COLUMN_VALUES && column->begin ? length_of(column, row) : -1;
}

mixt_status mixt__columns_arrays(const mixt_data *data, const mixt_data_info *as, int64_t index, int64_t epoch,
                                 char *const *at)
{
    const mixt__columns *c = data->state;
    int64_t row = c->chosen ? c->chosen[index] : index;
    (void)epoch;
    for (int i = 0; i < c->count; i++) {
        const mixt__column *column = &c->column[i], *of = &c->column[column->of];
        void *to = at[i];
        if (column->source == MIXT_COLUMN_LENGTH)
            *(int32_t *)to = (int32_t)length_of(of, row);
        for (int64_t k = 0; column->source == MIXT_COLUMN_MASK && k < as->arrays[i].elements; k++)
            ((float *)to)[k] = k < length_of(of, row) ? 1.0f : 0.0f;
        if (column->source == MIXT_COLUMN_VALUES)
            write_values(column, &as->arrays[i], row, to);
    }
    return MIXT_OK;
}

/** Values of each column, where their samples begin, and which rows are chosen. */
const void *mixt__columns_raw(const mixt_data *data, int index, size_t *bytes)
{
    const mixt__columns *c = data->state;
    for (int i = 0; i < c->count; i++) {
        const mixt__column *column = &c->column[i];
        int64_t elements = column->begin ? column->begin[c->rows] : c->rows * column->array.elements;
        *bytes = (size_t)elements * 4;
        if (column->values && !index--)
            return column->values;
        *bytes = (size_t)(c->rows + 1) * sizeof *column->begin;
        if (column->begin && !index--)
            return column->begin;
    }
    *bytes = (size_t)data->info.samples * sizeof *c->chosen;
    return index ? NULL : c->chosen;
}

void mixt__columns_close(mixt_data *data)
{
    if (data->state)
        mixt__columns_free(data->state);
    mixt__free(data->state);
    data->state = NULL;
}
