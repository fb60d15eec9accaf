/* IDX, the format of MNIST and its family: big-endian magic (0, 0, type, rank), dims, then the elements.
 *
 * Images stay bytes in the block the file was read into; other element types become FP32. Labels stand in a second
 * file whose name follows from the first.
 */
#include "data/data.h"
#include "data/image/folder.h"
#include "data/table/array_files.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_IDX_RANK = MIXT_MAX_RANK };

typedef struct idx_type {
    int code, size;
    const char *name;
} idx_type;

static const idx_type types[] = {{0x08, 1, "uint8"}, {0x09, 1, "int8"},    {0x0B, 2, "int16"},
                                 {0x0C, 4, "int32"}, {0x0D, 4, "float32"}, {0x0E, 8, "float64"}};

/** A parsed file: `elements` points into `file`. */
typedef struct idx_array {
    mixt__bytes file;
    const idx_type *type;
    int rank;
    int64_t dims[MAX_IDX_RANK], count;
    const unsigned char *elements;
} idx_array;

static uint64_t big_endian(const unsigned char *at, int size)
{
    uint64_t value = 0;
    for (int i = 0; i < size; i++)
        value = value << 8 | at[i];
    return value;
}

static double element_at(const idx_array *array, int64_t index)
{
    const unsigned char *at = array->elements + index * array->type->size;
    uint64_t bits = big_endian(at, array->type->size);
    uint32_t low = (uint32_t)bits;
    float single;
    double wide;
    switch (array->type->code) {
    case 0x08:
        return (double)bits;
    case 0x09:
        return (int8_t)bits;
    case 0x0B:
        return (int16_t)bits;
    case 0x0C:
        return (int32_t)low;
    case 0x0D:
        memcpy(&single, &low, sizeof single);
        return single;
    default:
        memcpy(&wide, &bits, sizeof wide);
        return wide;
    }
}

/** Magic, dims and size of what has been read. */
static mixt_status parse(idx_array *array, const char *path)
{
    const unsigned char *bytes = array->file.bytes;
    int64_t size = array->file.size;
    if (size < 4)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: %lld bytes, too short for an IDX header (offset 0)", path,
                          (long long)size);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i].code == bytes[2])
            array->type = &types[i];
    if (bytes[0] || bytes[1] || !array->type)
        return mixt__fail(MIXT_ERROR_FORMAT,
                          "%s: offset 0: magic %02x %02x %02x %02x is not IDX (expected 00 00, a type of 08 to 0e, the "
                          "number of dimensions); is it another kind of file?",
                          path, bytes[0], bytes[1], bytes[2], bytes[3]);
    array->rank = bytes[3];
    if (array->rank < 1 || array->rank > MAX_IDX_RANK)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: offset 3: %d dimensions, expected 1 to %d", path, array->rank,
                          MAX_IDX_RANK);
    int64_t header = 4 + 4 * array->rank;
    if (size < header)
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: offset %lld: the file ends inside the %lld-byte header", path,
                          (long long)size, (long long)header);
    for (int i = 0; i < array->rank; i++) {
        array->dims[i] = (int64_t)big_endian(bytes + 4 + 4 * i, 4);
        if (array->dims[i] == 0)
            return mixt__fail(MIXT_ERROR_FORMAT, "%s: offset %d: dimension %d is 0", path, 4 + 4 * i, i);
    }
    if (!mixt__shape_elements(array->rank, array->dims, &array->count))
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: offset 4: the dimensions multiply to more than any file can hold",
                          path);
    int64_t expected = header + array->count * array->type->size;
    if (size != expected)
        return mixt__fail(
            MIXT_ERROR_FORMAT,
            "%s: %s%lld bytes, but its header (%s, %d dimensions, first %lld) asks for %lld: the file is %s", path,
            size < expected ? "" : "at least ", (long long)size, array->type->name, array->rank,
            (long long)array->dims[0], (long long)expected,
            size < expected ? "cut off" : "longer than its header says");
    array->elements = bytes + header;
    return MIXT_OK;
}

/** Bytes that a header asks for. */
static int64_t promise(const unsigned char *bytes, int64_t size)
{
    int64_t dims[MAX_IDX_RANK], count;
    const idx_type *type = NULL;
    for (size_t i = 0; size >= 4 && i < sizeof types / sizeof types[0]; i++)
        if (types[i].code == bytes[2])
            type = &types[i];
    if (!type || bytes[0] || bytes[1] || bytes[3] > MAX_IDX_RANK || size < 4 + 4 * bytes[3])
        return size;
    for (int i = 0; i < bytes[3]; i++)
        dims[i] = (int64_t)big_endian(bytes + 4 + 4 * i, 4);
    return mixt__shape_elements(bytes[3], dims, &count) ? 4 + 4 * bytes[3] + count * type->size : size;
}

static mixt_status read_array(const char *path, idx_array *array)
{
    *array = (idx_array){0};
    MIXT_TRY(mixt__bytes_read_promised(path, 4 + 4 * MAX_IDX_RANK, promise, &array->file));
    mixt_status status = parse(array, path);
    if (status != MIXT_OK)
        mixt__bytes_free(&array->file);
    return status;
}

/** Elements as FP32, every one finite. */
static mixt_status to_floats(const idx_array *array, const char *path, float **floats)
{
    *floats = mixt__alloc_uninit((size_t)array->count * sizeof(float));
    if (!*floats)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for %lld elements", path, (long long)array->count);
    for (int64_t i = 0; i < array->count; i++) {
        float value = (float)element_at(array, i);
        if (!isfinite(value)) {
            mixt__free(*floats);
            *floats = NULL;
            return mixt__fail(MIXT_ERROR_DATA, "%s: offset %lld (sample %lld): %g is not a finite number", path,
                              (long long)(array->elements - array->file.bytes + i * array->type->size),
                              (long long)(i / (array->count / array->dims[0])), (double)value);
        }
        (*floats)[i] = value;
    }
    return MIXT_OK;
}

/** Whether a file may be IDX: by its first bytes, or where it is packed by its name. */
static bool may_be_idx(const char *path)
{
    size_t length = strlen(path);
    bool packed = length > 3 && !strcmp(path + length - 3, ".gz");
    return packed ? strstr(path, "idx") || strstr(path, "ubyte") : mixt__sniff_kind(path) == &mixt__data_idx;
}

/** The only file of a folder whose name has words for this part and role; NULL: there is none, or there are several. */
static const char *find_by_words(mixt_data *data, const char *folder, mixt__part part, mixt__array_role role)
{
    struct dirent **entries;
    int count, found = 0;
    const char *path = NULL;
    if (mixt__folder_scan(folder, &entries, &count) != MIXT_OK)
        return NULL;
    for (int i = 0; i < count; i++) {
        mixt__part says;
        mixt__array_role holds;
        mixt__array_name(entries[i]->d_name, &says, &holds);
        if (holds != role || (says != part && !(part == MIXT_PART_TRAIN && says == MIXT_PART_ALL)))
            continue;
        const char *file = mixt__arena_printf(&data->arena, "%s/%s", folder, entries[i]->d_name);
        if (file && may_be_idx(file)) {
            found++;
            path = file;
        }
    }
    mixt__folder_free(entries, count);
    return found == 1 ? path : NULL;
}

/** The first of the names under which MNIST-like sets are published, else one with words for it. */
static const char *find_in(mixt_data *data, const char *folder, mixt__part part)
{
    static const char *const stems[MIXT_PART_ALL][2] = {{"train", "training"}, {"val", "valid"}, {"t10k", "test"}};
    static const char *const patterns[] = {"%s-images-idx3-ubyte", "%s-images.idx3-ubyte", "%s-images-idx4-ubyte",
                                           "%s-images-idx2-ubyte", "%s-images.idx"};
    for (int stem = 0; stem < 2; stem++)
        for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
            char name[64];
            snprintf(name, sizeof name, patterns[i], stems[part][stem]);
            const char *path = mixt__path_find(data, folder, name);
            if (path)
                return path;
        }
    return find_by_words(data, folder, part, MIXT_ARRAY_INPUTS);
}

static const char *find(mixt_data *data, mixt__part part)
{
    if (mixt__path_is_file(data->path))
        return part == MIXT_PART_TRAIN ? data->path : NULL;
    return find_in(data, data->path, part);
}

bool mixt__idx_is_in(mixt_data *data, const char *folder)
{
    return find_in(data, folder, MIXT_PART_TRAIN) || find_in(data, folder, MIXT_PART_VAL) ||
           find_in(data, folder, MIXT_PART_TEST);
}

/** …/train-images-idx3-ubyte.gz to …/train-labels-idx1-ubyte, with or without .gz. */
static mixt_status labels_path(mixt_data *data, const char *images, const char **path)
{
    const char *slash = strrchr(images, '/'), *name = slash ? slash + 1 : images, *word = strstr(name, "images");
    if (data->options.labels && mixt__path_is_file(data->path)) {
        *path = data->options.labels;
        return MIXT_OK;
    }
    *path = NULL;
    const char *directory =
        mixt__arena_printf(&data->arena, "%.*s", slash ? (int)(slash - images) : 1, slash ? images : ".");
    if (word) {
        char *labels = mixt__arena_printf(&data->arena, "%.*slabels%s", (int)(word - name), name, word + 6);
        if (!directory || !labels)
            return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for a file name", images);
        char *rank = strstr(labels, "idx"), *gz = strstr(labels, ".gz");
        if (rank && rank[3] >= '2' && rank[3] <= '9')
            rank[3] = '1';
        if (gz && !gz[3])
            *gz = 0;
        *path = mixt__path_find(data, slash == images ? "/" : directory, labels);
    }
    mixt__part part;
    mixt__array_role role;
    mixt__array_name(name, &part, &role);
    if (!*path && directory)
        *path = find_by_words(data, slash == images ? "/" : directory, part == MIXT_PART_ALL ? MIXT_PART_TRAIN : part,
                              MIXT_ARRAY_LABELS);
    if (!*path)
        return mixt__fail(MIXT_ERROR_FILE,
                          "%s: no file of labels beside it (expected the same name with 'labels' for 'images' and idx1 "
                          "for idx3); name it with data.labels",
                          images);
    return MIXT_OK;
}

static mixt_status load_labels(mixt_data *data, const char *images, mixt__table *table)
{
    const char *path;
    MIXT_TRY(labels_path(data, images, &path));
    idx_array labels;
    MIXT_TRY(read_array(path, &labels));
    mixt_status status = MIXT_OK;
    float *values = NULL;
    if (labels.rank != 1)
        status = mixt__fail(MIXT_ERROR_FORMAT, "%s: offset 3: %d dimensions, expected 1: is it a file of labels?", path,
                            labels.rank);
    else if (labels.count != table->rows)
        status = mixt__fail(MIXT_ERROR_DATA, "%s: %lld labels, but %s holds %lld images", path, (long long)labels.count,
                            images, (long long)table->rows);
    else
        status = to_floats(&labels, path, &values);
    mixt__bytes_free(&labels.file);
    MIXT_TRY(status);
    table->path = path;
    status = mixt__table_take_targets(data, table, values, MIXT_TARGET_CLASS, NULL);
    table->path = images;
    return status;
}

mixt_status mixt__idx_read_images(const char *path, mixt__table *table)
{
    idx_array images;
    MIXT_TRY(read_array(path, &images));
    if (images.rank < 2) {
        mixt__bytes_free(&images.file);
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: offset 3: 1 dimension, expected 2 to 5: is it a file of labels?",
                          path);
    }
    table->path = path;
    table->rows = images.dims[0];
    table->rank = images.rank - 1;
    memcpy(table->dims, images.dims + 1, (size_t)table->rank * sizeof(int64_t));
    if (table->rank == 2)
        table->dims[table->rank++] = 1; // grey images have one channel
    if (images.type->code == 0x08) {
        table->dtype = MIXT_DTYPE_UINT8;
        table->block = images.file.bytes;
        table->input = images.elements;
    } else {
        float *floats = NULL;
        mixt_status status = to_floats(&images, path, &floats);
        mixt__bytes_free(&images.file);
        MIXT_TRY(status);
        table->dtype = MIXT_DTYPE_FP32;
        table->block = floats;
        table->input = floats;
    }
    return MIXT_OK;
}

static mixt_status load(mixt_data *data, const char *path, mixt__table *table)
{
    MIXT_TRY(mixt__idx_read_images(path, table));
    return load_labels(data, path, table);
}

/** Drops "/train" and its like from a path that exists only without it; the word is the default split. */
static mixt_status resolve(mixt_data *data)
{
    static const struct {
        const char *word;
        mixt__part part;
    } words[] = {
        {"train", MIXT_PART_TRAIN}, {"val", MIXT_PART_VAL}, {"test", MIXT_PART_TEST}, {"t10k", MIXT_PART_TEST}};
    if (mixt__path_is_directory(data->path) || mixt__path_is_file(data->path))
        return MIXT_OK;
    const char *slash = strrchr(data->path, '/');
    for (size_t i = 0; slash && i < sizeof words / sizeof words[0]; i++)
        if (!strcmp(slash + 1, words[i].word)) {
            if (!data->options.split)
                data->part = words[i].part;
            data->path = mixt__arena_printf(&data->arena, "%.*s", (int)(slash - data->path), data->path);
            if (!data->path)
                return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a path");
            break;
        }
    if (!mixt__path_is_directory(data->path))
        return mixt__fail(MIXT_ERROR_FILE, "idx:%s: no such folder or file; check the path of the data set",
                          data->path);
    return MIXT_OK;
}

/** A folder may hold one part alone; what it holds is said when another is asked for. */
static mixt_status check_parts(mixt_data *data)
{
    mixt__part part = data->part == MIXT_PART_ALL ? MIXT_PART_TRAIN : data->part;
    if (find(data, part) || find(data, MIXT_PART_TRAIN))
        return MIXT_OK;
    for (int other = MIXT_PART_VAL; other < MIXT_PART_ALL; other++) {
        const char *path = find(data, (mixt__part)other);
        if (path)
            return mixt__fail(MIXT_ERROR_FILE,
                              "idx:%s: holds only a %s part (%s), no train-images-idx3-ubyte; to train on that, name "
                              "the file itself",
                              data->path, mixt__part_names[other], path);
    }
    return mixt__fail(MIXT_ERROR_FILE,
                      "idx:%s: holds no train-images-idx3-ubyte (or t10k-…, val-…), plain or .gz; put the files there "
                      "or correct the path (of pictures: a folder for each class, as in cats/1.png)",
                      data->path);
}

static mixt_status open_idx(mixt_data *data)
{
    static const mixt__table_reader reader = {find, load};
    MIXT_TRY(resolve(data));
    MIXT_TRY(check_parts(data));
    return mixt__table_open(data, &reader);
}

const mixt__data_kind mixt__data_idx = {
    .name = "idx",
    .what = "folder of IDX images and labels (MNIST)",
    .uses = MIXT_DATA_LABELS | MIXT_DATA_IMAGES | MIXT_DATA_NUMBERS | MIXT_DATA_CLASSES | MIXT_DATA_SHAPE,
    .open = open_idx,
    .sample = mixt__table_sample,
    .close = mixt__table_close,
    .raw = mixt__table_raw,
};
