/* Files of labelled texts: a header where there is one, the columns of text and label, and a row a record.
 *
 * Columns are those that the options name, by a name of the header or a number from 1. Where they do not, a header is
 * asked for the names that such files have; without one the label is the last column and the text the first other one.
 * The first line is a header where it has a name that was asked for, or one that such files have, or where its label is
 * no number while that of the second line is one.
 */
#include "data/text/labelled.h"

#include "data/table/csv_text.h"
#include "data/table/json_lines.h"
#include "data/text/records.h"

#include <math.h>
#include <string.h>
#include <strings.h>

static const char *const text_names[] = {"sentence", "text",    "review", "phrase", "comment", "question",
                                         "content",  "message", "body",   "title",  "tweet",   NULL};
static const char *const label_names[] = {"label",     "labels",   "class",  "category", "target",
                                          "sentiment", "polarity", "rating", NULL};

static bool says(mixt__span field, const char *name)
{
    size_t length = strlen(name);
    return (size_t)field.size == length && !strncasecmp((const char *)field.bytes, name, length);
}

/** The field that is called as one of the names; -1: none. */
static int find_any(const mixt__record *record, const char *const *names)
{
    for (; *names; names++)
        for (int i = 0; i < record->count; i++)
            if (says(record->field[i], *names))
                return i;
    return -1;
}

static int find_name(const mixt__record *record, const char *name)
{
    for (int i = 0; i < record->count; i++)
        if (strlen(name) == (size_t)record->field[i].size &&
            !memcmp(name, record->field[i].bytes, (size_t)record->field[i].size))
            return i;
    return -1;
}

/** A column by its number from 1; -1: it is none. */
static int find_number(const char *text, int count)
{
    mixt__csv_field field = {.text = text, .length = (int64_t)strlen(text)};
    double number;
    bool whole = mixt__csv_plain_number(&field, &number) && number == floor(number);
    return whole && number >= 1 && number <= count ? (int)number - 1 : -1;
}

static bool is_number(mixt__span field)
{
    mixt__csv_field text = {.text = (const char *)field.bytes, .length = field.size};
    double value;
    return mixt__csv_plain_number(&text, &value);
}

/** What is known of a file's columns. */
typedef struct columns {
    int text, label; // -1: not found
    bool header;     // the first record is one
} columns;

static mixt_status no_column(const mixt__record *first, const char *path, const char *what, const char *key,
                             const char *wanted)
{
    return mixt__fail(MIXT_ERROR_CONFIG,
                      "%s: no column '%s' for the %s (%s); expected a name in line %lld or a number from 1 to %d", path,
                      wanted, what, key, (long long)first->line, first->count);
}

/** Columns that are asked for by name or number. */
static mixt_status find_wanted(const mixt_data_options *o, const char *path, const mixt__record *first, columns *c)
{
    const struct {
        const char *wanted, *what, *key;
        int *column;
    } asked[] = {{o->text, "text", "data.text", &c->text}, {o->labels, "label", "data.labels", &c->label}};
    for (int i = 0; i < 2; i++) {
        if (!asked[i].wanted)
            continue;
        *asked[i].column = find_number(asked[i].wanted, first->count); // before names: a label may be a number, too
        if (*asked[i].column < 0) {
            *asked[i].column = find_name(first, asked[i].wanted);
            c->header |= *asked[i].column >= 0;
        }
        if (*asked[i].column < 0)
            return no_column(first, path, asked[i].what, asked[i].key, asked[i].wanted);
    }
    return MIXT_OK;
}

static mixt_status find_columns(const mixt_data *data, const char *path, const mixt__record *first,
                                const mixt__record *second, columns *c)
{
    *c = (columns){-1, -1, false};
    MIXT_TRY(find_wanted(&data->options, path, first, c));
    int text = find_any(first, text_names), label = find_any(first, label_names);
    bool named = text >= 0 || label >= 0;
    if (c->label < 0)
        c->label = label >= 0 ? label : first->count - 1;
    if (c->text < 0)
        c->text = text >= 0 && text != c->label ? text : c->label == 0;
    if (first->count < 2)
        return mixt__fail(MIXT_ERROR_DATA,
                          "%s: line %lld has 1 field: expected a text and its label, separated by a tab or a comma",
                          path, (long long)first->line);
    if (c->text == c->label)
        return mixt__fail(MIXT_ERROR_CONFIG, "%s: column %d cannot be both text and label: data.text and data.labels",
                          path, c->text + 1);
    c->header |= mixt__json_table_is(path);
    c->header |=
        named || (second->count > c->label && is_number(second->field[c->label]) && !is_number(first->field[c->label]));
    return MIXT_OK;
}

static mixt_status add_row(mixt__text_rows *rows, const mixt__record *r, const columns *c, int fields)
{
    if (r->count != fields)
        return mixt__fail(MIXT_ERROR_DATA, "%s: line %lld has %d field%s, those before %d", rows->path,
                          (long long)r->line, r->count, r->count == 1 ? "" : "s", fields);
    mixt__span text = r->field[c->text], label = r->field[c->label];
    while (text.size && (*text.bytes == ' ' || *text.bytes == '\t'))
        text = (mixt__span){text.bytes + 1, text.size - 1};
    while (label.size && *label.bytes == ' ')
        label = (mixt__span){label.bytes + 1, label.size - 1};
    while (label.size && label.bytes[label.size - 1] == ' ')
        label.size--;
    if (!text.size)
        return mixt__fail(MIXT_ERROR_DATA, "%s: line %lld, column %d: no text", rows->path, (long long)r->line,
                          c->text + 1);
    mixt__csv_field field = {.text = (const char *)label.bytes, .length = label.size};
    if (mixt__csv_missing(&field))
        return mixt__fail(MIXT_ERROR_DATA, "%s: line %lld, column %d: '%.*s': the label is missing", rows->path,
                          (long long)r->line, c->label + 1, (int)label.size, label.bytes);
    if (!mixt__grow((void **)&rows->row, &rows->capacity, rows->count, sizeof *rows->row))
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for its texts", rows->path);
    rows->row[rows->count++] = (mixt__text_row){text, label, r->line};
    return MIXT_OK;
}

static mixt_status read_records(const mixt_data *data, mixt__text_rows *rows)
{
    mixt__records records = mixt__records_of(rows->path, &rows->file);
    mixt__record first, next;
    columns c;
    mixt_status status = mixt__records_next(&records, &first);
    if (status == MIXT_END)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: no line with text in it", rows->path);
    MIXT_TRY(status);
    status = mixt__records_next(&records, &next);
    if (status != MIXT_OK && status != MIXT_END)
        return status;
    MIXT_TRY(find_columns(data, rows->path, &first, &next, &c));
    rows->text_column = c.text + 1;
    rows->label_column = c.label + 1;
    if (!c.header)
        MIXT_TRY(add_row(rows, &first, &c, first.count));
    for (; status == MIXT_OK; status = mixt__records_next(&records, &next))
        MIXT_TRY(add_row(rows, &next, &c, first.count));
    if (status != MIXT_END)
        return status;
    return rows->count ? MIXT_OK
                       : mixt__fail(MIXT_ERROR_FORMAT, "%s: only a header line, no texts; is it cut off?", rows->path);
}

mixt_status mixt__text_rows_read(const mixt_data *data, const char *path, mixt__text_rows *rows)
{
    *rows = (mixt__text_rows){.path = path};
    int64_t first;
    MIXT_TRY(mixt__json_table_read(path, &rows->file, &first));
    MIXT_TRY(mixt__text_check(path, rows->file.bytes, rows->file.size));
    return read_records(data, rows);
}

/* ---- texts alone ---- */

static mixt_status add_text(mixt__text_rows *rows, mixt__span text, int64_t line)
{
    if (!text.size)
        return mixt__fail(MIXT_ERROR_DATA, "%s: line %lld: no text", rows->path, (long long)line);
    if (!mixt__grow((void **)&rows->row, &rows->capacity, rows->count, sizeof *rows->row))
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for its texts", rows->path);
    rows->row[rows->count++] = (mixt__text_row){.text = text, .line = line};
    return MIXT_OK;
}

/** Lines that say something. */
static mixt_status read_lines(mixt__text_rows *rows)
{
    const unsigned char *at = rows->file.bytes, *end = at + rows->file.size;
    for (int64_t line = 1; at < end; line++) {
        const unsigned char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        mixt__span text = {at, stop - at};
        while (text.size && (text.bytes[text.size - 1] == '\r' || text.bytes[text.size - 1] == ' '))
            text.size--;
        if (text.size)
            MIXT_TRY(add_text(rows, text, line));
        at = stop + 1;
    }
    return MIXT_OK;
}

/** The column of texts: the one that is asked for, the only one, or the one that has a name. */
static mixt_status read_column(const mixt_data *data, mixt__text_rows *rows)
{
    mixt__records records = mixt__records_of(rows->path, &rows->file);
    mixt__record record;
    const char *wanted = data->options.text;
    mixt_status status = mixt__records_next(&records, &record);
    MIXT_TRY(status == MIXT_END ? MIXT_OK : status);
    int named = wanted ? find_name(&record, wanted) : find_any(&record, text_names), column = named;
    if (column < 0)
        column = wanted ? find_number(wanted, record.count) : record.count == 1 ? 0 : -1;
    if (column < 0)
        return no_column(&record, rows->path, "text", "data.text", wanted ? wanted : "sentence");
    if (named >= 0 || mixt__json_table_is(rows->path))
        status = mixt__records_next(&records, &record);
    for (; status == MIXT_OK; status = mixt__records_next(&records, &record)) {
        if (record.count <= column)
            return mixt__fail(MIXT_ERROR_DATA, "%s: line %lld has %d fields, the text is in column %d", rows->path,
                              (long long)record.line, record.count, column + 1);
        MIXT_TRY(add_text(rows, record.field[column], record.line));
    }
    return status == MIXT_END ? MIXT_OK : status;
}

mixt_status mixt__text_rows_read_alone(const mixt_data *data, const char *path, mixt__text_rows *rows)
{
    *rows = (mixt__text_rows){.path = path};
    int64_t first;
    MIXT_TRY(mixt__json_table_read(path, &rows->file, &first));
    MIXT_TRY(mixt__text_check(path, rows->file.bytes, rows->file.size));
    MIXT_TRY(mixt__records_are(path) ? read_column(data, rows) : read_lines(rows));
    return rows->count ? MIXT_OK : mixt__fail(MIXT_ERROR_FORMAT, "%s: no line with text in it", path);
}

void mixt__text_rows_free(mixt__text_rows *rows)
{
    mixt__bytes_free(&rows->file);
    mixt__free(rows->row);
    *rows = (mixt__text_rows){0};
}
