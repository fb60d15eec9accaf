/* Parsing lists of globs and matching names against them. */
#include "base/globs.h"

#include "base/c_locale.h"
#include "base/status.h"

#include <ctype.h>
#include <float.h>
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *trimmed(char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    for (size_t end = strlen(text); end && isspace((unsigned char)text[end - 1]); end--)
        text[end - 1] = '\0';
    return text;
}

static mixt_status read_value(mixt__glob *glob, char *text, const char *what)
{
    char *equals = strrchr(text, '='), *end;
    if (!equals)
        return mixt__fail(MIXT_ERROR_CONFIG, "%s: '%s' has no value: expected glob=number, as in h.*=0.1", what, text);
    *equals = '\0';
    const char *number = trimmed(equals + 1);
    glob->value = mixt__read_double(number, &end);
    if (end == number || *end || !isfinite(glob->value) || glob->value < 0)
        return mixt__fail(MIXT_ERROR_CONFIG, "%s: '%s' of '%s' is not a number of at least 0", what, number, text);
    if (glob->value > (double)FLT_MAX)
        return mixt__fail(MIXT_ERROR_CONFIG, "%s: '%s' of '%s' is too large", what, number, text);
    return MIXT_OK;
}

static mixt_status parse(mixt__globs *globs, const char *list, bool values, const char *what)
{
    size_t most = 1;
    for (const char *c = list; *c; c++)
        most += *c == ',';
    char *text = mixt__arena_strdup(&globs->arena, list), *next = NULL;
    globs->items = mixt__arena_alloc(&globs->arena, most * sizeof *globs->items);
    if (!text || !globs->items)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for %zu globs", what, most);
    for (char *part = strtok_r(text, ",", &next); part; part = strtok_r(NULL, ",", &next)) {
        mixt__glob *glob = &globs->items[globs->count++];
        if (values)
            MIXT_TRY(read_value(glob, part, what));
        glob->pattern = trimmed(part);
        if (!*glob->pattern)
            return mixt__fail(MIXT_ERROR_CONFIG, "%s: '%s' has an empty glob", what, list);
    }
    return MIXT_OK;
}

mixt_status mixt__globs_parse(mixt__globs *globs, const char *list, bool values, const char *what)
{
    *globs = (mixt__globs){0};
    if (!list || !*list)
        return MIXT_OK;
    mixt_status status = parse(globs, list, values, what);
    if (status != MIXT_OK)
        mixt__globs_free(globs);
    return status;
}

/** The glob itself, or a name above: pattern + ".*". */
static bool matches(const char *pattern, const char *name)
{
    char below[256];
    if (!fnmatch(pattern, name, 0))
        return true;
    int length = snprintf(below, sizeof below, "%s.*", pattern);
    return length < (int)sizeof below && !fnmatch(below, name, 0);
}

/** Keeps the first names and the last, to show what a pattern could have matched. */
static void remember(mixt__globs *globs, const char *name)
{
    enum { SHOWN = 3 };
    size_t used = strlen(globs->first);
    bool again = strstr(globs->first, name) != NULL;
    if (globs->shown < SHOWN && !again && used + strlen(name) + 3 < sizeof globs->first) {
        snprintf(globs->first + used, sizeof globs->first - used, "%s%s", used ? ", " : "", name);
        globs->shown++;
    } else if (!again) {
        snprintf(globs->last, sizeof globs->last, "%s", name);
    }
}

const mixt__glob *mixt__globs_find(mixt__globs *globs, const char *name)
{
    remember(globs, name);
    const mixt__glob *found = NULL;
    for (int64_t i = 0; i < globs->count; i++)
        if (matches(globs->items[i].pattern, name)) {
            globs->items[i].used = true;
            found = &globs->items[i];
        }
    return found;
}

mixt_status mixt__globs_check(const mixt__globs *globs, const char *what, const char *those)
{
    for (int64_t i = 0; i < globs->count; i++)
        if (!globs->items[i].used)
            return mixt__fail(MIXT_ERROR_CONFIG, "%s: '%s' matches no parameter %sof this model: %s%s%s", what,
                              globs->items[i].pattern, those, *globs->first ? globs->first : "it has none",
                              *globs->last ? ", …, " : "", globs->last);
    return MIXT_OK;
}

void mixt__globs_free(mixt__globs *globs)
{
    mixt__arena_free(&globs->arena);
    *globs = (mixt__globs){0};
}
