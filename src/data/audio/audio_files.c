/* Which recordings there are, of which class, in which part. Only names are kept. */
#include "data/audio/audio.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/** Names that begin with a dot are hidden; Speech Commands keeps noise in a folder whose name begins with _. */
static int visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && entry->d_name[0] != '_';
}

static mixt_status no_memory(const char *folder)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for the names of its recordings", folder);
}

/** The class of a file in the folder of a set: its name up to the first _. */
static mixt_status word_of(mixt_data *data, const char *folder, const char *name, const char **word)
{
    const char *end = strchr(name, '_');
    if (!end || end == name)
        return mixt__fail(MIXT_ERROR_DATA, "%s/%s: unknown class: expected CLASS_….wav, or one folder for each class",
                          folder, name);
    *word = mixt__arena_printf(&data->arena, "%.*s", (int)(end - name), name);
    return *word ? MIXT_OK : no_memory(folder);
}

/** Adds one file; `word` NULL: its name says. */
static mixt_status add(mixt_data *data, mixt__recordings *list, const char *folder, const char *inner, const char *file,
                       const char *word)
{
    mixt__recording made = {.word = word, .part = MIXT_PART_ALL};
    if (mixt__wav_is_unread(file))
        return mixt__fail(MIXT_ERROR_DATA, "%s/%s%s: cannot be read: convert it to WAV, or remove it", folder, inner,
                          file);
    if (!mixt__wav_is(file))
        return MIXT_OK;
    if (!word)
        MIXT_TRY(word_of(data, folder, file, &made.word));
    made.path = mixt__arena_printf(&data->arena, "%s/%s%s", folder, inner, file);
    if (!made.path || !mixt__grow((void **)&list->files, &list->capacity, list->count, sizeof *list->files))
        return no_memory(folder);
    made.name = made.path + strlen(folder) + 1;
    list->files[list->count++] = made;
    return MIXT_OK;
}

static mixt_status list_folder(mixt_data *data, const char *folder, const char *class_name, mixt__recordings *list);

/** A class folder, or a file of the set's own folder. */
static mixt_status list_entry(mixt_data *data, const char *folder, const char *name, mixt__recordings *list)
{
    const char *path = mixt__arena_printf(&data->arena, "%s/%s", folder, name);
    if (!path)
        return no_memory(folder);
    if (!mixt__path_is_directory(path))
        return add(data, list, folder, "", name, NULL);
    const char *word = mixt__arena_strdup(&data->arena, name);
    int64_t before = list->count;
    if (!word)
        return no_memory(folder);
    MIXT_TRY(list_folder(data, folder, word, list));
    if (list->count == before)
        return mixt__fail(MIXT_ERROR_DATA, "%s: a class without WAV files: add some, or remove the folder", path);
    return MIXT_OK;
}

/** The entries of FOLDER, or of FOLDER/CLASS. */
static mixt_status list_folder(mixt_data *data, const char *folder, const char *class_name, mixt__recordings *list)
{
    const char *inner = class_name ? mixt__arena_printf(&data->arena, "%s/", class_name) : "";
    const char *path = class_name ? mixt__arena_printf(&data->arena, "%s/%s", folder, class_name) : folder;
    struct dirent **entries;
    if (!inner || !path)
        return no_memory(folder);
    int count = scandir(path, &entries, visible, by_name);
    if (count < 0)
        return mixt__fail(MIXT_ERROR_FILE, "%s: cannot be read: %s", path, strerror(errno));
    mixt_status status = MIXT_OK;
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        if (status == MIXT_OK)
            status =
                class_name ? add(data, list, folder, inner, name, class_name) : list_entry(data, folder, name, list);
        free(entries[i]);
    }
    free(entries);
    return status;
}

mixt_status mixt__recordings_list(mixt_data *data, const char *folder, mixt__recordings *list)
{
    MIXT_TRY(list_folder(data, folder, NULL, list));
    return list->count
               ? MIXT_OK
               : mixt__fail(MIXT_ERROR_DATA,
                            "%s: holds no WAV files: expected CLASS_….wav, or one folder for each class", folder);
}

/* ---- files at any depth, with transcripts ---- */

enum { DEPTH_MAX = 16 };

bool mixt__is_librispeech(const char *name)
{
    static const char ending[] = ".trans.txt";
    size_t length = strlen(name), tail = sizeof ending - 1;
    return length > tail && !strcmp(name + length - tail, ending);
}

static bool is_transcripts(const char *name)
{
    return !strcmp(name, MIXT_TRANSCRIPTS) || mixt__is_librispeech(name);
}

/** The class by the first folder, or by the name up to the first _. */
static const char *class_of(mixt_data *data, const char *inner, const char *file)
{
    const char *text = *inner ? inner : file, *end = strchr(text, *inner ? '/' : '_');
    return end ? mixt__arena_printf(&data->arena, "%.*s", (int)(end - text), text) : "";
}

static mixt_status add_spoken(mixt_data *data, const char *folder, const char *inner, const char *file,
                              mixt__recordings *list)
{
    if (!is_transcripts(file)) {
        const char *word = class_of(data, inner, file);
        return word ? add(data, list, folder, inner, file, word) : no_memory(folder);
    }
    mixt__transcript_file made = {.inner = inner, .spaced = mixt__is_librispeech(file)};
    made.path = mixt__arena_printf(&data->arena, "%s/%s%s", folder, inner, file);
    if (!made.path || !mixt__grow((void **)&list->transcripts, &list->transcript_capacity, list->transcript_count,
                                  sizeof *list->transcripts))
        return no_memory(folder);
    list->transcripts[list->transcript_count++] = made;
    return MIXT_OK;
}

/** All below FOLDER/INNER, where `inner` is "" or ends in a slash. */
static mixt_status list_below(mixt_data *data, const char *folder, const char *inner, int depth, mixt__recordings *list)
{
    const char *path = mixt__arena_printf(&data->arena, "%s/%s", folder, inner);
    struct dirent **entries;
    if (!path)
        return no_memory(folder);
    int count = depth > DEPTH_MAX ? -1 : scandir(path, &entries, visible, by_name);
    if (count < 0)
        return mixt__fail(MIXT_ERROR_FILE, "%s: cannot be read: %s", path,
                          depth > DEPTH_MAX ? "folders are nested too deep" : strerror(errno));
    mixt_status status = MIXT_OK;
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name, *below = NULL;
        if (status == MIXT_OK && !(below = mixt__arena_printf(&data->arena, "%s%s/", path, name)))
            status = no_memory(folder);
        if (status == MIXT_OK)
            status = mixt__path_is_directory(below)
                         ? list_below(data, folder, below + strlen(folder) + 1, depth + 1, list)
                         : add_spoken(data, folder, inner, name, list);
        free(entries[i]);
    }
    free(entries);
    return status;
}

mixt_status mixt__recordings_list_spoken(mixt_data *data, const char *folder, mixt__recordings *list)
{
    MIXT_TRY(list_below(data, folder, "", 0, list));
    return list->count ? MIXT_OK : mixt__fail(MIXT_ERROR_DATA, "%s: holds no WAV files, at any depth", folder);
}

void mixt__recordings_free(mixt__recordings *list)
{
    mixt__free(list->files);
    mixt__free(list->transcripts);
    *list = (mixt__recordings){0};
}

mixt_status mixt__recordings_share(const mixt_data *data, mixt__recordings *list)
{
    const struct {
        const char *key, *glob;
        mixt__part part;
    } named[] = {{"val_files", data->options.val_files, MIXT_PART_VAL},
                 {"test_files", data->options.test_files, MIXT_PART_TEST}};
    int64_t taken = 0;
    for (int n = 0; n < 2; n++) {
        int64_t found = 0;
        for (int64_t i = 0; named[n].glob && i < list->count; i++)
            if (!fnmatch(named[n].glob, list->files[i].name, 0)) {
                list->files[i].part = named[n].part;
                found++;
            }
        if (named[n].glob && !found)
            return mixt__fail(MIXT_ERROR_CONFIG, "%s: no recording matches %s='%s'; the first is %s", data->path,
                              named[n].key, named[n].glob, list->files[0].name);
        taken += found;
        if (named[n].glob && taken >= list->count)
            return mixt__fail(MIXT_ERROR_CONFIG, "%s: all %lld recordings match %s='%s'; none is left to train on",
                              data->path, (long long)list->count, named[n].key, named[n].glob);
    }
    return MIXT_OK;
}

/* ---- classes ---- */

static int by_word(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

mixt_status mixt__recordings_classes(mixt_data *data, const mixt__recordings *list, const char *const **names,
                                     int64_t *count)
{
    const char **words = mixt__arena_alloc(&data->arena, (size_t)(list->count + 1) * sizeof *words);
    int64_t kept = 0;
    if (!words)
        return no_memory(data->path);
    for (int64_t i = 0; i < list->count; i++)
        words[i] = list->files[i].word;
    qsort(words, (size_t)list->count, sizeof *words, by_word);
    for (int64_t i = 0; i < list->count; i++)
        if (!kept || strcmp(words[kept - 1], words[i]))
            words[kept++] = words[i];
    *names = words;
    *count = kept;
    return MIXT_OK;
}

mixt_status mixt__recordings_label(mixt__recordings *list, const char *const *names, int64_t count)
{
    for (int64_t i = 0; i < list->count; i++) {
        mixt__recording *r = &list->files[i];
        const char *const *found = bsearch(&r->word, names, (size_t)count, sizeof *names, by_word);
        if (!found)
            return mixt__fail(MIXT_ERROR_DATA, "%s: its class '%s' is not a class of the training part", r->path,
                              r->word);
        r->label = (int32_t)(found - names);
    }
    return MIXT_OK;
}

/* ---- recognition ---- */

static bool holds_wav(const char *folder)
{
    bool found = false;
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries && !found && (entry = readdir(entries));)
        found = visible(entry) && mixt__wav_is(entry->d_name);
    if (entries)
        closedir(entries);
    return found;
}

bool mixt__recordings_are_in(const char *folder)
{
    char path[4096];
    bool found = holds_wav(folder);
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries && !found && (entry = readdir(entries));)
        found = visible(entry) && snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) < (int)sizeof path &&
                holds_wav(path);
    if (entries)
        closedir(entries);
    return found;
}

static bool transcripts_below(const char *folder, int depth)
{
    char path[4096];
    bool found = false;
    DIR *entries = depth > DEPTH_MAX ? NULL : opendir(folder);
    for (struct dirent *entry; entries && !found && (entry = readdir(entries));) {
        found = visible(entry) && is_transcripts(entry->d_name);
        // Folders have no ending; asking the system about each of a hundred thousand recordings takes long.
        if (!found && visible(entry) && !mixt__wav_is(entry->d_name) &&
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) < (int)sizeof path)
            found = transcripts_below(path, depth + 1);
    }
    if (entries)
        closedir(entries);
    return found;
}

bool mixt__transcripts_are_in(const char *folder)
{
    return transcripts_below(folder, 0);
}
