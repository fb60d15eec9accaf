/* Rows with checksums: {...,"checksum":"0123456789abcdef"}, of what stands before that key. */
#include "store/json_rows.h"

#include "base/files.h"
#include "base/status.h"
#include "store/checksum.h"
#include "store/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SEAL = 13 + 16 + 2 }; // `,"checksum":"`, the digits, `"}`

/** Writes what a row with this beginning ends with. */
static void seal_of(const char *text, size_t bytes, char seal[SEAL + 1])
{
    snprintf(seal, SEAL + 1, ",\"checksum\":\"%016llx\"}", (unsigned long long)mixt__checksum(text, bytes));
}

char *mixt__json_row_seal(char *text)
{
    size_t bytes = text ? strlen(text) - 1 : 0; // without its brace
    char seal[SEAL + 1];
    char *sealed = text ? realloc(text, bytes + sizeof seal) : NULL;
    if (!sealed) {
        free(text);
        return NULL;
    }
    seal_of(sealed, bytes, seal);
    memcpy(sealed + bytes, seal, sizeof seal);
    return sealed;
}

static bool is_sealed(const char *text, size_t bytes)
{
    char seal[SEAL + 1];
    if (bytes < SEAL)
        return false;
    seal_of(text, bytes - SEAL, seal);
    return !memcmp(text + bytes - SEAL, seal, SEAL);
}

/** What a file that was cut while a row was written ends with is the beginning of a row, but never all of it. */
static bool is_cut_short(const char *text, size_t bytes)
{
    json_error_t error;
    json_t *row = mixt__json_load(text, bytes, JSON_DISABLE_EOF_CHECK, &error);
    json_decref(row);
    return !row && (json_error_code(&error) == json_error_premature_end_of_input ||
                    json_error_code(&error) == json_error_invalid_syntax);
}

static mixt_status damaged(const char *path, int64_t line, const char *why)
{
    return mixt__fail(MIXT_ERROR_FORMAT, "%s:%lld: the row is damaged: %s", path, (long long)line, why);
}

static mixt_status read_row(const char *path, int64_t line, const char *text, size_t bytes, json_t **row)
{
    mixt_status status = mixt__json_parse(path, text, bytes, 0, row);
    if (status != MIXT_OK)
        return status == MIXT_ERROR_FORMAT ? damaged(path, line, "it is not JSON") : status;
    if (!json_object_get(*row, "checksum"))
        return MIXT_OK;
    if (is_sealed(text, bytes)) {
        json_object_del(*row, "checksum");
        return MIXT_OK;
    }
    json_decref(*row);
    return damaged(path, line, "its checksum is another");
}

/** Whether the end is why a line was not read: getline also ends for want of memory. */
static mixt_status at_end(FILE *file, const char *path)
{
    if (feof(file))
        return MIXT_OK;
    return mixt__fail(errno == ENOMEM ? MIXT_ERROR_MEMORY : MIXT_ERROR_FILE, "%s: cannot be read: %s", path,
                      mixt__file_problem(errno));
}

mixt_status mixt__json_rows_read(FILE *file, const char *path, mixt_status (*take)(void *user, json_t *row), void *user)
{
    char *text = NULL;
    size_t room = 0;
    ssize_t length;
    mixt_status status = MIXT_OK;
    for (int64_t line = 1; status == MIXT_OK && (length = getline(&text, &room, file)) > 0; line++) {
        json_t *row;
        if (text[length - 1] != '\n') {
            if (!is_cut_short(text, (size_t)length))
                status = damaged(path, line, "no end of line");
            break;
        }
        status = read_row(path, line, text, (size_t)length - 1, &row);
        if (status != MIXT_OK)
            break;
        status = take(user, row);
        json_decref(row);
        if (status == MIXT_ERROR_FORMAT)
            status = mixt__fail_context(status, "%s:%lld", path, (long long)line);
    }
    free(text);
    return status == MIXT_OK ? at_end(file, path) : status;
}

mixt_status mixt__json_lines_read(const char *path, mixt_status (*take)(void *user, const char *text, int64_t line),
                                  void *user)
{
    char *text = NULL;
    size_t room = 0;
    mixt_status status = MIXT_OK;
    FILE *file = mixt__file_open_stream(path);
    if (!file && errno == ENOENT)
        return MIXT_OK;
    if (!file)
        return mixt__fail(MIXT_ERROR_FILE, "%s: cannot be read: %s", path, mixt__file_problem(errno));
    for (int64_t line = 1; status == MIXT_OK && getline(&text, &room, file) > 0; line++)
        status = take(user, text, line);
    free(text);
    if (status == MIXT_OK)
        status = at_end(file, path);
    fclose(file);
    return status;
}
