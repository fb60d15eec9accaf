/* What in a table of samples may not be meant, as words for whoever opens it, and the size of its targets.
 *
 * A warning never fails: the set opens as it would without it, and who trains on it decides.
 */
#include "data/data.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

static mixt_status add_line(mixt_data *data, const char **lines, const char *format, va_list args)
{
    char text[1024];
    vsnprintf(text, sizeof text, format, args);
    const char *all = mixt__arena_printf(&data->arena, "%s%s%s", *lines ? *lines : "", *lines ? "\n" : "", text);
    if (!all)
        return mixt__fail(MIXT_ERROR_MEMORY, "data '%s': no memory for a message", data->path);
    *lines = all;
    return MIXT_OK;
}

mixt_status mixt__data_warn(mixt_data *data, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    mixt_status status = add_line(data, &data->info.warnings, format, args);
    va_end(args);
    return status;
}

mixt_status mixt__data_note(mixt_data *data, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    mixt_status status = add_line(data, &data->info.notes, format, args);
    va_end(args);
    return status;
}

/** Images with channels first, read as very flat ones with very many channels. */
static mixt_status warn_of_shape(mixt_data *data, const mixt__table *table)
{
    enum { SIDE = 8 }; // an image smaller than that is more likely to be one with many channels
    const int64_t *d = table->dims;
    bool first = table->rank == 3 && (d[0] == 1 || d[0] == 3 || d[0] == 4) && d[1] >= SIDE && d[2] >= SIDE;
    if (!first)
        return MIXT_OK;
    return mixt__data_warn(data,
                           "%s: samples of %lld x %lld x %lld are read as height %lld, width %lld and %lld channels: "
                           "if channels come first, store them last (%lld x %lld x %lld)",
                           table->path, (long long)d[0], (long long)d[1], (long long)d[2], (long long)d[0],
                           (long long)d[1], (long long)d[2], (long long)d[1], (long long)d[2], (long long)d[0]);
}

/** Classes that nothing is of: labels that begin at 1, or a label far from the others. */
static mixt_status warn_of_classes(mixt_data *data, const mixt__table *table)
{
    bool train = data->part == MIXT_PART_TRAIN || data->part == MIXT_PART_ALL;
    if (!train || !table->labels)
        return MIXT_OK;
    bool *seen = mixt__alloc((size_t)table->classes);
    if (!seen)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to count %lld classes", table->path,
                          (long long)table->classes);
    int64_t count = 0, last = 0;
    for (int64_t i = 0; i < table->rows; i++) {
        int32_t label = table->labels[i];
        if (label < 0 || label >= table->classes) // one that is left out
            continue;
        count += !seen[label];
        seen[label] = true;
        last = label;
    }
    bool from_1 = count > 1 && count == table->classes - 1 && !seen[0];
    mixt__free(seen);
    if (count == 1 && table->classes > 1) // of one class alone a run warns
        return mixt__data_warn(data, "%s: all samples are of class %lld: there is nothing to learn", table->path,
                               (long long)last);
    if (from_1)
        return mixt__data_warn(
            data, "%s: no sample is of class 0: classes count from 0, so there are %lld where %lld may be right",
            table->path, (long long)table->classes, (long long)count);
    if (count * 2 >= table->classes || table->classes < 4)
        return MIXT_OK;
    return mixt__data_warn(data, "%s: only %lld of %lld classes (0 to %lld) have a sample: is a label wrong?",
                           table->path, (long long)count, (long long)table->classes, (long long)table->classes - 1);
}

mixt_status mixt__table_warning(mixt_data *data, const mixt__table *table)
{
    MIXT_TRY(warn_of_shape(data, table));
    MIXT_TRY(warn_of_classes(data, table));
    double sum = 0, largest = 0;
    int64_t count = table->values ? table->rows * table->value_count : 0, known = 0;
    for (int64_t i = 0; i < count; i++) {
        double value = fabs((double)table->values[i]);
        if (isnan(value)) // a target that is left out
            continue;
        sum += value * value;
        largest = fmax(largest, value);
        known++;
    }
    data->info.target_largest = largest;
    data->info.target_square = known ? sum / (double)known : 0;
    return MIXT_OK;
}
