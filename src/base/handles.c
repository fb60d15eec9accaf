/* Open objects in lists by a hash of their address. An address that is asked about is only compared, never followed. */
#include "base/handles.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

enum { LISTS = 256 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static mixt__handle *lists[LISTS];

static mixt__handle **list_of(const void *object)
{
    return &lists[(uint64_t)(uintptr_t)object * 0x9e3779b97f4a7c15u >> 56];
}

/** Where the object's record hangs; it is NULL there when the object is not open. Under the lock. */
static mixt__handle **place_of(const void *object)
{
    mixt__handle **at = list_of(object);
    while (*at && (*at)->object != object)
        at = &(*at)->next;
    return at;
}

void mixt__handle_add(mixt__handle *handle, const void *object, const char *kind, const void *owner)
{
    mixt__handle **list = list_of(object);
    pthread_mutex_lock(&lock);
    *handle = (mixt__handle){.object = object, .kind = kind, .owner = owner, .next = *list};
    *list = handle;
    pthread_mutex_unlock(&lock);
}

void mixt__handle_remove(const void *object)
{
    pthread_mutex_lock(&lock);
    mixt__handle **at = place_of(object);
    if (*at)
        *at = (*at)->next;
    pthread_mutex_unlock(&lock);
}

void mixt__handle_remove_owned(const void *owner)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < LISTS; i++)
        for (mixt__handle **at = &lists[i]; *at;) {
            if ((*at)->owner == owner)
                *at = (*at)->next;
            else
                at = &(*at)->next;
        }
    pthread_mutex_unlock(&lock);
}

void mixt__handle_give(const void *object, const void *owner)
{
    pthread_mutex_lock(&lock);
    mixt__handle *found = *place_of(object);
    if (found)
        found->owner = owner;
    pthread_mutex_unlock(&lock);
}

/** Whether an object of this kind is open, and whether somebody owns it. */
static bool find(const void *object, const char *kind, bool *owned)
{
    pthread_mutex_lock(&lock);
    const mixt__handle *found = *place_of(object);
    bool open = found && !strcmp(found->kind, kind);
    *owned = open && found->owner;
    pthread_mutex_unlock(&lock);
    return open;
}

static mixt_status not_open(const char *function, const char *kind)
{
    return mixt__fail(MIXT_ERROR_STATE, "%s: this %s is not open: it, or its owner, was closed", function, kind);
}

mixt_status mixt__need_open_at(const char *function, const char *argument, const void *object, const char *kind)
{
    bool owned;
    if (!object)
        return mixt__need_at(function, argument, object);
    return find(object, kind, &owned) ? MIXT_OK : not_open(function, kind);
}

mixt_status mixt__need_made_at(const char *function, const void *object, const char *kind)
{
    bool owned;
    if (!object)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%s: no %s: creating it failed, see mixt_error(context)", function,
                          kind);
    return find(object, kind, &owned) ? MIXT_OK : not_open(function, kind);
}

mixt_status mixt__need_own_at(const char *function, const void *object, const char *kind)
{
    bool owned;
    if (!find(object, kind, &owned))
        return not_open(function, kind);
    if (owned)
        return mixt__fail(MIXT_ERROR_STATE, "%s: this %s belongs to its context or run, which closes it", function,
                          kind);
    return MIXT_OK;
}
