/* The rows of a CSV file, field by field, as cells. What cannot be read is named by line and column. */
#include "data/table/csv_reader.h"

#include "base/unicode.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static mixt_status bad_field(const mixt__csv_reader *reader, int64_t column, const mixt__csv_field *field, double value)
{
    bool missing = isfinite(value) && mixt__csv_missing(field), target = column == reader->cells.target;
    const char *wrong = missing ? "is missing" : isfinite(value) ? "is not a number" : "is not finite";
    const char *hint = !missing ? ""
                       : target ? "; data.missing=drop leaves rows without a target out"
                                : "; data.missing says what to do with such cells";
    return mixt__fail(MIXT_ERROR_DATA, "%s: line %lld, column %lld: '%.*s' %s; every field must be a finite number%s",
                      reader->path, (long long)reader->text.line, (long long)column + 1, mixt__shown(field),
                      field->text, wrong, hint);
}

static mixt_status no_memory(const mixt__csv_reader *reader)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "%s: line %lld: no memory", reader->path, (long long)reader->text.line);
}

/** Words are kept with a run, as JSON. */
static mixt_status check_text(const mixt__csv_reader *reader, int64_t column, const mixt__csv_field *field)
{
    for (int64_t at = 0; at < field->length;) {
        int length;
        if (mixt__utf8_decode((const unsigned char *)field->text + at, field->length - at, &length) ==
            MIXT_CODE_INVALID)
            return mixt__fail(MIXT_ERROR_DATA,
                              "%s: line %lld, column %lld: byte %lld of the field is not UTF-8: save the file as UTF-8 "
                              "(iconv -f latin1 -t utf-8)",
                              reader->path, (long long)reader->text.line, (long long)column + 1, (long long)at + 1);
        at += length;
    }
    return MIXT_OK;
}

/** A class by name. Words in the first row's target mean words in all: among numbers, one is a mistake. */
static mixt_status read_class(mixt__csv_reader *reader, int64_t column, const mixt__csv_field *field, double *value)
{
    double number;
    bool is_number = mixt__csv_number(field, &number), first = reader->cells.rows == 1;
    if (is_number && !reader->words.given && first)
        return mixt__fail(MIXT_ERROR_DATA,
                          "%s: line %lld, column %lld: '%s' is not a number, but the lines below have numbers: use "
                          "numbers only or words only for classes",
                          reader->path, (long long)reader->word_line, (long long)column + 1, reader->words.names[0]);
    if (is_number && !reader->words.given)
        return mixt__fail(MIXT_ERROR_DATA,
                          "%s: line %lld, column %lld: '%.*s' is a number, but the classes before are words: use "
                          "numbers only or words only",
                          reader->path, (long long)reader->text.line, (long long)column + 1, mixt__shown(field),
                          field->text);
    MIXT_TRY(check_text(reader, column, field));
    reader->word_line = reader->cells.rows ? reader->word_line : reader->text.line;
    int64_t class = mixt__class_words_number(reader->data, &reader->words, field->text, field->length);
    if (class < 0)
        return mixt__fail(MIXT_ERROR_DATA, "%s: line %lld, column %lld: '%.*s' is %s", reader->path,
                          (long long)reader->text.line, (long long)column + 1, mixt__shown(field), field->text,
                          reader->words.given
                              ? "not a class of the training part"
                              : "one class too many (at most 1000 different words); is it the right column?");
    *value = (double)class;
    return MIXT_OK;
}

/** @param missing set where the row has no target and may be left out */
static mixt_status read_target(mixt__csv_reader *reader, int64_t column, const mixt__csv_field *field, float *cell,
                               bool *missing)
{
    const mixt_data_options *o = &reader->data->options;
    double value = 0;
    bool number = mixt__number_read(field, reader->cells.column[column].form, &value);
    *missing = mixt__csv_missing(field) && (o->missing == MIXT_MISSING_DROP || o->missing == MIXT_MISSING_FILL);
    if (*missing)
        return MIXT_OK;
    if (!reader->cells.rows)
        reader->worded = reader->words.given || (!number && o->target != MIXT_TARGET_VALUES);
    if (reader->worded && !mixt__csv_missing(field)) {
        MIXT_TRY(read_class(reader, column, field, &value));
        number = true;
    }
    *cell = (float)value;
    return number && isfinite(*cell) ? MIXT_OK : bad_field(reader, column, field, number ? INFINITY : 0);
}

/** A word among numbers or dates is taken to be missing, unless nothing may be. */
static mixt_status stray(mixt__csv_reader *reader, int64_t column, const mixt__csv_field *field)
{
    mixt__cells_column *c = &reader->cells.column[column];
    if (reader->data->options.missing == MIXT_MISSING_ERROR)
        return bad_field(reader, column, field, 0);
    if (!c->strays++) {
        c->first_stray = reader->text.line;
        snprintf(c->stray, sizeof c->stray, "%.*s", mixt__shown(field), field->text);
    }
    return MIXT_OK;
}

static mixt_status read_number(mixt__csv_reader *reader, int64_t column, const mixt__csv_field *field, float *cell)
{
    double value;
    *cell = NAN;
    if (mixt__csv_missing(field))
        return MIXT_OK;
    if (!mixt__number_read(field, reader->cells.column[column].form, &value))
        return stray(reader, column, field);
    *cell = (float)value;
    return isfinite(*cell) ? MIXT_OK : bad_field(reader, column, field, INFINITY);
}

static mixt_status read_word(mixt__csv_reader *reader, int64_t column, const mixt__csv_field *field, int32_t *cell)
{
    mixt__names *words = &reader->cells.column[column].words;
    char plain[256];
    const char *text = field->text;
    int64_t length = field->length;
    *cell = -1;
    if (mixt__csv_missing(field))
        return MIXT_OK;
    MIXT_TRY(check_text(reader, column, field));
    if (field->quoted && memchr(text, '"', (size_t)length) && length < (int64_t)sizeof plain) {
        int64_t used = 0;
        for (int64_t i = 0; i < length; i++) { // of two quotes in a row one counts
            plain[used++] = text[i];
            i += text[i] == '"' && i + 1 < length && text[i + 1] == '"';
        }
        text = plain;
        length = used;
    }
    *cell = (int32_t)mixt__names_add(words, text, length);
    return *cell < 0 ? no_memory(reader) : MIXT_OK;
}

/** One cell. @param missing set where the cell has no value */
static mixt_status read_cell(mixt__csv_reader *reader, int64_t column, const mixt__csv_field *field, mixt__cell *cell,
                             bool *missing)
{
    mixt_status status = MIXT_OK;
    *missing = false;
    *cell = (mixt__cell){.whole = 0};
    switch (reader->cells.column[column].use) {
    case MIXT_CELLS_NUMBER:
        status = read_number(reader, column, field, &cell->number);
        *missing = isnan(cell->number);
        break;
    case MIXT_CELLS_DATE:
        *missing = !mixt__date_read(field->text, field->length, reader->cells.column[column].order, &cell->whole);
        if (*missing && !mixt__csv_missing(field))
            status = stray(reader, column, field);
        cell->whole = *missing ? MIXT_DATE_NONE : cell->whole;
        break;
    case MIXT_CELLS_ONE_HOT:
    case MIXT_CELLS_EMBEDDED:
        status = read_word(reader, column, field, &cell->whole);
        *missing = cell->whole < 0;
        break;
    default:
        break;
    }
    if (status == MIXT_OK && *missing && reader->data->options.missing == MIXT_MISSING_ERROR)
        return bad_field(reader, column, field, 0);
    return status;
}

static mixt_status read_row(mixt__csv_reader *reader, mixt__csv_field line)
{
    mixt__cells *cells = &reader->cells;
    mixt__csv_field field;
    int64_t column = 0, begin = cells->cell_count, gaps = 0;
    bool missing, untargeted = false;
    for (; mixt__csv_next_field(&reader->text, &line, &field); column++) {
        mixt__cell cell = {.whole = 0};
        if (column >= cells->columns)
            continue;
        if (column == cells->target) {
            MIXT_TRY(read_target(reader, column, &field, &cell.number, &missing));
            untargeted = missing;
        } else {
            MIXT_TRY(read_cell(reader, column, &field, &cell, &missing));
        }
        gaps += missing;
        if (!mixt__grow((void **)&cells->cell, &cells->cell_capacity, cells->cell_count, sizeof cell))
            return no_memory(reader);
        cells->cell[cells->cell_count++] = cell;
    }
    if (column != cells->columns)
        return mixt__fail(MIXT_ERROR_DATA, "%s: line %lld: %lld columns, expected %lld as in the lines before",
                          reader->path, (long long)reader->text.line, (long long)column, (long long)cells->columns);
    bool drop = gaps && reader->data->options.missing == MIXT_MISSING_DROP;
    if (drop || untargeted) {
        cells->cell_count = begin;
        cells->dropped += drop;
        cells->untargeted += !drop;
        return MIXT_OK;
    }
    if (!mixt__grow((void **)&cells->line, &cells->line_capacity, cells->rows, sizeof(int64_t)))
        return no_memory(reader);
    cells->line[cells->rows++] = reader->text.line;
    return MIXT_OK;
}

mixt_status mixt__csv_read_rows(mixt__csv_reader *reader)
{
    mixt__cells *cells = &reader->cells;
    mixt__csv_field line;
    cells->path = reader->path;
    reader->text = reader->rows;
    while (mixt__csv_next_line(&reader->text, &line))
        MIXT_TRY(read_row(reader, line));
    int64_t left_out = cells->dropped + cells->untargeted;
    if (!cells->rows && left_out)
        return mixt__fail(MIXT_ERROR_DATA, "%s: all of its %lld rows lack %s: no row is left", reader->path,
                          (long long)left_out, cells->dropped ? "a cell (data.missing=drop)" : "its target");
    if (!cells->rows)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: only a header line, no data", reader->path);
    if (reader->stated_rows && reader->stated_rows != cells->rows + left_out)
        return mixt__fail(MIXT_ERROR_DATA, "%s: line 1 says %lld rows, the file has %lld: is it cut off?", reader->path,
                          (long long)reader->stated_rows, (long long)(cells->rows + left_out));
    return MIXT_OK;
}
