/* Deciding what columns become, by the training rows of a file. */
#include "data/table/schema.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    YEAR = 365, // days that dates must span for their place in the year to say something
    WEEKS = 21, // and for the day of the week
    SELDOM = 2, // a word that is embedded comes up as often: rarer ones are unknown
};

/** Column `c` of a file, and the rows to learn from. */
typedef struct learner {
    mixt_data *data;
    const mixt__cells *cells;
    const int64_t *chosen;
    int64_t rows, c;
} learner;

static const mixt__cell *cell_of(const learner *l, int64_t i)
{
    return &l->cells->cell[(l->chosen ? l->chosen[i] : i) * l->cells->columns + l->c];
}

static mixt_status no_memory(const learner *l)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for what column %lld holds", l->cells->path,
                      (long long)l->c + 1);
}

static void leave_out(mixt__schema_column *c, const char *why)
{
    c->use = MIXT_CELLS_OUT;
    c->why = why;
}

static void learn_number(const learner *l, mixt__schema_column *c)
{
    int64_t missing = 0;
    for (int64_t i = 0; i < l->rows; i++)
        missing += isnan(cell_of(l, i)->number);
    if (missing == l->rows)
        leave_out(c, "has no value in the training part");
    c->gaps = missing && missing < l->rows && l->data->options.missing == MIXT_MISSING_FILL;
}

static void learn_date(const learner *l, mixt__schema_column *c)
{
    int32_t first = INT32_MAX, last = INT32_MIN;
    int64_t missing = 0;
    bool clock = false;
    for (int64_t i = 0; i < l->rows; i++) {
        int32_t minutes = cell_of(l, i)->whole;
        missing += minutes == MIXT_DATE_NONE;
        if (minutes == MIXT_DATE_NONE)
            continue;
        first = minutes < first ? minutes : first;
        last = minutes > last ? minutes : last;
        clock = clock || minutes % MIXT_DATE_DAY;
    }
    if (missing == l->rows) {
        leave_out(c, "has no date in the training part");
        return;
    }
    int64_t span = ((int64_t)last - first) / MIXT_DATE_DAY;
    c->origin = first - (first % MIXT_DATE_DAY + MIXT_DATE_DAY) % MIXT_DATE_DAY;
    c->parts =
        (span >= YEAR ? MIXT_DATE_YEAR : 0) | (span >= WEEKS ? MIXT_DATE_WEEK : 0) | (clock ? MIXT_DATE_CLOCK : 0);
    c->gaps = missing && l->data->options.missing == MIXT_MISSING_FILL;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/** Keeps words that come up at least `least` times; counts[0] is of cells that are missing. */
static mixt_status keep_words(const learner *l, const int64_t *counts, int64_t least, mixt__schema_column *c)
{
    const mixt__names *names = &l->cells->column[l->c].words;
    const char **words = mixt__arena_alloc(&l->data->arena, (size_t)(names->count + 1) * sizeof *words);
    if (!words)
        return no_memory(l);
    for (int64_t id = -1; id < names->count; id++)
        if (counts[id + 1] >= (id < 0 ? 1 : least))
            words[c->count++] = id < 0 ? "" : mixt__arena_strdup(&l->data->arena, names->text + names->begin[id]);
    c->words = words;
    for (int64_t i = 0; i < c->count; i++)
        if (!words[i])
            return no_memory(l);
    qsort(words, (size_t)c->count, sizeof *words, by_text);
    return MIXT_OK;
}

static mixt_status learn_words(const learner *l, mixt__schema_column *c, bool asked)
{
    const mixt__names *names = &l->cells->column[l->c].words;
    int64_t distinct = 0, values = 0, repeated = 0;
    int64_t *counts = mixt__alloc((size_t)(names->count + 1) * sizeof *counts);
    if (!counts)
        return no_memory(l);
    for (int64_t i = 0; i < l->rows; i++)
        counts[cell_of(l, i)->whole + 1]++;
    for (int64_t id = 0; id < names->count; id++) {
        distinct += counts[id + 1] > 0;
        repeated += counts[id + 1] >= SELDOM;
        values += counts[id + 1];
    }
    bool hot = distinct <= MIXT_ONE_HOT_MAX, singular = !hot && 2 * distinct > values;
    mixt_status status = MIXT_OK;
    if (!distinct || (singular && !asked) || (!hot && !repeated))
        leave_out(c, !distinct ? "has no value in the training part" : "hardly any word comes up twice");
    else if (!hot && repeated > MIXT_EMBEDDED_MAX)
        status = mixt__fail(MIXT_ERROR_DATA,
                            "%s: column '%.40s': %lld different words, at most %d: leave it out with "
                            "data.drop",
                            l->cells->path, c->name, (long long)repeated, MIXT_EMBEDDED_MAX);
    else
        status = keep_words(l, counts, hot ? 1 : SELDOM, c);
    if (!hot && c->use != MIXT_CELLS_OUT)
        c->use = MIXT_CELLS_EMBEDDED;
    mixt__free(counts);
    return status;
}

static const char *name_of(mixt_data *data, const mixt__cells_column *from, int64_t number)
{
    if (!from->name.text)
        return mixt__arena_printf(&data->arena, "column %lld", (long long)number);
    char *name = mixt__arena_alloc(&data->arena, (size_t)from->name.length + 1);
    if (name)
        memcpy(name, from->name.text, (size_t)from->name.length);
    return name;
}

static mixt_status learn_column(const learner *l, mixt__schema_column *c)
{
    const mixt__cells_column *from = &l->cells->column[l->c];
    *c = (mixt__schema_column){.use = from->use, .form = from->form, .order = from->order, .why = from->why};
    c->name = name_of(l->data, from, l->c + 1);
    if (!c->name)
        return no_memory(l);
    if (c->use == MIXT_CELLS_NUMBER)
        learn_number(l, c);
    else if (c->use == MIXT_CELLS_DATE)
        learn_date(l, c);
    else if (c->use == MIXT_CELLS_ONE_HOT)
        return learn_words(l, c, l->data->options.columns != NULL);
    return MIXT_OK;
}

mixt_status mixt__schema_learn(mixt_data *data, const mixt__cells *cells, const int64_t *chosen, int64_t rows,
                               const mixt__schema **schema)
{
    mixt__schema *s = mixt__arena_alloc(&data->arena, sizeof *s);
    learner l = {data, cells, chosen, rows, 0};
    if (s)
        s->column = mixt__arena_alloc(&data->arena, (size_t)cells->columns * sizeof *s->column);
    if (!s || !s->column)
        return no_memory(&l);
    s->columns = cells->columns;
    s->target = cells->target;
    s->named = cells->column[0].name.text != NULL;
    for (; l.c < cells->columns; l.c++)
        MIXT_TRY(learn_column(&l, &s->column[l.c]));
    mixt__schema_count(s);
    if (!s->features)
        return mixt__fail(
            MIXT_ERROR_DATA,
            "%s: no column is left to predict from: expected features, then the target (separated by , ; tab or space)",
            cells->path);
    *schema = s;
    return MIXT_OK;
}
