/* Cells of a table that have no value: NaN when a reader leaves them, a number after that.
 *
 * The number is the mean over the training part, or 0, before normalising, and the same in every part: it is kept with
 * the set, and by a run in inputs.json.
 */
#include "data/data.h"

#include <math.h>

/** Whether means take the place of what is missing; a table of bytes has no gaps. */
static bool fills(const mixt_data *data)
{
    mixt_missing missing = data->options.missing;
    return missing == MIXT_MISSING_MEAN || (missing == MIXT_MISSING_FILL && data->kind->uses & MIXT_DATA_CELLS);
}

mixt_status mixt__missing_learn(mixt_data *data, const mixt__table *table, const int64_t *rows, int64_t count)
{
    if (!fills(data))
        return MIXT_OK;
    int64_t elements = mixt__table_elements(table);
    const float *input = table->input;
    float *fill = mixt__arena_alloc(&data->arena, (size_t)elements * sizeof *fill);
    if (!fill)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for the means of %lld columns", table->path,
                          (long long)elements);
    for (int64_t e = 0; e < elements; e++) {
        double sum = 0;
        int64_t known = 0;
        for (int64_t i = 0; i < count; i++) {
            float value = input[(rows ? rows[i] : i) * elements + e];
            sum += isnan(value) ? 0 : (double)value;
            known += !isnan(value);
        }
        if (!known)
            return mixt__fail(MIXT_ERROR_DATA,
                              "%s: feature %lld has no value in the training part, so it has no mean: drop its column "
                              "(data.drop), or set data.missing=zero",
                              table->path, (long long)e + 1);
        fill[e] = (float)(sum / (double)known);
    }
    data->fill = fill;
    data->fill_count = elements;
    return MIXT_OK;
}

bool mixt__missing_copy(mixt_data *data, const mixt_data *like, const mixt__table *table)
{
    int64_t elements = mixt__table_elements(table);
    if (!fills(data) || !like->fill || like->fill_count != elements)
        return false;
    float *fill = mixt__arena_alloc(&data->arena, (size_t)elements * sizeof *fill);
    for (int64_t e = 0; fill && e < elements; e++)
        fill[e] = like->fill[e];
    data->fill = fill;
    data->fill_count = fill ? elements : 0;
    return fill != NULL;
}

void mixt__missing_fill(const mixt_data *data, mixt__table *table)
{
    int64_t elements = mixt__table_elements(table);
    float *input = table->block; // where it is not owned nothing is missing
    for (int64_t i = 0; table->missing && i < table->rows * elements; i++)
        if (isnan(input[i]))
            input[i] = data->fill ? data->fill[i % elements] : 0;
}

mixt_status mixt__missing_warn(mixt_data *data, const mixt__table *table)
{
    if (table->dropped)
        MIXT_TRY(mixt__data_warn(data, "%s: %lld of %lld rows have missing cells and are dropped (data.missing=drop)",
                                 table->path, (long long)table->dropped, (long long)(table->rows + table->dropped)));
    if (table->missing && data->options.missing == MIXT_MISSING_FILL)
        return mixt__data_note(data, "%lld of %lld cells of numbers are missing: filled with the mean of their column",
                               (long long)table->missing, (long long)table->cells);
    if (table->missing)
        MIXT_TRY(
            mixt__data_warn(data, "%s: %lld of %lld cells are missing: filled with %s", table->path,
                            (long long)table->missing, (long long)table->cells,
                            data->fill ? "the mean of their column (data.missing=mean)" : "0 (data.missing=zero)"));
    return MIXT_OK;
}
