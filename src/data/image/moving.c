/* Moving digits: clips that mixt draws itself. A digit moves left, right, up or down; its class is both.
 *
 * Sample i of a part is a pure function of (seed, part, i). When the part is opened its digits are drawn, once, on all
 * threads; a clip's frames are made from its digit when a batch needs them, so that a clip costs 812 bytes of memory
 * whatever its size. Each frame has noise of its own: nothing but the digit says where it goes.
 */
#include "data/data.h"
#include "data/image/digits.h"

#include "base/threads.h"

#include <string.h>

// Of the pixels of the default training part, measured; fixed so that every part and size is normalised alike.
#define MOVING_MEAN 0.0483f
#define MOVING_STD 0.1340f

enum { DIRECTIONS = 4, CLASSES = 10 * DIRECTIONS, SIDE = 32, FRAMES = 16, SMALLEST = 16 };

static const int64_t default_samples[MIXT_PART_COUNT] = {20000, 2000, 4000, 20000};

/** How the digit of a clip moves, in pixels of a frame. */
typedef struct motion {
    float x, y;   // its centre in the first frame
    float dx, dy; // a frame
    float size;   // of a pixel of the drawn digit
    float noise;  // standard deviation, in levels of 0 to 255
    int32_t label;
} motion;

typedef struct moving_state {
    unsigned char *pixels; // (samples, 28, 28)
    motion *motions;       // (samples)
    const char **names;    // (classes) in the data set's memory
    float mean, std, scale, shift;
} moving_state;

typedef struct drawing {
    const mixt_data *data;
    int64_t frames, height, width;
    moving_state *state;
} drawing;

static uint64_t key_of(const mixt_data *data, int64_t index)
{
    uint64_t part = data->part == MIXT_PART_ALL ? MIXT_PART_TRAIN : data->part;
    return mixt__rng_key(mixt__data_draw_seed(data), MIXT_STREAM_MOVING, (uint64_t)index * MIXT_PART_COUNT + part);
}

static float between(mixt__rng *rng, float low, float high)
{
    return low + (high - low) * mixt__rng_uniform(rng);
}

/** A path along one axis that stays inside: where it begins, and what it covers. */
static float path(mixt__rng *rng, float room, float margin, float *travel)
{
    float free = room - 2 * margin;
    *travel = free * between(rng, 0.45f, 1);
    return margin + (free - *travel) * mixt__rng_uniform(rng);
}

static motion choose_motion(const drawing *d, uint64_t key, int digit)
{
    mixt__rng rng = mixt__rng_start(mixt__rng_key(key, MIXT_STREAM_MOVING, 1));
    int direction = (int)mixt__rng_below(&rng, DIRECTIONS); // left, right, up, down
    bool across = direction < 2, back = direction % 2 == 0;
    float height = (float)d->height, width = (float)d->width, least = height < width ? height : width, travel;
    motion m = {.label = digit * DIRECTIONS + direction};
    m.size = least / MIXT_DIGIT_SIDE * between(&rng, 0.45f, 0.7f);
    float margin = 9 * m.size; // half of a tall digit
    float start = path(&rng, across ? width : height, margin, &travel);
    float other = margin + ((across ? height : width) - 2 * margin) * mixt__rng_uniform(&rng);
    float step = (back ? -travel : travel) / (float)(d->frames - 1);
    start = back ? start + travel : start;
    m.x = across ? start : other;
    m.y = across ? other : start;
    m.dx = across ? step : 0;
    m.dy = across ? 0 : step;
    m.noise = between(&rng, 2, 22);
    return m;
}

static void draw_range(void *argument, int64_t begin, int64_t end, int thread)
{
    const drawing *d = argument;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        uint64_t key = key_of(d->data, i);
        int digit = mixt__digit_draw_clean(key, d->state->pixels + i * MIXT_DIGIT_PIXELS);
        d->state->motions[i] = choose_motion(d, key, digit);
    }
}

/* ---- opening ---- */

static mixt_status make_names(mixt_data *data, moving_state *state)
{
    static const char *const directions[DIRECTIONS] = {"left", "right", "up", "down"};
    state->names = mixt__arena_alloc(&data->arena, CLASSES * sizeof *state->names);
    for (int i = 0; state->names && i < CLASSES; i++) {
        state->names[i] = mixt__arena_printf(&data->arena, "%d %s", i / DIRECTIONS, directions[i % DIRECTIONS]);
        if (!state->names[i])
            state->names = NULL;
    }
    return state->names ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "moving: no memory for the names of its classes");
}

static mixt_status describe(mixt_data *data)
{
    mixt_data_info *info = &data->info;
    const mixt_data_options *o = &data->options;
    int64_t frame[MIXT_MAX_RANK] = {SIDE, SIDE};
    int rank = 2;
    if (*data->path)
        MIXT_TRY(mixt__shape_parse(data->path, &rank, frame));
    if (rank != 2 || frame[0] < SMALLEST || frame[1] < SMALLEST || frame[0] > 4096 || frame[1] > 4096)
        return mixt__fail(MIXT_ERROR_CONFIG, "moving:%s: expected the size of a frame, from %dx%d to 4096x4096",
                          data->path, SMALLEST, SMALLEST);
    int64_t frames = o->frames ? o->frames : FRAMES;
    if (frames < 2)
        return mixt__fail(MIXT_ERROR_CONFIG, "moving: a clip of %lld frames does not move: expected 2 or more",
                          (long long)frames);
    if (o->classes && o->classes < CLASSES)
        return mixt__fail(MIXT_ERROR_CONFIG, "moving: has %d classes, not %lld", CLASSES, (long long)o->classes);
    info->samples = o->samples ? o->samples : default_samples[data->part];
    if (o->limit && o->limit < info->samples)
        info->samples = o->limit;
    if (info->samples > INT32_MAX)
        return mixt__fail(MIXT_ERROR_CONFIG, "moving: %lld samples are too many", (long long)info->samples);
    info->input_dtype = MIXT_DTYPE_FP32;
    info->input_rank = 4;
    info->input_dims[0] = frames;
    info->input_dims[1] = frame[0];
    info->input_dims[2] = frame[1];
    info->input_dims[3] = info->channels = 1;
    info->target = MIXT_TARGET_CLASS;
    info->target_elements = 1;
    info->classes = o->classes ? o->classes : CLASSES;
    return MIXT_OK;
}

static void normalise(mixt_data *data, moving_state *state)
{
    const mixt_data_options *o = &data->options;
    bool standard = o->normalise == MIXT_NORMALISE_STANDARD;
    state->mean = standard ? (o->std != 0 ? o->mean : MOVING_MEAN) : 0;
    state->std = standard ? (o->std != 0 ? o->std : MOVING_STD) : 1;
    state->scale = (o->normalise == MIXT_NORMALISE_NONE ? 1 : 1 / 255.0f) / state->std;
    state->shift = -state->mean / state->std;
    data->info.mean = &state->mean;
    data->info.std = &state->std;
}

static mixt_status open_moving(mixt_data *data)
{
    moving_state *state = data->state = mixt__alloc(sizeof *state);
    if (!state)
        return mixt__fail(MIXT_ERROR_MEMORY, "moving: no memory");
    MIXT_TRY(describe(data));
    MIXT_TRY(make_names(data, state));
    data->info.class_names = data->info.classes == CLASSES ? state->names : NULL;
    normalise(data, state);
    int64_t samples = data->info.samples;
    state->pixels = mixt__alloc_uninit((size_t)samples * MIXT_DIGIT_PIXELS);
    state->motions = mixt__alloc_uninit((size_t)samples * sizeof *state->motions);
    if (!state->pixels || !state->motions)
        return mixt__fail(MIXT_ERROR_MEMORY, "moving: no memory for %lld samples; lower 'samples'", (long long)samples);
    const int64_t *dims = data->info.input_dims;
    drawing d = {data, dims[0], dims[1], dims[2], state};
    mixt__parallel(samples, 64, draw_range, &d);
    return MIXT_OK;
}

/* ---- samples ---- */

/** The sum of a word's four bytes, as a normal number. */
static float normal_of(uint32_t bits)
{
    return ((float)((bits & 255) + (bits >> 8 & 255) + (bits >> 16 & 255) + (bits >> 24)) - 510) / 147.8f;
}

/** One row of a frame: the digit's levels where it is, and noise. `y`, `x`: of the row's first pixel in the digit's
 *  picture, whose pixels are 1 / step of the frame's. `at`: the row's first element in the clip. */
static void make_row(const unsigned char *pixels, const motion *m, float y, float x, uint64_t noise, uint64_t at,
                     int64_t width, float *levels)
{
    float step = 1 / m->size;
    mixt__rng_block random = mixt__rng_block_at(noise, at);
    for (int64_t i = 0; i < width; i++) {
        if (i && i % 4 == 0)
            random = mixt__rng_block_at(noise, at + (uint64_t)i);
        float level = mixt__digit_level(pixels, y, x + step * (float)i) + m->noise * normal_of(random.word[i % 4]);
        level = level < 0 ? 0 : level > 255 ? 255 : level;
        levels[i] = (float)(int)(level + 0.5f); // bytes, as pictures have them
    }
}

static mixt_status sample_moving(const mixt_data *data, int64_t index, int64_t epoch, void *input, void *target)
{
    const moving_state *state = data->state;
    const motion *m = &state->motions[index];
    const unsigned char *pixels = state->pixels + index * MIXT_DIGIT_PIXELS;
    int64_t frames = data->info.input_dims[0], height = data->info.input_dims[1], width = data->info.input_dims[2];
    uint64_t noise = mixt__rng_key(key_of(data, index), MIXT_STREAM_MOVING, 2), at = 0;
    float *to = input, half = MIXT_DIGIT_SIDE / 2.0f - 0.5f;
    (void)epoch;
    for (int64_t frame = 0; frame < frames; frame++)
        for (int64_t row = 0; row < height; row++, at += (uint64_t)width) {
            float y = ((float)row + 0.5f - m->y - m->dy * (float)frame) / m->size + half;
            float x = (0.5f - m->x - m->dx * (float)frame) / m->size + half;
            make_row(pixels, m, y, x, noise, at, width, to + at);
        }
    for (int64_t i = 0; i < data->info.input_elements; i++)
        to[i] = to[i] * state->scale + state->shift;
    memcpy(target, &m->label, sizeof m->label);
    return MIXT_OK;
}

static const void *raw_moving(const mixt_data *data, int index, size_t *bytes)
{
    const moving_state *state = data->state;
    size_t samples = (size_t)data->info.samples;
    *bytes = samples * (index == 0 ? MIXT_DIGIT_PIXELS : sizeof *state->motions);
    return index == 0 ? (const void *)state->pixels : index == 1 ? (const void *)state->motions : NULL;
}

static void close_moving(mixt_data *data)
{
    moving_state *state = data->state;
    if (!state)
        return;
    mixt__free(state->pixels);
    mixt__free(state->motions);
    mixt__free(state);
    data->state = NULL;
}

const mixt__data_kind mixt__data_moving = {
    .name = "moving",
    .what = "clips of generated moving digits",
    .uses = MIXT_DATA_FRAMES | MIXT_DATA_DRAWN | MIXT_DATA_NUMBERS | MIXT_DATA_CLASSES | MIXT_DATA_SAMPLES,
    .drawn = true,
    .open = open_moving,
    .sample = sample_moving,
    .close = close_moving,
    .raw = raw_moving,
};
