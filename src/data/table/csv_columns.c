/* What the columns of a CSV file are: by the training part's schema, or by the options and by what is in them. */
#include "data/table/csv_reader.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static bool is_called(const mixt__csv_field *name, const char *text, size_t length)
{
    return name->text && (size_t)name->length == length && !memcmp(name->text, text, length);
}

const char *mixt__csv_called(const mixt__cells_column *column)
{
    static _Thread_local char text[2 * MIXT_SHOWN];
    text[0] = '\0';
    if (column->name.text)
        snprintf(text, sizeof text, " (%.*s)", mixt__shown(&column->name), column->name.text);
    return text;
}

/** The names that there are, for a message. */
static const char *list_names(const mixt__csv_reader *reader, char text[256])
{
    size_t used = 0;
    text[0] = '\0';
    for (int64_t c = 0; c < reader->cells.columns && used < 256; c++)
        used += (size_t)snprintf(text + used, 256 - used, "%s%.*s", c ? ", " : "",
                                 mixt__shown(&reader->cells.column[c].name), reader->cells.column[c].name.text);
    return text;
}

/** The column of a name or of a number from 1. @param key what names it */
static mixt_status find_column(const mixt__csv_reader *reader, const char *key, const char *text, size_t length,
                               int64_t *found)
{
    const mixt__cells *cells = &reader->cells;
    double number;
    char names[256];
    *found = -1;
    for (int64_t c = 0; c < cells->columns; c++) {
        if (!is_called(&cells->column[c].name, text, length))
            continue;
        if (*found >= 0)
            return mixt__fail(MIXT_ERROR_CONFIG,
                              "%s: line %lld: columns %lld and %lld are both called '%.*s'; set %s to a column number",
                              reader->path, (long long)reader->header_line, (long long)*found + 1, (long long)c + 1,
                              (int)length, text, key);
        *found = c;
    }
    mixt__csv_field field = {text, (int64_t)length, false};
    if (*found < 0 && mixt__csv_plain_number(&field, &number) && number >= 1 && number <= (double)cells->columns &&
        number == floor(number))
        *found = (int64_t)number - 1;
    if (*found >= 0)
        return MIXT_OK;
    bool named = cells->column[0].name.text;
    return mixt__fail(MIXT_ERROR_CONFIG,
                      "%s: no column '%.*s' for %s; expected a name of the header line (%s) or a number from 1 to "
                      "%lld",
                      reader->path, (int)length, text, key, named ? list_names(reader, names) : "the file has none",
                      (long long)cells->columns);
}

/** Gives the columns of a list, "age,sex,3", a use. */
static mixt_status use_list(mixt__csv_reader *reader, const char *key, const char *list, mixt__cells_use use)
{
    int64_t column;
    for (const char *at = list; *at;) {
        while (*at == ' ')
            at++;
        size_t length = strcspn(at, ","), behind = length;
        while (length && at[length - 1] == ' ')
            length--;
        MIXT_TRY(find_column(reader, key, at, length, &column));
        reader->cells.column[column].use = use;
        at += behind + (at[behind] == ',');
    }
    return MIXT_OK;
}

/** The target's column, the last one or what the option 'labels' says, and those that are left out. */
static mixt_status choose(mixt__csv_reader *reader)
{
    const mixt_data_options *o = &reader->data->options;
    mixt__cells *cells = &reader->cells;
    cells->target = cells->columns - 1;
    if (o->labels)
        MIXT_TRY(find_column(reader, "the labels", o->labels, strlen(o->labels), &cells->target));
    for (int64_t c = 0; c < cells->columns; c++)
        cells->column[c].use = o->columns ? MIXT_CELLS_OUT : MIXT_CELLS_NUMBER;
    if (o->columns)
        MIXT_TRY(use_list(reader, "data.columns", o->columns, MIXT_CELLS_NUMBER));
    if (o->drop)
        MIXT_TRY(use_list(reader, "data.drop", o->drop, MIXT_CELLS_OUT));
    if (o->drop && cells->column[cells->target].use == MIXT_CELLS_OUT)
        return mixt__fail(MIXT_ERROR_CONFIG,
                          "%s: data.drop drops '%.*s', the target; set data.labels to another column", reader->path,
                          mixt__shown(&cells->column[cells->target].name),
                          cells->column[cells->target].name.text ? cells->column[cells->target].name.text : "");
    cells->column[cells->target].use = MIXT_CELLS_TARGET;
    for (int64_t c = 0; c < cells->columns; c++)
        cells->column[c].why = "";
    if (cells->columns < 2)
        return mixt__fail(
            MIXT_ERROR_DATA,
            "%s: 1 column, expected at least 2: features, then the target (separated by , ; tab or space)",
            reader->path);
    return MIXT_OK;
}

/** "", "id", "PassengerId", "index": what a column that counts rows is called. */
static bool names_rows(const mixt__csv_field *name)
{
    static const char *const endings[] = {"id", "index", "no", "nr"};
    if (!name->text || !name->length)
        return name->text != NULL;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        int64_t length = (int64_t)strlen(endings[i]), k = 0;
        const char *at = name->text + name->length - length;
        while (k < length && name->length >= length && tolower((unsigned char)at[k]) == endings[i][k])
            k++;
        if (k == length)
            return true;
    }
    return false;
}

/** What commas in numbers are, by all columns: programs that write decimal commas separate cells by something else. */
static mixt__comma comma_of(const mixt__csv_reader *reader, const mixt__survey *surveys)
{
    for (int64_t c = 0; c < reader->cells.columns; c++)
        if (surveys[c].decimals && !surveys[c].groups && 2 * surveys[c].numbers[MIXT_NUMBER_COMMA] > surveys[c].values)
            return MIXT_COMMA_DECIMAL;
    return reader->rows.separator == ',' ? MIXT_COMMA_GROUPS : MIXT_COMMA_UNKNOWN;
}

static mixt_status judge(mixt__csv_reader *reader, const mixt__survey *surveys)
{
    mixt__cells *cells = &reader->cells;
    mixt__comma comma = comma_of(reader, surveys);
    for (int64_t c = 0; c < cells->columns; c++) {
        mixt__cells_column *column = &cells->column[c];
        const char *doubtful = NULL;
        mixt__cells_use use = column->use;
        if (use == MIXT_CELLS_OUT)
            continue;
        mixt__survey_judge(&surveys[c], comma, column, &doubtful);
        if (use == MIXT_CELLS_TARGET)
            column->use = use;
        if (doubtful && column->use == MIXT_CELLS_NUMBER)
            return mixt__fail(MIXT_ERROR_DATA, "%s: column %lld%s: %s", reader->path, (long long)c + 1,
                              mixt__csv_called(column), doubtful);
        if (doubtful && column->use == MIXT_CELLS_DATE)
            MIXT_TRY(mixt__data_warn(reader->data, "%s: column %lld%s: %s", reader->path, (long long)c + 1,
                                     mixt__csv_called(column), doubtful));
    }
    mixt__cells_column *first = &cells->column[0];
    if (first->use == MIXT_CELLS_NUMBER && surveys[0].counts && cells->columns > 2 && names_rows(&first->name) &&
        !reader->data->options.columns) {
        first->use = MIXT_CELLS_OUT;
        first->why = "counts the rows";
    }
    return MIXT_OK;
}

static mixt_status survey(mixt__csv_reader *reader)
{
    mixt__csv_text text = reader->rows;
    mixt__csv_field line, field;
    mixt__survey *surveys = mixt__alloc((size_t)reader->cells.columns * sizeof *surveys);
    if (!surveys)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for %lld columns", reader->path,
                          (long long)reader->cells.columns);
    while (mixt__csv_next_line(&text, &line))
        for (int64_t c = 0; c < reader->cells.columns && mixt__csv_next_field(&text, &line, &field); c++)
            if (reader->cells.column[c].use != MIXT_CELLS_OUT)
                mixt__survey_add(&surveys[c], &field);
    mixt_status status = judge(reader, surveys);
    mixt__free(surveys);
    return status;
}

/* ---- by the training part ---- */

/** The file's column for one of the schema: the one in its place, or that of its name. */
static int64_t match(const mixt__csv_reader *reader, int64_t index)
{
    const mixt__cells *cells = &reader->cells;
    const char *name = reader->schema->column[index].name;
    if (index < cells->columns && is_called(&cells->column[index].name, name, strlen(name)))
        return index;
    for (int64_t c = 0; c < cells->columns; c++)
        if (is_called(&cells->column[c].name, name, strlen(name)))
            return c;
    return -1;
}

/** Without names columns are known by their places, of a file to predict with the target's or without. */
static mixt_status match_places(mixt__csv_reader *reader)
{
    const mixt__schema *s = reader->schema;
    int64_t columns = reader->cells.columns;
    bool target = columns == s->columns && s->target >= 0;
    if (!target && !(reader->untargeted && columns == s->columns - (s->target >= 0)))
        return mixt__fail(MIXT_ERROR_DATA, "%s: %lld columns, but the training part has %lld", reader->path,
                          (long long)columns, (long long)s->columns);
    for (int64_t i = 0, c = 0; i < s->columns; i++)
        reader->from[i] = i == s->target && !target ? -1 : c++;
    return MIXT_OK;
}

static mixt_status match_names(mixt__csv_reader *reader)
{
    const mixt__schema *s = reader->schema;
    char names[256];
    for (int64_t i = 0; i < s->columns; i++) {
        reader->from[i] = match(reader, i);
        bool needed = s->column[i].use != MIXT_CELLS_OUT && !(reader->untargeted && i == s->target);
        if (needed && reader->from[i] < 0)
            return mixt__fail(MIXT_ERROR_DATA,
                              "%s: line %lld: has no column '%.40s', which the training part has%s; its columns are %s",
                              reader->path, (long long)reader->header_line, s->column[i].name,
                              i == s->target ? " as its target" : "", list_names(reader, names));
    }
    return MIXT_OK;
}

static mixt_status follow(mixt__csv_reader *reader)
{
    const mixt__schema *s = reader->schema;
    mixt__cells *cells = &reader->cells;
    reader->from = mixt__alloc((size_t)s->columns * sizeof *reader->from);
    if (!reader->from)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for %lld columns", reader->path, (long long)s->columns);
    MIXT_TRY(s->named && cells->column[0].name.text ? match_names(reader) : match_places(reader));
    for (int64_t c = 0; c < cells->columns; c++)
        cells->column[c].use = MIXT_CELLS_OUT;
    cells->target = -1;
    for (int64_t i = 0; i < s->columns; i++) {
        if (reader->from[i] < 0 || (i == s->target && reader->untargeted))
            continue;
        mixt__cells_column *column = &cells->column[reader->from[i]];
        column->use = s->column[i].use;
        column->form = s->column[i].form;
        column->order = s->column[i].order;
        cells->target = i == s->target ? reader->from[i] : cells->target;
    }
    return MIXT_OK;
}

mixt_status mixt__csv_judge_columns(mixt__csv_reader *reader)
{
    if (reader->schema)
        return follow(reader);
    MIXT_TRY(choose(reader));
    return survey(reader);
}
