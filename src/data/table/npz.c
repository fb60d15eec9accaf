/* NumPy files as data sets: an .npz archive of arrays, .npy files, or a folder of either. Which array is what, their
 * names and shapes tell (array_files.c), or the options `inputs` and `labels`.
 *
 * An array of an archive is unpacked no further than its own header promises, and only those that a part needs are.
 */
#include "data/table/array_files.h"
#include "data/table/npy.h"
#include "data/table/zip.h"

#include <stdio.h>
#include <string.h>

static const mixt__zip_member *find_array(const mixt__zip *zip, const char *name)
{
    char file[MIXT_ZIP_NAME + 8];
    snprintf(file, sizeof file, "%s.npy", name);
    return mixt__zip_find(zip, file);
}

/** Unpacks one array: the header, then as much as it asks for. The block is the caller's to free, also on failure. */
static mixt_status read_array(const mixt__zip *zip, const char *path, const char *name, mixt__npy *file,
                              unsigned char **block)
{
    const mixt__zip_member *m = find_array(zip, name);
    if (!m)
        return mixt__fail(MIXT_ERROR_FILE, "%s: is no longer there", path);
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

/** What is done with an array while its file is open. */
typedef mixt_status array_fn(mixt_data *data, const char *path, const mixt__npy *file, mixt__table *table);

static mixt_status with_member(mixt_data *data, const mixt__array_file *a, array_fn *take, mixt__table *table)
{
    mixt__zip zip;
    mixt__npy file;
    unsigned char *block = NULL;
    MIXT_TRY(mixt__zip_open(a->file, &zip));
    mixt_status status = read_array(&zip, a->path, a->member, &file, &block);
    if (status == MIXT_OK)
        status = take(data, a->path, &file, table);
    mixt__free(block);
    mixt__zip_close(&zip);
    return status;
}

static mixt_status with_array(mixt_data *data, const mixt__array_file *a, array_fn *take, mixt__table *table)
{
    mixt__npy file;
    if (a->member)
        return with_member(data, a, take, table);
    MIXT_TRY(mixt__npy_open_numbers(a->file, &file));
    mixt_status status = take(data, a->path, &file, table);
    mixt__npy_close(&file);
    return status;
}

static mixt_status take_inputs(mixt_data *data, const char *path, const mixt__npy *file, mixt__table *table)
{
    (void)data;
    return mixt__npy_take_inputs(path, file, table);
}

/** To find out what is wrong with an array that could not be looked into. */
static mixt_status take_nothing(mixt_data *data, const char *path, const mixt__npy *file, mixt__table *table)
{
    (void)data;
    (void)path;
    (void)file;
    (void)table;
    return MIXT_OK;
}

mixt_status mixt__npz_read_inputs(mixt__arena *arena, const char *path, mixt__table *table)
{
    mixt__array_files files;
    MIXT_TRY(mixt__array_files_list(arena, path, false, &files));
    const mixt__array_file *inputs = mixt__array_files_inputs(&files);
    if (!inputs)
        return mixt__fail(MIXT_ERROR_DATA,
                          "%s: holds %s; which of them are samples their names do not say: save those alone, or call "
                          "them x",
                          path, mixt__array_files_text(arena, &files));
    return with_array(NULL, inputs, take_inputs, table);
}

/* ---- a data set ---- */

/** What was found, and the names by which its samples and labels are known; NULL: by words and shapes. */
struct mixt__numpy_set {
    mixt__array_files files;
    const char *inputs, *labels;
};

/** Whether `labels` names a file, not an array. */
static bool names_file(const char *labels)
{
    const char *dot = labels ? strrchr(labels, '.') : NULL;
    return dot && (!strcmp(dot, ".npy") || !strcmp(dot, ".npz")) && mixt__path_is_file(labels);
}

/** The labels are in a file of their own: the best of its arrays. */
static mixt_status add_labels_file(mixt_data *data, mixt__array_files *files, const char **labels)
{
    const char *file = *labels;
    int64_t first = files->count;
    for (int64_t i = 0; i < files->count; i++)
        if (!strcmp(files->arrays[i].file, file)) {
            *labels = files->arrays[i].name;
            return MIXT_OK;
        }
    MIXT_TRY(mixt__array_files_add(&data->arena, file, files));
    if (files->count == first)
        return mixt__fail(MIXT_ERROR_DATA, "%s: holds no array", file);
    for (int64_t i = first; i < files->count; i++)
        if (i == first || files->arrays[i].role == MIXT_ARRAY_LABELS)
            *labels = files->arrays[i].name;
    return MIXT_OK;
}

/** Lists what there is, once; files beside the one that is named count where it holds one array. */
static mixt_status find_arrays(mixt_data *data)
{
    struct mixt__numpy_set *set = mixt__arena_alloc(&data->arena, sizeof *set);
    if (!set)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory", data->path);
    if (!mixt__path_is_directory(data->path) && !mixt__path_is_file(data->path))
        return mixt__fail(MIXT_ERROR_FILE, "%s:%s: No such file or folder: check the path of the data set",
                          data->kind->name, data->path);
    data->numpy = set;
    set->inputs = data->options.inputs;
    set->labels = data->options.labels;
    MIXT_TRY(mixt__array_files_list(&data->arena, data->path, false, &set->files));
    bool alone = !mixt__path_is_directory(data->path) && set->files.count == 1, other = names_file(set->labels);
    if (alone && !other)
        MIXT_TRY(mixt__array_files_list(&data->arena, data->path, true, &set->files));
    if (alone && !set->inputs)
        set->inputs = set->files.arrays[0].name;
    return other ? add_labels_file(data, &set->files, &set->labels) : MIXT_OK;
}

static bool pair_of(const mixt_data *data, mixt__part part, const mixt__array_file **x, const mixt__array_file **y)
{
    const struct mixt__numpy_set *set = data->numpy;
    return mixt__array_files_pair(&set->files, part, set->inputs, set->labels, x, y);
}

/** The samples' path, by which `load` knows the part, and messages name it. */
static const char *find(mixt_data *data, mixt__part part)
{
    const mixt__array_file *x, *y;
    return pair_of(data, part, &x, &y) ? x->path : NULL;
}

static mixt_status load(mixt_data *data, const char *path, mixt__table *table)
{
    const mixt__array_file *x, *y;
    for (int part = 0; part < MIXT_PART_ALL; part++)
        if (pair_of(data, (mixt__part)part, &x, &y) && !strcmp(x->path, path)) {
            MIXT_TRY(with_array(data, x, take_inputs, table));
            return with_array(data, y, mixt__npy_take_targets, table);
        }
    return mixt__part_missing(data);
}

/** Says what is there when nothing of it can be trained on, and which options choose. */
static mixt_status check_arrays(mixt_data *data)
{
    const struct mixt__numpy_set *set = data->numpy;
    const char *there = mixt__array_files_text(&data->arena, &set->files);
    const struct {
        const char *key, *name;
    } given[] = {{"data.inputs", set->inputs}, {"data.labels", set->labels}};
    for (int i = 0; i < 2; i++)
        if (given[i].name && !mixt__array_files_find(&set->files, given[i].name))
            return mixt__fail(MIXT_ERROR_DATA, "%s: %s is '%s', but what is there is %s", data->path, given[i].key,
                              given[i].name, there);
    if (find(data, MIXT_PART_TRAIN) ||
        (data->part != MIXT_PART_TRAIN && data->part != MIXT_PART_ALL && find(data, data->part)))
        return MIXT_OK;
    for (int64_t i = 0; i < set->files.count; i++)
        if (!set->files.arrays[i].rank)
            MIXT_TRY(with_array(data, &set->files.arrays[i], take_nothing, NULL));
    if (set->files.beside)
        return mixt__fail(MIXT_ERROR_DATA,
                          "%s: holds %s, and no file beside it is called as its labels would be (y or labels in place "
                          "of x or images): name their file with data.labels=FILE",
                          data->path, mixt__dims_print(set->files.arrays[0].rank, set->files.arrays[0].dims).text);
    return mixt__fail(MIXT_ERROR_DATA,
                      "%s: holds %s: which of them are samples and which their labels, neither names nor shapes say; "
                      "choose with data.inputs=ARRAY data.labels=ARRAY",
                      data->path, there);
}

/** Tells what was not plain. */
static mixt_status tell_arrays(mixt_data *data)
{
    const mixt__array_file *x, *y;
    const mixt_data_options *o = &data->options;
    if (data->part != MIXT_PART_TRAIN || (o->inputs && o->labels) || !pair_of(data, data->part, &x, &y))
        return MIXT_OK;
    if (x->role == MIXT_ARRAY_INPUTS && y->role == MIXT_ARRAY_LABELS && x->file == y->file)
        return MIXT_OK;
    return mixt__data_note(data, "samples are %s %s, labels %s %s", x->name, mixt__dims_print(x->rank, x->dims).text,
                           y->name, mixt__dims_print(y->rank, y->dims).text);
}

static mixt_status open_npz(mixt_data *data)
{
    static const mixt__table_reader reader = {find, load};
    MIXT_TRY(find_arrays(data));
    MIXT_TRY(check_arrays(data));
    MIXT_TRY(mixt__table_open(data, &reader));
    return tell_arrays(data);
}

#define USES                                                                                                           \
    (MIXT_DATA_LABELS | MIXT_DATA_INPUTS | MIXT_DATA_IMAGES | MIXT_DATA_NUMBERS | MIXT_DATA_CLASSES | MIXT_DATA_SHAPE | \
     MIXT_DATA_VALUES)

const mixt__data_kind mixt__data_npz = {
    .name = "npz",
    .what = "NumPy arrays of samples and labels, in one file or in several",
    .uses = USES,
    .open = open_npz,
    .sample = mixt__table_sample,
    .close = mixt__table_close,
    .raw = mixt__table_raw,
};

const mixt__data_kind mixt__data_npy = {
    .name = "npy",
    .what = "NumPy array of samples, and one of labels",
    .uses = USES,
    .open = open_npz,
    .sample = mixt__table_sample,
    .close = mixt__table_close,
    .raw = mixt__table_raw,
};
