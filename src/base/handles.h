/* Which public objects are open: asked by address, before anything of the object is read.
 *
 * A user may close an object twice, or use one whose owner was closed. Such an address is found here not to be open, so
 * that the call is refused instead of reading freed memory. (Where the same address has been given to a new object of
 * the same kind meanwhile, nobody can tell.) The record lives in the object itself: nothing is allocated, nothing
 * fails.
 */
#ifndef MIXT_BASE_HANDLES_H
#define MIXT_BASE_HANDLES_H

#include "base/status.h"

#include <stdbool.h>

typedef struct mixt__handle {
    const void *object;
    const char *kind;  // "context", "trainer", "data", …
    const void *owner; // the context that frees it; NULL: the user does
    struct mixt__handle *next;
} mixt__handle;

/** The object is open from now on, until it or its owner is removed. */
void mixt__handle_add(mixt__handle *handle, const void *object, const char *kind, const void *owner);
/** Removes an object; nothing happens where it was not added. */
void mixt__handle_remove(const void *object);
/** Takes out all that an owner frees. */
void mixt__handle_remove_owned(const void *owner);
/** Gives an open object to an owner. */
void mixt__handle_give(const void *object, const void *owner);

/** Refuses an argument that is NULL, or no open object of this kind; the text names the caller. */
#define mixt__need_open(argument, kind) mixt__need_open_at(__func__, #argument, (argument), (kind))
mixt_status mixt__need_open_at(const char *function, const char *argument, const void *object, const char *kind);
/** The same for a handle that is NULL because making it failed. */
#define mixt__need_made(handle, kind) mixt__need_made_at(__func__, (handle), (kind))
mixt_status mixt__need_made_at(const char *function, const void *object, const char *kind);
/** The same before a user closes an object: also refused where an owner will. */
#define mixt__need_own(object, kind) mixt__need_own_at(__func__, (object), (kind))
mixt_status mixt__need_own_at(const char *function, const void *object, const char *kind);

#endif
