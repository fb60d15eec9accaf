/* Numbers and names for JSON, and a line of it. A document that lacks a value is lost output: one flag of the process,
 * since a command prints one document after the other and ends with an error where it lost any. */
#include "cli/json.h"

#include "cli/support.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

static void *allocate(size_t bytes)
{
    void *block = malloc(bytes);
    if (!block)
        cli_output_lose(); // jansson goes on without what it has no memory for
    return block;
}

void cli_json_watch(void)
{
    json_set_alloc_funcs(allocate, free);
}

json_t *cli_json_pack(const char *format, ...)
{
    json_error_t error;
    va_list values;
    va_start(values, format);
    json_t *value = json_vpack_ex(&error, 0, format, values);
    va_end(values);
    if (!value)
        cli_output_lose();
    return value;
}

void cli_json_set(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value))
        cli_output_lose();
}

void cli_json_add(json_t *array, json_t *value)
{
    if (json_array_append_new(array, value))
        cli_output_lose();
}

json_t *cli_json_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *cli_json_string(const char *text)
{
    return text ? json_string(text) : json_null();
}

json_t *cli_json_format(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    json_t *text = json_vsprintf(format, values);
    va_end(values);
    return text;
}

json_t *cli_json_read(const char *text)
{
    return json_loads(text, 0, NULL);
}

void cli_json_print(json_t *document, FILE *stream, size_t flags)
{
    // not json_dumpf, which would have begun to print what it cannot finish: first the length, then the text
    size_t bytes = cli_output_lost() ? 0 : json_dumpb(document, NULL, 0, flags);
    char *text = bytes ? malloc(bytes) : NULL;
    if (text && json_dumpb(document, text, bytes, flags) == bytes) {
        fwrite(text, 1, bytes, stream); // a stream's error is seen at its end
        fputc('\n', stream);
    } else {
        cli_output_lose();
    }
    free(text);
    json_decref(document);
}

mixt_status cli_json_name(const char *name)
{
    json_t *text = json_string(name);
    bool good = text != NULL;
    json_decref(text);
    return good ? MIXT_OK : mixt_fail(MIXT_ERROR_ARGUMENT, "%s: is not UTF-8: --json cannot print it", name);
}
