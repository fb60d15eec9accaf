/* Containers from which a value is missing, and text of what is whole.
 *
 * To note that a container is incomplete must not need memory. A table of fixed size holds them, with a reference of
 * its own to each, so that no other value gets the same address. One that nobody else holds any more leaves the table.
 */
#include "store/json.h"

#include "base/status.h"
#include "base/utf8.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { TABLE = 1024 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static json_t *incomplete[TABLE];
static int used;      // of the table; read without the lock: almost always 0
static bool overflow; // more were incomplete at once than the table holds: no text is made any more

static void drop_unheld(void)
{
    int kept = 0;
    for (int i = 0; i < used; i++)
        if (__atomic_load_n(&incomplete[i]->refcount, __ATOMIC_ACQUIRE) == 1)
            json_decref(incomplete[i]);
        else
            incomplete[kept++] = incomplete[i];
    __atomic_store_n(&used, kept, __ATOMIC_RELEASE);
}

static void mark(json_t *container)
{
    if (!container)
        return; // its own maker failed: whoever takes it sees NULL
    pthread_mutex_lock(&lock);
    drop_unheld();
    if (used < TABLE) {
        incomplete[used] = json_incref(container);
        __atomic_store_n(&used, used + 1, __ATOMIC_RELEASE);
    } else {
        __atomic_store_n(&overflow, true, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
}

int mixt__json_set(json_t *object, const char *key, json_t *value)
{
    int failed = json_object_set_new(object, key, value);
    if (failed)
        mark(object);
    return failed;
}

int mixt__json_add(json_t *array, json_t *value)
{
    int failed = json_array_append_new(array, value);
    if (failed)
        mark(array);
    return failed;
}

int mixt__json_replace(json_t *array, size_t index, json_t *value)
{
    int failed = json_array_set(array, index, value);
    if (failed)
        mark(array);
    return failed;
}

int mixt__json_set_real(json_t *object, const char *key, double value)
{
    return isfinite(value) ? mixt__json_set(object, key, json_real(value)) : 0;
}

int mixt__json_add_real(json_t *array, double value)
{
    return mixt__json_add(array, isfinite(value) ? json_real(value) : json_null());
}

int mixt__json_merge(json_t *object, const json_t *other)
{
    const char *key;
    json_t *value;
    int failed = other && mixt__json_whole(other) ? 0 : -1;
    json_object_foreach((json_t *)(uintptr_t)other, key, value) failed |=
        mixt__json_set(object, key, json_incref(value));
    if (failed)
        mark(object);
    return failed;
}

json_t *mixt__json_copy(const json_t *value)
{
    json_t *copy = mixt__json_whole(value) ? json_deep_copy(value) : NULL; // which leaves out what it has no memory for
    if (copy && json_equal(copy, value))
        return copy;
    json_decref(copy);
    return NULL;
}

int mixt__json_set_text(json_t *object, const char *key, const char *text)
{
    return text ? mixt__json_set(object, key, mixt__json_string(text)) : 0;
}

json_t *mixt__json_string(const char *text)
{
    json_t *value = json_string(text);
    if (value || !text)
        return value;
    mixt__utf8 state = {.count = 0};
    size_t length = strlen(text), at = 0;
    char *clean = malloc((length + 1) * MIXT_UTF8_ROOM);
    if (!clean)
        return NULL;
    for (size_t i = 0; i < length; i++)
        at += mixt__utf8_put(&state, (unsigned char)text[i], clean + at);
    at += mixt__utf8_end(&state, clean + at);
    value = json_stringn(clean, at);
    free(clean);
    return value;
}

static bool is_marked(const json_t *value)
{
    for (int i = 0; i < used; i++)
        if (incomplete[i] == value)
            return true;
    return false;
}

static bool all_unmarked(const json_t *value)
{
    const char *key;
    json_t *inside;
    size_t i;
    if (is_marked(value))
        return false;
    if (json_is_object(value)) {
        json_object_foreach((json_t *)(uintptr_t)value, key, inside) if (!all_unmarked(inside)) return false;
    } else if (json_is_array(value)) {
        json_array_foreach((json_t *)(uintptr_t)value, i, inside) if (!all_unmarked(inside)) return false;
    }
    return true;
}

bool mixt__json_whole(const json_t *value)
{
    if (!value || (!__atomic_load_n(&used, __ATOMIC_ACQUIRE) && !__atomic_load_n(&overflow, __ATOMIC_ACQUIRE)))
        return value != NULL;
    pthread_mutex_lock(&lock);
    drop_unheld();
    bool whole = !overflow && all_unmarked(value);
    pthread_mutex_unlock(&lock);
    return whole;
}

char *mixt__json_dumps(const json_t *value, size_t flags)
{
    // not json_dumps, which goes on where its buffer cannot grow: first the length, then the text
    size_t bytes = mixt__json_whole(value) ? json_dumpb(value, NULL, 0, flags) : 0;
    char *text = bytes ? malloc(bytes + 1) : NULL;
    if (text && json_dumpb(value, text, bytes, flags) != bytes) {
        free(text);
        return NULL;
    }
    if (text)
        text[bytes] = '\0';
    return text;
}
