/* Sentence pairs from files: two files a part that agree line by line, or one file with a tab between both. */
#include "data/image/folder.h"
#include "data/text/parallel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELDS_MAX = 64 };

static mixt_status no_memory(const mixt_data *data)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "%s:%s: no memory for its sentences", data->kind->name, data->path);
}

void mixt__pairs_free(mixt__pairs *p)
{
    for (int side = 0; side < MIXT_SIDES; side++) {
        mixt__bytes_free(&p->text[side]);
        mixt__free(p->line[side]);
    }
    *p = (mixt__pairs){0};
}

bool mixt__pairs_room(mixt__pairs *p, int64_t count)
{
    for (int side = 0; side < MIXT_SIDES; side++)
        p->line[side] = mixt__alloc((size_t)count * sizeof **p->line);
    p->count = count;
    return p->line[0] && p->line[1];
}

/* ---- lines ---- */

static int64_t count_lines(const mixt__bytes *text)
{
    int64_t lines = 0;
    for (int64_t i = 0; i < text->size; i++)
        lines += text->bytes[i] == '\n';
    return lines + (text->size && text->bytes[text->size - 1] != '\n');
}

/** The next line of a text without its end; `at` moves behind it. */
static mixt__span next_line(const mixt__bytes *text, int64_t *at)
{
    const unsigned char *begin = text->bytes + *at, *end = memchr(begin, '\n', (size_t)(text->size - *at));
    int64_t size = end ? end - begin : text->size - *at;
    *at += size + 1;
    if (size && begin[size - 1] == '\r')
        size--;
    return (mixt__span){begin, size};
}

static mixt_status read_text(const char *path, mixt__bytes *text)
{
    MIXT_TRY(mixt__bytes_read(path, text));
    return mixt__text_check(path, text->bytes, text->size);
}

/* ---- two files ---- */

static mixt_status read_two(mixt_data *data, const char *const path[MIXT_SIDES], mixt__pairs *p)
{
    int64_t count[MIXT_SIDES];
    for (int side = 0; side < MIXT_SIDES; side++) {
        MIXT_TRY(read_text(path[side], &p->text[side]));
        count[side] = count_lines(&p->text[side]);
    }
    if (count[0] != count[1])
        return mixt__fail(MIXT_ERROR_DATA, "%s has %lld lines, %s %lld: each line must be the translation of the other",
                          path[0], (long long)count[0], path[1], (long long)count[1]);
    if (!mixt__pairs_room(p, count[0]))
        return no_memory(data);
    for (int side = 0; side < MIXT_SIDES; side++)
        for (int64_t i = 0, at = 0; i < p->count; i++)
            p->line[side][i] = next_line(&p->text[side], &at);
    return MIXT_OK;
}

/* ---- one file ---- */

/** Column of a side, from 0, by a number from 1. */
static mixt_status column_of(const char *name, int side, int *column)
{
    char *end = NULL;
    long number = name && *name ? strtol(name, &end, 10) : side + 1;
    if ((end && *end) || number < 1 || number > FIELDS_MAX)
        return mixt__fail(MIXT_ERROR_CONFIG, "data.%s=%s: of a file with both languages it is a column, 1 to %d",
                          side ? "target" : "source", name, FIELDS_MAX);
    *column = (int)number - 1;
    return MIXT_OK;
}

/** Field `column` of a line; false: it has fewer. */
static bool field_of(mixt__span line, int column, mixt__span *field)
{
    const unsigned char *at = line.bytes, *end = line.bytes + line.size;
    for (; column > 0; column--) {
        at = memchr(at, '\t', (size_t)(end - at));
        if (!at)
            return false;
        at++;
    }
    const unsigned char *stop = memchr(at, '\t', (size_t)(end - at));
    *field = (mixt__span){at, (stop ? stop : end) - at};
    return true;
}

static mixt_status read_one(mixt_data *data, const char *path, mixt__pairs *p)
{
    int column[MIXT_SIDES];
    MIXT_TRY(read_text(path, &p->text[0])); // where there is no such file, that is what is wrong
    MIXT_TRY(column_of(data->options.source_name, 0, &column[0]));
    MIXT_TRY(column_of(data->options.target_name, 1, &column[1]));
    if (!mixt__pairs_room(p, count_lines(&p->text[0])))
        return no_memory(data);
    for (int64_t i = 0, at = 0; i < p->count; i++) {
        mixt__span line = next_line(&p->text[0], &at);
        for (int side = 0; side < MIXT_SIDES; side++)
            if (!field_of(line, column[side], &p->line[side][i]))
                return mixt__fail(MIXT_ERROR_DATA,
                                  "%s: line %lld has no field %d: expected both languages with a tab between", path,
                                  (long long)i + 1, column[side] + 1);
    }
    return MIXT_OK;
}

/* ---- which files ---- */

/** Whether a name begins so and ends in ".LANGUAGE" or ".LANGUAGE.gz". */
static bool is_named(const char *name, const char *begin, const char *language)
{
    size_t length = strlen(name), tail = strlen(language);
    if (strncmp(name, begin, strlen(begin)))
        return false;
    if (length > 3 && !strcmp(name + length - 3, ".gz"))
        length -= 3;
    return length > tail + 1 && name[length - tail - 1] == '.' && !strncmp(name + length - tail, language, tail);
}

/** The only file of a folder that is named so, where none has the plain name: "test_2016_flickr.en". */
static mixt_status find_longer(mixt_data *data, const char *begin, const char *language, const char **path)
{
    struct dirent **entries;
    int count, found = 0;
    char names[256] = "";
    MIXT_TRY(mixt__folder_scan(data->path, &entries, &count));
    for (int i = 0; i < count; i++) {
        if (!is_named(entries[i]->d_name, begin, language))
            continue;
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%.60s", found++ ? ", " : "", entries[i]->d_name);
        *path = mixt__arena_printf(&data->arena, "%s/%s", data->path, entries[i]->d_name);
    }
    mixt__folder_free(entries, count);
    return found < 2 ? MIXT_OK
                     : mixt__fail(MIXT_ERROR_DATA, "%s: has several %s parts: %s; keep only one of them", data->path,
                                  begin, names);
}

/** Whether a name is "train." and a language of two letters, plain or gzip. */
static bool has_language(const char *name)
{
    const char *at = name + strlen("train.");
    if (strncmp(name, "train.", strlen("train.")) || strspn(at, "abcdefghijklmnopqrstuvwxyz") != 2)
        return false;
    return at[2] ? !strcmp(at + 2, ".gz") : strcmp(at, "gz") != 0;
}

bool mixt__parallel_is_in(const mixt_data *data, const char *folder)
{
    const char *const language[MIXT_SIDES] = {data->options.source_name, data->options.target_name};
    const char *first = NULL;
    struct dirent **entries;
    bool two = false, named[MIXT_SIDES] = {false, false};
    int count;
    if (mixt__folder_scan(folder, &entries, &count) != MIXT_OK)
        return false;
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        for (int side = 0; side < MIXT_SIDES; side++)
            named[side] |= language[side] && *language[side] && is_named(name, "train", language[side]);
        if (!has_language(name))
            continue;
        first = first ? first : name;
        two |= strncmp(name, first, strlen("train.en")) != 0;
    }
    mixt__folder_free(entries, count);
    return two || (named[0] && named[1]);
}

bool mixt__parallel_languages(const char *folder, char source[3], char target[3])
{
    struct dirent **entries;
    int count;
    *source = *target = '\0';
    if (mixt__folder_scan(folder, &entries, &count) != MIXT_OK)
        return false;
    for (int i = 0; i < count; i++) {
        const char *language = entries[i]->d_name + strlen("train.");
        if (!has_language(entries[i]->d_name) || !strncmp(language, source, 2))
            continue;
        if (!*source)
            snprintf(source, 3, "%.2s", language);
        else if (!*target)
            snprintf(target, 3, "%.2s", language);
    }
    mixt__folder_free(entries, count);
    if (!strcmp(target, "en")) {
        memcpy(target, source, 3);
        memcpy(source, "en", 3);
    }
    return *target;
}

/** A part's file in one language; NULL: there is none. */
static mixt_status find_file(mixt_data *data, mixt__part part, const char *language, const char **path)
{
    static const char *const names[MIXT_PART_COUNT][3] = {{"train"}, {"val", "valid", "dev"}, {"test"}, {"train"}};
    *path = NULL;
    for (int i = 0; i < 3 && names[part][i] && !*path; i++) {
        const char *name = mixt__arena_printf(&data->arena, "%s.%s", names[part][i], language);
        *path = name ? mixt__path_find(data, data->path, name) : NULL;
    }
    for (int i = 0; i < 3 && names[part][i] && !*path; i++)
        MIXT_TRY(find_longer(data, names[part][i], language, path));
    return MIXT_OK;
}

/** Both files of a part; NULL: it has none. */
static mixt_status find_both(mixt_data *data, mixt__part part, const char *path[MIXT_SIDES])
{
    const char *const language[MIXT_SIDES] = {data->options.source_name, data->options.target_name};
    for (int side = 0; side < MIXT_SIDES; side++) {
        if (!language[side] || !*language[side])
            return mixt__fail(MIXT_ERROR_CONFIG,
                              "parallel:%s: the languages are not known: set data.source and data.target to the "
                              "endings of its files, as in data.source=en data.target=de",
                              data->path);
        MIXT_TRY(find_file(data, part, language[side], &path[side]));
    }
    if (!path[0] != !path[1])
        return mixt__fail(MIXT_ERROR_FILE, "parallel:%s: its %s part has a file for .%s but none for .%s", data->path,
                          mixt__part_names[part], language[!path[0]], language[!!path[0]]);
    return MIXT_OK;
}

mixt_status mixt__pairs_have_files(mixt_data *data, mixt__part part, bool *have)
{
    const char *path[MIXT_SIDES] = {NULL, NULL};
    if (mixt__path_is_directory(data->path))
        MIXT_TRY(find_both(data, part, path));
    *have = path[0] != NULL;
    return MIXT_OK;
}

mixt_status mixt__pairs_read(mixt_data *data, mixt__part part, mixt__pairs *pairs, bool *shared)
{
    const char *path[MIXT_SIDES] = {NULL, NULL};
    *shared = true;
    if (!mixt__path_is_directory(data->path))
        return read_one(data, data->path, pairs);
    MIXT_TRY(find_both(data, part, path));
    *shared = part == MIXT_PART_TRAIN || !path[0];
    if (!path[0] && part != MIXT_PART_TRAIN)
        MIXT_TRY(find_both(data, MIXT_PART_TRAIN, path));
    if (!path[0])
        return mixt__fail(MIXT_ERROR_FILE, "parallel:%s: has no train.%s and train.%s", data->path,
                          data->options.source_name, data->options.target_name);
    return read_two(data, path, pairs);
}
