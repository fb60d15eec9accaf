/* A row is an object on a line of its own; its keys are columns, in the order in which they first come. Texts stand in
 * quotes, line ends in them become blanks, so that rows keep their lines; null and a key that is missing are empty
 * cells. Lists and objects in a row are no cells and refused.
 */
#include "data/table/json_lines.h"

#include "base/c_locale.h"
#include "store/json.h"

#include <string.h>
#include <strings.h>

enum { COLUMNS_MAX = 4096 };

/** Text in the making. */
typedef struct buffer {
    char *text; // owned
    int64_t size, room;
} buffer;

static bool append(buffer *b, const char *text, int64_t length)
{
    if (b->size + length + 1 > b->room) {
        int64_t room = 2 * (b->size + length) + 4096;
        char *grown = mixt__realloc(b->text, (size_t)room);
        if (!grown)
            return false;
        b->text = grown;
        b->room = room;
    }
    memcpy(b->text + b->size, text, (size_t)length);
    b->size += length;
    b->text[b->size] = '\0';
    return true;
}

static bool append_quoted(buffer *b, const char *text, size_t length)
{
    bool good = append(b, "\"", 1);
    for (size_t i = 0; i < length && good; i++) {
        bool blank = text[i] == '\n' || text[i] == '\r' || text[i] == '\t' || !text[i];
        good = append(b, blank ? " " : &text[i], 1) && (text[i] != '"' || append(b, "\"", 1));
    }
    return good && append(b, "\"", 1);
}

bool mixt__json_table_is(const char *path)
{
    static const char *const endings[] = {".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz"};
    size_t length = strlen(path);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        if (length > strlen(endings[i]) && !strcasecmp(path + length - strlen(endings[i]), endings[i]))
            return true;
    return false;
}

static mixt_status no_memory(const char *path)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for its rows", path);
}

/** One line as an object; NULL in *row where it is empty. */
static mixt_status read_line(const char *path, int64_t line, const char *text, size_t length, json_t **row)
{
    json_error_t error;
    *row = NULL;
    while (length && strchr(" \t\r", text[length - 1]))
        length--;
    if (!length)
        return MIXT_OK;
    *row = mixt__json_load(text, length, JSON_DECODE_ANY, &error);
    if (!*row && json_error_code(&error) == json_error_out_of_memory)
        return no_memory(path);
    if (!*row)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: line %lld, column %d: %s", path, (long long)line, error.column,
                          error.text);
    if (json_is_object(*row))
        return MIXT_OK;
    json_decref(*row);
    *row = NULL;
    return mixt__fail(MIXT_ERROR_FORMAT, "%s: line %lld: expected an object, {\"column\": value, …}", path,
                      (long long)line);
}

typedef mixt_status row_fn(void *user, int64_t line, json_t *row);

/** Calls `each` with every line's object; NULL: the line is empty. */
static mixt_status each_row(const char *path, const mixt__bytes *file, row_fn *each, void *user)
{
    const char *at = (const char *)file->bytes + mixt__bytes_mark(file), *end = (const char *)file->bytes + file->size;
    for (int64_t line = 1; at < end; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        json_t *row;
        MIXT_TRY(read_line(path, line, at, (size_t)((stop ? stop : end) - at), &row));
        mixt_status status = each(user, line, row);
        json_decref(row);
        MIXT_TRY(status);
        at = stop ? stop + 1 : end;
    }
    return MIXT_OK;
}

typedef struct conversion {
    const char *path;
    json_t *columns; // keys of all rows
    buffer csv;
    int64_t rows;
} conversion;

static mixt_status add_columns(void *user, int64_t line, json_t *row)
{
    conversion *c = user;
    const char *key;
    json_t *value;
    (void)line;
    json_object_foreach(row, key, value) if (!json_object_get(c->columns, key) &&
                                             mixt__json_set(c->columns, key, json_true())) return no_memory(c->path);
    c->rows += row != NULL;
    return json_object_size(c->columns) <= COLUMNS_MAX
               ? MIXT_OK
               : mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s: more than %d different keys: it is not a table", c->path,
                            COLUMNS_MAX);
}

static mixt_status add_cell(conversion *c, int64_t line, const char *key, const json_t *value)
{
    char number[64] = "";
    if (json_is_array(value) || json_is_object(value))
        return mixt__fail(
            MIXT_ERROR_DATA,
            "%s: line %lld: \"%.60s\" is %s: a cell of a table is a text or a number; leave the key out, or "
            "write its parts as keys of their own",
            c->path, (long long)line, key, json_is_array(value) ? "a list" : "an object");
    if (json_is_string(value))
        return append_quoted(&c->csv, json_string_value(value), json_string_length(value)) ? MIXT_OK
                                                                                           : no_memory(c->path);
    if (json_is_integer(value))
        snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        mixt__print_number(number, sizeof number, "%.17g", json_real_value(value));
    else if (json_is_boolean(value))
        snprintf(number, sizeof number, "%s", json_is_true(value) ? "true" : "false");
    return append(&c->csv, number, (int64_t)strlen(number)) ? MIXT_OK : no_memory(c->path);
}

static mixt_status add_row(void *user, int64_t line, json_t *row)
{
    conversion *c = user;
    const char *key;
    json_t *value;
    bool first = true;
    json_object_foreach(c->columns, key, value)
    {
        if (!row)
            break;
        if (!first && !append(&c->csv, ",", 1))
            return no_memory(c->path);
        first = false;
        MIXT_TRY(add_cell(c, line, key, json_object_get(row, key)));
    }
    return append(&c->csv, "\n", 1) ? MIXT_OK : no_memory(c->path);
}

static mixt_status convert(conversion *c, const mixt__bytes *file)
{
    const char *key;
    json_t *value;
    bool first = true;
    MIXT_TRY(each_row(c->path, file, add_columns, c));
    if (!c->rows)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: no line with data in it", c->path);
    json_object_foreach(c->columns, key, value)
    {
        if ((!first && !append(&c->csv, ",", 1)) || !append_quoted(&c->csv, key, strlen(key)))
            return no_memory(c->path);
        first = false;
    }
    if (!append(&c->csv, "\n", 1))
        return no_memory(c->path);
    return each_row(c->path, file, add_row, c);
}

mixt_status mixt__json_table_convert(const char *path, mixt__bytes *file, int64_t *lines)
{
    *lines = 1;
    if (!mixt__json_table_is(path))
        return MIXT_OK;
    *lines = 0;
    conversion c = {.path = path, .columns = json_object()};
    mixt_status status = c.columns ? convert(&c, file) : no_memory(path);
    json_decref(c.columns);
    if (status != MIXT_OK) {
        mixt__free(c.csv.text);
        return status;
    }
    mixt__bytes_free(file);
    *file = (mixt__bytes){(unsigned char *)c.csv.text, c.csv.size};
    return MIXT_OK;
}

mixt_status mixt__json_table_read(const char *path, mixt__bytes *file, int64_t *lines)
{
    MIXT_TRY(mixt__bytes_read(path, file));
    mixt_status status = mixt__json_table_convert(path, file, lines);
    if (status != MIXT_OK)
        mixt__bytes_free(file);
    return status;
}
