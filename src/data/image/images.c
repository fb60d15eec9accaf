/* Folders of pictures: one folder a class, in FOLDER/train, FOLDER/val and FOLDER/test, or in FOLDER itself, which is
 * then shared out; or pictures that a table lists with their labels (listed.h). Of video a sample is not a picture but
 * a clip: a folder of them.
 *
 * Only names are kept; a picture is read, decoded and resized when a batch needs it, so that a set may be larger than
 * memory. Classes are the training folder's subfolders in the order of their names, files too: numbers of samples do
 * not depend on the file system.
 */
#include "data/image/augment.h"
#include "data/data.h"
#include "data/image/folder.h"
#include "data/image/listed.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    DEFAULT_CROP = 224,
    DEFAULT_CLIP_CROP = 112,
    DEFAULT_FRAMES = 16,
    MEASURED = 256, // samples that mean and deviation come from
    PATH_SIZE = MIXT_PATH_SIZE
};

typedef struct picture_file {
    const char *name; // in the folder of its class; of a clip its folder; of a list its path
    int32_t label;
    float value; // in place of that, where targets are values
} picture_file;

/** The pictures below one folder. */
typedef struct listing {
    const char *folder;  // for messages, the table, of pictures that one lists
    bool listed;         // they are
    picture_file *files; // owned
    int64_t count, capacity;
    mixt__clip *clips; // owned; (count) of video, else NULL
    int64_t clip_capacity;
    bool grey; // every name ends in .pgm, or in .png without colour as far as looked at
} listing;

typedef struct images_state {
    listing list;
    const char **classes; // (class_count) in the data set's memory
    int64_t class_count;
    int64_t *rows; // sample to file; NULL: the same
    int64_t channels;
    int64_t frames; // of a sample; 0: it is a picture
    float mean[3], std[3], scale[3], shift[3];
    mixt__augment augment;
} images_state;

bool mixt__images_are_in(const char *folder)
{
    char path[PATH_SIZE];
    bool found = false;
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries && !found && (entry = readdir(entries));)
        found = entry->d_name[0] != '.' && snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) < PATH_SIZE &&
                mixt__folder_has_pictures(path);
    if (entries)
        closedir(entries);
    return found;
}

/** Where the samples of one class go. */
typedef struct class_listing {
    mixt_data *data;
    listing *list;
    const char *folder;
    int64_t frames;
    int32_t label;
} class_listing;

static mixt_status add_picture(void *user, const char *name)
{
    class_listing *c = user;
    listing *list = c->list;
    picture_file file = {.name = mixt__arena_strdup(&c->data->arena, name), .label = c->label};
    if (!file.name || !mixt__grow((void **)&list->files, &list->capacity, list->count, sizeof *list->files))
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for the names of its images", c->folder);
    list->files[list->count++] = file;
    list->grey = list->grey && mixt__picture_may_be_grey(name);
    return MIXT_OK;
}

static mixt_status add_clip(class_listing *c, const char *name)
{
    char path[PATH_SIZE];
    listing *list = c->list;
    mixt__clip clip;
    snprintf(path, sizeof path, "%s/%s", c->folder, name);
    if (!mixt__path_is_directory(path))
        return mixt__picture_is(name) || mixt__picture_is_unread(name)
                   ? mixt__fail(MIXT_ERROR_DATA, "%s: an image beside clips: a clip is a folder of images", path)
                   : MIXT_OK;
    MIXT_TRY(mixt__clip_list(path, c->frames, &c->data->arena, &clip));
    if (!mixt__grow((void **)&list->clips, &list->clip_capacity, list->count, sizeof *list->clips))
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for the names of its clips", c->folder);
    list->clips[list->count] = clip;
    bool grey = list->grey && clip.grey;
    MIXT_TRY(add_picture(c, name));
    list->grey = grey;
    return MIXT_OK;
}

static mixt_status list_clips(class_listing *c)
{
    struct dirent **entries;
    int count;
    MIXT_TRY(mixt__folder_scan(c->folder, &entries, &count));
    mixt_status status = MIXT_OK;
    for (int i = 0; i < count && status == MIXT_OK; i++)
        status = add_clip(c, entries[i]->d_name);
    mixt__folder_free(entries, count);
    return status;
}

static mixt_status list_class(mixt_data *data, const images_state *state, listing *list, const char *folder,
                              int32_t label)
{
    class_listing c = {data, list, folder, state->frames, label};
    return state->frames ? list_clips(&c) : mixt__folder_pictures(folder, add_picture, &c);
}

/** The label of a class; -1 when the training folder has none of that name. */
static int32_t label_of(const images_state *state, const char *name)
{
    for (int64_t i = 0; i < state->class_count; i++)
        if (!strcmp(state->classes[i], name))
            return (int32_t)i;
    return -1;
}

/** The subfolders of the training folder, sorted. */
static mixt_status find_classes(mixt_data *data, images_state *state, const char *folder)
{
    struct dirent **entries;
    int count;
    char path[PATH_SIZE];
    MIXT_TRY(mixt__folder_scan(folder, &entries, &count));
    state->classes = mixt__arena_alloc(&data->arena, (size_t)(count + 1) * sizeof *state->classes);
    bool complete = state->classes != NULL;
    for (int i = 0; i < count && complete; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (!mixt__path_is_directory(path))
            continue;
        const char *name = mixt__arena_strdup(&data->arena, entries[i]->d_name);
        complete = name != NULL;
        state->classes[state->class_count++] = name;
    }
    mixt__folder_free(entries, count);
    if (!complete)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for the names of its classes", folder);
    return state->class_count
               ? MIXT_OK
               : mixt__fail(MIXT_ERROR_DATA, "%s: holds no folders: expected one for each class, with images in it",
                            folder);
}

/** With `each`, a class without pictures is an error: nothing could be learnt of it. */
static mixt_status list_pictures(mixt_data *data, const images_state *state, const char *folder, bool each,
                                 listing *list)
{
    struct dirent **entries;
    int count;
    char path[PATH_SIZE];
    *list = (listing){.folder = folder, .grey = true};
    MIXT_TRY(mixt__folder_scan(folder, &entries, &count));
    mixt_status status = MIXT_OK;
    for (int i = 0; i < count && status == MIXT_OK; i++) {
        int32_t label = label_of(state, entries[i]->d_name);
        int64_t before = list->count;
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (!mixt__path_is_directory(path))
            continue;
        status = label < 0 ? mixt__fail(MIXT_ERROR_DATA, "%s: a class that the training folder does not have", path)
                           : list_class(data, state, list, path, label);
        if (status == MIXT_OK && each && list->count == before)
            status = mixt__fail(MIXT_ERROR_DATA, "%s: a class without %s (%s): add some, or remove the folder", path,
                                state->frames ? "clips" : "images", mixt__picture_kinds());
    }
    mixt__folder_free(entries, count);
    if (status == MIXT_OK && !list->count)
        status = mixt__fail(MIXT_ERROR_DATA, "%s: holds no %s in its class folders (%s)", folder,
                            state->frames ? "clips" : "images", mixt__picture_kinds());
    return status;
}

/** The path of file `row` of a list: of a picture, or of a clip's folder. */
static mixt_status path_of(const images_state *state, const listing *list, int64_t row, char path[PATH_SIZE])
{
    const picture_file *file = &list->files[row];
    if (list->listed)
        return snprintf(path, PATH_SIZE, "%s", file->name) < PATH_SIZE
                   ? MIXT_OK
                   : mixt__fail(MIXT_ERROR_FILE, "%s: the path is too long", file->name);
    if (snprintf(path, PATH_SIZE, "%s/%s/%s", list->folder, state->classes[file->label], file->name) >= PATH_SIZE)
        return mixt__fail(MIXT_ERROR_FILE, "%s/%s/%s: the path is too long", list->folder, state->classes[file->label],
                          file->name);
    return MIXT_OK;
}

/** Frame `frame` of sample `row`; `first` is the sample's first frame, NULL: this is it. */
static mixt_status read_frame(const images_state *state, const listing *list, int64_t row, int64_t frame,
                              const mixt__picture *first, mixt__picture *picture)
{
    char path[PATH_SIZE];
    MIXT_TRY(path_of(state, list, row, path));
    if (state->frames)
        return mixt__clip_read(path, &list->clips[row], frame, state->frames, state->channels, first, picture);
    return mixt__picture_read(path, state->channels, picture);
}

/** Whether a picture that may be grey by its name is. */
static bool picture_is_grey(const images_state *state, const listing *list, int64_t row)
{
    char path[PATH_SIZE], frame[PATH_SIZE];
    const char *name = list->clips ? list->clips[row].names[0] : list->files[row].name, *dot = strrchr(name, '.');
    if (strcasecmp(dot, ".png") != 0)
        return true;
    if (path_of(state, list, row, path) != MIXT_OK)
        return false;
    if (!list->clips)
        return mixt__picture_is_grey(path);
    return snprintf(frame, sizeof frame, "%s/%s", path, name) < PATH_SIZE && mixt__picture_is_grey(frame);
}

/** Whether a set is grey: by its names, and where PNG leaves it open, by pictures spread over the list. */
static bool is_grey(const images_state *state, const listing *list)
{
    int64_t count = list->count < MEASURED ? list->count : MEASURED;
    bool grey = list->grey;
    for (int64_t i = 0; i < count && grey; i++)
        grey = picture_is_grey(state, list, i * list->count / count);
    return grey;
}

/** All frames of a clip show the same window. */
static mixt_status make_sample(const images_state *state, const listing *list, int64_t row, uint64_t seed,
                               int64_t epoch, int64_t index, const mixt__normal *normal, float *sample)
{
    int64_t frames = state->frames ? state->frames : 1;
    int64_t elements = state->augment.height * state->augment.width * state->channels;
    mixt__picture first = {0}; // its size
    mixt__window window = {0};
    for (int64_t frame = 0; frame < frames; frame++) {
        mixt__picture picture;
        MIXT_TRY(read_frame(state, list, row, frame, frame ? &first : NULL, &picture));
        mixt__image image = {picture.pixels, MIXT_DTYPE_UINT8, picture.height, picture.width, picture.channels};
        if (frame == 0) {
            first = picture;
            window = mixt__augment_window(&state->augment, image.height, image.width, seed, epoch, index);
        }
        mixt_status status = mixt__augment_apply(&state->augment, &image, &window, normal, sample + frame * elements);
        mixt__picture_free(&picture);
        MIXT_TRY(status);
    }
    return MIXT_OK;
}

/** Mean and deviation of each channel over samples spread over the list, as evaluation sees them. */
static mixt_status measure(images_state *state, const listing *list)
{
    static const float zero[3], unit[3] = {1 / 255.0f, 1 / 255.0f, 1 / 255.0f};
    const mixt__normal plain = {.mean = zero, .scale = unit, .shift = zero};
    int64_t count = list->count < MEASURED ? list->count : MEASURED;
    int64_t pixels = state->augment.height * state->augment.width * (state->frames ? state->frames : 1);
    float *sample = mixt__alloc_uninit((size_t)(pixels * state->channels) * sizeof *sample);
    double sum[3] = {0}, squares[3] = {0}, total = (double)count * (double)pixels;
    mixt_status status = sample ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for a sample", list->folder);
    for (int64_t i = 0; i < count && status == MIXT_OK; i++) {
        status = make_sample(state, list, i * list->count / count, 0, -1, 0, &plain, sample);
        for (int64_t k = 0; status == MIXT_OK && k < pixels * state->channels; k++) {
            sum[k % state->channels] += (double)sample[k];
            squares[k % state->channels] += (double)sample[k] * (double)sample[k];
        }
    }
    mixt__free(sample);
    for (int64_t c = 0; c < state->channels; c++) {
        double mean = sum[c] / total, variance = squares[c] / total - mean * mean;
        state->mean[c] = (float)mean;
        state->std[c] = variance > 1e-12 ? (float)sqrt(variance) : 1;
    }
    return status;
}

static mixt_status copy_statistics(const mixt_data *data, images_state *state)
{
    const mixt_data_info *like = &data->options.like->info;
    if (like->channels != state->channels)
        return mixt__fail(MIXT_ERROR_DATA, "%s: %lld channels, but the data it must match (%s) has %lld", data->path,
                          (long long)state->channels, *like->path ? like->path : like->kind, (long long)like->channels);
    memcpy(state->mean, like->mean, (size_t)state->channels * sizeof(float));
    memcpy(state->std, like->std, (size_t)state->channels * sizeof(float));
    return MIXT_OK;
}

/** `train` is the training folder's list. */
static mixt_status normalise(const mixt_data *data, images_state *state, const listing *train)
{
    const mixt_data_options *o = &data->options;
    bool standard = o->normalise == MIXT_NORMALISE_STANDARD;
    for (int c = 0; c < 3; c++) {
        state->mean[c] = standard && o->std != 0 ? o->mean : 0;
        state->std[c] = standard && o->std != 0 ? o->std : 1;
    }
    if (standard && o->stds) {
        MIXT_TRY(mixt__channel_numbers(o->means, "means", state->channels, state->mean));
        MIXT_TRY(mixt__channel_numbers(o->stds, "stds", state->channels, state->std));
    } else if (standard && o->std == 0) {
        MIXT_TRY(o->like ? copy_statistics(data, state) : measure(state, train));
    }
    for (int c = 0; c < 3; c++) {
        state->scale[c] = (o->normalise == MIXT_NORMALISE_NONE ? 1 : 1 / 255.0f) / state->std[c];
        state->shift[c] = -state->mean[c] / state->std[c];
    }
    return MIXT_OK;
}

/** The files of a part that has no folder of its own. */
static mixt_status choose_rows(mixt_data *data, images_state *state, bool has_val, bool has_test, int64_t *samples)
{
    mixt__shares shares;
    MIXT_TRY(mixt__shares_of(data, state->list.count, has_val, has_test, &shares));
    *samples = data->part == MIXT_PART_VAL ? shares.val : data->part == MIXT_PART_TEST ? shares.test : shares.train;
    if (!*samples)
        return mixt__part_missing(data);
    if (*samples == state->list.count)
        return MIXT_OK;
    state->rows = mixt__alloc_uninit((size_t)*samples * sizeof *state->rows);
    if (!state->rows)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for an index of %lld files", data->path,
                          (long long)*samples);
    for (int64_t row = 0, filled = 0; filled < *samples; row++)
        if (mixt__part_of_row(&shares, row) == data->part)
            state->rows[filled++] = row;
    return MIXT_OK;
}

static void describe(mixt_data *data, images_state *state, int64_t samples)
{
    mixt_data_info *info = &data->info;
    info->samples = samples;
    info->input_dtype = MIXT_DTYPE_FP32;
    info->channels = state->channels;
    if (state->frames)
        info->input_dims[info->input_rank++] = state->frames;
    info->input_dims[info->input_rank++] = state->augment.height;
    info->input_dims[info->input_rank++] = state->augment.width;
    info->input_dims[info->input_rank++] = state->channels;
    info->target = MIXT_TARGET_CLASS;
    info->target_elements = 1;
    info->classes = data->options.classes > state->class_count ? data->options.classes : state->class_count;
    info->mean = state->mean;
    info->std = state->std;
    info->class_names = info->classes == state->class_count ? state->classes : NULL;
}

/** Lists, sizes and statistics, once it is known which folder holds what. `train` stays the caller's to free. */
static mixt_status fill(mixt_data *data, images_state *state, const char *train, const char *own, listing *train_list)
{
    int64_t samples;
    MIXT_TRY(find_classes(data, state, train));
    bool apart_from_train = own && strcmp(own, train), alone = !data->options.like;
    MIXT_TRY(list_pictures(data, state, own ? own : train, alone && !apart_from_train, &state->list));
    const listing *measured = &state->list;
    if (apart_from_train && alone) { // grey or colour, mean and deviation are the training folder's
        MIXT_TRY(list_pictures(data, state, train, true, train_list));
        measured = train_list;
    }
    state->channels = data->options.like ? data->options.like->info.channels : is_grey(state, measured) ? 1 : 3;
    samples = state->list.count;
    bool apart = strcmp(train, data->path) != 0;
    if (!apart_from_train)
        MIXT_TRY(choose_rows(data, state, apart && mixt__path_of_folder(data, MIXT_PART_VAL),
                             apart && mixt__path_of_folder(data, MIXT_PART_TEST), &samples));
    MIXT_TRY(normalise(data, state, measured));
    describe(data, state, samples);
    return MIXT_OK;
}

/** Takes over what a table lists. */
static mixt_status take_list(mixt_data *data, const mixt__table *table, const char *const *paths, listing *list)
{
    *list = (listing){.folder = table->path, .listed = true, .grey = true};
    list->files = mixt__alloc_uninit((size_t)(table->rows + 1) * sizeof *list->files);
    if (!list->files)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for the names of its pictures", data->path);
    for (int64_t i = 0; i < table->rows; i++) {
        list->files[i] = (picture_file){.name = paths[i]};
        if (table->labels)
            list->files[i].label = table->labels[i];
        else
            list->files[i].value = table->values[i];
        list->grey = list->grey && mixt__picture_may_be_grey(paths[i]);
    }
    list->count = table->rows;
    return MIXT_OK;
}

/** How values are learned, by mean and deviation of those to train on. */
static mixt_status scale_values(mixt_data *data, const images_state *state, const listing *train, int64_t samples)
{
    const int64_t *rows = train == &state->list ? state->rows : NULL;
    int64_t count = rows ? samples : train->count;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < count; i++) {
        double value = (double)train->files[rows ? rows[i] : i].value;
        sum += value;
        squares += value * value;
    }
    double mean = sum / (double)count, variance = squares / (double)count - mean * mean;
    return mixt__target_learned(data, mean, variance > 0 ? sqrt(variance) : 0);
}

/** The same as `fill` of pictures that tables list; `train` is that of the training part. */
static mixt_status fill_listed(mixt_data *data, images_state *state, const mixt__table *train, const mixt__table *own,
                               const char *const *paths[2], listing *train_list)
{
    MIXT_TRY(take_list(data, own->rows ? own : train, paths[own->rows ? 1 : 0], &state->list));
    if (own->rows)
        MIXT_TRY(take_list(data, train, paths[0], train_list));
    const listing *measured = own->rows ? train_list : &state->list;
    int64_t samples = state->list.count;
    state->classes = (const char **)(uintptr_t)train->class_names;
    state->class_count = train->labels ? train->classes : 0;
    state->channels = data->options.like ? data->options.like->info.channels : is_grey(state, measured) ? 1 : 3;
    if (!own->rows)
        MIXT_TRY(choose_rows(data, state, mixt__listed_table(data, data->path, MIXT_PART_VAL),
                             mixt__listed_table(data, data->path, MIXT_PART_TEST), &samples));
    MIXT_TRY(normalise(data, state, measured));
    describe(data, state, samples);
    if (train->labels) {
        data->info.class_names = train->class_names && data->info.classes == train->classes ? train->class_names : NULL;
        return MIXT_OK;
    }
    data->info.target = MIXT_TARGET_VALUES;
    data->info.classes = 0;
    data->info.class_names = NULL;
    return scale_values(data, state, measured, samples);
}

static mixt_status open_listed(mixt_data *data, images_state *state, const char *table)
{
    bool held_out = data->part == MIXT_PART_VAL || data->part == MIXT_PART_TEST;
    const char *own_table = held_out ? mixt__listed_table(data, data->path, data->part) : NULL, **paths[2] = {NULL};
    mixt__table train = {0}, own = {0};
    listing train_list = {0};
    mixt_status status = mixt__listed_read(data, table, &train, &paths[0]);
    own.train = &train;
    if (status == MIXT_OK && own_table)
        status = mixt__listed_read(data, own_table, &own, &paths[1]);
    if (status == MIXT_OK)
        status = fill_listed(data, state, &train, &own,
                             (const char *const *[2]){(const char *const *)paths[0], (const char *const *)paths[1]},
                             &train_list);
    mixt__table_free(&train);
    mixt__table_free(&own);
    mixt__free(train_list.files);
    return status;
}

static mixt_status open_folders(mixt_data *data, int64_t frames, int64_t crop)
{
    images_state *state = data->state = mixt__alloc(sizeof *state);
    const char *kind = data->kind->name;
    if (!state)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory", data->path);
    state->frames = frames;
    const char *table = frames ? NULL : mixt__listed_table(data, data->path, MIXT_PART_TRAIN);
    if (!mixt__path_is_directory(data->path) && !table)
        return mixt__fail(MIXT_ERROR_FILE, "%s:%s: no such folder; check the path of the data set", kind, data->path);
    mixt_data_options *o = &data->options;
    o->crop = o->crop ? o->crop : crop;
    if (!o->resize)
        o->resize = o->crop + o->crop / 7;
    if (o->pad)
        return mixt__fail(MIXT_ERROR_CONFIG, "%s:%s: images are resized before they are cropped: 'pad' must be 0", kind,
                          data->path);
    if (o->classes && o->like && o->like->info.classes > o->classes)
        return mixt__fail(MIXT_ERROR_CONFIG, "%s:%s: has %lld classes, not %lld", kind, data->path,
                          (long long)o->like->info.classes, (long long)o->classes);
    MIXT_TRY(mixt__augment_of(o, data->path, 0, 0, &state->augment));
    if (table)
        return open_listed(data, state, table);
    const char *train = mixt__path_of_folder(data, MIXT_PART_TRAIN), *own = NULL;
    if (train && data->part != MIXT_PART_TRAIN && data->part != MIXT_PART_ALL)
        own = mixt__path_of_folder(data, data->part);
    listing train_list = {0};
    mixt_status status = fill(data, state, train ? train : data->path, own, &train_list);
    mixt__free(train_list.files);
    mixt__free(train_list.clips);
    return status;
}

static mixt_status open_images(mixt_data *data)
{
    bool one;
    MIXT_TRY(open_folders(data, 0, DEFAULT_CROP));
    return mixt__target_check(data, data->info.target == MIXT_TARGET_VALUES, 1, &one);
}

static mixt_status open_video(mixt_data *data)
{
    return open_folders(data, data->options.frames ? data->options.frames : DEFAULT_FRAMES, DEFAULT_CLIP_CROP);
}

static mixt_status sample_images(const mixt_data *data, int64_t index, int64_t epoch, void *input, void *target)
{
    const images_state *state = data->state;
    int64_t row = state->rows ? state->rows[index] : index;
    mixt__normal normal = {.mean = state->mean, .scale = state->scale, .shift = state->shift};
    if (data->info.target == MIXT_TARGET_VALUES)
        memcpy(target, &state->list.files[row].value, sizeof(float));
    else
        memcpy(target, &state->list.files[row].label, sizeof(int32_t));
    return make_sample(state, &state->list, row, data->options.seed, epoch, index, &normal, input);
}

static void close_images(mixt_data *data)
{
    images_state *state = data->state;
    if (!state)
        return;
    mixt__free(state->list.files);
    mixt__free(state->list.clips);
    mixt__free(state->rows);
    mixt__free(state);
    data->state = NULL;
}

const mixt__data_kind mixt__data_images = {
    .name = "images",
    .what = "images in class folders, or listed in a table",
    .uses = MIXT_DATA_LABELS | MIXT_DATA_INPUTS | MIXT_DATA_IMAGES | MIXT_DATA_NUMBERS | MIXT_DATA_CLASSES |
            MIXT_DATA_VALUES,
    .open = open_images,
    .sample = sample_images,
    .close = close_images,
    .slow = true,
};

const mixt__data_kind mixt__data_video = {
    .name = "video",
    .what = "folder of clips, which are folders of images, in class folders",
    .uses = MIXT_DATA_IMAGES | MIXT_DATA_FRAMES | MIXT_DATA_NUMBERS | MIXT_DATA_CLASSES,
    .open = open_video,
    .sample = sample_images,
    .close = close_images,
    .slow = true,
};
