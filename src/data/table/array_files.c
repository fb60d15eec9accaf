/* Arrays are known by their names first: words for a part (train, test …) and for what they hold (images, labels …),
 * wherever they stand in the name. What is left of a name must be the same in arrays that belong together. Where names
 * say nothing, shapes do: of two arrays with as many rows, the one with one number a row holds the labels.
 */
#include "data/table/array_files.h"

#include "data/image/folder.h"
#include "data/table/zip.h"
#include "store/npy.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { ARRAYS_MAX = 512, NAME_MAX_BYTES = 256, TEXT_ARRAYS = 12 };

static const struct {
    const char *word;
    mixt__part part;
} part_words[] = {
    {"train", MIXT_PART_TRAIN}, {"training", MIXT_PART_TRAIN}, {"tr", MIXT_PART_TRAIN},       {"trn", MIXT_PART_TRAIN},
    {"val", MIXT_PART_VAL},     {"valid", MIXT_PART_VAL},      {"validation", MIXT_PART_VAL}, {"dev", MIXT_PART_VAL},
    {"test", MIXT_PART_TEST},   {"testing", MIXT_PART_TEST},   {"te", MIXT_PART_TEST},        {"tst", MIXT_PART_TEST},
    {"t10k", MIXT_PART_TEST},
};

/** The surest first. */
static const char *const input_words[] = {"x",      "images",  "imgs",   "image",    "img",
                                          "data",   "inputs",  "input",  "features", "feature",
                                          "pixels", "samples", "sample", "examples", "xs"};
static const char *const label_words[] = {"y",     "labels",  "label", "targets", "target",
                                          "class", "classes", "lbls",  "lbl",     "ys"};

static bool ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), tail = strlen(ending);
    return length >= tail && !strcasecmp(text + length - tail, ending);
}

/* ---- what a name says ---- */

static bool take_part(mixt__array_file *a, const char *word)
{
    for (size_t i = 0; i < sizeof part_words / sizeof part_words[0]; i++)
        if (!strcmp(part_words[i].word, word)) {
            a->part = part_words[i].part;
            return true;
        }
    return false;
}

static bool take_role(mixt__array_file *a, const char *word)
{
    for (size_t i = 0; i < sizeof input_words / sizeof input_words[0]; i++)
        if (!strcmp(input_words[i], word)) {
            a->role = a->role == MIXT_ARRAY_LABELS ? a->role : MIXT_ARRAY_INPUTS; // "image_labels" are labels
            a->word = a->role == MIXT_ARRAY_LABELS ? a->word : (int)i;
            return true;
        }
    for (size_t i = 0; i < sizeof label_words / sizeof label_words[0]; i++)
        if (!strcmp(label_words[i], word)) {
            a->role = MIXT_ARRAY_LABELS;
            a->word = (int)i;
            return true;
        }
    return false;
}

/** "xtrain" and its like: a role and a part in one word. */
static bool take_both(mixt__array_file *a, const char *word)
{
    return (*word == 'x' || *word == 'y') && take_part(a, word + 1) && take_role(a, (char[]){*word, '\0'});
}

/** Takes one word of a name in small letters; what it says nothing of goes to `rest`. */
static void take_word(mixt__array_file *a, const char *word, char *rest, size_t room)
{
    size_t used = strlen(rest);
    if (!*word || take_part(a, word) || take_role(a, word) || take_both(a, word) || used + strlen(word) + 2 > room)
        return;
    if (used)
        rest[used++] = ' ';
    memcpy(rest + used, word, strlen(word) + 1);
}

/** Words end at what is no letter or digit, and where a capital follows a small letter. */
static void read_name(mixt__array_file *a, const char *name, char rest[NAME_MAX_BYTES])
{
    char word[NAME_MAX_BYTES];
    size_t length = 0;
    *rest = '\0';
    for (const char *at = name;; at++) {
        bool inside = isalnum((unsigned char)*at),
             hump = inside && length && isupper((unsigned char)*at) && islower((unsigned char)at[-1]);
        if (!inside || hump || length == sizeof word - 1) {
            word[length] = '\0';
            take_word(a, word, rest, NAME_MAX_BYTES);
            length = 0;
        }
        if (!*at)
            return;
        if (inside)
            word[length++] = (char)tolower((unsigned char)*at);
    }
}

void mixt__array_name(const char *name, mixt__part *part, mixt__array_role *role)
{
    char rest[NAME_MAX_BYTES];
    mixt__array_file a = {.part = MIXT_PART_ALL};
    read_name(&a, name, rest);
    *part = a.part;
    *role = a.role;
}

/* ---- listing ---- */

static mixt_status no_memory(const char *path)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for the names of its arrays", path);
}

/** Takes one array over; `words` is what its name is read from. */
static mixt_status add(mixt__arena *arena, mixt__array_files *files, mixt__array_file a, const char *words)
{
    char rest[NAME_MAX_BYTES];
    if (files->count == ARRAYS_MAX)
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s: more than %d arrays; name a file", a.file, ARRAYS_MAX);
    a.part = MIXT_PART_ALL;
    read_name(&a, words, rest);
    a.rest = mixt__arena_strdup(arena, rest);
    if (!a.rest || !a.name || !a.path)
        return no_memory(a.file);
    files->arrays[files->count++] = a;
    return MIXT_OK;
}

static void take_shape(const mixt__npy *header, mixt__array_file *a)
{
    a->rank = header->tensor.rank;
    memcpy(a->dims, header->tensor.dims, sizeof header->tensor.dims);
}

/** The shape of a member; what cannot be read has none, and is refused when it is wanted. */
static void look_into(const mixt__zip *zip, const mixt__zip_member *member, mixt__array_file *a)
{
    mixt__npy header;
    int64_t head = member->size < MIXT_NPY_HEADER ? member->size : MIXT_NPY_HEADER;
    unsigned char *bytes = mixt__alloc_uninit((size_t)head + 1);
    if (bytes && mixt__zip_read(zip, member, bytes, head) == MIXT_OK &&
        mixt__npy_read_header(a->path, bytes, (size_t)head, &header) == MIXT_OK)
        take_shape(&header, a);
    mixt__free(bytes);
}

/** The stem of a file's name: without folders and ending. */
static const char *stem_of(mixt__arena *arena, const char *file)
{
    const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file, *dot = strrchr(name, '.');
    return mixt__arena_printf(arena, "%.*s", dot ? (int)(dot - name) : (int)strlen(name), name);
}

/** @param among it is one of several files: its name counts, beside that of the array if there is more than one */
static mixt_status add_archive(mixt__arena *arena, const char *file, bool among, mixt__array_files *files)
{
    mixt__zip zip;
    const char *stem = stem_of(arena, file), *slash = strrchr(file, '/');
    MIXT_TRY(mixt__zip_open(file, &zip));
    mixt_status status = stem ? MIXT_OK : no_memory(file);
    for (int64_t i = 0; i < zip.count && status == MIXT_OK; i++) {
        const char *inside = zip.members[i].name, *words = stem;
        mixt__array_file a = {.file = file};
        int length = (int)strlen(inside) - 4;
        if (length < 1 || !ends_with(inside, ".npy"))
            continue;
        a.member = mixt__arena_printf(arena, "%.*s", length, inside);
        if (!among || zip.count > 1)
            words = among ? mixt__arena_printf(arena, "%s %s", stem, a.member) : a.member;
        a.name = !among           ? a.member
                 : zip.count == 1 ? mixt__arena_strdup(arena, slash ? slash + 1 : file)
                                  : mixt__arena_printf(arena, "%s:%s", slash ? slash + 1 : file, a.member);
        a.path = mixt__arena_printf(arena, "%s:%s", file, a.member);
        if (!a.member || !words)
            status = no_memory(file);
        if (status == MIXT_OK && a.path)
            look_into(&zip, &zip.members[i], &a);
        if (status == MIXT_OK)
            status = add(arena, files, a, words);
    }
    mixt__zip_close(&zip);
    return status;
}

static mixt_status add_file(mixt__arena *arena, const char *file, bool among, mixt__array_files *files)
{
    mixt__npy npy;
    const char *slash = strrchr(file, '/');
    if (ends_with(file, ".npz"))
        return add_archive(arena, file, among, files);
    mixt__array_file a = {.file = file, .path = file, .name = slash ? slash + 1 : file};
    if (mixt__npy_open_numbers(file, &npy) == MIXT_OK) {
        take_shape(&npy, &a);
        mixt__npy_close(&npy);
    }
    const char *stem = stem_of(arena, file);
    return stem ? add(arena, files, a, stem) : no_memory(file);
}

static bool is_array_file(const char *name)
{
    return ends_with(name, ".npz") || ends_with(name, ".npy");
}

/** All of a folder but the file that is listed already; broken ones among the files beside one are passed over. */
static mixt_status add_folder(mixt__arena *arena, const char *folder, const char *listed, mixt__array_files *files)
{
    struct dirent **entries;
    int count;
    MIXT_TRY(mixt__folder_scan(*folder ? folder : "/", &entries, &count));
    mixt_status status = MIXT_OK;
    for (int i = 0; i < count && status == MIXT_OK; i++) {
        const char *name = entries[i]->d_name, *file;
        if (!is_array_file(name))
            continue;
        file = !strcmp(folder, ".") && listed ? mixt__arena_strdup(arena, name)
                                              : mixt__arena_printf(arena, "%s/%s", folder, name);
        if (!file)
            status = no_memory(folder);
        else if (!mixt__path_is_directory(file) && (!listed || strcmp(file, listed) != 0))
            status = add_file(arena, file, true, files);
        if (listed && status != MIXT_OK && status != MIXT_ERROR_MEMORY)
            status = MIXT_OK;
    }
    mixt__folder_free(entries, count);
    return status;
}

mixt_status mixt__array_files_list(mixt__arena *arena, const char *path, bool beside, mixt__array_files *files)
{
    *files = (mixt__array_files){.arrays = mixt__arena_alloc(arena, ARRAYS_MAX * sizeof(mixt__array_file))};
    const char *slash = strrchr(path, '/');
    if (!files->arrays)
        return no_memory(path);
    if (mixt__path_is_directory(path)) {
        const char *folder =
            slash && !slash[1] && slash > path ? mixt__arena_printf(arena, "%.*s", (int)(slash - path), path) : path;
        return folder ? add_folder(arena, folder, NULL, files) : no_memory(path);
    }
    MIXT_TRY(add_file(arena, path, beside, files));
    files->beside = beside;
    if (!beside)
        return MIXT_OK;
    const char *folder = slash ? mixt__arena_printf(arena, "%.*s", (int)(slash - path), path) : ".";
    return folder ? add_folder(arena, folder, path, files) : no_memory(path);
}

mixt_status mixt__array_files_add(mixt__arena *arena, const char *file, mixt__array_files *files)
{
    return add_file(arena, file, true, files);
}

bool mixt__array_files_are_in(const char *folder)
{
    bool found = false;
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries && !found && (entry = readdir(entries));)
        found = entry->d_name[0] != '.' && is_array_file(entry->d_name);
    if (entries)
        closedir(entries);
    return found;
}

/* ---- which belong together ---- */

/** Whether an array may be of a part: training data may come without a word for it. */
static bool is_of(const mixt__array_files *files, const mixt__array_file *a, mixt__part part)
{
    if (a->part == part)
        return true;
    bool said = false;
    for (int64_t i = 0; i < files->count; i++)
        said = said || files->arrays[i].part == MIXT_PART_TRAIN;
    return part == MIXT_PART_TRAIN && !said && a->part == MIXT_PART_ALL;
}

const mixt__array_file *mixt__array_files_find(const mixt__array_files *files, const char *name)
{
    for (int64_t i = 0; i < files->count; i++)
        if (!strcmp(files->arrays[i].name, name))
            return &files->arrays[i];
    return NULL;
}

/** The array that is to `part` what one with this name is to the training part, which it is itself whatever its name
 *  says. */
static const mixt__array_file *counterpart(const mixt__array_files *files, mixt__part part, const char *name)
{
    const mixt__array_file *named = mixt__array_files_find(files, name);
    if (!named || part == MIXT_PART_TRAIN)
        return named;
    for (int64_t i = 0; i < files->count; i++) {
        const mixt__array_file *a = &files->arrays[i];
        if (a != named && a->part == part && named->part != MIXT_PART_ALL && a->role == named->role &&
            !strcmp(a->rest, named->rest))
            return a;
    }
    return NULL;
}

/** One number a row. */
static bool is_column(const mixt__array_file *a)
{
    return a->rank == 1 || (a->rank == 2 && a->dims[1] == 1);
}

static bool as_many(const mixt__array_file *a, const mixt__array_file *b)
{
    return a->rank && b->rank && a->dims[0] == b->dims[0];
}

/** Whether a file beside another may be of the same set. */
static bool may_belong(const mixt__array_files *files, const mixt__array_file *a, const mixt__array_file *other)
{
    return !files->beside || !other || !strcmp(a->rest, other->rest) || (!*a->rest && as_many(a, other));
}

/** The best array of a role in a part, beside `other`: what is left of its name, then its rows, then its word. */
static const mixt__array_file *find_role(const mixt__array_files *files, mixt__part part, mixt__array_role role,
                                         const mixt__array_file *other)
{
    const mixt__array_file *best = NULL;
    int best_score = -1;
    for (int64_t i = 0; i < files->count; i++) {
        const mixt__array_file *a = &files->arrays[i];
        if (a->role != role || a == other || !is_of(files, a, part) || !may_belong(files, a, other))
            continue;
        int score = 100 - a->word + (other && !strcmp(a->rest, other->rest) ? 400 : 0) +
                    (other && as_many(a, other) ? 200 : 0) + (!other && !*a->rest ? 400 : 0);
        if (score > best_score) {
            best = a;
            best_score = score;
        }
    }
    return best;
}

/** The only array of a part beside `other`, with as many rows; NULL: there are several, or none. */
static const mixt__array_file *the_only(const mixt__array_files *files, mixt__part part, const mixt__array_file *other)
{
    const mixt__array_file *found = NULL;
    for (int64_t i = 0; i < files->count; i++) {
        const mixt__array_file *a = &files->arrays[i];
        bool fits = a != other && is_of(files, a, part) && as_many(a, other);
        if (fits && found)
            return NULL;
        found = fits ? a : found;
    }
    return found;
}

/** Of two arrays with as many rows, the one of several numbers a row. */
static const mixt__array_file *by_shape(const mixt__array_files *files, mixt__part part)
{
    const mixt__array_file *found = NULL;
    for (int64_t i = 0; i < files->count; i++) {
        const mixt__array_file *a = &files->arrays[i], *b;
        if (!is_of(files, a, part) || a->rank < 2 || is_column(a) || !(b = the_only(files, part, a)) || !is_column(b))
            continue;
        if (found)
            return NULL;
        found = a;
    }
    return found;
}

bool mixt__array_files_pair(const mixt__array_files *files, mixt__part part, const char *inputs, const char *labels,
                            const mixt__array_file **x, const mixt__array_file **y)
{
    *x = inputs ? counterpart(files, part, inputs) : NULL;
    *y = labels ? counterpart(files, part, labels) : NULL;
    if ((inputs && !*x) || (labels && !*y))
        return false;
    if (*x && (*x)->part != MIXT_PART_ALL)
        part = (*x)->part;
    if (!*x)
        *x = find_role(files, part, MIXT_ARRAY_INPUTS, *y);
    if (!*y)
        *y = find_role(files, part, MIXT_ARRAY_LABELS, *x);
    bool guess = !files->beside;
    if (guess && *x && !*y)
        *y = the_only(files, part, *x);
    if (guess && *y && !*x)
        *x = the_only(files, part, *y);
    if (guess && !*x && !*y && (*x = by_shape(files, part)))
        *y = the_only(files, part, *x);
    return *x && *y && *x != *y;
}

const mixt__array_file *mixt__array_files_inputs(const mixt__array_files *files)
{
    static const mixt__part parts[] = {MIXT_PART_TRAIN, MIXT_PART_ALL, MIXT_PART_TEST, MIXT_PART_VAL};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const mixt__array_file *x = find_role(files, parts[i], MIXT_ARRAY_INPUTS, NULL);
        if (x || (x = by_shape(files, parts[i])))
            return x;
    }
    return files->count == 1 ? &files->arrays[0] : NULL;
}

const char *mixt__array_files_text(mixt__arena *arena, const mixt__array_files *files)
{
    const char *text = files->count ? "" : "no array";
    for (int64_t i = 0; i < files->count && i < TEXT_ARRAYS; i++) {
        const mixt__array_file *a = &files->arrays[i];
        text = mixt__arena_text(arena, "%s%s%s%s%s", text, i ? ", " : "", a->name, a->rank ? " " : "",
                                a->rank ? mixt__dims_print(a->rank, a->dims).text : "");
    }
    return files->count > TEXT_ARRAYS
               ? mixt__arena_text(arena, "%s and %lld more", text, (long long)files->count - TEXT_ARRAYS)
               : text;
}
