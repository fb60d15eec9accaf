/* CSV: one sample a line, the last column is the target, or the one that the option 'labels' gives by name or number.
 *
 * The separator comes from the first line (; tab , or space, in this order). The first line is a header when fewer than
 * half of its fields are numbers, or those are the numbers of columns, from 0 or 1 ("0,1,2,class"): one bad field does
 * not make it one, for a sample would be lost. A header names every column. A field in quotes may hold separators, line
 * ends and doubled quotes (RFC 4180); a quote without its other is a letter like any. The target may be words, all of
 * them: classes by name. scikit-learn's "rows,features,class names" is understood and its counts are checked. Blank
 * lines and lines that begin with # are skipped. Numbers are decimal. A missing or non-finite value is an error: mixt
 * does not guess data.
 */
#include "base/c_locale.h"
#include "data/class_words.h"
#include "data/data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 24, QUOTED_MAX = 1 << 16 }; // characters of a bad field in a message, of a field in quotes

typedef struct csv_field {
    const char *text;
    int64_t length;
    bool quoted; // quotes stood around it
} csv_field;

/** A position in the file's text, and what is known so far. */
typedef struct csv_reader {
    const char *path;
    const char *at, *end;    // rest of the text; *end is NUL
    int64_t line;            // where the line last taken begins, from 1
    int64_t inside;          // line ends in quotes within it
    char separator;          // 0: not known yet
    int64_t columns, target; // target: the column, from 0
    csv_field header;        // the first line, where it is one
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
} csv_rows;

static bool separates(const csv_reader *reader, char c)
{
    return reader->separator ? c == reader->separator : c == ';' || c == '\t' || c == ',' || c == ' ';
}

/** Behind the closing quote of the field that begins with one at `at`; NULL when none closes it. */
static const char *quoted_end(const csv_reader *reader, const char *at)
{
    const char *limit = reader->end - at > QUOTED_MAX ? at + QUOTED_MAX : reader->end;
    for (const char *c = at + 1; c < limit; c++) {
        if (*c != '"')
            continue;
        if (c[1] == '"') { // the text ends with NUL
            c++;
            continue;
        }
        const char *after = c + 1;
        while (after < reader->end && !separates(reader, *after) && (*after == ' ' || *after == '\r' || *after == '\t'))
            after++;
        return after == reader->end || *after == '\n' || separates(reader, *after) ? c + 1 : NULL;
    }
    return NULL;
}

/** The end of the line that begins at `at`: a line end that is not in quotes. */
static const char *line_end(csv_reader *reader, const char *at)
{
    const char *newline = memchr(at, '\n', (size_t)(reader->end - at)), *stop = newline ? newline : reader->end;
    reader->inside = 0;
    if (!memchr(at, '"', (size_t)(stop - at)))
        return stop;
    bool begins = true;
    while (at < reader->end && *at != '\n') {
        const char *behind = begins && *at == '"' ? quoted_end(reader, at) : NULL;
        for (; behind && at < behind; at++)
            reader->inside += *at == '\n';
        if (behind) {
            begins = false;
            continue;
        }
        begins = separates(reader, *at) || (begins && (*at == ' ' || *at == '\t'));
        at++;
    }
    return at;
}

/** The next line that says something; false at the end. */
static bool next_line(csv_reader *reader, csv_field *line)
{
    while (reader->at < reader->end) {
        reader->line += 1 + reader->inside;
        const char *stop = line_end(reader, reader->at);
        line->text = reader->at;
        reader->at = stop < reader->end ? stop + 1 : reader->end;
        while (stop > line->text && (stop[-1] == '\r' || stop[-1] == ' '))
            stop--;
        while (line->text < stop && *line->text == ' ')
            line->text++;
        line->length = stop - line->text;
        if (line->length > 0 && *line->text != '#')
            return true;
    }
    return false;
}

/** Takes the first field off a line; false when none is left. An empty rest after a separator is one more field. */
static bool next_field(const csv_reader *reader, csv_field *rest, csv_field *field)
{
    if (!rest->text)
        return false;
    const char *end = rest->text + rest->length, *from = rest->text;
    while (from < end && !separates(reader, *from) && (*from == ' ' || *from == '\t'))
        from++;
    const char *behind = from < end && *from == '"' ? quoted_end(reader, from) : NULL;
    from = behind && behind <= end ? behind : rest->text;
    const char *stop = memchr(from, reader->separator, (size_t)(end - from));
    *field = (csv_field){rest->text, (stop ? stop : end) - rest->text, false};
    while (stop && reader->separator == ' ' && stop[1] == ' ')
        stop++;
    *rest = stop ? (csv_field){stop + 1, end - stop - 1, false} : (csv_field){NULL, 0, false};
    while (field->length > 0 && (*field->text == ' ' || *field->text == '\t')) {
        field->text++;
        field->length--;
    }
    while (field->length > 0 && (field->text[field->length - 1] == ' ' || field->text[field->length - 1] == '\t'))
        field->length--;
    if (field->length >= 2 && *field->text == '"' && field->text[field->length - 1] == '"') {
        field->text++;
        field->length -= 2;
        field->quoted = true;
    }
    return true;
}

/** Plain decimals exactly and fast; false for anything that needs strtod (long, large, or no number at all). */
static bool parse_plain(const csv_field *field, double *value)
{
    static const double powers[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    const char *at = field->text, *end = at + field->length;
    bool negative = at < end && *at == '-';
    at += at < end && (*at == '-' || *at == '+');
    uint64_t mantissa = 0;
    int digits = 0, decimals = 0;
    bool point = false;
    for (; at < end; at++) {
        if (*at == '.' && !point) {
            point = true;
            continue;
        }
        if (*at < '0' || *at > '9' || digits == 15)
            return false;
        mantissa = mantissa * 10 + (uint64_t)(*at - '0');
        digits++;
        decimals += point;
    }
    double magnitude = (double)mantissa / powers[decimals];
    *value = negative ? -magnitude : magnitude;
    return digits > 0;
}

static bool parse_number(const csv_field *field, double *value)
{
    if (field->length == 0)
        return false;
    if (parse_plain(field, value))
        return true;
    char first = *field->text;
    if (first == ' ' || first == '\t' || first == '\r' || first == '\v' || first == '\f' || first == '\n')
        return false; // strtod would skip it, over the end of the field
    if (memchr(field->text, 'x', (size_t)field->length) || memchr(field->text, 'X', (size_t)field->length))
        return false; // strtod knows hexadecimal, too
    char *end;
    *value = mixt__read_double(field->text, &end);
    return end == field->text + field->length;
}

static char find_separator(const csv_reader *reader, const csv_field *line)
{
    static const char candidates[] = {';', '\t', ',', ' '};
    bool seen[sizeof candidates] = {false}, begins = true;
    for (const char *at = line->text; at < line->text + line->length; at++) {
        const char *behind = begins && *at == '"' ? quoted_end(reader, at) : NULL;
        at = behind ? behind - 1 : at;
        begins = !behind && separates(reader, *at);
        for (size_t i = 0; i < sizeof candidates && !behind; i++)
            seen[i] |= *at == candidates[i];
    }
    for (size_t i = 0; i < sizeof candidates; i++)
        if (seen[i])
            return candidates[i];
    return ',';
}

/** What the first line is: how many fields it has, how many are no numbers, and scikit-learn's counts. */
static bool is_header(csv_reader *reader, csv_field line)
{
    csv_field field;
    double value, counts[2] = {0, 0};
    double first = 0; // the number that the first column would have, were the numbers those of columns
    int64_t fields = 0, words = 0;
    bool numbered = true;
    while (next_field(reader, &line, &field)) {
        if (parse_number(&field, &value)) {
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

static int64_t count_fields(const csv_reader *reader, csv_field line)
{
    csv_field field;
    int64_t count = 0;
    while (next_field(reader, &line, &field))
        count++;
    return count;
}

/** A quote that stands alone: the line is damaged. */
static mixt_status check_quotes(const csv_reader *reader)
{
    csv_field rest = reader->header, field;
    for (int64_t column = 1; next_field(reader, &rest, &field); column++) {
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
static mixt_status check_header(csv_reader *reader, csv_field line)
{
    int64_t columns = count_fields(reader, line), names = count_fields(reader, reader->header);
    if (reader->stated_rows && columns == reader->columns)
        return MIXT_OK;
    reader->stated_rows = reader->stated_classes = 0;
    reader->columns = columns;
    MIXT_TRY(check_quotes(reader));
    if (names != columns)
        return mixt__fail(MIXT_ERROR_DATA, "%s: line %lld: %lld columns, but the header in line %lld has %lld",
                          reader->path, (long long)reader->line, (long long)columns, (long long)reader->header_line,
                          (long long)names);
    return MIXT_OK;
}

/** Nothing, or a word that programs write for nothing. */
static bool is_missing(const csv_field *field)
{
    static const char *const words[] = {"", "NA", "N/A", "?", "null", "NULL", "None", "-"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if ((int64_t)strlen(words[i]) == field->length && !memcmp(field->text, words[i], (size_t)field->length))
            return true;
    return false;
}

static mixt_status bad_field(const csv_reader *reader, int64_t column, const csv_field *field, double value, bool first)
{
    int shown = (int)(field->length < SHOWN ? field->length : SHOWN);
    const char *wrong = is_missing(field) ? "is missing" : isfinite(value) ? "is not a number" : "is not finite";
    return mixt__fail(MIXT_ERROR_DATA, "%s: line %lld, column %lld: '%.*s' %s; every field must be a finite number%s",
                      reader->path, (long long)reader->line, (long long)column, shown, field->text, wrong,
                      first ? " (in a header line, most are words)" : "");
}

/** A class by name. Words in the first row's target mean words in all: among numbers, one is a mistake. */
static mixt_status read_word(mixt_data *data, csv_reader *reader, int64_t row, const csv_field *field, double *value)
{
    int shown = (int)(field->length < SHOWN ? field->length : SHOWN);
    double number;
    bool is_number = parse_number(field, &number);
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
                          reader->path, (long long)reader->line, (long long)reader->target + 1, shown, field->text);
    reader->word_line = row ? reader->word_line : reader->line;
    int64_t class = mixt__class_words_number(data, &reader->words, field->text, field->length);
    if (class < 0)
        return mixt__fail(MIXT_ERROR_DATA, "%s: line %lld, column %lld: '%.*s' is %s", reader->path,
                          (long long)reader->line, (long long)reader->target + 1, shown, field->text,
                          reader->words.given
                              ? "no class of the training part"
                              : "one word too many for classes (at most 1000); is it the right column?");
    *value = (double)class;
    return MIXT_OK;
}

static mixt_status read_row(mixt_data *data, csv_reader *reader, csv_field line, csv_rows *rows)
{
    csv_field field;
    int64_t column = 0;
    while (next_field(reader, &line, &field)) {
        double value = 0;
        bool number = parse_number(&field, &value), target = column == reader->target;
        if (target && !rows->count)
            reader->worded = reader->words.given || (!number && data->options.target != MIXT_TARGET_VALUES);
        if (target && reader->worded && !is_missing(&field)) {
            MIXT_TRY(read_word(data, reader, rows->count, &field, &value));
            number = true;
        }
        if (!number)
            value = 0;
        if (!number || !isfinite((float)value))
            return bad_field(reader, column + 1, &field, number ? INFINITY : 0, !rows->count && !reader->header.text);
        if (!mixt__grow((void **)&rows->values, &rows->value_capacity, rows->value_count, sizeof(float)))
            return mixt__fail(MIXT_ERROR_MEMORY, "%s: line %lld: no memory", reader->path, (long long)reader->line);
        rows->values[rows->value_count++] = (float)value;
        column++;
    }
    if (column != reader->columns)
        return mixt__fail(MIXT_ERROR_DATA, "%s: line %lld: %lld columns, expected %lld as in the lines before",
                          reader->path, (long long)reader->line, (long long)column, (long long)reader->columns);
    if (!mixt__grow((void **)&rows->lines, &rows->line_capacity, rows->count, sizeof(int64_t)))
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: line %lld: no memory", reader->path, (long long)reader->line);
    rows->lines[rows->count++] = reader->line;
    return MIXT_OK;
}

/** The target's column: the last one, or what the option 'labels' says. */
static mixt_status find_target(const mixt_data *data, csv_reader *reader)
{
    const char *wanted = data->options.labels;
    reader->target = reader->columns - 1;
    if (!wanted)
        return MIXT_OK;
    csv_field rest = reader->header, field, text = {wanted, (int64_t)strlen(wanted), false};
    int64_t found = -1;
    for (int64_t column = 0; next_field(reader, &rest, &field) && column < reader->columns; column++) {
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
    if (parse_plain(&text, &number) && number >= 1 && number <= (double)reader->columns && number == floor(number)) {
        reader->target = (int64_t)number - 1;
        return MIXT_OK;
    }
    return mixt__fail(
        MIXT_ERROR_CONFIG,
        "%s: no column '%s' for the labels; expected a name of the header line%s or a number from 1 to %lld",
        reader->path, wanted, reader->header.text ? "" : " (the file has none)", (long long)reader->columns);
}

static bool has_words(const csv_reader *reader, csv_field line)
{
    csv_field field;
    double value;
    while (next_field(reader, &line, &field))
        if (field.length && !parse_number(&field, &value))
            return true;
    return false;
}

/** "1,cat" above "5,dog": no numbers of columns, but the first sample. */
static mixt_status take_back_header(mixt_data *data, csv_reader *reader, csv_rows *rows)
{
    csv_field first = reader->header;
    int64_t line = reader->line;
    reader->header = (csv_field){0};
    reader->columns = count_fields(reader, first);
    reader->line = reader->header_line;
    MIXT_TRY(find_target(data, reader));
    MIXT_TRY(read_row(data, reader, first, rows));
    reader->line = line;
    return MIXT_OK;
}

static mixt_status read_rows(mixt_data *data, csv_reader *reader, csv_rows *rows)
{
    csv_field line;
    if (!next_line(reader, &line))
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: no line with data in it", reader->path);
    reader->separator = find_separator(reader, &line);
    if (is_header(reader, line)) {
        reader->header = line;
        reader->header_line = reader->line;
        MIXT_LOG(DATA, "%s: line %lld is a header%s", reader->path, (long long)reader->line,
                 reader->stated_rows ? " with counts" : "");
    } else {
        MIXT_TRY(find_target(data, reader));
        MIXT_TRY(read_row(data, reader, line, rows));
    }
    while (next_line(reader, &line)) {
        if (rows->count == 0 && reader->numbered && has_words(reader, line))
            MIXT_TRY(take_back_header(data, reader, rows));
        if (rows->count == 0) {
            MIXT_TRY(check_header(reader, line));
            MIXT_TRY(find_target(data, reader));
        }
        MIXT_TRY(read_row(data, reader, line, rows));
    }
    if (rows->count == 0)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: only a header line, no data", reader->path);
    if (reader->columns < 2)
        return mixt__fail(
            MIXT_ERROR_DATA,
            "%s: 1 column, expected at least 2: features, then the target (separated by , ; tab or space)",
            reader->path);
    if (reader->stated_rows && reader->stated_rows != rows->count)
        return mixt__fail(MIXT_ERROR_DATA, "%s: line 1 states %lld rows, the file has %lld: is it cut off?",
                          reader->path, (long long)reader->stated_rows, (long long)rows->count);
    return MIXT_OK;
}

/** Keeps the names of the columns, where the header has them. */
static mixt_status take_names(mixt_data *data, const csv_reader *reader, mixt__table *table)
{
    csv_field rest = reader->header, field;
    if (!rest.text || reader->stated_rows)
        return MIXT_OK;
    char *at = mixt__arena_alloc(&data->arena, (size_t)rest.length + 2); // a line end for each separator, and one more
    if (!at)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for the names of its columns", reader->path);
    table->columns = at;
    while (next_field(reader, &rest, &field)) {
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
    csv_reader reader = {.path = path, .at = (const char *)file.bytes, .end = (const char *)file.bytes + file.size};
    csv_rows rows = {0};
    mixt_status status;
    if (file.size >= 3 && !memcmp(file.bytes, "\xEF\xBB\xBF", 3))
        reader.at += 3; // byte-order mark
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
    .uses = MIXT_DATA_LABELS | MIXT_DATA_IMAGES,
    .open = open_csv,
    .sample = mixt__table_sample,
    .close = mixt__table_close,
    .raw = mixt__table_raw,
};
