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

/** What the numbers of a column look like. */
typedef struct column {
    int64_t rows, distinct; // different classes
    int64_t odd, first_odd; // numbers that can be no class, and the first of them
    int largest;            // class
} column;

static column look_at(const float *values, int64_t rows)
{
    bool seen[MAX_GUESSED_CLASSES] = {false};
    column c = {.rows = rows};
    for (int64_t i = 0; i < rows; i++) {
        float value = values[i];
        if (!(value >= 0 && value < MAX_GUESSED_CLASSES) || value != floorf(value)) {
            c.first_odd = c.odd ? c.first_odd : i;
            c.odd++;
            continue;
        }
        c.distinct += !seen[(int)value];
        seen[(int)value] = true;
        c.largest = (int)value > c.largest ? (int)value : c.largest;
    }
    return c;
}

/** Small whole numbers that repeat are classes: at most 2 √rows + 2 different ones. In a handful of rows none may: they
 *  are classes where they could be numbered so. */
static bool repeats(const column *c)
{
    return (double)c->distinct <= 2 * sqrt((double)c->rows) + 2 && (c->distinct < c->rows || c->largest <= c->rows);
}

/** One number in a hundred, or a single one in eight, that turns what looks like classes into values is more likely to
 *  be a mistake. */
static mixt_status warn_of_values(mixt_data *data, const mixt__table *table, const float *values, const column *c,
                                  const int64_t *lines)
{
    char where[48], more[48] = "";
    bool few = c->odd == 1 ? c->rows >= 8 : c->odd <= c->rows / 100;
    if (!c->odd || !few || !repeats(c))
        return MIXT_OK;
    if (c->odd > 1)
        snprintf(more, sizeof more, " (and %lld more)", (long long)c->odd - 1);
    return mixt__data_warn(data,
                           "%s: %s: target %g%s is not a class, but all others are (0 to %d), so they are taken as "
                           "values for regression; data.task=classes refuses it, data.task=values confirms it",
                           table->path, place(where, c->first_odd, lines), (double)values[c->first_odd], more,
                           c->largest);
}

/** Classes or values, by the numbers. */
static mixt_status guess(mixt_data *data, const mixt__table *table, const float *values, const int64_t *lines,
                         mixt_target_kind *target)
{
    *target = MIXT_TARGET_CLASS;
    if (table->classes || data->options.classes)
        return MIXT_OK;
    column c = look_at(values, table->rows);
    if (!c.odd && repeats(&c))
        return MIXT_OK;
    *target = MIXT_TARGET_VALUES;
    return warn_of_values(data, table, values, &c, lines);
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
                                            : "to regress on it, set data.task=values",
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
    if (target == MIXT_TARGET_AUTO) {
        mixt_status guessed = guess(data, table, values, lines, &target);
        if (guessed != MIXT_OK)
            mixt__free(values);
        MIXT_TRY(guessed);
    }
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
