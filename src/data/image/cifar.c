/* CIFAR-10 and CIFAR-100 in their binary form: records of one or two label bytes and 3 × 32 × 32 bytes, planes of red,
 * green and blue. There is no header: the size of a file is its only check, and labels beyond the classes the other.
 *
 * Planes are interleaved while reading, so that a table of CIFAR is one of images (32, 32, 3) like any other.
 */
#include "data/data.h"
#include "data/image/folder.h"
#include "data/table/array_files.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { SIDE = 32, PLANE = SIDE * SIDE, PIXELS = 3 * PLANE, FILES_MAX = 100 };
enum { PUBLISHED_FILES = 5, PUBLISHED_ROWS = 10000 }; // of CIFAR-10: training files, and images in each

/** The two sets, told apart by the names of their files. */
typedef struct cifar_set {
    const char *train, *test, *names; // # in a train name: numbered parts from 1
    int classes, label_bytes;         // the last label byte counts: CIFAR-100 has the coarse class before it
} cifar_set;

static const cifar_set sets[] = {
    {"data_batch_#.bin", "test_batch.bin", "batches.meta.txt", 10, 1},
    {"train.bin", "test.bin", "fine_label_names.txt", 100, 2},
};

enum { SET_COUNT = sizeof sets / sizeof sets[0] };

/** Records of that form in files of any names: the label that counts is the last one before the pixels. */
static const cifar_set others[] = {{NULL, NULL, "classes.txt", 256, 1}, {NULL, NULL, "classes.txt", 256, 2}};

static bool is_other(const cifar_set *set)
{
    return set && !set->train;
}

/** The form of records that fill a file; NULL: none does. */
static const cifar_set *form_of(const char *path)
{
    struct stat file;
    size_t length = strlen(path);
    if (length < 4 || strcmp(path + length - 4, ".bin") || stat(path, &file) || !S_ISREG(file.st_mode) || !file.st_size)
        return NULL;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (file.st_size % (others[i].label_bytes + PIXELS) == 0)
            return &others[i];
    return NULL;
}

/** File number `number`, from 0, of a part in a folder with other names, in their order; NULL: there are no more.
 *  @param set its form; NULL: not asked for */
static const char *other_file(mixt_data *data, const char *folder, mixt__part part, int number, const cifar_set **set)
{
    struct dirent **entries;
    int count;
    const char *found = NULL;
    if (!mixt__path_is_directory(folder)) {
        if (set)
            *set = form_of(folder);
        return part == MIXT_PART_TRAIN && number == 0 && form_of(folder) ? folder : NULL;
    }
    if (mixt__folder_scan(folder, &entries, &count) != MIXT_OK)
        return NULL;
    for (int i = 0; i < count && !found; i++) {
        mixt__part says;
        mixt__array_role role;
        mixt__array_name(entries[i]->d_name, &says, &role);
        const char *path = mixt__arena_printf(&data->arena, "%s/%s", folder, entries[i]->d_name);
        const cifar_set *form = path ? form_of(path) : NULL;
        if (!form || (says == MIXT_PART_ALL ? MIXT_PART_TRAIN : says) != part || number-- > 0)
            continue;
        found = path;
        if (set)
            *set = form;
    }
    mixt__folder_free(entries, count);
    return found;
}

static const char *file_of(mixt_data *data, const char *pattern, int number)
{
    char name[64];
    const char *mark = strchr(pattern, '#');
    if (!mark)
        return mixt__path_find(data, data->path, pattern);
    snprintf(name, sizeof name, "%.*s%d%s", (int)(mark - pattern), pattern, number, mark + 1);
    return mixt__path_find(data, data->path, name);
}

static const cifar_set *set_of(mixt_data *data)
{
    for (int i = 0; i < SET_COUNT; i++)
        if (file_of(data, sets[i].train, 1) || file_of(data, sets[i].test, 1))
            return &sets[i];
    const cifar_set *other = NULL;
    for (int part = 0; part < MIXT_PART_ALL && !other; part++)
        (void)other_file(data, data->path, (mixt__part)part, 0, &other);
    return other;
}

bool mixt__cifar_is_in(mixt_data *data, const char *path)
{
    const cifar_set *set = NULL;
    for (int part = 0; part < MIXT_PART_ALL && !set; part++)
        (void)other_file(data, path, (mixt__part)part, 0, &set);
    return set;
}

/** The first file of a part; `load` takes the numbered ones behind it. */
static const char *find(mixt_data *data, mixt__part part)
{
    const cifar_set *set = set_of(data);
    if (is_other(set))
        return other_file(data, data->path, part, 0, NULL);
    return !set || part == MIXT_PART_VAL ? NULL : file_of(data, part == MIXT_PART_TEST ? set->test : set->train, 1);
}

static mixt_status check_size(const cifar_set *set, const char *path, int64_t size)
{
    int64_t record = set->label_bytes + PIXELS;
    if (size % record == 0)
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_FORMAT,
                      "%s: %lld bytes, not a whole number of %lld-byte records (%d label byte%s, %d pixels): the file "
                      "is cut off in record %lld, which begins at offset %lld, or it is not a CIFAR-%d file",
                      path, (long long)size, (long long)record, set->label_bytes, set->label_bytes > 1 ? "s" : "",
                      PIXELS, (long long)(size / record), (long long)(size / record * record), set->classes);
}

static mixt_status make_room(mixt__table *table, const char *path, int64_t rows)
{
    void *pixels = mixt__realloc(table->block, (size_t)rows * PIXELS);
    if (pixels)
        table->block = pixels;
    int32_t *labels = mixt__realloc(table->labels, (size_t)rows * sizeof(int32_t));
    if (labels)
        table->labels = labels;
    return pixels && labels ? MIXT_OK
                            : mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for %lld images", path, (long long)rows);
}

static mixt_status append_records(const cifar_set *set, int64_t classes, const char *path, const mixt__bytes *file,
                                  mixt__table *table)
{
    int64_t record = set->label_bytes + PIXELS;
    MIXT_TRY(check_size(set, path, file->size));
    int64_t count = file->size / record;
    MIXT_TRY(make_room(table, path, table->rows + count));
    for (int64_t i = 0; i < count; i++) {
        const unsigned char *at = file->bytes + i * record, *planes = at + set->label_bytes;
        int label = at[set->label_bytes - 1];
        if (label >= classes)
            return mixt__fail(MIXT_ERROR_DATA,
                              "%s: offset %lld (record %lld): label %d, expected 0 to %lld: the file is damaged, or it "
                              "is not a CIFAR-%d file",
                              path, (long long)(i * record + set->label_bytes - 1), (long long)i, label,
                              (long long)classes - 1, set->classes);
        unsigned char *pixels = (unsigned char *)table->block + (table->rows + i) * PIXELS;
        for (int p = 0; p < PLANE; p++)
            for (int c = 0; c < 3; c++)
                pixels[3 * p + c] = planes[c * PLANE + p];
        table->labels[table->rows + i] = label;
    }
    table->rows += count;
    return MIXT_OK;
}

static mixt_status append_file(const cifar_set *set, int64_t classes, const char *path, mixt__table *table)
{
    mixt__bytes file;
    MIXT_TRY(mixt__bytes_read(path, &file));
    mixt_status status = append_records(set, classes, path, &file, table);
    mixt__bytes_free(&file);
    return status;
}

/** Whether a numbered file is missing behind the `count` that were read: one after it is there, or all are as large as
 *  those of the published set, which has five. A set of smaller files may have any number. */
static mixt_status check_complete(mixt_data *data, const cifar_set *set, int count, int64_t rows)
{
    bool missing = count < PUBLISHED_FILES && rows == (int64_t)count * PUBLISHED_ROWS;
    for (int number = count + 2; number <= FILES_MAX && !missing; number++)
        missing = file_of(data, set->train, number) != NULL;
    if (!missing)
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_FILE,
                      "%s/data_batch_%d.bin: is missing; download the data again (to train on less, set data.limit)",
                      data->path, count + 1);
}

/** Files of other names: the part that the first of them is of, all its files, as many classes as labels say. */
static mixt_status load_others(mixt_data *data, const cifar_set *set, const char *first, mixt__table *table)
{
    const char *path = NULL;
    int part = 0;
    for (; part < MIXT_PART_ALL; part++)
        if ((path = other_file(data, data->path, (mixt__part)part, 0, NULL)) && !strcmp(path, first))
            break;
    for (int number = 0; path && number < FILES_MAX; number++) {
        MIXT_TRY(append_file(set, data->options.classes ? data->options.classes : set->classes, path, table));
        path = other_file(data, data->path, (mixt__part)part, number + 1, NULL);
    }
    for (int64_t i = 0; i < table->rows; i++)
        table->classes = table->labels[i] >= table->classes ? table->labels[i] + 1 : table->classes;
    table->classes = data->options.classes ? data->options.classes : table->classes;
    table->input = table->block;
    return MIXT_OK;
}

static mixt_status load(mixt_data *data, const char *path, mixt__table *table)
{
    const cifar_set *set = set_of(data);
    int64_t classes = data->options.classes ? data->options.classes : set->classes;
    bool parts = strstr(path, "/data_batch_1.bin") != NULL;
    table->path = path;
    table->dtype = MIXT_DTYPE_UINT8;
    table->rank = 3;
    table->dims[0] = table->dims[1] = SIDE;
    table->dims[2] = 3;
    if (is_other(set))
        return load_others(data, set, path, table);
    table->classes = classes;
    int count = 0;
    for (; path && count < FILES_MAX; path = parts ? file_of(data, set->train, count + 1) : NULL) {
        MIXT_TRY(append_file(set, classes, path, table));
        count++;
    }
    if (parts)
        MIXT_TRY(check_complete(data, set, count, table->rows));
    table->input = table->block;
    return MIXT_OK;
}

/** The class names beside the data, one a line; a file that does not fit is ignored. */
static const char *const *read_names(mixt_data *data, const cifar_set *set)
{
    const char *path = mixt__path_find(data, data->path, set->names);
    mixt__bytes file;
    const char **names = mixt__arena_alloc(&data->arena, (size_t)set->classes * sizeof *names);
    int count = 0;
    if (!path || !names || mixt__bytes_read(path, &file) != MIXT_OK)
        return NULL;
    for (char *at = (char *)file.bytes; count < set->classes && *at;) {
        size_t length = strcspn(at, "\r\n");
        if (length)
            names[count++] = mixt__arena_printf(&data->arena, "%.*s", (int)length, at);
        at += length;
        at += strspn(at, "\r\n");
    }
    mixt__bytes_free(&file);
    return count == set->classes && names[count - 1] ? names : NULL;
}

static mixt_status open_cifar(mixt_data *data)
{
    static const mixt__table_reader reader = {find, load};
    if (!mixt__path_is_directory(data->path) && !mixt__path_is_file(data->path))
        return mixt__fail(MIXT_ERROR_FILE, "cifar:%s: no such folder; check the path of the data set", data->path);
    const cifar_set *set = set_of(data);
    if (is_other(set))
        return mixt__table_open(data, &reader);
    if (!set)
        return mixt__fail(
            MIXT_ERROR_FILE,
            "cifar:%s: holds neither data_batch_1.bin and its like (CIFAR-10) nor train.bin (CIFAR-100), "
            "plain or .gz, nor other .bin files of whole records; unpack the binary version there or correct the path",
            data->path);
    if (data->options.classes && data->options.classes < set->classes)
        return mixt__fail(MIXT_ERROR_CONFIG, "cifar:%s: CIFAR-%d has %d classes, not %lld", data->path, set->classes,
                          set->classes, (long long)data->options.classes);
    bool trains = data->part == MIXT_PART_TRAIN || data->part == MIXT_PART_ALL;
    if (trains && strchr(set->train, '#') && !file_of(data, set->train, 1))
        return check_complete(data, set, 0, 0);
    MIXT_TRY(mixt__table_open(data, &reader));
    data->info.class_names = data->info.classes == set->classes ? read_names(data, set) : NULL;
    return MIXT_OK;
}

const mixt__data_kind mixt__data_cifar = {
    .name = "cifar",
    .what = "folder of CIFAR-10 or CIFAR-100 in binary form",
    .uses = MIXT_DATA_IMAGES | MIXT_DATA_NUMBERS | MIXT_DATA_CLASSES | MIXT_DATA_SHAPE,
    .open = open_cifar,
    .sample = mixt__table_sample,
    .close = mixt__table_close,
    .raw = mixt__table_raw,
};
