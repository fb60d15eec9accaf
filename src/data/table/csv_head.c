/* The first lines of a CSV file: what parts its fields, whether the first line names its columns.
 *
 * A line is a header where columns that hold numbers or dates below have words in it, most of them: one bad field does
 * not make one, for a sample would be lost. Of columns that are all words a header is a line whose words do not come up
 * again. Or its numbers are those of columns, from 0 or 1 ("0,1,2,class"). scikit-learn's "rows,features,class names"
 * is understood and its counts are checked.
 */
#include "data/table/csv_reader.h"
#include "data/table/json_lines.h"

#include <math.h>
#include <string.h>

enum { AHEAD = 200 }; // lines that are looked at

/** What a column is like below the first line. */
typedef struct below {
    int64_t values, numbers; // of those numbers or dates
    bool again;              // the first line's field comes up
} below;

static bool is_number(const mixt__csv_field *field)
{
    double value;
    int32_t minutes;
    if (mixt__csv_number(field, &value) || mixt__number_read(field, MIXT_NUMBER_COMMA, &value) ||
        mixt__number_read(field, MIXT_NUMBER_THOUSANDS, &value))
        return true;
    for (int order = 0; order < MIXT_DATE_ORDERS; order++)
        if (mixt__date_read(field->text, field->length, (mixt__date_order)order, &minutes))
            return true;
    return false;
}

static void look_at_line(const mixt__csv_reader *reader, mixt__csv_field first, mixt__csv_field line, below *columns)
{
    mixt__csv_field name, field;
    for (int64_t c = 0; mixt__csv_next_field(&reader->text, &line, &field); c++) {
        if (!mixt__csv_next_field(&reader->text, &first, &name))
            return;
        if (mixt__csv_missing(&field))
            continue;
        columns[c].values++;
        columns[c].numbers += is_number(&field);
        columns[c].again |= name.length == field.length && !memcmp(name.text, field.text, (size_t)name.length);
    }
}

/** Whether the first line names what is below it. */
static bool names_columns(const mixt__csv_reader *reader, mixt__csv_field first, const below *columns)
{
    mixt__csv_field field;
    int64_t numeric = 0, words = 0, again = 0;
    for (int64_t c = 0; mixt__csv_next_field(&reader->text, &first, &field); c++) {
        bool numbers = columns[c].values && 10 * columns[c].numbers >= 9 * columns[c].values;
        numeric += numbers;
        words += numbers && !is_number(&field) && !mixt__csv_missing(&field);
        again += columns[c].again;
    }
    return numeric ? 2 * words > numeric : !again;
}

static mixt_status look_ahead(const mixt__csv_reader *reader, mixt__csv_field first, int64_t fields, bool *names)
{
    mixt__csv_text text = reader->text;
    mixt__csv_field line;
    below *columns = mixt__alloc((size_t)fields * sizeof *columns);
    if (!columns)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for %lld columns", reader->path, (long long)fields);
    int lines = 0;
    for (; lines < AHEAD && mixt__csv_next_line(&text, &line); lines++)
        look_at_line(reader, first, line, columns);
    *names = lines && names_columns(reader, first, columns);
    mixt__free(columns);
    return MIXT_OK;
}

/** What the first line is: how many fields it has, how many are no numbers, and scikit-learn's counts. */
static mixt_status judge_first(mixt__csv_reader *reader, mixt__csv_field line, bool *header)
{
    mixt__csv_field field, rest = line;
    double value, counts[2] = {0, 0};
    double first = 0; // the number that the first column would have, were the numbers those of columns
    int64_t fields = 0, words = 0;
    bool numbered = true;
    while (mixt__csv_next_field(&reader->text, &rest, &field)) {
        if (mixt__csv_number(&field, &value)) {
            if (fields < 2)
                counts[fields] = value;
            numbered = numbered && (fields == words || value - (double)fields == first);
            first = value - (double)fields;
        } else {
            words++;
        }
        fields++;
    }
    reader->cells.columns = fields;
    if (words > 1 && words == fields - 2 && counts[0] >= 1 && counts[1] >= 1 && counts[0] == floor(counts[0]) &&
        counts[0] < 1e15 && counts[1] == floor(counts[1]) && counts[1] < 1e9) {
        reader->stated_rows = (int64_t)counts[0];
        reader->stated_classes = words;
    }
    MIXT_TRY(look_ahead(reader, line, fields, header));
    mixt__csv_text ahead = reader->text;
    if (!mixt__csv_next_line(&ahead, &rest)) // it stands alone
        *header = 2 * words > fields;
    numbered = numbered && words > 0 && (first == 0 || first == 1);
    reader->numbered = numbered && !reader->stated_rows && !*header;
    *header = *header || reader->stated_rows || numbered;
    return MIXT_OK;
}

/** A quote that stands alone: the line is damaged. */
static mixt_status check_quotes(const mixt__csv_reader *reader)
{
    mixt__csv_field rest = reader->header, field;
    for (int64_t column = 1; mixt__csv_next_field(&reader->text, &rest, &field); column++) {
        bool before = field.length && field.text[0] == '"';
        bool behind = field.length > 1 && field.text[field.length - 1] == '"';
        if (!field.quoted && before != behind)
            return mixt__fail(
                MIXT_ERROR_DATA,
                "%s: line %lld, column %lld: %.*s has one quote; they come in pairs, around a whole field",
                reader->path, (long long)reader->header_line, (long long)column, mixt__shown(&field), field.text);
    }
    return MIXT_OK;
}

static bool has_words(const mixt__csv_reader *reader, mixt__csv_field line)
{
    mixt__csv_field field;
    double value;
    while (mixt__csv_next_field(&reader->text, &line, &field))
        if (!mixt__csv_missing(&field) && !mixt__csv_number(&field, &value))
            return true;
    return false;
}

/** Holds the header against the first line after it, whose columns tell if stated counts were meant. */
static mixt_status check_header(mixt__csv_reader *reader, mixt__csv_field line, int64_t number)
{
    int64_t columns = mixt__csv_count_fields(&reader->text, line), names = reader->cells.columns;
    bool stated = reader->stated_rows > 0;
    mixt__csv_field rest = reader->header, field;
    double features = 0;
    for (int i = 0; stated && i < 2 && mixt__csv_next_field(&reader->text, &rest, &field); i++)
        mixt__csv_number(&field, &features);
    reader->cells.columns = columns;
    if (stated && columns == (int64_t)features + 1)
        return MIXT_OK;
    reader->stated_rows = reader->stated_classes = 0;
    MIXT_TRY(check_quotes(reader));
    if (names != columns)
        return mixt__fail(MIXT_ERROR_DATA, "%s: line %lld: %lld columns, but the header in line %lld has %lld",
                          reader->path, (long long)number, (long long)columns, (long long)reader->header_line,
                          (long long)names);
    return MIXT_OK;
}

/** Names of columns, where there are any. */
static mixt_status take_columns(mixt__csv_reader *reader)
{
    mixt__cells *cells = &reader->cells;
    mixt__csv_field rest = reader->header, field;
    cells->column = mixt__alloc((size_t)cells->columns * sizeof *cells->column);
    if (!cells->column)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for %lld columns", reader->path, (long long)cells->columns);
    for (int64_t c = 0; !reader->stated_rows && mixt__csv_next_field(&reader->text, &rest, &field); c++)
        cells->column[c].name = field;
    return MIXT_OK;
}

/** The line that bytes before `at` come to. */
static long long line_of(const char *begin, const char *at)
{
    long long line = 1;
    for (; (begin = memchr(begin, '\n', (size_t)(at - begin))); begin++)
        line++;
    return line;
}

mixt_status mixt__csv_read_head(mixt__csv_reader *reader)
{
    mixt__csv_field line, next;
    mixt__csv_text *text = &reader->text;
    const char *begin = text->at, *nul = memchr(begin, 0, (size_t)(text->end - begin));
    bool header = false;
    if (nul)
        return mixt__fail(
            MIXT_ERROR_DATA,
            "%s: line %lld: a zero byte: it is not a text table; save UTF-16 as UTF-8 (iconv -f utf-16 -t utf-8)",
            reader->path, line_of(begin, nul));
    mixt__csv_text start = *text;
    if (!mixt__csv_next_line(text, &line))
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: no line with data in it", reader->path);
    text->separator = start.separator = mixt__csv_separator(text, &line);
    MIXT_TRY(judge_first(reader, line, &header));
    mixt__csv_text ahead = *text;
    bool more = mixt__csv_next_line(&ahead, &next);
    if (header && reader->numbered && more && has_words(reader, next))
        header = false; // "1,cat" above "5,dog": no numbers of columns, but the first sample
    header = header || mixt__json_table_is(reader->path);
    reader->rows = header ? *text : start;
    if (header) {
        reader->header = line;
        reader->header_line = text->line;
        MIXT_LOG(DATA, "%s: line %lld is a header%s", reader->path, (long long)text->line,
                 reader->stated_rows ? " with counts" : "");
        if (!more)
            return mixt__fail(MIXT_ERROR_FORMAT, "%s: only a header line, no data", reader->path);
        MIXT_TRY(check_header(reader, next, ahead.line));
    }
    return take_columns(reader);
}
