/* A file of features: what each of its columns is, and the numbers that it becomes.
 *
 * A column whose cells are numbers is one feature; one of titles with years behind, "(1995)", is the year; any other
 * holds categories, one or several in a cell with | between, and each that two ids share is a feature. A column of
 * names, which hardly ever share one, says nothing and is left aside. A header is a line that names nobody.
 */
#include "data/table/features.h"
#include "data/table/lines.h"

#include <math.h>
#include <string.h>

enum { COLUMNS_MAX = 64, FEATURES_MAX = 1024, SHARED = 2 };
static const double LARGEST = 1e15; // a number whose square can be added up

typedef enum column_kind { COLUMN_NUMBER, COLUMN_YEAR, COLUMN_WORDS, COLUMN_ASIDE } column_kind;

/** What becomes of a column. */
typedef struct column {
    column_kind kind;
    int64_t first, width; // its features
    mixt__names words;
    int32_t *place; // (words.count) of the feature in the column; -1: it has none
} column;

/** The lines that name somebody rated, with their cells. */
typedef struct reading {
    mixt_data *data;
    const char *path;
    const mixt__names *names;
    mixt__features *f;
    mixt__bytes file;
    mixt__csv_field *cells; // (rows, columns), what they are called first; they lie in the file
    int32_t *id;            // (rows)
    int64_t *line;          // (rows) where each stands
    int64_t rows;
    int columns;
    column column[COLUMNS_MAX];
} reading;

static mixt_status no_memory(const reading *r)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for features", r->path);
}

static void free_reading(reading *r)
{
    for (int c = 0; c < COLUMNS_MAX; c++) {
        mixt__names_free(&r->column[c].words);
        mixt__free(r->column[c].place);
    }
    mixt__free(r->cells);
    mixt__free(r->id);
    mixt__free(r->line);
    mixt__bytes_free(&r->file);
}

/* ---- lines ---- */

static mixt_status check_line(reading *r, const mixt__csv_field *fields, int count, int64_t line)
{
    if (!r->columns && (count < 2 || count > COLUMNS_MAX))
        return mixt__fail(MIXT_ERROR_DATA, "%s: line %lld has %d field%s: expected %s and 1 to %d features", r->path,
                          (long long)line, count, count == 1 ? "" : "s", r->f->side, COLUMNS_MAX - 1);
    if (r->columns && count != r->columns)
        return mixt__fail(MIXT_ERROR_DATA, "%s: line %lld has %d field%s, those before %d", r->path, (long long)line,
                          count, count == 1 ? "" : "s", r->columns);
    r->columns = count;
    if (fields[0].length)
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_DATA, "%s: line %lld names no %s", r->path, (long long)line, r->f->side);
}

/** Keeps a line that names somebody. @param named (ids) who has one */
static mixt_status add_line(reading *r, const mixt__csv_field *fields, int64_t line, bool *named)
{
    int64_t id = mixt__names_number(r->names, fields[0].text, fields[0].length);
    if (id < 0)
        return MIXT_OK;
    if (named[id])
        return mixt__fail(MIXT_ERROR_DATA, "%s: line %lld: %s %.*s has a line already", r->path, (long long)line,
                          r->f->side, (int)(fields[0].length < 40 ? fields[0].length : 40), fields[0].text);
    named[id] = true;
    r->id[r->rows] = (int32_t)id;
    r->line[r->rows] = line;
    memcpy(r->cells + r->rows++ * r->columns, fields, (size_t)r->columns * sizeof *fields);
    return MIXT_OK;
}

static mixt_status read_lines(reading *r, bool *named)
{
    mixt__lines lines = mixt__lines_of(&r->file);
    mixt__csv_field fields[COLUMNS_MAX];
    int64_t room = mixt__lines_count(&r->file) < r->f->ids ? mixt__lines_count(&r->file) : r->f->ids;
    r->id = mixt__alloc_uninit((size_t)room * sizeof *r->id);
    r->line = mixt__alloc_uninit((size_t)room * sizeof *r->line);
    if (!r->id || !r->line)
        return no_memory(r);
    for (int count; (count = mixt__lines_next(&lines, fields, COLUMNS_MAX)) >= 0;) {
        MIXT_TRY(check_line(r, fields, count, lines.text.line));
        if (!r->cells)
            r->cells = mixt__alloc_uninit((size_t)(room * r->columns) * sizeof *r->cells);
        if (!r->cells)
            return no_memory(r);
        MIXT_TRY(add_line(r, fields, lines.text.line, named));
    }
    return r->rows ? MIXT_OK
                   : mixt__fail(MIXT_ERROR_DATA, "%s: none of its %lld lines names a rated %s", r->path,
                                (long long)lines.text.line, r->f->side);
}

/* ---- numbers ---- */

static const mixt__csv_field *cell_of(const reading *r, int64_t row, int c)
{
    return &r->cells[row * r->columns + c];
}

/** The year at the end of "Title (1995)"; false: there is none. */
static bool read_year(const mixt__csv_field *cell, double *year)
{
    enum { LENGTH = 6 };
    const char *at = cell->text + cell->length - LENGTH;
    *year = 0;
    if (cell->length < LENGTH || at[0] != '(' || at[LENGTH - 1] != ')')
        return false;
    for (int i = 1; i < LENGTH - 1; i++) {
        if (at[i] < '0' || at[i] > '9')
            return false;
        *year = *year * 10 + (at[i] - '0');
    }
    return true;
}

static bool read_number(const mixt__csv_field *cell, double *number)
{
    return mixt__csv_number(cell, number) && isfinite(*number) && fabs(*number) <= LARGEST;
}

/** The number of a cell; false: it has none. */
static bool number_in(const reading *r, int64_t row, int c, double *number)
{
    const mixt__csv_field *cell = cell_of(r, row, c);
    return r->column[c].kind == COLUMN_YEAR ? read_year(cell, number)
                                            : !mixt__csv_missing(cell) && read_number(cell, number);
}

/** Numbers whose mean over the training part's ratings is 0, as is one that is missing. */
static void fill_numbers(const reading *r, int c)
{
    const column *column = &r->column[c];
    double weight = 0, sum = 0, squares = 0, x;
    for (int64_t row = 0; row < r->rows; row++)
        if (number_in(r, row, c, &x)) {
            weight += r->f->count[r->id[row]];
            sum += r->f->count[r->id[row]] * x;
        }
    double mean = weight > 0 ? sum / weight : 0;
    for (int64_t row = 0; row < r->rows; row++)
        if (number_in(r, row, c, &x))
            squares += r->f->count[r->id[row]] * (x - mean) * (x - mean);
    double scale = weight > 0 ? mixt__features_scale(squares / weight) : 0;
    for (int64_t row = 0; row < r->rows; row++)
        if (number_in(r, row, c, &x))
            r->f->values[r->id[row] * r->f->width + column->first] = (float)mixt__features_scaled(x, mean, scale);
}

/* ---- categories ---- */

/** The categories of a row, none where the cell is missing. */
static mixt__csv_field words_of(const reading *r, int64_t row, int c)
{
    mixt__csv_field words = *cell_of(r, row, c);
    if (mixt__csv_missing(&words))
        words.length = 0;
    return words;
}

/** The next category of a cell, which is taken off it; false: there is no more. */
static bool next_word(mixt__csv_field *rest, mixt__csv_field *word)
{
    while (rest->length) {
        const char *bar = memchr(rest->text, '|', (size_t)rest->length);
        int64_t length = bar ? bar - rest->text : rest->length, taken = bar ? length + 1 : length;
        *word = (mixt__csv_field){.text = rest->text, .length = length};
        rest->text += taken;
        rest->length -= taken;
        if (length)
            return true;
    }
    return false;
}

/** Counts the rows that have each category. @param rows_of (words.count) */
static mixt_status count_words(reading *r, int c, int32_t **rows_of)
{
    column *column = &r->column[c];
    mixt__csv_field word;
    for (int64_t row = 0; row < r->rows; row++)
        for (mixt__csv_field rest = words_of(r, row, c); next_word(&rest, &word);)
            if (mixt__names_add(&column->words, word.text, word.length) < 0)
                return no_memory(r);
    int64_t count = column->words.count;
    int32_t *last = mixt__alloc((size_t)count * sizeof *last); // row + 1 that had it last: twice in a cell is once
    *rows_of = mixt__alloc((size_t)count * sizeof **rows_of);
    column->place = mixt__alloc_uninit((size_t)count * sizeof *column->place);
    for (int64_t row = 0; last && *rows_of && row < r->rows; row++)
        for (mixt__csv_field rest = words_of(r, row, c); next_word(&rest, &word);) {
            int64_t number = mixt__names_number(&column->words, word.text, word.length);
            (*rows_of)[number] += last[number] != row + 1;
            last[number] = (int32_t)(row + 1);
        }
    mixt__free(last);
    return last && *rows_of && column->place ? MIXT_OK : no_memory(r);
}

/** Categories that several share are features; a column that has them for fewer than half of its cells is one of
 *  names. */
static mixt_status take_words(reading *r, int c)
{
    column *column = &r->column[c];
    mixt__csv_field word;
    int32_t *rows_of = NULL;
    mixt_status status = count_words(r, c, &rows_of);
    int64_t cells = 0, shared = 0;
    for (int64_t i = 0; i < column->words.count && status == MIXT_OK; i++)
        column->place[i] = rows_of[i] >= SHARED ? (int32_t)column->width++ : -1;
    mixt__free(rows_of);
    MIXT_TRY(status);
    for (int64_t row = 0; row < r->rows; row++) {
        bool any = false;
        for (mixt__csv_field rest = words_of(r, row, c); next_word(&rest, &word);)
            any |= column->place[mixt__names_number(&column->words, word.text, word.length)] >= 0;
        cells += words_of(r, row, c).length > 0;
        shared += any;
    }
    if (shared && 2 * shared >= cells)
        return MIXT_OK;
    column->kind = COLUMN_ASIDE;
    column->width = 0;
    return mixt__data_warn(r->data, "%s: column %d is ignored: hardly two %ss share a word of it", r->path, c + 1,
                           r->f->side);
}

/** Ones at the categories of a row, all together of length 1. */
static void fill_words(const reading *r, int c)
{
    const column *column = &r->column[c];
    mixt__csv_field word;
    for (int64_t row = 0; row < r->rows; row++) {
        float *to = r->f->values + r->id[row] * r->f->width + column->first, length = 0;
        for (mixt__csv_field rest = words_of(r, row, c); next_word(&rest, &word);) {
            int32_t place = column->place[mixt__names_number(&column->words, word.text, word.length)];
            if (place < 0 || to[place] > 0)
                continue;
            to[place] = 1;
            length++;
        }
        for (int64_t i = 0; i < column->width && length > 1; i++)
            to[i] /= sqrtf(length);
    }
}

/* ---- columns ---- */

/** A few words among numbers are a slip more often than not. @param words how many */
static mixt_status warn_of_words(const reading *r, int c, int64_t words)
{
    double x;
    for (int64_t row = 0; row < r->rows; row++) {
        const mixt__csv_field *cell = cell_of(r, row, c);
        if (!mixt__csv_missing(cell) && !read_number(cell, &x))
            return mixt__data_warn(r->data,
                                   "%s: column %d holds words: line %lld has '%.*s'%s, though its other cells are "
                                   "numbers",
                                   r->path, c + 1, (long long)r->line[row],
                                   (int)(cell->length < 40 ? cell->length : 40), cell->text,
                                   words > 1 ? " (and more such)" : "");
    }
    return MIXT_OK;
}

static mixt_status find_kind(reading *r, int c)
{
    enum { FEW = 20 }; // one in so many
    column *column = &r->column[c];
    int64_t cells = 0, numbers = 0, years = 0;
    double x;
    for (int64_t row = 0; row < r->rows; row++) {
        const mixt__csv_field *cell = cell_of(r, row, c);
        if (mixt__csv_missing(cell))
            continue;
        cells++;
        numbers += read_number(cell, &x);
        years += read_year(cell, &x);
    }
    column->width = cells > 0;
    column->kind = !cells ? COLUMN_ASIDE : numbers == cells ? COLUMN_NUMBER : COLUMN_YEAR;
    if (!cells || numbers == cells || 2 * years >= cells)
        return MIXT_OK;
    column->kind = COLUMN_WORDS;
    column->width = 0;
    if ((cells - numbers) * FEW <= cells)
        MIXT_TRY(warn_of_words(r, c, cells - numbers));
    return take_words(r, c);
}

static mixt_status make_features(reading *r)
{
    static const char *const kinds[] = {"numbers", "years of titles", "categories", "left aside"};
    mixt__features *f = r->f;
    for (int c = 1; c < r->columns; c++) {
        column *column = &r->column[c];
        MIXT_TRY(find_kind(r, c));
        column->first = f->width;
        f->width += column->width;
        MIXT_LOG(DATA, "%s: column %d: %s, %lld features", r->path, c + 1, kinds[column->kind],
                 (long long)column->width);
        if (f->width > FEATURES_MAX)
            return mixt__fail(MIXT_ERROR_DATA, "%s: column %d has %lld categories: there may be %d features in all",
                              r->path, c + 1, (long long)column->width, FEATURES_MAX);
    }
    if (!f->width)
        return mixt__fail(MIXT_ERROR_DATA, "%s: no column holds numbers, or categories that two %ss share", r->path,
                          f->side);
    f->values = mixt__arena_alloc(&r->data->arena, (size_t)(f->ids * f->width) * sizeof *f->values);
    if (!f->values)
        return no_memory(r);
    for (int c = 1; c < r->columns; c++) {
        if (r->column[c].kind == COLUMN_WORDS)
            fill_words(r, c);
        else if (r->column[c].kind != COLUMN_ASIDE)
            fill_numbers(r, c);
    }
    return MIXT_OK;
}

mixt_status mixt__features_read(mixt_data *data, const char *path, const mixt__names *names, mixt__features *f)
{
    reading r = {.data = data, .path = path, .names = names, .f = f};
    MIXT_TRY(mixt__lines_read(path, &r.file));
    bool *named = mixt__alloc((size_t)f->ids);
    mixt_status status = named ? read_lines(&r, named) : no_memory(&r);
    mixt__free(named);
    if (status == MIXT_OK && r.rows < f->ids)
        status = mixt__data_warn(data, "%s: says nothing of %lld of %lld %ss", path, (long long)(f->ids - r.rows),
                                 (long long)f->ids, f->side);
    if (status == MIXT_OK)
        status = make_features(&r);
    free_reading(&r);
    return status;
}
