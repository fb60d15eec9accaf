/* Finding rows: lines, or the elements of one array. An element's end is found by counting brackets outside of texts,
 * so that each row is parsed alone, by any thread, and has a line number. */
#include "data/chat/chat_rows.h"

#include "store/json.h"

#include <string.h>

static mixt_status add_row(mixt__chat_rows *rows, int64_t begin, int64_t end, int64_t line)
{
    if (!mixt__grow((void **)&rows->row, &rows->capacity, rows->count, sizeof *rows->row))
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for its rows", rows->path);
    rows->row[rows->count++] = (mixt__chat_row){begin, end, line};
    return MIXT_OK;
}

static bool is_blank(unsigned char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/** Past blanks; counts lines. */
static int64_t skip_blanks(const mixt__bytes *file, int64_t at, int64_t *line)
{
    while (at < file->size && is_blank(file->bytes[at]))
        *line += file->bytes[at++] == '\n';
    return at;
}

static mixt_status find_lines(mixt__chat_rows *rows, int64_t at)
{
    const unsigned char *bytes = rows->file.bytes;
    for (int64_t line = 1; at < rows->file.size; line++) {
        const unsigned char *newline = memchr(bytes + at, '\n', (size_t)(rows->file.size - at));
        int64_t next = newline ? newline - bytes + 1 : rows->file.size, end = next;
        while (at < end && is_blank(bytes[at]))
            at++;
        while (end > at && is_blank(bytes[end - 1]))
            end--;
        if (end > at)
            MIXT_TRY(add_row(rows, at, end, line));
        at = next;
    }
    return MIXT_OK;
}

/** The end of an array's element that begins at `at`: where the comma or the bracket behind it stands, or the file's
 *  end. */
static int64_t end_of_element(const mixt__bytes *file, int64_t at, int64_t *line)
{
    int64_t depth = 0;
    for (bool text = false; at < file->size; at++) {
        unsigned char c = file->bytes[at];
        *line += c == '\n';
        if (text && c == '\\' && at + 1 < file->size) {
            at++;
            *line += file->bytes[at] == '\n';
        } else if (c == '"') {
            text = !text;
        } else if (!text && (c == '{' || c == '[')) {
            depth++;
        } else if (!text && (c == '}' || c == ']')) {
            if (!depth--)
                return at;
        } else if (!text && c == ',' && !depth) {
            return at;
        }
    }
    return at;
}

/** @param at behind the array's first bracket */
static mixt_status find_elements(mixt__chat_rows *rows, int64_t at, int64_t line)
{
    const mixt__bytes *file = &rows->file;
    at = skip_blanks(file, at, &line);
    while (at < file->size && file->bytes[at] != ']') {
        int64_t begin = at, first = line, end;
        at = end = end_of_element(file, at, &line);
        while (end > begin && is_blank(file->bytes[end - 1]))
            end--;
        if (at < file->size && file->bytes[at] == '}')
            return mixt__fail(MIXT_ERROR_FORMAT, "%s: line %lld: a '}' that closes nothing", rows->path,
                              (long long)line);
        MIXT_TRY(add_row(rows, begin, end, first));
        if (at < file->size && file->bytes[at] == ',') {
            at = skip_blanks(file, at + 1, &line);
            if (at < file->size && file->bytes[at] == ']')
                return mixt__fail(MIXT_ERROR_FORMAT, "%s: line %lld: a comma, and no row behind it", rows->path,
                                  (long long)line);
        }
    }
    if (at >= file->size)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: line %lld: the file ends before its array does: no ']'", rows->path,
                          (long long)line);
    at = skip_blanks(file, at + 1, &line);
    return at >= file->size ? MIXT_OK
                            : mixt__fail(MIXT_ERROR_FORMAT, "%s: line %lld: there is more behind the array's ']'",
                                         rows->path, (long long)line);
}

static mixt_status find_rows(mixt__chat_rows *rows)
{
    int64_t line = 1, mark = mixt__bytes_mark(&rows->file), at = skip_blanks(&rows->file, mark, &line);
    MIXT_TRY(mixt__text_check(rows->path, rows->file.bytes, rows->file.size));
    if (at < rows->file.size && rows->file.bytes[at] == '[')
        MIXT_TRY(find_elements(rows, at + 1, line));
    else
        MIXT_TRY(find_lines(rows, mark));
    return rows->count ? MIXT_OK : mixt__fail(MIXT_ERROR_DATA, "%s: no rows in it", rows->path);
}

mixt_status mixt__chat_rows_read(const char *path, mixt__chat_rows *rows)
{
    *rows = (mixt__chat_rows){.path = path};
    MIXT_TRY(mixt__bytes_read(path, &rows->file));
    mixt_status status = find_rows(rows);
    if (status != MIXT_OK)
        mixt__chat_rows_free(rows);
    return status;
}

void mixt__chat_rows_free(mixt__chat_rows *rows)
{
    mixt__bytes_free(&rows->file);
    mixt__free(rows->row);
    *rows = (mixt__chat_rows){0};
}

mixt_status mixt__chat_row_parse(const mixt__chat_rows *rows, int64_t index, json_t **value)
{
    const mixt__chat_row *row = &rows->row[index];
    json_error_t error;
    *value = mixt__json_load(rows->file.bytes + row->begin, (size_t)(row->end - row->begin), 0, &error);
    if (*value)
        return MIXT_OK;
    if (json_error_code(&error) == json_error_out_of_memory)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: line %lld: no memory for this row", rows->path, (long long)row->line);
    return mixt__fail(MIXT_ERROR_FORMAT, "%s: line %lld: not JSON: %s", rows->path,
                      (long long)(row->line + (error.line > 0 ? error.line - 1 : 0)), error.text);
}
