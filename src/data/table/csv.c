/* CSV: one sample a line, the last column is the target, or the one that the option 'labels' gives by name or number.
 *
 * The separator comes from the first line (; tab , or space, in this order). The first line is a header when fewer than
 * half of its fields are numbers, or those are the numbers of columns, from 0 or 1 ("0,1,2,class"): one bad field does
 * not make it one, for a sample would be lost. A header names every column. A field in quotes may hold separators, line
 * ends and doubled quotes (RFC 4180); a quote without its other is a letter like any. The target may be words, all of
 * them: classes by name. scikit-learn's "rows,features,class names" is understood and its counts are checked. Blank
 * lines and lines that begin with # are skipped. Numbers are decimal. A non-finite value is an error, a missing one is
 * what the option 'missing' says, by default an error too: mixt does not guess data unasked.
 */
#include "data/table/class_words.h"
#include "data/table/csv_text.h"
#include "data/data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 24 }; // characters of a bad field in a message

/** What is known of a file so far. */
typedef struct csv_reader {
    const char *path;
    mixt__csv_text text;
    int64_t columns, target; // target: the column, from 0
    mixt__csv_field header;  // the first line, where it is one
    int64_t header_line;
    int64_t stated_rows, stated_classes; // of a scikit-learn header; 0: none
    bool numbered;                       // the header is one only for its numbers, those of columns
    bool worded;                         // targets are words
    int64_t word_line;                   // of the first one
    mixt__class_words words;
} csv_reader;

/** Numbers of the rows so far: (rows, columns), and each row's line. */
typedef struct csv_rows {
    float *values;
    int64_t value_capacity, value_count;
    int64_t *lines;
    int64_t line_capacity, count;
    int64_t missing; // cells of them
    int64_t dropped; // rows left out because a cell is missing
} csv_rows;

/** What the first line is: how many fields it has, how many are no numbers, and scikit-learn's counts. */
static bool is_header(csv_reader *reader, mixt__csv_field line)
{
    mixt__csv_field field;
    double value, counts[2] = {0, 0};
    double first = 0; // the number that the first column would have, were the numbers those of columns
    int64_t fields = 0, words = 0;
    bool numbered = true;
    while (mixt__csv_next_field(&reader->text, &line, &field)) {
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
    reader->columns = fields;
    if (words > 1 && words == fields - 2 && counts[0] >= 1 && counts[1] >= 1 && counts[0] == floor(counts[0]) &&
        counts[0] < 1e15 && counts[1] == floor(counts[1]) && counts[1] < 1e9) {
        reader->stated_rows = (int64_t)counts[0];
        reader->stated_classes = words;
        reader->columns = (int64_t)counts[1] + 1;
    }
    numbered = numbered && words > 0 && (first == 0 || first == 1);
    reader->numbered = numbered && !reader->stated_rows && 2 * words <= fields;
    return reader->stated_rows || 2 * words > fields || numbered;
}

/** A quote that stands alone: the line is damaged. */
static mixt_status check_quotes(const csv_reader *reader)
{
    mixt__csv_field rest = reader->header, field;
    for (int64_t column = 1; mixt__csv_next_field(&reader->text, &rest, &field); column++) {
        bool before = field.length && field.text[0] == '"';
        bool behind = field.length > 1 && field.text[field.length - 1] == '"';
        if (!field.quoted && before != behind)
            return mixt__fail(
                MIXT_ERROR_DATA,
                "%s: line %lld, column %lld: %.*s has one quote; they come in pairs, around a whole field",
                reader->path, (long long)reader->header_line, (long long)column,
                (int)(field.length < SHOWN ? field.length : SHOWN), field.text);
    }
    return MIXT_OK;
}

/** Holds the header against the first line after it, whose columns tell if stated counts were meant. */
static mixt_status check_header(csv_reader *reader, mixt__csv_field line)
{
    int64_t columns = mixt__csv_count_fields(&reader->text, line),
            names = mixt__csv_count_fields(&reader->text, reader->header);
    if (reader->stated_rows && columns == reader->columns)
        return MIXT_OK;
    reader->stated_rows = reader->stated_classes = 0;
    reader->columns = columns;
    MIXT_TRY(check_quotes(reader));
    if (names != columns)
        return mixt__fail(MIXT_ERROR_DATA, "%s: line %lld: %lld columns, but the header in line %lld has %lld",
                          reader->path, (long long)reader->text.line, (long long)columns,
                          (long long)reader->header_line, (long long)names);
    return MIXT_OK;
}

static mixt_status bad_field(const csv_reader *reader, int64_t column, const mixt__csv_field *field, double value,
                             bool first)
{
    int shown = (int)(field->length < SHOWN ? field->length : SHOWN);
    bool missing = isfinite(value) && mixt__csv_missing(field), target = column == reader->target + 1;
    const char *wrong = missing ? "is missing" : isfinite(value) ? "is not a number" : "is not finite";
    const char *hint = !missing ? ""
                       : target ? "; data.missing=drop leaves rows without a target out"
                                : "; data.missing says what to do with such cells";
    return mixt__fail(MIXT_ERROR_DATA, "%s: line %lld, column %lld: '%.*s' %s; every field must be a finite number%s%s",
                      reader->path, (long long)reader->text.line, (long long)column, shown, field->text, wrong,
                      first ? " (in a header line, most are words)" : "", hint);
}

/** A class by name. Words in the first row's target mean words in all: among numbers, one is a mistake. */
static mixt_status read_word(mixt_data *data, csv_reader *reader, int64_t row, const mixt__csv_field *field,
                             double *value)
{
    int shown = (int)(field->length < SHOWN ? field->length : SHOWN);
    double number;
    bool is_number = mixt__csv_number(field, &number);
    if (is_number && !reader->words.given && row == 1)
        return mixt__fail(MIXT_ERROR_DATA,
                          "%s: line %lld, column %lld: '%s' is not a number, as in the lines below; classes are all "
                          "numbers or all words",
                          reader->path, (long long)reader->word_line, (long long)reader->target + 1,
                          reader->words.names[0]);
    if (is_number && !reader->words.given)
        return mixt__fail(MIXT_ERROR_DATA,
                          "%s: line %lld, column %lld: '%.*s' is a number, the classes before are words; they are all "
                          "one or all the other",
                          reader->path, (long long)reader->text.line, (long long)reader->target + 1, shown,
                          field->text);
    reader->word_line = row ? reader->word_line : reader->text.line;
    int64_t class = mixt__class_words_number(data, &reader->words, field->text, field->length);
    if (class < 0)
        return mixt__fail(MIXT_ERROR_DATA, "%s: line %lld, column %lld: '%.*s' is %s", reader->path,
                          (long long)reader->text.line, (long long)reader->target + 1, shown, field->text,
                          reader->words.given
                              ? "no class of the training part"
                              : "one word too many for classes (at most 1000); is it the right column?");
    *value = (double)class;
    return MIXT_OK;
}

/** One cell; NaN where it is missing and the options say what to do with it. */
static mixt_status read_cell(mixt_data *data, csv_reader *reader, const csv_rows *rows, int64_t column,
                             const mixt__csv_field *field, float *cell)
{
    double value = 0;
    bool number = mixt__csv_number(field, &value), target = column == reader->target;
    bool missing = mixt__csv_missing(field) && data->options.missing != MIXT_MISSING_ERROR &&
                   (!target || data->options.missing == MIXT_MISSING_DROP);
    *cell = NAN;
    if (missing)
        return MIXT_OK;
    if (target && !rows->count)
        reader->worded = reader->words.given || (!number && data->options.target != MIXT_TARGET_VALUES);
    if (target && reader->worded && !mixt__csv_missing(field)) {
        MIXT_TRY(read_word(data, reader, rows->count, field, &value));
        number = true;
    }
    if (!number || !isfinite((float)value))
        return bad_field(reader, column + 1, field, number ? INFINITY : 0, !rows->count && !reader->header.text);
    *cell = (float)value;
    return MIXT_OK;
}

static mixt_status read_row(mixt_data *data, csv_reader *reader, mixt__csv_field line, csv_rows *rows)
{
    mixt__csv_field field;
    int64_t column = 0, begin = rows->value_count, missing = 0;
    while (mixt__csv_next_field(&reader->text, &line, &field)) {
        float cell;
        MIXT_TRY(read_cell(data, reader, rows, column, &field, &cell));
        if (!mixt__grow((void **)&rows->values, &rows->value_capacity, rows->value_count, sizeof(float)))
            return mixt__fail(MIXT_ERROR_MEMORY, "%s: line %lld: no memory", reader->path,
                              (long long)reader->text.line);
        rows->values[rows->value_count++] = cell;
        missing += isnan(cell);
        column++;
    }
    if (column != reader->columns)
        return mixt__fail(MIXT_ERROR_DATA, "%s: line %lld: %lld columns, expected %lld as in the lines before",
                          reader->path, (long long)reader->text.line, (long long)column, (long long)reader->columns);
    if (missing && data->options.missing == MIXT_MISSING_DROP) {
        rows->value_count = begin;
        rows->dropped++;
        return MIXT_OK;
    }
    if (!mixt__grow((void **)&rows->lines, &rows->line_capacity, rows->count, sizeof(int64_t)))
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: line %lld: no memory", reader->path, (long long)reader->text.line);
    rows->lines[rows->count++] = reader->text.line;
    rows->missing += missing;
    return MIXT_OK;
}

/** The target's column: the last one, or what the option 'labels' says. */
static mixt_status find_target(const mixt_data *data, csv_reader *reader)
{
    const char *wanted = data->options.labels;
    reader->target = reader->columns - 1;
    if (!wanted)
        return MIXT_OK;
    mixt__csv_field rest = reader->header, field, text = {wanted, (int64_t)strlen(wanted), false};
    int64_t found = -1;
    for (int64_t column = 0; mixt__csv_next_field(&reader->text, &rest, &field) && column < reader->columns; column++) {
        if (field.length != text.length || memcmp(field.text, wanted, strlen(wanted)) != 0)
            continue;
        if (found >= 0)
            return mixt__fail(
                MIXT_ERROR_CONFIG,
                "%s: line %lld: columns %lld and %lld are both called '%s'; give the labels' by its number",
                reader->path, (long long)reader->header_line, (long long)found + 1, (long long)column + 1, wanted);
        reader->target = found = column;
    }
    if (found >= 0)
        return MIXT_OK;
    double number;
    if (mixt__csv_plain_number(&text, &number) && number >= 1 && number <= (double)reader->columns &&
        number == floor(number)) {
        reader->target = (int64_t)number - 1;
        return MIXT_OK;
    }
    return mixt__fail(
        MIXT_ERROR_CONFIG,
        "%s: no column '%s' for the labels; expected a name of the header line%s or a number from 1 to %lld",
        reader->path, wanted, reader->header.text ? "" : " (the file has none)", (long long)reader->columns);
}

static bool has_words(const csv_reader *reader, mixt__csv_field line)
{
    mixt__csv_field field;
    double value;
    while (mixt__csv_next_field(&reader->text, &line, &field))
        if (!mixt__csv_missing(&field) && !mixt__csv_number(&field, &value))
            return true;
    return false;
}

/** "1,cat" above "5,dog": no numbers of columns, but the first sample. */
static mixt_status take_back_header(mixt_data *data, csv_reader *reader, csv_rows *rows)
{
    mixt__csv_field first = reader->header;
    int64_t line = reader->text.line;
    reader->header = (mixt__csv_field){0};
    reader->columns = mixt__csv_count_fields(&reader->text, first);
    reader->text.line = reader->header_line;
    MIXT_TRY(find_target(data, reader));
    MIXT_TRY(read_row(data, reader, first, rows));
    reader->text.line = line;
    return MIXT_OK;
}

static mixt_status read_rows(mixt_data *data, csv_reader *reader, csv_rows *rows)
{
    mixt__csv_field line;
    if (!mixt__csv_next_line(&reader->text, &line))
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: no line with data in it", reader->path);
    reader->text.separator = mixt__csv_separator(&reader->text, &line);
    if (is_header(reader, line)) {
        reader->header = line;
        reader->header_line = reader->text.line;
        MIXT_LOG(DATA, "%s: line %lld is a header%s", reader->path, (long long)reader->text.line,
                 reader->stated_rows ? " with counts" : "");
    } else {
        MIXT_TRY(find_target(data, reader));
        MIXT_TRY(read_row(data, reader, line, rows));
    }
    while (mixt__csv_next_line(&reader->text, &line)) {
        bool first = rows->count + rows->dropped == 0;
        if (first && reader->numbered && has_words(reader, line)) {
            MIXT_TRY(take_back_header(data, reader, rows));
            first = false;
        }
        if (first) {
            MIXT_TRY(check_header(reader, line));
            MIXT_TRY(find_target(data, reader));
        }
        MIXT_TRY(read_row(data, reader, line, rows));
    }
    if (rows->count == 0 && rows->dropped)
        return mixt__fail(MIXT_ERROR_DATA, "%s: each of its %lld rows misses a cell: data.missing=drop leaves none",
                          reader->path, (long long)rows->dropped);
    if (rows->count == 0)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: only a header line, no data", reader->path);
    if (reader->columns < 2)
        return mixt__fail(
            MIXT_ERROR_DATA,
            "%s: 1 column, expected at least 2: features, then the target (separated by , ; tab or space)",
            reader->path);
    if (reader->stated_rows && reader->stated_rows != rows->count + rows->dropped)
        return mixt__fail(MIXT_ERROR_DATA, "%s: line 1 states %lld rows, the file has %lld: is it cut off?",
                          reader->path, (long long)reader->stated_rows, (long long)rows->count);
    return MIXT_OK;
}

/** Keeps the names of the columns, where the header has them. */
static mixt_status take_names(mixt_data *data, const csv_reader *reader, mixt__table *table)
{
    mixt__csv_field rest = reader->header, field;
    if (!rest.text || reader->stated_rows)
        return MIXT_OK;
    char *at = mixt__arena_alloc(&data->arena, (size_t)rest.length + 2); // a line end for each separator, and one more
    if (!at)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for the names of its columns", reader->path);
    table->columns = at;
    while (mixt__csv_next_field(&reader->text, &rest, &field)) {
        for (int64_t i = 0; i < field.length; i++)
            *at++ = field.text[i] == '\n' ? ' ' : field.text[i];
        *at++ = '\n';
    }
    *at = 0;
    return MIXT_OK;
}

/** Columns mean the same in every part: were two exchanged, only a bad loss would tell. */
static mixt_status compare_names(const csv_reader *reader, const char *here, const mixt__table *train)
{
    const char *there = train ? train->columns : NULL;
    if (!here || !there)
        return MIXT_OK;
    for (int64_t column = 1; *here || *there; column++) {
        int length = (int)strcspn(here, "\n"), expected = (int)strcspn(there, "\n");
        if (length != expected || memcmp(here, there, (size_t)length))
            return mixt__fail(
                MIXT_ERROR_DATA,
                "%s: line %lld, column %lld: '%.*s', but '%.*s' in the training part (%s): all parts must "
                "have the same columns in the same order",
                reader->path, (long long)reader->header_line, (long long)column, length < SHOWN ? length : SHOWN, here,
                expected < SHOWN ? expected : SHOWN, there, train->path);
        here += length + (here[length] == '\n');
        there += length + (there[length] == '\n');
    }
    return MIXT_OK;
}

/** Gives words their numbers, in the order of the names. */
static mixt_status name_classes(mixt_data *data, csv_reader *reader, float *targets, mixt__table *table)
{
    int64_t numbers[MIXT_CLASS_WORDS];
    const char **names = mixt__arena_alloc(&data->arena, (size_t)reader->words.count * sizeof *names);
    if (!names)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for the names of its classes", reader->path);
    mixt__class_words_sort(&reader->words, numbers);
    for (int64_t i = 0; i < table->rows; i++)
        targets[i] = (float)numbers[(int64_t)targets[i]];
    memcpy(names, reader->words.names, (size_t)reader->words.count * sizeof *names);
    table->class_names = names;
    table->classes = reader->words.count;
    return MIXT_OK;
}

/** Parts the target's column from the others: features move together in place. */
static mixt_status fill_table(mixt_data *data, csv_reader *reader, csv_rows *rows, mixt__table *table)
{
    int64_t features = reader->columns - 1;
    float *targets = mixt__alloc_uninit((size_t)rows->count * sizeof(float));
    if (!targets)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for %lld targets", reader->path, (long long)rows->count);
    for (int64_t i = 0; i < rows->count; i++) {
        const float *row = rows->values + i * reader->columns;
        float *to = rows->values + i * features;
        targets[i] = row[reader->target];
        memmove(to, row, (size_t)reader->target * sizeof(float));
        memmove(to + reader->target, row + reader->target + 1, (size_t)(features - reader->target) * sizeof(float));
    }
    table->path = reader->path;
    table->block = rows->values;
    table->input = rows->values;
    rows->values = NULL;
    table->dtype = MIXT_DTYPE_FP32;
    table->rows = rows->count;
    table->rank = 1;
    table->dims[0] = features;
    table->classes = reader->stated_classes;
    table->missing = rows->missing;
    table->dropped = rows->dropped;
    mixt_status status = reader->worded ? name_classes(data, reader, targets, table) : MIXT_OK;
    if (status != MIXT_OK) {
        mixt__free(targets);
        return status;
    }
    mixt_target_kind kind = reader->worded ? MIXT_TARGET_CLASS : data->options.target;
    return mixt__table_take_targets(data, table, targets, kind, rows->lines);
}

static mixt_status load(mixt_data *data, const char *path, mixt__table *table)
{
    mixt__bytes file;
    MIXT_TRY(mixt__bytes_read(path, &file));
    csv_reader reader = {.path = path};
    reader.text = (mixt__csv_text){.at = (const char *)file.bytes, .end = (const char *)file.bytes + file.size};
    csv_rows rows = {0};
    mixt_status status;
    if (file.size >= 3 && !memcmp(file.bytes, "\xEF\xBB\xBF", 3))
        reader.text.at += 3; // byte-order mark
    MIXT_TRY_CLEANUP(mixt__class_words_start(data, table, &reader.words));
    MIXT_TRY_CLEANUP(read_rows(data, &reader, &rows));
    MIXT_TRY_CLEANUP(take_names(data, &reader, table));
    MIXT_TRY_CLEANUP(compare_names(&reader, table->columns, table->train));
    MIXT_TRY_CLEANUP(fill_table(data, &reader, &rows, table));
    MIXT_LOG(DATA, "%s: %lld rows, %lld features, %s", path, (long long)table->rows, (long long)table->dims[0],
             table->labels ? "the target is a class" : "the target is a value to regress on");
cleanup:
    mixt__free(rows.values);
    mixt__free(rows.lines);
    mixt__bytes_free(&file);
    return status;
}

static const char *find(mixt_data *data, mixt__part part)
{
    return mixt__path_of_part(data, part, ".csv");
}

static mixt_status open_csv(mixt_data *data)
{
    static const mixt__table_reader reader = {find, load};
    return mixt__table_open(data, &reader);
}

const mixt__data_kind mixt__data_csv = {
    .name = "csv",
    .what = "file of numbers, one sample a line",
    .uses =
        MIXT_DATA_LABELS | MIXT_DATA_IMAGES | MIXT_DATA_CELLS | MIXT_DATA_NUMBERS | MIXT_DATA_CLASSES | MIXT_DATA_SHAPE,
    .open = open_csv,
    .sample = mixt__table_sample,
    .close = mixt__table_close,
    .raw = mixt__table_raw,
};
