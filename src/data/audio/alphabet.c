/* The letters of texts, and texts as numbers. A letter is a character of UTF-8; its number is its place in the order of
 * bytes, from 1 on: 0 is the blank of CTC. */
#include "data/audio/audio.h"
#include "base/unicode.h"

#include <stdlib.h>
#include <string.h>

enum { LETTERS_MAX = 4096 };

/** The next letter of a text, with a NUL behind it; its bytes. */
static int next_letter(const char *text, char letter[8])
{
    int length = 0;
    mixt__utf8_decode((const unsigned char *)text, (int64_t)strlen(text), &length);
    memcpy(letter, text, (size_t)length);
    letter[length] = 0;
    return length;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/** The place of a letter; `count`, which is none, where the alphabet does not have it. */
static int32_t place_of(const mixt__alphabet *alphabet, const char *letter)
{
    const char *const *found =
        bsearch(&letter, alphabet->names, (size_t)alphabet->count, sizeof *alphabet->names, by_bytes);
    return (int32_t)(found ? found - alphabet->names : alphabet->count);
}

/** Adds the letters of a text that are not there yet, in their order. */
static mixt_status add_letters(mixt_data *data, const char *text, const char **names, int64_t *count)
{
    char letter[8];
    for (int length; *text; text += length) {
        length = next_letter(text, letter);
        int64_t place = 0;
        while (place < *count && strcmp(names[place], letter) < 0)
            place++;
        if (place < *count && !strcmp(names[place], letter))
            continue;
        if (*count == LETTERS_MAX)
            return mixt__fail(MIXT_ERROR_DATA, "%s: more than %d different letters in its texts", data->path,
                              LETTERS_MAX - 1);
        memmove(names + place + 1, names + place, (size_t)(*count - place) * sizeof *names);
        names[place] = mixt__arena_strdup(&data->arena, letter);
        if (!names[place])
            return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for its letters", data->path);
        ++*count;
    }
    return MIXT_OK;
}

mixt_status mixt__alphabet_make(mixt_data *data, const mixt__recordings *list, mixt__alphabet *alphabet)
{
    const mixt_data_info *like = data->options.like ? &data->options.like->info : NULL;
    const char **names = mixt__arena_alloc(&data->arena, (LETTERS_MAX + 1) * sizeof *names);
    int64_t count = 1;
    if (!names)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for its letters", data->path);
    names[0] = "";
    bool known = like && like->target == MIXT_TARGET_TEXT && like->class_names;
    for (int64_t i = 1; known && i < like->classes; i++)
        MIXT_TRY(add_letters(data, like->class_names[i], names, &count));
    for (int64_t i = 0; !known && i < list->count; i++)
        MIXT_TRY(add_letters(data, list->files[i].text, names, &count));
    for (int64_t i = 0; !known && !list->count && i < MIXT_VOICE_WORDS; i++)
        MIXT_TRY(add_letters(data, mixt__voice_words[i], names, &count));
    *alphabet = (mixt__alphabet){.names = names, .count = count};
    return count > 1 ? MIXT_OK : mixt__fail(MIXT_ERROR_DATA, "%s: its texts are empty", data->path);
}

int64_t mixt__letters_of(const char *text)
{
    char letter[8];
    int64_t count = 0;
    for (; *text; count++)
        text += next_letter(text, letter);
    return count;
}

mixt_status mixt__alphabet_check(mixt_data *data, const mixt__recordings *list, const mixt__alphabet *alphabet)
{
    char letter[8], first[8] = "";
    int64_t strange = 0;
    const char *path = NULL;
    for (int64_t i = 0; i < list->count; i++) {
        bool known = true;
        for (const char *at = list->files[i].text; *at && known;) {
            at += next_letter(at, letter);
            known = place_of(alphabet, letter) < alphabet->count;
        }
        if (known)
            continue;
        if (!strange++) {
            path = list->files[i].path;
            memcpy(first, letter, sizeof first);
        }
    }
    if (!strange)
        return MIXT_OK;
    return mixt__data_warn(data,
                           "%lld texts of the %s part have letters that the training part does not have ('%s' of %s): "
                           "the loss ignores these letters, and each counts as a mistake",
                           (long long)strange, mixt__part_names[data->part], first, path);
}

int32_t mixt__alphabet_spell(const mixt__alphabet *alphabet, const char *text, int32_t *letters)
{
    char letter[8];
    int32_t count = 0;
    for (; *text; count++) {
        text += next_letter(text, letter);
        letters[count] = place_of(alphabet, letter);
    }
    for (int64_t i = count; i < alphabet->longest; i++)
        letters[i] = -1;
    return count;
}
