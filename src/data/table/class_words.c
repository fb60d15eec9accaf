/* Words as classes, sorted by name: the numbers do not depend on the order of rows. */
#include "data/table/class_words.h"

#include <stdlib.h>
#include <string.h>

mixt_status mixt__class_words_start(mixt_data *data, const mixt__table *table, mixt__class_words *words)
{
    const mixt_data *like = data->options.like;
    const char *const *names = table->train ? table->train->class_names : like ? like->info.class_names : NULL;
    int64_t count = table->train ? table->train->classes : like ? like->info.classes : 0;
    words->given = names != NULL;
    for (int64_t i = 0; names && i < count && i < MIXT_CLASS_WORDS; i++) {
        words->names[i] = mixt__arena_strdup(&data->arena, names[i]);
        if (!words->names[i])
            return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for the names of its classes", data->path);
        words->count = i + 1;
    }
    return MIXT_OK;
}

/** Whether a field says `name`: of two quotes in it, one counts. */
static bool says(const char *text, int64_t length, const char *name)
{
    for (int64_t i = 0; i < length; i++, name++) {
        if (*name != text[i])
            return false;
        i += text[i] == '"' && i + 1 < length && text[i + 1] == '"';
    }
    return !*name;
}

int64_t mixt__class_words_number(mixt_data *data, mixt__class_words *words, const char *text, int64_t length)
{
    for (int64_t i = 0; i < words->count; i++)
        if (says(text, length, words->names[i]))
            return i;
    char *name =
        words->given || words->count == MIXT_CLASS_WORDS ? NULL : mixt__arena_alloc(&data->arena, (size_t)length + 1);
    if (!name)
        return -1;
    words->names[words->count] = name;
    for (int64_t i = 0; i < length; i++) {
        *name++ = text[i];
        i += text[i] == '"' && i + 1 < length && text[i + 1] == '"';
    }
    return words->count++;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void mixt__class_words_sort(mixt__class_words *words, int64_t numbers[MIXT_CLASS_WORDS])
{
    const char *before[MIXT_CLASS_WORDS];
    memcpy(before, words->names, sizeof before);
    if (!words->given)
        qsort(words->names, (size_t)words->count, sizeof *words->names, by_name);
    for (int64_t i = 0; i < words->count; i++)
        for (int64_t k = 0; k < words->count; k++)
            if (before[i] == words->names[k])
                numbers[i] = k;
}
