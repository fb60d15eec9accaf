/* From cells to features and ids. */
#include "data/table/schema.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t mixt__schema_features_of(const mixt__schema_column *c)
{
    int64_t numbers = c->use == MIXT_CELLS_NUMBER    ? 1
                      : c->use == MIXT_CELLS_DATE    ? mixt__date_numbers(c->parts)
                      : c->use == MIXT_CELLS_ONE_HOT ? c->count
                                                     : 0;
    return numbers + c->gaps;
}

void mixt__schema_count(mixt__schema *s)
{
    s->features = s->embedded = s->ids = 0;
    s->plain = true;
    for (int64_t i = 0; i < s->columns; i++) {
        const mixt__schema_column *c = &s->column[i];
        bool target = c->use == MIXT_CELLS_TARGET;
        s->plain = s->plain && (target || (c->use == MIXT_CELLS_NUMBER && !c->gaps));
        s->features += mixt__schema_features_of(c);
        s->embedded += c->use == MIXT_CELLS_EMBEDDED;
        s->ids += c->use == MIXT_CELLS_EMBEDDED ? c->count + 1 : 0;
    }
    if (!s->features && s->embedded) // a model has at least one
        s->features = 1;
}

static int order_of_words(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int64_t number_of(const mixt__schema_column *c, const char *word)
{
    const char *const *found = bsearch(&word, c->words, (size_t)c->count, sizeof *c->words, order_of_words);
    return found ? found - c->words : -1;
}

/** The word of a cell: "" where it is missing. */
static const char *word_of(const mixt__cells_column *c, int32_t id)
{
    return id < 0 ? "" : c->words.text + c->words.begin[id];
}

static void note_unknown(const mixt__cells *cells, int64_t column, int64_t row, const char *word,
                         mixt__schema_misfits *misfits)
{
    if (!*word || misfits->unknown++)
        return;
    misfits->first_column = column;
    misfits->first_line = cells->line[row];
    snprintf(misfits->first, sizeof misfits->first, "%s", word);
}

void mixt__schema_encode(const mixt__schema *s, const mixt__cells *cells, const int64_t *from, int64_t row,
                         float *features, int32_t *ids, mixt__schema_misfits *misfits)
{
    float *at = features;
    int32_t base = 0;
    for (int64_t i = 0; i < s->columns; i++) {
        const mixt__schema_column *c = &s->column[i];
        const mixt__cell *cell = from[i] < 0 ? NULL : &cells->cell[row * cells->columns + from[i]];
        if (c->use == MIXT_CELLS_NUMBER)
            *at++ = cell ? cell->number : NAN;
        if (c->use == MIXT_CELLS_DATE) {
            mixt__date_write(cell ? cell->whole : MIXT_DATE_NONE, c->origin, c->parts, at);
            at += mixt__date_numbers(c->parts);
        }
        if (c->gaps) {
            bool missing = !cell || (c->use == MIXT_CELLS_DATE ? cell->whole == MIXT_DATE_NONE : isnan(cell->number));
            *at++ = missing ? 1.0f : 0.0f;
        }
        if (c->use != MIXT_CELLS_ONE_HOT && c->use != MIXT_CELLS_EMBEDDED)
            continue;
        const char *word = cell ? word_of(&cells->column[from[i]], cell->whole) : "";
        int64_t number = number_of(c, word);
        if (number < 0)
            note_unknown(cells, from[i], row, word, misfits);
        if (c->use == MIXT_CELLS_EMBEDDED) {
            *ids++ = base + (int32_t)number + 1;
            base += (int32_t)c->count + 1;
            continue;
        }
        for (int64_t w = 0; w < c->count; w++)
            *at++ = w == number ? 1.0f : 0.0f;
    }
    if (at == features)
        *at = 1;
}

void mixt__schema_keep(const mixt__schema *s, float *mean, float *std)
{
    int64_t at = 0;
    for (int64_t i = 0; i < s->columns; i++) {
        const mixt__schema_column *c = &s->column[i];
        int64_t count = mixt__schema_features_of(c);
        int64_t first = at + (c->use == MIXT_CELLS_NUMBER || c->use == MIXT_CELLS_DATE); // numbers in some unit
        for (int64_t f = first; f < at + count; f++) {
            mean[f] = 0;
            std[f] = 1;
        }
        at += count;
    }
}

/* ---- in words ---- */

static int64_t count_of(const mixt__schema *s, mixt__cells_use use, int64_t *words)
{
    int64_t count = 0;
    *words = 0;
    for (int64_t i = 0; i < s->columns; i++)
        if (s->column[i].use == use) {
            count++;
            *words += s->column[i].count;
        }
    return count;
}

/** Columns that are left out, and why. */
static void tell_left_out(const mixt__schema *s, char *text, size_t size)
{
    size_t used = strlen(text);
    for (int64_t i = 0; i < s->columns && used < size; i++) {
        const mixt__schema_column *c = &s->column[i];
        if (c->use == MIXT_CELLS_OUT)
            used += (size_t)snprintf(text + used, size - used, "; left out: %.40s%s%s%s", c->name, *c->why ? " (" : "",
                                     c->why, *c->why ? ")" : "");
    }
}

mixt_status mixt__schema_tell(mixt_data *data, const mixt__schema *s)
{
    static const struct {
        mixt__cells_use use;
        const char *one, *many, *words;
    } sorts[] = {
        {MIXT_CELLS_NUMBER, "number", "numbers", NULL},
        {MIXT_CELLS_DATE, "date", "dates", NULL},
        {MIXT_CELLS_ONE_HOT, "column of words", "columns of words", "one-hot"},
        {MIXT_CELLS_EMBEDDED, "column of many words", "columns of many words", "embedded"},
    };
    char text[768];
    int64_t words, gaps = 0;
    if (s->plain)
        return MIXT_OK;
    size_t used = (size_t)snprintf(text, sizeof text, "%lld column%s:", (long long)s->columns - (s->target >= 0),
                                   s->columns == 2 ? "" : "s");
    const char *comma = " ";
    for (size_t i = 0; i < sizeof sorts / sizeof sorts[0]; i++) {
        int64_t count = count_of(s, sorts[i].use, &words);
        if (!count)
            continue;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld %s", comma, (long long)count,
                                 count == 1 ? sorts[i].one : sorts[i].many);
        if (sorts[i].words)
            used += (size_t)snprintf(text + used, sizeof text - used, " (%lld, %s)", (long long)words, sorts[i].words);
        comma = ", ";
    }
    for (int64_t i = 0; i < s->columns; i++)
        gaps += s->column[i].gaps;
    if (gaps)
        used += (size_t)snprintf(text + used, sizeof text - used, "; %lld with missing cells, which a feature marks",
                                 (long long)gaps);
    tell_left_out(s, text, sizeof text);
    if (s->target >= 0)
        used = strlen(text);
    if (s->target >= 0 && used < sizeof text)
        snprintf(text + used, sizeof text - used, "; target: %.60s", s->column[s->target].name);
    return mixt__data_note(data, "%s", text);
}
