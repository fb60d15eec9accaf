/* Failure: one status code and one line of text per thread, recorded where it happens.
 *
 * mixt__fail() stores the message and returns the status, so that `return mixt__fail(...)` reads as one sentence; with
 * MIXT_LOG=error it also logs the place. The two macros are the only control flow built on it: they pass a status on.
 */
#ifndef MIXT_BASE_STATUS_H
#define MIXT_BASE_STATUS_H

#include "mixt/types.h"

#define mixt__fail(status, ...) mixt__fail_at(__FILE__, __LINE__, (status), __VA_ARGS__)

mixt_status mixt__fail_at(const char *file, int line, mixt_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/** Refuses NULL for an argument that a public function needs; the text names both. */
#define mixt__need(argument) mixt__need_at(__func__, #argument, (argument))
mixt_status mixt__need_at(const char *function, const char *argument, const void *pointer);

/** Puts "<text>: " before the message of a failure on its way up: the file, layer or key it belongs to. */
mixt_status mixt__fail_context(mixt_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** A text for the caller, who frees it with mixt_free; NULL and MIXT_ERROR_MEMORY when memory ends. */
mixt_status mixt__give_text(char **text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Carries a message from another thread over to this one. */
void mixt__error_set(const char *text);

/** From now on every failure's text is also handed to `set`: how a backend in a library of its own reports. */
void mixt__error_forward(void (*set)(const char *text));

#define MIXT_TRY(call)                                                                                                 \
    do {                                                                                                               \
        mixt_status mixt_try_status = (call);                                                                          \
        if (mixt_try_status != MIXT_OK)                                                                                \
            return mixt_try_status;                                                                                    \
    } while (0)

/** Needs `mixt_status status` and a label `cleanup` in the function. */
#define MIXT_TRY_CLEANUP(call)                                                                                         \
    do {                                                                                                               \
        status = (call);                                                                                               \
        if (status != MIXT_OK)                                                                                         \
            goto cleanup;                                                                                              \
    } while (0)

#endif
