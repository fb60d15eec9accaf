/* Files of "::" and of CSV, line by line. Between "::" quotes mean nothing: titles have them. */
#include "data/table/lines.h"

#include <string.h>

enum { NO_SEPARATOR = 0x1f }; // a character that such files do not have: no field begins with a quote then

int64_t mixt__lines_count(const mixt__bytes *file)
{
    int64_t lines = 1;
    for (int64_t i = 0; i < file->size; i++)
        lines += file->bytes[i] == '\n';
    return lines;
}

mixt_status mixt__lines_read(const char *path, mixt__bytes *file)
{
    MIXT_TRY(mixt__bytes_read(path, file));
    mixt_status status = mixt__text_check(path, file->bytes, file->size);
    if (status == MIXT_OK && mixt__lines_count(file) > INT32_MAX)
        status = mixt__fail(MIXT_ERROR_DATA, "%s: more than %d lines", path, INT32_MAX);
    if (status != MIXT_OK)
        mixt__bytes_free(file);
    return status;
}

mixt__lines mixt__lines_of(mixt__bytes *file)
{
    const char *begin = (const char *)file->bytes;
    return (mixt__lines){.text = {.at = begin, .end = begin + file->size}};
}

static bool has_colons(const mixt__csv_field *line)
{
    return memmem(line->text, (size_t)line->length, "::", 2) != NULL;
}

/** The first line says what parts fields. */
static bool take_first(mixt__lines *l, mixt__csv_field *line)
{
    mixt__csv_text before = l->text;
    l->begun = true;
    if (!mixt__csv_next_line(&l->text, line))
        return false;
    l->colons = has_colons(line);
    if (!l->colons) {
        l->text.separator = mixt__csv_separator(&l->text, line);
        return true;
    }
    l->text = before; // it may have been taken for more than one line
    l->text.separator = NO_SEPARATOR;
    return mixt__csv_next_line(&l->text, line);
}

static int split_colons(const mixt__csv_field *line, mixt__csv_field *fields, int most)
{
    const char *at = line->text, *end = line->text + line->length;
    int count = 0;
    while (at) {
        const char *next = memmem(at, (size_t)(end - at), "::", 2);
        if (count < most)
            fields[count] = (mixt__csv_field){.text = at, .length = (next ? next : end) - at};
        count++;
        at = next ? next + 2 : NULL;
    }
    return count;
}

/** One of each two quotes, in the file's own memory: a line is taken once. */
static void join_quotes(mixt__csv_field *field)
{
    char *to = (char *)(uintptr_t)field->text;
    int64_t length = 0;
    if (!field->quoted || !memmem(field->text, (size_t)field->length, "\"\"", 2))
        return;
    for (int64_t i = 0; i < field->length; i++) {
        to[length++] = field->text[i];
        i += field->text[i] == '"' && i + 1 < field->length && field->text[i + 1] == '"';
    }
    field->length = length;
}

int mixt__lines_next(mixt__lines *l, mixt__csv_field *fields, int most)
{
    mixt__csv_field line, field;
    int count = 0;
    if (!(l->begun ? mixt__csv_next_line(&l->text, &line) : take_first(l, &line)))
        return -1;
    if (l->colons)
        return split_colons(&line, fields, most);
    while (mixt__csv_next_field(&l->text, &line, &field)) {
        join_quotes(&field);
        if (count < most)
            fields[count] = field;
        count++;
    }
    return count;
}
