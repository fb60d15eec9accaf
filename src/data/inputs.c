/* Opening inputs by what the file is, and one row to one sample. */
#include "mixt/predict.h"

#include "data/audio/audio.h"
#include "data/image/augment.h"
#include "data/data.h"
#include "data/image/folder.h"
#include "data/table/csv_reader.h"
#include "data/text/inputs_text.h"
#include "store/tensor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct mixt_inputs {
    mixt__handle handle;
    const mixt_data *like; // borrowed
    char *path;
    mixt__table table; // of one row for a picture
    mixt__augment augment;
    bool crops;     // rows are images of another size than samples
    char *resized;  // says so, where no size was asked for when the model was trained; NULL: nothing to say
    int64_t frames; // that a recording has; 0: rows are whole
    float *scale, *shift;
    mixt__input_texts *texts; // in place of all that, where samples are texts
    mixt_data *rows;          // what a table's rows are read with; NULL: it is none
    int64_t *lines;           // of its rows
    mixt__arena names;        // of arrays
};

static bool ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), tail = strlen(ending);
    return length >= tail && !strcmp(text + length - tail, ending);
}

static bool takes_clips(const mixt_data_info *info)
{
    return info->input_rank == 4 && (info->input_dims[3] == 1 || info->input_dims[3] == 3);
}

/** What is neither an array nor a recording may be a picture, where the model takes those. */
static mixt_status read_picture(const char *path, const mixt_data *like, mixt__table *table)
{
    const mixt_data_info *info = &like->info;
    mixt__picture picture;
    if (info->input_rank != 3 || (info->input_dims[2] != 1 && info->input_dims[2] != 3))
        return mixt__fail(MIXT_ERROR_SHAPE, "%s: is not a %s, but the model was trained on %s of shape %s", path,
                          like->options.rate  ? "WAV file"
                          : takes_clips(info) ? "folder of images"
                                              : "table (.csv, .tsv) or array (.npy, .npz)",
                          like->options.rate  ? "recordings: features"
                          : takes_clips(info) ? "clips"
                                              : "samples",
                          mixt__dims_print(info->input_rank, info->input_dims).text);
    MIXT_TRY(mixt__picture_read(path, info->input_dims[2], &picture));
    *table = (mixt__table){.path = path, .block = picture.pixels, .input = picture.pixels, .rows = 1, .rank = 3};
    table->dtype = MIXT_DTYPE_UINT8;
    table->dims[0] = picture.height;
    table->dims[1] = picture.width;
    table->dims[2] = picture.channels;
    return MIXT_OK;
}

/** Copies frame by frame into a block that the first frame's size decides; `arena` is for names. */
static mixt_status read_frames(const char *path, const mixt_data_info *info, mixt__arena *arena, mixt__table *table)
{
    mixt__clip clip;
    mixt__picture first = {0}, picture; // first: its size
    int64_t frames = info->input_dims[0], channels = info->input_dims[3];
    MIXT_TRY(mixt__clip_list(path, frames, arena, &clip));
    for (int64_t frame = 0; frame < frames; frame++) {
        MIXT_TRY(mixt__clip_read(path, &clip, frame, frames, channels, frame ? &first : NULL, &picture));
        size_t bytes = (size_t)(picture.height * picture.width * picture.channels);
        if (frame == 0) {
            first = picture;
            table->input = table->block = mixt__alloc_uninit((size_t)frames * bytes);
        }
        if (table->block)
            memcpy((char *)table->block + (size_t)frame * bytes, picture.pixels, bytes);
        mixt__picture_free(&picture);
        if (!table->block)
            return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for its frames", path);
    }
    memcpy(table->dims, (int64_t[]){frames, first.height, first.width, channels}, 4 * sizeof table->dims[0]);
    return MIXT_OK;
}

/** A clip, which is a folder of pictures: one row. */
static mixt_status read_clip(const char *path, const mixt_data_info *info, mixt__table *table)
{
    mixt__arena arena = {0};
    *table = (mixt__table){.path = path, .dtype = MIXT_DTYPE_UINT8, .rows = 1, .rank = 4};
    mixt_status status = read_frames(path, info, &arena, table);
    mixt__arena_free(&arena);
    return status;
}

/** A recording: one row of features, silence behind them. */
static mixt_status read_recording(const char *path, const mixt_data *like, mixt__table *table, int64_t *frames)
{
    mixt_data_options o = like->options;
    mixt__audio audio;
    mixt__wav wav = {0};
    if (!o.rate)
        return mixt__fail(MIXT_ERROR_SHAPE, "%s: is a recording, but the model was trained on samples of shape %s",
                          path, mixt__dims_print(like->info.input_rank, like->info.input_dims).text);
    mixt_status status;
    MIXT_TRY_CLEANUP(mixt__audio_make(path, &o, &audio));
    MIXT_TRY_CLEANUP(mixt__audio_read(path, o.rate, &wav));
    MIXT_TRY_CLEANUP(mixt__audio_fits(&audio, path, wav.count, wav.rate));
    *table = (mixt__table){.path = path, .dtype = MIXT_DTYPE_FP32, .rows = 1, .rank = 2};
    table->dims[0] = audio.frames;
    table->dims[1] = o.mels;
    table->input = table->block = mixt__alloc_uninit((size_t)(audio.frames * o.mels) * sizeof(float));
    status = table->block ? mixt__audio_features(&audio, &wav, NULL, table->block, frames)
                          : mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for its features", path);
    if (status == MIXT_OK)
        mixt__audio_silence(&audio, *frames, table->block);
cleanup:
    mixt__wav_free(&wav);
    mixt__audio_free(&audio);
    return status;
}

/** Whether rows of numbers are asked for and the file is a table of text. */
static bool is_rows(const char *path, const mixt_data *like)
{
    return like->info.input_rank == 1 && mixt__csv_is_table(path) && !mixt__path_is_directory(path);
}

/** Rows of a table, with or without their target. */
static mixt_status read_rows(mixt_inputs *in, const char *path)
{
    mixt_data *rows = in->rows = mixt__alloc(sizeof *rows);
    if (!rows)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory", path);
    rows->kind = &mixt__data_csv;
    rows->path = path;
    rows->options = in->like->options;
    rows->options.like = in->like;
    if (!in->like->schema) // of numbers alone, and of earlier versions
        rows->options.missing = in->like->fill_count ? MIXT_MISSING_MEAN : MIXT_MISSING_ERROR;
    MIXT_TRY(mixt__csv_read_inputs(rows, in->like, path, &in->table, &in->lines));
    mixt__missing_copy(rows, in->like, &in->table);
    mixt__missing_fill(rows, &in->table);
    return mixt__missing_warn(rows, &in->table);
}

static mixt_status read_table(mixt_inputs *in, const char *path)
{
    const mixt_data *like = in->like;
    mixt__table *table = &in->table;
    const mixt_data_info *info = &like->info;
    if (mixt__path_is_directory(path) && takes_clips(info))
        return read_clip(path, info, table);
    if (mixt__path_is_directory(path))
        return mixt__fail(MIXT_ERROR_FILE,
                          "%s: is a directory, expected an image, a WAV file, a .npy or .npz array or IDX images: name "
                          "its files, as in %s/*",
                          path, path);
    if (ends_with(path, ".npy"))
        return mixt__npy_read_inputs(path, table);
    if (ends_with(path, ".npz"))
        return mixt__npz_read_inputs(&in->names, path, table);
    if (ends_with(path, "-ubyte") || ends_with(path, "-ubyte.gz") || ends_with(path, ".idx"))
        return mixt__idx_read_images(path, table);
    return mixt__wav_is(path) ? read_recording(path, like, table, &in->frames) : read_picture(path, like, table);
}

/** An array that is one sample itself becomes one row. */
static void as_one_row(const mixt_data_info *info, mixt__table *table)
{
    int64_t elements = info->arrays[0].elements;
    if (table->rows * mixt__table_elements(table) != elements || mixt__table_elements(table) == elements)
        return;
    table->rows = 1;
    table->rank = info->input_rank;
    memcpy(table->dims, info->input_dims, sizeof table->dims);
}

/** Height and width of rows that are images or clips. */
static const int64_t *plane_of(const mixt__table *table)
{
    return table->dims + table->rank - 3;
}

/** The model was trained on images of one size as they were: a picture of another is not quite what it knows. */
static mixt_status note_size(mixt_inputs *in, const int64_t has[2], const int64_t wants[2])
{
    char text[4500];
    snprintf(text, sizeof text, "%s: %lld x %lld pixels, but the model takes %lld x %lld: its middle part is resized",
             in->table.path, (long long)has[1], (long long)has[0], (long long)wants[1], (long long)wants[0]);
    in->resized = mixt__strdup(text);
    return in->resized ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory", in->table.path);
}

/** Rows become samples as they are, or are images, or clips of them, that can be cropped or resized to samples. */
static mixt_status fit(mixt_inputs *in)
{
    const mixt_data_info *info = &in->like->info;
    mixt__table *table = &in->table;
    as_one_row(info, table);
    int rank = info->input_rank;
    bool clips = rank == 4 && table->dims[0] == info->input_dims[0];
    bool images = (rank == 3 || clips) && table->rank == rank && table->dims[rank - 1] == info->input_dims[rank - 1];
    const int64_t *has = images ? plane_of(table) : NULL, *wants = images ? info->input_dims + rank - 3 : NULL;
    if (images && (has[0] != wants[0] || has[1] != wants[1])) {
        mixt_data_options o = in->like->options;
        in->crops = true;
        if (!o.resize && (!o.crop || has[0] < o.crop || has[1] < o.crop || table->rows == 1)) {
            o.min_area = 1; // the largest middle part, resized
            MIXT_TRY(note_size(in, has, wants));
        }
        o.pad = 0;
        MIXT_TRY(mixt__augment_of(&o, table->path, has[0], has[1], &in->augment));
        in->augment.height = wants[0];
        in->augment.width = wants[1];
        return MIXT_OK;
    }
    if (mixt__table_elements(table) == info->arrays[0].elements)
        return MIXT_OK;
    return mixt__fail(MIXT_ERROR_SHAPE, "%s: samples of shape %s, but the model was trained on %s", table->path,
                      mixt__dims_print(table->rank, table->dims).text,
                      mixt__dims_print(info->input_rank, info->input_dims).text);
}

/** Integers that are no bytes: pixels from 0 to 255, most likely, but nobody says so. */
static mixt_status check_numbers(const mixt_inputs *in)
{
    static const char *const of_bytes[] = {"digits", "moving", "idx",
                                           "cifar",  "images", "video"}; // `like` may be facts of one
    for (size_t i = 0; i < sizeof of_bytes / sizeof of_bytes[0]; i++)
        if (in->table.whole && !strcmp(in->like->info.kind, of_bytes[i]))
            return mixt__fail(MIXT_ERROR_DATA,
                              "%s: integers, but the model was trained on bytes: save them as uint8 (0 to 255), or as "
                              "float32 in 0 … 1",
                              in->table.path);
    return MIXT_OK;
}

static mixt_status take_scales(mixt_inputs *in)
{
    const mixt_data_info *info = &in->like->info;
    bool bytes = in->table.dtype == MIXT_DTYPE_UINT8 && in->like->options.normalise != MIXT_NORMALISE_NONE;
    in->scale = mixt__alloc((size_t)info->channels * 2 * sizeof(float));
    if (!in->scale)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory", in->table.path);
    in->shift = in->scale + info->channels;
    for (int64_t c = 0; c < info->channels; c++) {
        in->scale[c] = (bytes ? 1 / 255.0f : 1) / info->std[c];
        in->shift[c] = -info->mean[c] / info->std[c];
    }
    return MIXT_OK;
}

static mixt_status open_file(mixt_inputs *in, const char *path)
{
    in->path = mixt__strdup(path);
    if (!in->path)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory", path);
    if (is_rows(path, in->like))
        MIXT_TRY(read_rows(in, in->path));
    else
        MIXT_TRY(read_table(in, in->path));
    MIXT_TRY(check_numbers(in));
    MIXT_TRY(fit(in));
    return take_scales(in);
}

/** Of a model that takes no files. */
static const char *why_no_files(const mixt_data_info *like)
{
    if (like->input_dtype == MIXT_DTYPE_FP32)
        return "was trained on random data: it cannot predict a file";
    return mixt_data_array_find(like, "rating") >= 0 ? "predicts ratings: give a part, as in val:0-4, or user:NAME"
                                                     : "was trained on tokens, not on numbers";
}

/** Inputs without samples yet. */
static mixt_status begin(const char *path, const mixt_data *like, mixt_inputs **made)
{
    mixt_inputs *in = *made = mixt__alloc(sizeof *in);
    if (!in)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory", path);
    mixt__handle_add(&in->handle, in, "inputs", NULL);
    in->like = like;
    return MIXT_OK;
}

static mixt_status end(mixt_inputs *in, mixt_status status, mixt_inputs **inputs)
{
    if (status == MIXT_OK)
        *inputs = in;
    else
        mixt_inputs_close(in);
    return status;
}

static bool takes_numbers(const mixt_data *like)
{
    return like->info.input_dtype == MIXT_DTYPE_FP32 && like->info.channels && !mixt__are_texts(&like->info);
}

mixt_status mixt_inputs_open(const char *path, const mixt_data *like, mixt_inputs **inputs)
{
    mixt_inputs *in;
    MIXT_TRY(mixt__need(inputs));
    *inputs = NULL;
    MIXT_TRY(mixt__need(path));
    MIXT_TRY(mixt__need_open(like, "data"));
    bool texts = mixt__are_texts(&like->info);
    if (!texts && !takes_numbers(like))
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s: the model %s", path, why_no_files(&like->info));
    MIXT_TRY(begin(path, like, &in));
    return end(in, texts ? mixt__input_texts_open(path, like, &in->texts) : open_file(in, path), inputs);
}

static const char *const IN_MEMORY = "array"; // what messages call it

/** The caller's memory as a table, which owns nothing. */
static mixt_status borrow(mixt_inputs *in, const void *samples, mixt_dtype dtype, int rank, const int64_t *dims)
{
    mixt__table *table = &in->table;
    int64_t elements = 1;
    *table = (mixt__table){.path = IN_MEMORY, .borrowed = true, .input = samples, .dtype = dtype, .rows = dims[0]};
    for (int i = 0; i < rank; i++)
        if (dims[i] < 1 || dims[i] > INT64_MAX / 4 / elements)
            return mixt__fail(MIXT_ERROR_SHAPE, "%s: no samples of shape %s", IN_MEMORY,
                              mixt__dims_print(rank, dims).text);
        else
            elements *= dims[i];
    table->rank = rank - 1;
    memcpy(table->dims, dims + 1, (size_t)table->rank * sizeof *dims);
    if (table->rank == 2 && in->like->info.input_rank == 3 && rank < MIXT_MAX_RANK)
        table->dims[table->rank++] = 1; // grey images have one channel
    for (int64_t i = 0; dtype == MIXT_DTYPE_FP32 && i < elements; i++)
        if (!isfinite(((const float *)samples)[i]))
            return mixt__fail(MIXT_ERROR_DATA, "%s: number %lld is not finite", IN_MEMORY, (long long)i);
    MIXT_TRY(fit(in));
    return take_scales(in);
}

mixt_status mixt_inputs_from(const void *samples, mixt_dtype dtype, int rank, const int64_t *dims,
                             const mixt_data *like, mixt_inputs **inputs)
{
    mixt_inputs *in;
    MIXT_TRY(mixt__need(inputs));
    *inputs = NULL;
    MIXT_TRY(mixt__need(samples));
    MIXT_TRY(mixt__need(dims));
    MIXT_TRY(mixt__need_open(like, "data"));
    if (rank < 2 || rank > MIXT_MAX_RANK)
        return mixt__fail(MIXT_ERROR_SHAPE, "%s: %d dimensions, expected 2 to %d", IN_MEMORY, rank, MIXT_MAX_RANK);
    if (dtype != MIXT_DTYPE_FP32 && dtype != MIXT_DTYPE_UINT8)
        return mixt__fail(MIXT_ERROR_DTYPE, "%s: %s, expected fp32 or uint8", IN_MEMORY, mixt_dtype_name(dtype));
    if (!takes_numbers(like))
        return mixt__fail(MIXT_ERROR_UNSUPPORTED, "%s: the model %s", IN_MEMORY,
                          mixt__are_texts(&like->info) ? "takes texts" : why_no_files(&like->info));
    MIXT_TRY(begin(IN_MEMORY, like, &in));
    return end(in, borrow(in, samples, dtype, rank, dims), inputs);
}

int64_t mixt_inputs_count(const mixt_inputs *inputs)
{
    if (mixt__need_open(inputs, "inputs") != MIXT_OK)
        return 0;
    return inputs->texts ? mixt__input_texts_count(inputs->texts) : inputs->table.rows;
}

/** Whether a sample is there and is a text. */
static bool is_text(const mixt_inputs *inputs, int64_t index)
{
    return mixt__need_open(inputs, "inputs") == MIXT_OK && inputs->texts && index >= 0 &&
           index < mixt__input_texts_count(inputs->texts);
}

const char *mixt_inputs_warnings(const mixt_inputs *inputs)
{
    if (mixt__need_open(inputs, "inputs") != MIXT_OK)
        return NULL;
    return inputs->rows ? inputs->rows->info.warnings : inputs->resized;
}

int64_t mixt_inputs_line(const mixt_inputs *inputs, int64_t index)
{
    if (mixt__need_open(inputs, "inputs") == MIXT_OK && inputs->lines && index >= 0 && index < inputs->table.rows)
        return inputs->lines[index];
    return is_text(inputs, index) ? mixt__input_texts_line(inputs->texts, index) : 0;
}

bool mixt_inputs_cut(const mixt_inputs *inputs, int64_t index)
{
    return is_text(inputs, index) && mixt__input_texts_cut(inputs->texts, index);
}

static mixt_status read_sample(const mixt_inputs *in, int64_t index, float *sample)
{
    const mixt__table *table = &in->table;
    const mixt_data_info *info = &in->like->info;
    int64_t elements = mixt__table_elements(table), channels = info->channels;
    size_t size = mixt_dtype_size(table->dtype);
    const char *row = (const char *)table->input + (size_t)(index * elements) * size;
    mixt__normal normal = {.mean = info->mean, .scale = in->scale, .shift = in->shift};
    // Without cropping a row is one line of pixels, whatever its shape.
    mixt__image image = {row, table->dtype, 1, elements / channels, channels};
    mixt__augment whole = {.height = 1, .width = elements / channels};
    mixt__window window = {.height = 1, .width = (double)whole.width};
    if (!in->crops)
        return mixt__augment_apply(&whole, &image, &window, &normal, sample);
    int64_t frames = table->rank == 4 ? table->dims[0] : 1;
    image.height = plane_of(table)[0];
    image.width = plane_of(table)[1];
    window = mixt__augment_window(&in->augment, image.height, image.width, 0, -1, 0);
    for (int64_t frame = 0; frame < frames; frame++) {
        image.pixels = row + (size_t)(frame * (elements / frames)) * size;
        MIXT_TRY(mixt__augment_apply(&in->augment, &image, &window, &normal,
                                     sample + frame * (info->input_elements / frames)));
    }
    return MIXT_OK;
}

/** Of samples that have lengths, what stands beside their frames; behind a recording's end all is 0. */
static void write_lengths(const mixt_inputs *in, int64_t count, float *samples)
{
    const mixt_data_info *info = &in->like->info;
    int length = mixt_data_array_find(info, "input.length"), mask = mixt_data_array_find(info, "input.mask");
    int64_t room = info->input_dims[0], frames = in->frames ? in->frames : room, each = info->arrays[0].elements;
    if (length < 0 || mask < 0)
        return;
    char *block = (char *)samples;
    int32_t *lengths = (int32_t *)(void *)(block + mixt_data_array_at(in->like, count, length));
    float *masks = (float *)(void *)(block + mixt_data_array_at(in->like, count, mask));
    for (int64_t i = 0; i < count; i++) {
        lengths[i] = (int32_t)frames;
        for (int64_t t = 0; t < room; t++)
            masks[i * room + t] = t < frames ? 1.0f : 0.0f;
        memset(samples + i * each + frames * (each / room), 0,
               (size_t)((room - frames) * (each / room)) * sizeof *samples);
    }
}

/** Of a table's rows, numbers of words beside the features. */
static void write_words(const mixt_inputs *in, int64_t first, int64_t count, float *samples)
{
    int words = mixt_data_array_find(&in->like->info, MIXT_WORDS_INPUT);
    if (words < 0 || !in->table.ids)
        return;
    int64_t each = in->like->info.arrays[words].elements;
    memcpy((char *)samples + mixt_data_array_at(in->like, count, words), in->table.ids + first * each,
           (size_t)(count * each) * sizeof *in->table.ids);
}

mixt_status mixt_inputs_read(const mixt_inputs *in, int64_t first, int64_t count, float *samples)
{
    MIXT_TRY(mixt__need_open(in, "inputs"));
    MIXT_TRY(mixt__need_open_at(__func__, "like", in->like, "data"));
    MIXT_TRY(mixt__need(samples));
    int64_t there = mixt_inputs_count(in);
    if (first < 0 || count < 0 || first > there || count > there - first)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%s: %lld samples from %lld on, but there are %lld",
                          in->path    ? in->path
                          : in->texts ? "texts"
                                      : IN_MEMORY,
                          (long long)count, (long long)first, (long long)there);
    if (in->texts) {
        mixt__input_texts_read(in->texts, in->like, first, count, samples);
        return MIXT_OK;
    }
    for (int64_t i = 0; i < count; i++)
        MIXT_TRY(read_sample(in, first + i, samples + i * in->like->info.arrays[0].elements));
    write_lengths(in, count, samples);
    write_words(in, first, count, samples);
    return MIXT_OK;
}

void mixt_inputs_close(mixt_inputs *inputs)
{
    if (!inputs || mixt__need_open(inputs, "inputs") != MIXT_OK)
        return;
    mixt__handle_remove(inputs);
    mixt__table_free(&inputs->table);
    mixt__input_texts_close(inputs->texts);
    if (inputs->rows)
        mixt__arena_free(&inputs->rows->arena);
    mixt__free(inputs->rows);
    mixt__free(inputs->lines);
    mixt__free(inputs->scale);
    mixt__arena_free(&inputs->names);
    mixt__free(inputs->path);
    mixt__free(inputs->resized);
    mixt__free(inputs);
}
