/* NPZ: NumPy arrays in one archive, samples and labels told apart by their names.
 *
 * An array is unpacked no further than its own header promises, and only the arrays that a part needs are.
 */
#include "data/table/npy.h"
#include "data/table/zip.h"

#include <stdio.h>
#include <string.h>

/** Names that go together, by part; of those for training, names that stand for all data come last. */
static const struct {
    mixt__part part;
    const char *inputs, *targets;
} names[] = {
    {MIXT_PART_TRAIN, "x_train", "y_train"},
    {MIXT_PART_TRAIN, "X_train", "y_train"},
    {MIXT_PART_TRAIN, "train_images", "train_labels"},
    {MIXT_PART_TRAIN, "x", "y"},
    {MIXT_PART_TRAIN, "X", "y"},
    {MIXT_PART_TRAIN, "images", "labels"},
    {MIXT_PART_TRAIN, "data", "labels"},
    {MIXT_PART_TRAIN, "data", "target"},
    {MIXT_PART_TRAIN, "features", "labels"},
    {MIXT_PART_VAL, "x_val", "y_val"},
    {MIXT_PART_VAL, "X_val", "y_val"},
    {MIXT_PART_VAL, "val_images", "val_labels"},
    {MIXT_PART_TEST, "x_test", "y_test"},
    {MIXT_PART_TEST, "X_test", "y_test"},
    {MIXT_PART_TEST, "test_images", "test_labels"},
};

enum { NAMES = sizeof names / sizeof names[0] };

static const mixt__zip_member *find_array(const mixt__zip *zip, const char *name)
{
    char file[MIXT_ZIP_NAME + 8];
    snprintf(file, sizeof file, "%s.npy", name);
    return mixt__zip_find(zip, file);
}

/** The place of a part in the table of names: both arrays are there, or the inputs and the option 'labels'; -1: none.
 */
static int find_names(const mixt_data *data, const mixt__zip *zip, mixt__part part)
{
    const char *labels = part == MIXT_PART_TRAIN ? data->options.labels : NULL;
    for (int i = 0; i < NAMES; i++)
        if (names[i].part == part && find_array(zip, names[i].inputs) &&
            find_array(zip, labels ? labels : names[i].targets) && (!labels || strcmp(labels, names[i].inputs) != 0))
            return i;
    return -1;
}

/** FILE:ARRAY, by which load knows the part, and messages name it. */
static const char *find(mixt_data *data, mixt__part part)
{
    mixt__zip zip;
    if (mixt__zip_open(data->path, &zip) != MIXT_OK)
        return NULL;
    int found = find_names(data, &zip, part);
    mixt__zip_close(&zip);
    return found < 0 ? NULL : mixt__arena_printf(&data->arena, "%s:%s", data->path, names[found].inputs);
}

/** The arrays of the file, for a message. */
static void list_arrays(const mixt__zip *zip, char *text, size_t room)
{
    size_t used = 0;
    for (int64_t i = 0; i < zip->count && used < room - 1; i++) {
        const char *name = zip->members[i].name, *dot = strstr(name, ".npy");
        int length = dot ? (int)(dot - name) : (int)strlen(name);
        int wrote = snprintf(text + used, room - used, "%s%.*s", i ? ", " : "", length, name);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
}

/** Unpacks one array: the header, then as much as it asks for. The block is the caller's to free, also on failure. */
static mixt_status read_array(const mixt__zip *zip, const char *path, const char *name, mixt__npy *file,
                              unsigned char **block)
{
    const mixt__zip_member *m = find_array(zip, name);
    int64_t head = m->size < MIXT_NPY_HEADER ? m->size : MIXT_NPY_HEADER;
    *block = mixt__alloc_uninit((size_t)head + 1);
    if (!*block)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for an array", path);
    MIXT_TRY(mixt__zip_read(zip, m, *block, head));
    MIXT_TRY(mixt__npy_read_header(path, *block, (size_t)head, file));
    if (file->start + file->tensor.bytes != (size_t)m->size)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: shape %s needs %zu bytes, but the archive has %lld there", path,
                          mixt__dims_print(file->tensor.rank, file->tensor.dims).text, file->start + file->tensor.bytes,
                          (long long)m->size);
    mixt__free(*block);
    *block = mixt__alloc_uninit((size_t)m->size + 1);
    if (!*block)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for %lld bytes", path, (long long)m->size);
    MIXT_TRY(mixt__zip_read(zip, m, *block, m->size));
    file->tensor.data = *block + file->start;
    return MIXT_OK;
}

mixt_status mixt__npz_read_inputs(const char *path, mixt__table *table)
{
    mixt__zip zip;
    mixt__npy file;
    unsigned char *block = NULL;
    char text[200] = "nothing";
    int place = 0;
    MIXT_TRY(mixt__zip_open(path, &zip));
    while (place < NAMES && !find_array(&zip, names[place].inputs))
        place++;
    list_arrays(&zip, text, sizeof text);
    mixt_status status =
        place < NAMES
            ? read_array(&zip, path, names[place].inputs, &file, &block)
            : mixt__fail(MIXT_ERROR_DATA, "%s: holds %s; expected an array called x, images or x_test", path, text);
    if (status == MIXT_OK)
        status = mixt__npy_take_inputs(path, &file, table);
    mixt__free(block);
    mixt__zip_close(&zip);
    return status;
}

static mixt_status load_part(mixt_data *data, const mixt__zip *zip, const char *path, int place, mixt__table *table)
{
    mixt__npy file;
    unsigned char *block = NULL;
    const char *targets = names[place].targets;
    if (names[place].part == MIXT_PART_TRAIN && data->options.labels)
        targets = data->options.labels;
    const char *labels = mixt__arena_printf(&data->arena, "%s:%s", data->path, targets);
    mixt_status status = labels ? read_array(zip, path, names[place].inputs, &file, &block)
                                : mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for a name", path);
    if (status == MIXT_OK)
        status = mixt__npy_take_inputs(path, &file, table);
    mixt__free(block);
    MIXT_TRY(status);
    block = NULL;
    status = read_array(zip, labels, targets, &file, &block);
    if (status == MIXT_OK)
        status = mixt__npy_take_targets(data, labels, &file, table);
    mixt__free(block);
    return status;
}

static mixt_status load(mixt_data *data, const char *path, mixt__table *table)
{
    mixt__zip zip;
    const char *name = path + strlen(data->path) + 1;
    MIXT_TRY(mixt__zip_open(data->path, &zip));
    mixt_status status = mixt__part_missing(data); // changed under our hands
    for (int part = 0; part < MIXT_PART_ALL && status != MIXT_OK; part++) {
        int place = find_names(data, &zip, (mixt__part)part);
        if (place < 0 || strcmp(names[place].inputs, name) != 0)
            continue;
        status = load_part(data, &zip, path, place, table);
        break;
    }
    mixt__zip_close(&zip);
    return status;
}

/** Says what is in the file when nothing of it can be trained on. */
static mixt_status check_names(mixt_data *data)
{
    mixt__zip zip;
    char text[200] = "nothing";
    if (!mixt__path_is_file(data->path))
        return mixt__fail(MIXT_ERROR_FILE, "npz:%s: no such file; check the path of the data set", data->path);
    MIXT_TRY(mixt__zip_open(data->path, &zip));
    bool found = find_names(data, &zip, MIXT_PART_TRAIN) >= 0;
    list_arrays(&zip, text, sizeof text);
    mixt__zip_close(&zip);
    if (found || (data->part != MIXT_PART_TRAIN && data->part != MIXT_PART_ALL && find(data, data->part)))
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_DATA,
                      "%s: holds %s; expected arrays called x and y, images and labels, or x_train and y_train; the "
                      "option 'labels' names another array of labels",
                      data->path, text);
}

static mixt_status open_npz(mixt_data *data)
{
    static const mixt__table_reader reader = {find, load};
    MIXT_TRY(check_names(data));
    return mixt__table_open(data, &reader);
}

const mixt__data_kind mixt__data_npz = {
    .name = "npz",
    .what = "NumPy arrays of samples and labels in one file",
    .uses = MIXT_DATA_LABELS | MIXT_DATA_IMAGES | MIXT_DATA_NUMBERS | MIXT_DATA_CLASSES | MIXT_DATA_SHAPE,
    .open = open_npz,
    .sample = mixt__table_sample,
    .close = mixt__table_close,
    .raw = mixt__table_raw,
};
