/* What is said in recordings: lines of transcript files, and which recording has which.
 *
 * Two sorts of files are read, plain or gzip: "NAME<tab>TEXT", and LibriSpeech's "NAME TEXT" (*.trans.txt). A name is
 * that of a recording, seen from the folder of the file, with its ending or without, or that of a class. Texts are
 * taken as they stand, but for blanks at both ends: whoever wants one case writes one.
 */
#include "data/audio/audio.h"
#include "base/unicode.h"

#include <stdlib.h>
#include <string.h>

static int by_key(const void *a, const void *b)
{
    return strcmp(((const mixt__transcript *)a)->key, ((const mixt__transcript *)b)->key);
}

static char *trim(char *text)
{
    text += strspn(text, " ");
    size_t length = strlen(text);
    while (length && text[length - 1] == ' ')
        text[--length] = 0;
    return text;
}

/** Cuts one line into its key and its text; `at` is ended by a NUL. */
static mixt_status add_line(mixt_data *data, const mixt__transcript_file *file, char *at, int64_t number,
                            mixt__transcripts *all)
{
    size_t length = strlen(at);
    if (length && at[length - 1] == '\r')
        at[--length] = 0;
    char *cut = strchr(at, file->spaced ? ' ' : '\t');
    if (!length)
        return MIXT_OK;
    if (!cut || cut == at)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s:%lld: expected the name of a recording, a %s, and its text",
                          file->path, (long long)number, file->spaced ? "space" : "tab");
    *cut = 0;
    if (strchr(cut + 1, '\t'))
        return mixt__fail(MIXT_ERROR_FORMAT, "%s:%lld: has more than one tab: expected the name, a tab, and the text",
                          file->path, (long long)number);
    mixt__transcript made = {.path = file->path, .line = number};
    made.key = mixt__arena_printf(&data->arena, "%s%s", file->inner, at);
    made.text = mixt__arena_strdup(&data->arena, trim(cut + 1));
    if (!made.key || !made.text || !mixt__grow((void **)&all->items, &all->capacity, all->count, sizeof made))
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for its lines", file->path);
    all->items[all->count++] = made;
    return MIXT_OK;
}

/** The line that a byte is in. */
static int64_t line_at(const mixt__bytes *bytes, int64_t offset)
{
    int64_t line = 1;
    for (int64_t i = 0; i < offset; i++)
        line += bytes->bytes[i] == '\n';
    return line;
}

static mixt_status add_lines(mixt_data *data, const mixt__transcript_file *file, mixt__bytes *bytes,
                             mixt__transcripts *all)
{
    int64_t valid = mixt__utf8_valid(bytes->bytes, bytes->size);
    const unsigned char *zero = memchr(bytes->bytes, 0, (size_t)bytes->size);
    if (valid < bytes->size || zero)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s:%lld: is not UTF-8 text", file->path,
                          (long long)line_at(bytes, valid < bytes->size ? valid : zero - bytes->bytes));
    char *at = (char *)bytes->bytes + mixt__bytes_mark(bytes), *end = (char *)bytes->bytes + bytes->size;
    for (int64_t number = 1; at < end; number++) {
        char *next = memchr(at, '\n', (size_t)(end - at));
        next = next ? next : end; // a NUL stands behind the last byte
        *next = 0;
        MIXT_TRY(add_line(data, file, at, number, all));
        at = next + 1;
    }
    return MIXT_OK;
}

mixt_status mixt__transcripts_read(mixt_data *data, const mixt__transcript_file *file, mixt__transcripts *all)
{
    mixt__bytes bytes;
    MIXT_TRY(mixt__bytes_read(file->path, &bytes));
    mixt_status status = add_lines(data, file, &bytes, all);
    mixt__bytes_free(&bytes);
    return status;
}

mixt_status mixt__transcripts_sort(mixt__transcripts *all)
{
    if (all->count)
        qsort(all->items, (size_t)all->count, sizeof *all->items, by_key);
    for (int64_t i = 1; i < all->count; i++) {
        const mixt__transcript *a = &all->items[i - 1], *b = &all->items[i];
        if (!strcmp(a->key, b->key))
            return mixt__fail(MIXT_ERROR_DATA, "%s:%lld: '%s' has another text in line %lld of %s", b->path,
                              (long long)(a->line > b->line ? a->line : b->line), a->key,
                              (long long)(a->line > b->line ? b->line : a->line), a->path);
    }
    return MIXT_OK;
}

static mixt__transcript *find(const mixt__transcripts *all, const char *key)
{
    mixt__transcript wanted = {.key = key};
    return all->count ? bsearch(&wanted, all->items, (size_t)all->count, sizeof wanted, by_key) : NULL;
}

/** By a name, with its ending or without. */
static mixt__transcript *find_name(const mixt__transcripts *all, const char *name)
{
    char plain[4096];
    mixt__transcript *found = find(all, name);
    size_t length = strlen(name) - 4; // of ".wav"
    if (found || length >= sizeof plain)
        return found;
    memcpy(plain, name, length);
    plain[length] = 0;
    return find(all, plain);
}

/** By its name as the folder of its part sees it, as the folder of the set does, without folders, then by its class. */
static mixt__transcript *find_recording(const mixt__transcripts *all, const char *root, const mixt__recording *r)
{
    size_t length = strlen(root);
    const char *base = strrchr(r->name, '/');
    mixt__transcript *found = find_name(all, r->name);
    if (!found && !strncmp(r->path, root, length) && r->path[length] == '/')
        found = find_name(all, r->path + length + 1);
    if (!found && base)
        found = find_name(all, base + 1);
    return found ? found : find(all, r->word);
}

/** Without any file a recording's class is what is said in it. */
static mixt_status take_classes(mixt__recordings *list)
{
    for (int64_t i = 0; i < list->count; i++) {
        mixt__recording *r = &list->files[i];
        if (!*r->word)
            return mixt__fail(MIXT_ERROR_DATA,
                              "%s: has no transcript: expected transcripts.tsv (name, tab, text) or *.trans.txt beside "
                              "the recordings, a file named by data.labels (in C: labels), or CLASS_….wav",
                              r->path);
        r->text = r->word;
    }
    return MIXT_OK;
}

static mixt_status take_texts(const mixt_data *data, const mixt__transcripts *all, const char *from,
                              mixt__recordings *list)
{
    for (int64_t i = 0; i < list->count; i++) {
        mixt__transcript *found = find_recording(all, data->path, &list->files[i]);
        if (!found)
            return mixt__fail(MIXT_ERROR_DATA, "%s: has no line in %s, nor has its class '%s'", list->files[i].path,
                              from, list->files[i].word);
        list->files[i].text = found->text;
        found->used = true;
    }
    return MIXT_OK;
}

/** Lines that no recording has. */
static mixt_status count_unused(mixt_data *data, const mixt__transcripts *all, mixt__recordings *list)
{
    const mixt__transcript *first = NULL;
    list->lines = all->count;
    for (int64_t i = 0; i < all->count; i++) {
        const mixt__transcript *t = &all->items[i];
        int order = first && !t->used ? strcmp(t->path, first->path) : 0;
        list->unused += !t->used;
        if (!t->used && (!first || order < 0 || (!order && t->line < first->line)))
            first = t;
    }
    if (!first)
        return MIXT_OK;
    list->first_unused =
        mixt__arena_printf(&data->arena, "%s:%lld: '%s'", first->path, (long long)first->line, first->key);
    return list->first_unused ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for its lines", first->path);
}

mixt_status mixt__recordings_warn_of_lines(mixt_data *data, const mixt__recordings *list)
{
    if (!list->unused)
        return MIXT_OK;
    return mixt__data_warn(data, "%lld of %lld lines of transcripts name a recording that does not exist; %s%s",
                           (long long)list->unused, (long long)list->lines, list->unused > 1 ? "the first is " : "",
                           list->first_unused);
}

mixt_status mixt__recordings_spell(mixt_data *data, bool whole, mixt__recordings *list)
{
    const char *given = data->options.labels;
    mixt__transcript_file one = {.inner = ""};
    mixt__transcripts all = {0};
    one.path = given ? given : list->transcript_count ? NULL : mixt__path_find(data, data->path, MIXT_TRANSCRIPTS);
    one.spaced = given && mixt__is_librispeech(given);
    if (!one.path && !list->transcript_count)
        return take_classes(list);
    mixt_status status = one.path ? mixt__transcripts_read(data, &one, &all) : MIXT_OK;
    for (int64_t i = 0; !one.path && i < list->transcript_count && status == MIXT_OK; i++)
        status = mixt__transcripts_read(data, &list->transcripts[i], &all);
    if (status == MIXT_OK)
        status = mixt__transcripts_sort(&all);
    if (status == MIXT_OK)
        status = take_texts(data, &all, one.path ? one.path : list->transcripts[0].path, list);
    if (status == MIXT_OK && (whole || !one.path))
        status = count_unused(data, &all, list);
    mixt__free(all.items);
    return status;
}
