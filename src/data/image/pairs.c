/* Pictures and what is said of them: for models that bring both into one space.
 *
 * A folder has captions.tsv, a line for each pair: the picture's file, a tab, its caption; a folder with folders train,
 * val and test has one in each. Pictures are decoded when a batch needs them. Without a path mixt draws: a digit of
 * some size, colour and place, "a small red three on the left"; sample i of a part is a pure function of (seed, part,
 * i).
 *
 * Arrays: picture (height, width, 3), caption: its UTF-8 bytes, padded with 0 to the longest of the training part, with
 * caption.length and caption.mask beside it; target: the number of the caption among the different ones, so that equal
 * captions are known as such.
 */
#include "data/image/augment.h"
#include "data/columns.h"
#include "data/image/digits.h"
#include "data/names.h"
#include "data/image/picture.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SIDE = 32, CROP = 64, CHANNELS = 3, STEP = 8, PATH_SIZE = 4096 };
enum { PICTURE, CAPTION, LENGTH, MASK, TARGET, ARRAYS };

static const int64_t default_samples[MIXT_PART_COUNT] = {6000, 1000, 1000, 6000};

/** Beside the columns. */
typedef struct pairs_state {
    bool drawn;
    const char *folder, **files; // (rows), in the set's memory; of a folder
    mixt__augment augment;
    float mean[CHANNELS], std[CHANNELS], scale[CHANNELS], shift[CHANNELS];
} pairs_state;

/** Captions as they are gathered. */
typedef struct gathering {
    mixt__names names;
    int32_t *number, *length; // (rows) which caption, and its bytes
    int64_t rows, longest;
} gathering;

static mixt_status no_memory(const mixt_data *data)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "pairs:%s: no memory for its captions", data->path);
}

/* ---- drawn pairs ---- */

/** What a drawn picture shows. */
typedef struct scene {
    uint64_t key;
    int digit, colour, place;
    bool large;
} scene;

static const struct {
    const char *name;
    unsigned char rgb[CHANNELS];
} colours[] = {{"red", {230, 40, 40}},     {"green", {40, 200, 60}},   {"blue", {60, 90, 240}},
               {"yellow", {235, 220, 50}}, {"white", {245, 245, 245}}, {"purple", {180, 60, 220}}};

static const struct {
    const char *name;
    float x, y; // of the digit's middle, in the picture
} places[] = {{"left", 8, 16}, {"right", 24, 16}, {"top", 16, 8}, {"bottom", 16, 24}};

static scene scene_of(const mixt_data *data, int64_t index)
{
    uint64_t part = data->part == MIXT_PART_ALL ? MIXT_PART_TRAIN : data->part;
    scene s = {.key = mixt__rng_key(mixt__data_draw_seed(data), MIXT_STREAM_CAPTIONS,
                                    (uint64_t)index * MIXT_PART_COUNT + part)};
    unsigned char pixels[MIXT_DIGIT_PIXELS];
    mixt__rng rng = mixt__rng_start(mixt__rng_key(s.key, MIXT_STREAM_CAPTIONS, 1));
    s.digit = mixt__digit_draw_clean(s.key, pixels);
    s.colour = (int)mixt__rng_below(&rng, sizeof colours / sizeof colours[0]);
    s.place = (int)mixt__rng_below(&rng, sizeof places / sizeof places[0]);
    s.large = mixt__rng_below(&rng, 2);
    return s;
}

static int say(const scene *s, char *text, size_t size)
{
    static const char *const digits[] = {"zero", "one", "two",   "three", "four",
                                         "five", "six", "seven", "eight", "nine"};
    return snprintf(text, size, "a %s %s %s on the %s", s->large ? "large" : "small", colours[s->colour].name,
                    digits[s->digit], places[s->place].name);
}

/** (32, 32, 3) bytes: the digit in its colour on a dark ground with noise. */
static void draw(const scene *s, unsigned char *picture)
{
    unsigned char pixels[MIXT_DIGIT_PIXELS];
    mixt__rng rng = mixt__rng_start(mixt__rng_key(s->key, MIXT_STREAM_CAPTIONS, 2));
    mixt__digit_draw_clean(s->key, pixels);
    float size = (s->large ? 0.62f : 0.36f) + 0.04f * mixt__rng_uniform(&rng); // of a pixel of the drawn digit
    float x = places[s->place].x + 2 * mixt__rng_uniform(&rng) - 1,
          y = places[s->place].y + 2 * mixt__rng_uniform(&rng) - 1;
    for (int row = 0; row < SIDE; row++)
        for (int col = 0; col < SIDE; col++) {
            float middle = (float)(MIXT_DIGIT_SIDE - 1) / 2;
            float ink =
                mixt__digit_level(pixels, ((float)row - y) / size + middle, ((float)col - x) / size + middle) / 255;
            for (int c = 0; c < CHANNELS; c++) {
                float ground = 20 + 25 * mixt__rng_uniform(&rng);
                picture[(row * SIDE + col) * CHANNELS + c] =
                    (unsigned char)(ground + ink * ((float)colours[s->colour].rgb[c] - ground));
            }
        }
}

/* ---- captions ---- */

static mixt_status add_caption(const mixt_data *data, gathering *g, const char *text, int64_t length)
{
    int64_t number = mixt__names_add(&g->names, text, length);
    if (number < 0)
        return no_memory(data);
    g->number[g->rows] = (int32_t)number;
    g->length[g->rows++] = (int32_t)length;
    g->longest = length > g->longest ? length : g->longest;
    return MIXT_OK;
}

static mixt_status make_room(const mixt_data *data, gathering *g, int64_t rows)
{
    g->number = mixt__alloc((size_t)(rows + 1) * sizeof *g->number);
    g->length = mixt__alloc((size_t)(rows + 1) * sizeof *g->length);
    return g->number && g->length ? MIXT_OK : no_memory(data);
}

static mixt_status describe_all(const mixt_data *data, gathering *g)
{
    const mixt_data_options *o = &data->options;
    int64_t samples = o->samples ? o->samples : default_samples[data->part];
    samples = o->limit && o->limit < samples ? o->limit : samples;
    if (samples > INT32_MAX)
        return mixt__fail(MIXT_ERROR_CONFIG, "pairs: %lld samples are too many", (long long)samples);
    MIXT_TRY(make_room(data, g, samples));
    for (int64_t i = 0; i < samples; i++) {
        char text[64];
        scene s = scene_of(data, i);
        MIXT_TRY(add_caption(data, g, text, say(&s, text, sizeof text)));
    }
    return MIXT_OK;
}

/** One line of captions.tsv; `line` counts from 1. */
static mixt_status take_line(mixt_data *data, pairs_state *state, gathering *g, const char *text, int64_t size,
                             int64_t line)
{
    char path[PATH_SIZE];
    const char *tab = memchr(text, '\t', (size_t)size);
    const char *end = text + size;
    if (!tab || tab == text || tab + 1 == end)
        return mixt__fail(MIXT_ERROR_DATA, "%s/captions.tsv:%lld: expected an image's file, a tab and its caption",
                          state->folder, (long long)line);
    if (snprintf(path, sizeof path, "%s/%.*s", state->folder, (int)(tab - text), text) >= PATH_SIZE)
        return mixt__fail(MIXT_ERROR_DATA, "%s/captions.tsv:%lld: the path is too long", state->folder,
                          (long long)line);
    if (!mixt__path_is_file(path))
        return mixt__fail(MIXT_ERROR_FILE, "%s/captions.tsv:%lld: %s: no such file", state->folder, (long long)line,
                          path);
    state->files[g->rows] = mixt__arena_strdup(&data->arena, path);
    return state->files[g->rows] ? add_caption(data, g, tab + 1, end - tab - 1) : no_memory(data);
}

static mixt_status take_lines(mixt_data *data, pairs_state *state, gathering *g, const mixt__bytes *file)
{
    const char *at = (const char *)file->bytes + mixt__bytes_mark(file), *end = (const char *)file->bytes + file->size;
    int64_t lines = 1, limit = data->options.limit;
    for (const char *c = at; c < end; c++)
        lines += *c == '\n';
    MIXT_TRY(make_room(data, g, lines));
    state->files = mixt__arena_alloc(&data->arena, (size_t)(lines + 1) * sizeof *state->files);
    if (!state->files)
        return no_memory(data);
    for (int64_t line = 1; at < end && (!limit || g->rows < limit); line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        int64_t size = (stop ? stop : end) - at;
        int64_t shown = size && at[size - 1] == '\r' ? size - 1 : size;
        if (shown)
            MIXT_TRY(take_line(data, state, g, at, shown, line));
        at += size + 1;
    }
    return g->rows ? MIXT_OK : mixt__fail(MIXT_ERROR_DATA, "%s/captions.tsv: holds no captions", state->folder);
}

static mixt_status read_captions(mixt_data *data, pairs_state *state, gathering *g)
{
    char path[PATH_SIZE];
    mixt__bytes file;
    if (snprintf(path, sizeof path, "%s/" MIXT_CAPTIONS, state->folder) >= PATH_SIZE)
        return mixt__fail(MIXT_ERROR_FILE, "%s: the path is too long", state->folder);
    MIXT_TRY(mixt__bytes_read(path, &file));
    mixt_status status = mixt__text_check(path, file.bytes, file.size);
    if (status == MIXT_OK)
        status = take_lines(data, state, g, &file);
    mixt__bytes_free(&file);
    return status;
}

/* ---- opening ---- */

/** Bytes that a caption is padded or cut to: those of the training part, in whole steps. */
static int64_t places_of(const mixt_data *data, const gathering *g)
{
    const mixt_data_info *like = data->options.like ? &data->options.like->info : NULL;
    int64_t most = data->options.seq > 0 ? data->options.seq : INT32_MAX,
            longest = (g->longest + STEP - 1) / STEP * STEP;
    if (like && like->array_count > CAPTION && !strcmp(like->arrays[CAPTION].name, "caption"))
        return like->arrays[CAPTION].dims[0];
    return longest < most ? longest : most;
}

/** Captions as bytes, each in an INT32. */
static mixt_status fill_captions(const mixt_data *data, const gathering *g, int64_t places, mixt__column *column)
{
    int64_t total = 0;
    column->begin = mixt__alloc((size_t)(g->rows + 1) * sizeof *column->begin);
    for (int64_t i = 0; column->begin && i < g->rows; i++)
        column->begin[i + 1] = total += g->length[i] < places ? g->length[i] : places;
    int32_t *bytes = column->values = mixt__alloc((size_t)(total + 1) * sizeof *bytes);
    if (!column->begin || !bytes)
        return no_memory(data);
    for (int64_t i = 0; i < g->rows; i++)
        for (int64_t k = column->begin[i]; k < column->begin[i + 1]; k++)
            bytes[k] = (unsigned char)g->names.text[g->names.begin[g->number[i]] + k - column->begin[i]];
    return MIXT_OK;
}

static mixt_status make_columns(mixt_data *data, gathering *g, const mixt__augment *augment, mixt__columns *c)
{
    int64_t places = places_of(data, g), pixels = augment->height * augment->width * CHANNELS;
    *c = (mixt__columns){.rows = g->rows, .count = ARRAYS};
    c->column[PICTURE] = (mixt__column){.source = MIXT_COLUMN_MADE};
    c->column[PICTURE].array = (mixt_data_array){.name = "picture", .dtype = MIXT_DTYPE_FP32, .rank = 3};
    memcpy(c->column[PICTURE].array.dims, (int64_t[]){augment->height, augment->width, CHANNELS}, 3 * sizeof(int64_t));
    c->column[PICTURE].array.elements = pixels;
    c->column[CAPTION].array = (mixt_data_array){
        .name = "caption", .dtype = MIXT_DTYPE_INT32, .rank = 1, .dims = {places}, .elements = places, .ids = 256};
    c->column[LENGTH].array =
        (mixt_data_array){.name = "caption.length", .dtype = MIXT_DTYPE_INT32, .elements = 1, .ids = places + 1};
    c->column[LENGTH].source = MIXT_COLUMN_LENGTH;
    c->column[MASK].array = (mixt_data_array){
        .name = "caption.mask", .dtype = MIXT_DTYPE_FP32, .rank = 1, .dims = {places}, .elements = places};
    c->column[MASK].source = MIXT_COLUMN_MASK;
    c->column[LENGTH].of = c->column[MASK].of = CAPTION;
    c->column[TARGET].array = (mixt_data_array){
        .name = "target", .target = true, .dtype = MIXT_DTYPE_INT32, .elements = 1, .ids = g->names.count};
    c->column[TARGET].array.names = mixt__names_list(&g->names, &data->arena);
    MIXT_TRY(c->column[TARGET].array.names ? fill_captions(data, g, places, &c->column[CAPTION]) : no_memory(data));
    c->column[TARGET].values = g->number;
    g->number = NULL;
    return MIXT_OK;
}

/** Bytes to numbers around 0, alike for every set. */
static mixt_status normalise(mixt_data *data, pairs_state *state)
{
    const mixt_data_options *o = &data->options;
    if (o->means || o->stds)
        return mixt__fail(
            MIXT_ERROR_CONFIG,
            "pairs:%s: its images are normalised with mean 0.5 and std 0.25: leave data.mean and data.std out",
            data->path);
    for (int c = 0; c < CHANNELS; c++) {
        bool standard = o->normalise == MIXT_NORMALISE_STANDARD;
        state->mean[c] = standard ? 0.5f : 0;
        state->std[c] = standard ? 0.25f : 1;
        state->scale[c] = (o->normalise == MIXT_NORMALISE_NONE ? 1 : 1 / 255.0f) / state->std[c];
        state->shift[c] = -state->mean[c] / state->std[c];
    }
    data->info.channels = CHANNELS;
    data->info.mean = state->mean;
    data->info.std = state->std;
    return MIXT_OK;
}

/** Where the pairs of this part are, and how large its pictures. */
static mixt_status find_part(mixt_data *data, pairs_state *state, bool *shared)
{
    mixt_data_options *o = &data->options;
    state->drawn = !*data->path;
    *shared = false;
    if (state->drawn)
        return mixt__augment_of(o, "pairs", SIDE, SIDE, &state->augment);
    const char *train = mixt__path_of_folder(data, MIXT_PART_TRAIN);
    state->folder =
        train ? mixt__path_of_folder(data, data->part == MIXT_PART_ALL ? MIXT_PART_TRAIN : data->part) : data->path;
    *shared = !train;
    if (!state->folder)
        return mixt__part_missing(data);
    o->crop = o->crop ? o->crop : CROP;
    o->resize = o->resize ? o->resize : o->crop;
    return mixt__augment_of(o, data->path, 0, 0, &state->augment);
}

static mixt_status gather(mixt_data *data, pairs_state *state, gathering *g, mixt__columns *c)
{
    bool shared;
    MIXT_TRY(find_part(data, state, &shared));
    MIXT_TRY(normalise(data, state));
    MIXT_TRY(state->drawn ? describe_all(data, g) : read_captions(data, state, g));
    data->info.samples = g->rows;
    MIXT_TRY(make_columns(data, g, &state->augment, c));
    return shared ? mixt__columns_share(data, c) : MIXT_OK;
}

static mixt_status open(mixt_data *data)
{
    gathering g = {0};
    mixt__columns c = {0};
    pairs_state *state = mixt__arena_alloc(&data->arena, sizeof *state);
    mixt_status status = state ? gather(data, state, &g, &c) : no_memory(data);
    mixt__names_free(&g.names);
    mixt__free(g.number);
    mixt__free(g.length);
    if (status != MIXT_OK) {
        mixt__columns_free(&c);
        return status;
    }
    c.more = state;
    return mixt__columns_adopt(data, &c);
}

/* ---- samples ---- */

static mixt_status arrays(const mixt_data *data, const mixt_data_info *as, int64_t index, int64_t epoch,
                          char *const *at)
{
    const mixt__columns *c = data->state;
    const pairs_state *state = c->more;
    int64_t row = c->chosen ? c->chosen[index] : index;
    unsigned char drawn[SIDE * SIDE * CHANNELS];
    mixt__picture picture = {.pixels = drawn, .height = SIDE, .width = SIDE, .channels = CHANNELS};
    mixt__normal normal = {.mean = state->mean, .scale = state->scale, .shift = state->shift};
    MIXT_TRY(mixt__columns_arrays(data, as, index, epoch, at));
    if (state->drawn) {
        scene s = scene_of(data, row);
        draw(&s, drawn);
    } else {
        MIXT_TRY(mixt__picture_read(state->files[row], CHANNELS, &picture));
    }
    mixt__image image = {picture.pixels, MIXT_DTYPE_UINT8, picture.height, picture.width, CHANNELS};
    mixt__window window =
        mixt__augment_window(&state->augment, image.height, image.width, data->options.seed, epoch, index);
    mixt_status status = mixt__augment_apply(&state->augment, &image, &window, &normal, (float *)(void *)at[PICTURE]);
    if (!state->drawn)
        mixt__picture_free(&picture);
    return status;
}

const mixt__data_kind mixt__data_pairs = {
    .name = "pairs",
    .what = "images with captions",
    .uses = MIXT_DATA_IMAGES | MIXT_DATA_DRAWN | MIXT_DATA_NUMBERS | MIXT_DATA_SAMPLES | MIXT_DATA_SEQ,
    .open = open,
    .arrays = arrays,
    .length = mixt__columns_length,
    .close = mixt__columns_close,
    .slow = true,
    .draws = true,
};
