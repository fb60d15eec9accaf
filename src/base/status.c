/* Per-thread error text. The buffer is fixed: reporting a failure must not itself be able to fail. */
#include "base/status.h"

#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ERROR_TEXT_SIZE = 2048 };

static _Thread_local char error_text[ERROR_TEXT_SIZE];

const char *mixt_status_text(mixt_status status)
{
    switch (status) {
#define MIXT_STATUS_CASE(name, number, text)                                                                           \
    case MIXT_##name:                                                                                                  \
        return text;
        MIXT_STATUS_LIST(MIXT_STATUS_CASE)
#undef MIXT_STATUS_CASE
    }
    return "unknown status";
}

const char *mixt_error_text(void)
{
    return error_text;
}

static void (*error_forward)(const char *text);

void mixt__error_forward(void (*set)(const char *text))
{
    error_forward = set;
}

void mixt__error_set(const char *text)
{
    snprintf(error_text, sizeof error_text, "%s", text);
    if (error_forward)
        error_forward(text);
}

static void set_error(const char *format, va_list args)
{
    char text[ERROR_TEXT_SIZE]; // the arguments may point into error_text
    vsnprintf(text, sizeof text, format, args);
    mixt__error_set(text);
}

void mixt_free(void *text)
{
    free(text);
}

mixt_status mixt__give_text(char **text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vasprintf(text, format, args);
    va_end(args);
    if (length >= 0)
        return MIXT_OK;
    *text = NULL; // it is anything now
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a text");
}

mixt_status mixt_fail(mixt_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set_error(format, args);
    va_end(args);
    MIXT_LOG(ERROR, "%s: %s", mixt_status_text(status), error_text);
    return status;
}

mixt_status mixt__fail_at(const char *file, int line, mixt_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set_error(format, args);
    va_end(args);
    MIXT_LOG(ERROR, "%s:%d: %s: %s", file, line, mixt_status_text(status), error_text);
    return status;
}

mixt_status mixt__need_at(const char *function, const char *argument, const void *pointer)
{
    return pointer ? MIXT_OK : mixt__fail(MIXT_ERROR_ARGUMENT, "%s: %s must not be NULL", function, argument);
}

mixt_status mixt__fail_context(mixt_status status, const char *format, ...)
{
    char text[ERROR_TEXT_SIZE];
    va_list args;
    va_start(args, format);
    int used = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (used >= 0 && used < ERROR_TEXT_SIZE)
        snprintf(text + used, sizeof text - (size_t)used, ": %.*s", ERROR_TEXT_SIZE - used - 3, error_text);
    mixt__error_set(text);
    return status;
}
