/* Targets of a table: are the numbers classes or values, and are they possible? */
#include "data/data.h"

#include <math.h>
#include <stdio.h>

enum { MAX_GUESSED_CLASSES = 1000, MAX_CLASSES = 1 << 24 };

static const char *place(char text[48], int64_t row, const int64_t *lines)
{
    if (lines)
        snprintf(text, 48, "line %lld", (long long)lines[row]);
    else
        snprintf(text, 48, "label %lld", (long long)row);
    return text;
}

/** Small whole numbers that repeat are classes: at most 2 √rows + 2 different ones. */
static bool look_like_classes(const float *values, int64_t rows)
{
    bool seen[MAX_GUESSED_CLASSES] = {false};
    int64_t distinct = 0;
    for (int64_t i = 0; i < rows; i++) {
        float value = values[i];
        if (!(value >= 0 && value < MAX_GUESSED_CLASSES) || value != floorf(value))
            return false;
        distinct += !seen[(int)value];
        seen[(int)value] = true;
    }
    return (double)distinct <= 2 * sqrt((double)rows) + 2;
}

/** Classes that labels must stay below; 0 when nothing says so. */
static int64_t known_classes(const mixt_data *data, const mixt__table *table)
{
    if (data->options.classes)
        return data->options.classes;
    if (data->options.like && data->options.like->info.target == MIXT_TARGET_CLASS)
        return data->options.like->info.classes;
    return table->classes;
}

static mixt_status to_labels(const mixt_data *data, mixt__table *table, const float *values, const int64_t *lines)
{
    int64_t known = known_classes(data, table), largest = 0;
    bool classes_there = table->train && table->train->labels;
    char where[48];
    for (int64_t i = 0; i < table->rows; i++) {
        float value = values[i];
        if (value != floorf(value))
            return mixt__fail(MIXT_ERROR_DATA, "%s: %s: class %g is not a whole number; %s%s", table->path,
                              place(where, i, lines), (double)value,
                              classes_there ? "the targets are classes in the training part: "
                                            : "to regress on it, set the target to values",
                              classes_there ? table->train->path : "");
        if (value < 0 || value >= (float)(known ? known : MAX_CLASSES))
            return mixt__fail(MIXT_ERROR_DATA, "%s: %s: class %g is out of range, expected 0 to %lld%s", table->path,
                              place(where, i, lines), (double)value, (long long)(known ? known : MAX_CLASSES) - 1,
                              known ? " (the number of classes is given)" : "");
        table->labels[i] = (int32_t)value;
        if (table->labels[i] > largest)
            largest = table->labels[i];
    }
    table->classes = known ? known : largest + 1;
    return MIXT_OK;
}

mixt_status mixt__table_take_targets(mixt_data *data, mixt__table *table, float *values, mixt_target_kind target,
                                     const int64_t *lines)
{
    if (target == MIXT_TARGET_AUTO && table->train) // a few rows could look like the other
        target = table->train->labels ? MIXT_TARGET_CLASS : MIXT_TARGET_VALUES;
    if (target == MIXT_TARGET_AUTO)
        target = table->classes || data->options.classes || look_like_classes(values, table->rows) ? MIXT_TARGET_CLASS
                                                                                                   : MIXT_TARGET_VALUES;
    if (target == MIXT_TARGET_VALUES) {
        table->values = values;
        table->value_count = 1;
        table->classes = 0;
        return MIXT_OK;
    }
    table->labels = mixt__alloc_uninit((size_t)table->rows * sizeof(int32_t));
    mixt_status status = table->labels ? to_labels(data, table, values, lines)
                                       : mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for its labels", table->path);
    mixt__free(values);
    return status;
}
