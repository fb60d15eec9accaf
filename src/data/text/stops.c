/* Texts that end another one. */
#include "mixt/generate.h"

#include "base/alloc.h"
#include "base/handles.h"

#include <string.h>

struct mixt_stops {
    mixt__handle handle;
    char **texts;
    int64_t count;
    char *held; // what came and was not given yet, behind what the last call gave
    int64_t given, size, capacity;
};

mixt_status mixt_stops_new(const char *const *texts, int64_t count, mixt_stops **stops)
{
    MIXT_TRY(mixt__need(stops));
    *stops = NULL;
    if (count < 0)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%lld texts: expected 0 or more", (long long)count);
    MIXT_TRY(count ? mixt__need(texts) : MIXT_OK);
    mixt_stops *s = mixt__alloc(sizeof *s);
    bool good = s && (s->texts = mixt__alloc((size_t)(count + 1) * sizeof *s->texts));
    for (int64_t i = 0; good && i < count; i++) {
        if (!texts[i] || !*texts[i])
            continue;
        s->texts[s->count] = mixt__strdup(texts[i]);
        good = s->texts[s->count++] != NULL;
    }
    if (s)
        mixt__handle_add(&s->handle, s, "stops", NULL);
    if (!good) {
        mixt_stops_free(s);
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for texts to stop at");
    }
    *stops = s;
    return MIXT_OK;
}

void mixt_stops_free(mixt_stops *s)
{
    if (!s || mixt__need_open(s, "stops") != MIXT_OK)
        return;
    mixt__handle_remove(s);
    for (int64_t i = 0; s->texts && i < s->count; i++)
        mixt__free(s->texts[i]);
    mixt__free(s->texts);
    mixt__free(s->held);
    mixt__free(s);
}

/** What the last call gave is gone. */
static void forget_given(mixt_stops *s)
{
    if (s->given)
        memmove(s->held, s->held + s->given, (size_t)(s->size - s->given));
    s->size -= s->given;
    s->given = 0;
}

static mixt_status append(mixt_stops *s, const char *piece, int64_t length)
{
    if (s->size + length + 1 > s->capacity) {
        int64_t capacity = 2 * (s->size + length + 32);
        char *grown = mixt__realloc(s->held, (size_t)capacity);
        if (!grown)
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the text");
        s->held = grown;
        s->capacity = capacity;
    }
    if (length)
        memcpy(s->held + s->size, piece, (size_t)length);
    s->size += length;
    return MIXT_OK;
}

/** Where the first of the texts begins; -1: none is there. */
static int64_t find(const mixt_stops *s)
{
    int64_t first = -1;
    for (int64_t i = 0; i < s->count; i++) {
        const char *at = s->size ? memmem(s->held, (size_t)s->size, s->texts[i], strlen(s->texts[i])) : NULL;
        if (at && (first < 0 || at - s->held < first))
            first = at - s->held;
    }
    return first;
}

/** Bytes at the end that one of the texts may begin with. */
static int64_t doubtful(const mixt_stops *s)
{
    int64_t most = 0;
    for (int64_t i = 0; i < s->count; i++)
        for (int64_t n = (int64_t)strlen(s->texts[i]) - 1; n > most; n--)
            if (n <= s->size && !memcmp(s->held + s->size - n, s->texts[i], (size_t)n))
                most = n;
    return most;
}

mixt_status mixt_stops_put(mixt_stops *s, const char *piece, int64_t length, const char **text, int64_t *size,
                           bool *found)
{
    MIXT_TRY(mixt__need_open(s, "stops"));
    MIXT_TRY(length > 0 ? mixt__need(piece) : MIXT_OK);
    MIXT_TRY(mixt__need(text));
    MIXT_TRY(mixt__need(size));
    MIXT_TRY(mixt__need(found));
    if (length < 0)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "a text of %lld bytes", (long long)length);
    forget_given(s);
    MIXT_TRY(append(s, piece, length));
    int64_t at = find(s);
    *found = at >= 0;
    if (*found)
        s->size = at;
    s->given = *found ? at : s->size - doubtful(s);
    *text = s->held;
    *size = s->given;
    return MIXT_OK;
}

mixt_status mixt_stops_end(mixt_stops *s, const char **text, int64_t *size)
{
    MIXT_TRY(mixt__need_open(s, "stops"));
    MIXT_TRY(mixt__need(text));
    MIXT_TRY(mixt__need(size));
    forget_given(s);
    MIXT_TRY(append(s, "", 0));
    s->given = s->size;
    *text = s->held;
    *size = s->size;
    return MIXT_OK;
}
