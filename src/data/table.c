/* Sets that are rows in memory: which rows belong to a part, how they are normalised, one row to one sample.
 *
 * A part with a file of its own takes all of it. Otherwise it takes a share of the training file: rows chosen by a
 * permutation that is the same for every seed and run, because files are often sorted by class; within a part, rows
 * keep the file's order. Statistics always come from the training rows, whatever part is opened; what a file says of
 * its columns and targets must agree with the training file.
 */
#include "data/image/augment.h"
#include "data/data.h"
#include "data/table/schema.h"
#include "store/tensor.h"

#include <float.h>
#include <math.h>
#include <string.h>

typedef struct table_state {
    mixt__table table;
    int64_t *rows;                     // sample to row; NULL: the same
    float *mean, *std, *scale, *shift; // (channels) each, one block; sample = stored × scale + shift
    mixt__shares shares;               // of table.rows, when it is the training file
    mixt__augment augment;
    bool crops; // samples are windows of the rows: augment counts
} table_state;

void mixt__table_free(mixt__table *table)
{
    if (!table->borrowed) {
        mixt__free(table->block);
        mixt__free(table->labels);
        mixt__free(table->values);
        mixt__free(table->ids);
    }
    *table = (mixt__table){0};
}

const void *mixt__table_raw(const mixt_data *data, int index, size_t *bytes)
{
    const mixt__table *t = &((const table_state *)data->state)->table;
    const struct {
        const void *block;
        size_t size; // of a row
    } blocks[] = {
        {t->input, (size_t)mixt__table_elements(t) * mixt_dtype_size(t->dtype)},
        {t->labels, sizeof *t->labels},
        {t->values, (size_t)t->value_count * sizeof *t->values},
        {t->ids, t->ids ? (size_t)t->schema->embedded * sizeof *t->ids : 0},
    };
    for (int i = 0; i < 4; i++)
        if (blocks[i].block && index-- == 0) {
            *bytes = (size_t)t->rows * blocks[i].size;
            return blocks[i].block;
        }
    return NULL;
}

void mixt__table_close(mixt_data *data)
{
    table_state *state = data->state;
    if (!state)
        return;
    mixt__table_free(&state->table);
    mixt__free(state->rows);
    mixt__free(state->mean);
    mixt__free(state);
    data->state = NULL;
}

static mixt_status new_state(mixt_data *data, table_state **state)
{
    data->state = *state = mixt__alloc(sizeof **state);
    return *state ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory", data->path);
}

/** The rows of one part; NULL when it is the whole file. */
static mixt_status rows_of_part(const mixt__table *table, const mixt__shares *shares, mixt__part part, int64_t **rows,
                                int64_t *count)
{
    *rows = NULL;
    *count = table->rows;
    if (part == MIXT_PART_ALL || shares->train == table->rows)
        return MIXT_OK;
    *count = part == MIXT_PART_TRAIN ? shares->train : part == MIXT_PART_VAL ? shares->val : shares->test;
    *rows = mixt__alloc_uninit((size_t)*count * sizeof(int64_t));
    if (!*rows)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for an index of %lld rows", table->path, (long long)*count);
    for (int64_t row = 0, filled = 0; filled < *count; row++)
        if (mixt__part_of_row(shares, row) == part)
            (*rows)[filled++] = row;
    return MIXT_OK;
}

/** Applies the option 'shape'. */
static mixt_status reshape(const mixt_data *data, mixt__table *table)
{
    if (!data->options.shape)
        return MIXT_OK;
    int rank;
    int64_t dims[MIXT_MAX_RANK], wanted, elements = mixt__table_elements(table);
    MIXT_TRY(mixt__shape_parse(data->options.shape, &rank, dims));
    mixt__shape_elements(rank, dims, &wanted);
    if (wanted != elements)
        return mixt__fail(MIXT_ERROR_SHAPE, "%s: samples have %lld elements, the shape %s has %lld", table->path,
                          (long long)elements, data->options.shape, (long long)wanted);
    table->rank = rank;
    memcpy(table->dims, dims, sizeof dims);
    return MIXT_OK;
}

/** `train` is the training part's table, or NULL. */
static mixt_status load(mixt_data *data, const mixt__table_reader *reader, const char *path, const mixt__table *train,
                        mixt__table *table)
{
    table->train = train;
    mixt_status status = reader->load(data, path, table);
    if (status == MIXT_OK)
        status = reshape(data, table);
    table->train = NULL;
    if (status != MIXT_OK)
        mixt__table_free(table);
    return status;
}

/** One model must take the samples of all parts of a set: those of `table` are held against `train`. */
static mixt_status check_samples(const mixt_data *data, const mixt__table *train, const mixt__table *table)
{
    // Where samples are cropped to one size, images may have any; their channels must agree all the same.
    int from = data->options.crop && table->rank == 3 && train->rank == 3 ? 2 : 0, rank = table->rank;
    if (rank != train->rank ||
        memcmp(table->dims + from, train->dims + from, (size_t)(rank - from) * sizeof *train->dims))
        return mixt__fail(MIXT_ERROR_DATA, "%s: samples of shape %s, but the training part (%s) has %s", table->path,
                          mixt__dims_print(rank, table->dims).text, train->path,
                          mixt__dims_print(train->rank, train->dims).text);
    if (table->dtype != train->dtype)
        return mixt__fail(MIXT_ERROR_DATA, "%s: samples are read as %s, but those of the training part (%s) as %s",
                          table->path, mixt_dtype_name(table->dtype), train->path, mixt_dtype_name(train->dtype));
    return MIXT_OK;
}

static mixt_status statistics_of_train(const mixt__table *table, const mixt__shares *shares, table_state *state)
{
    int64_t *rows, count;
    MIXT_TRY(
        rows_of_part(table, shares, shares->train == table->rows ? MIXT_PART_ALL : MIXT_PART_TRAIN, &rows, &count));
    mixt_status status = mixt__table_statistics(table, rows, count, state->mean, state->std);
    mixt__free(rows);
    return status;
}

/** Statistics of a part that has its own file: those of the training file beside it, whose table is `train`. */
static mixt_status learn_from_train_file(mixt_data *data, const mixt__table_reader *reader, const mixt__table *train,
                                         table_state *state)
{
    mixt__shares shares;
    if (!train->rows) {
        MIXT_LOG(DATA, "%s: there is no training file next to it: its own mean and deviation are used",
                 state->table.path);
        return mixt__table_statistics(&state->table, NULL, state->table.rows, state->mean, state->std);
    }
    MIXT_TRY(mixt__shares_of(data, train->rows, reader->find(data, MIXT_PART_VAL) != NULL,
                             reader->find(data, MIXT_PART_TEST) != NULL, &shares));
    return statistics_of_train(train, &shares, state);
}

static mixt_status copy_statistics(const mixt_data *data, table_state *state, int64_t channels)
{
    const mixt_data_info *like = &data->options.like->info;
    if (like->channels != channels)
        return mixt__fail(MIXT_ERROR_DATA, "%s: %lld channels, but the data it must match (%s) has %lld",
                          state->table.path, (long long)channels, *like->path ? like->path : like->kind,
                          (long long)like->channels);
    memcpy(state->mean, like->mean, (size_t)channels * sizeof(float));
    memcpy(state->std, like->std, (size_t)channels * sizeof(float));
    return MIXT_OK;
}

/** Mean and deviation by the options, then scale and shift. `reader` is NULL when both are already in state; `train` is
 *  NULL when the part is a share of the training file. */
static mixt_status normalise(mixt_data *data, const mixt__table_reader *reader, table_state *state,
                             const mixt__table *train)
{
    const mixt_data_options *options = &data->options;
    int64_t channels = state->table.dims[state->table.rank - 1];
    if (options->normalise != MIXT_NORMALISE_STANDARD || options->std != 0) {
        for (int64_t c = 0; c < channels; c++) {
            state->mean[c] = options->normalise == MIXT_NORMALISE_STANDARD ? options->mean : 0;
            state->std[c] = options->normalise == MIXT_NORMALISE_STANDARD ? options->std : 1;
        }
    } else if (options->stds) {
        MIXT_TRY(mixt__channel_numbers(options->means, "means", channels, state->mean));
        MIXT_TRY(mixt__channel_numbers(options->stds, "stds", channels, state->std));
    } else if (options->like) {
        MIXT_TRY(copy_statistics(data, state, channels));
    } else if (reader) {
        MIXT_TRY(train ? learn_from_train_file(data, reader, train, state)
                       : statistics_of_train(&state->table, &state->shares, state));
        if (state->table.schema)
            mixt__schema_keep(state->table.schema, state->mean, state->std);
    }
    float unit = state->table.dtype == MIXT_DTYPE_UINT8 && options->normalise != MIXT_NORMALISE_NONE ? 1 / 255.0f : 1;
    for (int64_t c = 0; c < channels; c++) {
        state->scale[c] = unit / state->std[c];
        state->shift[c] = -state->mean[c] / state->std[c];
    }
    return MIXT_OK;
}

/** Finite numbers can leave FP32 on the way to a sample, when they are far apart or the deviation is tiny: said here,
 *  before a run, and not by a loss of NaN in it. */
static mixt_status check_finite(const table_state *state, int64_t samples)
{
    const mixt__table *table = &state->table;
    int64_t elements = mixt__table_elements(table), channels = table->dims[table->rank - 1];
    for (int64_t c = 0; c < channels; c++)
        if (!isfinite(state->scale[c] * 255) || !isfinite(state->shift[c]))
            return mixt__fail(MIXT_ERROR_DATA, "%s: a deviation of %g in channel %lld is too small to divide by",
                              table->path, (double)state->std[c], (long long)c);
    for (int64_t i = 0; i < samples && table->dtype == MIXT_DTYPE_FP32; i++) {
        const float *row = (const float *)table->input + (state->rows ? state->rows[i] : i) * elements;
        for (int64_t k = 0; k < elements; k += channels)
            for (int64_t c = 0; c < channels; c++)
                if (!(fabsf((row[k + c] - state->mean[c]) * state->scale[c]) <= FLT_MAX))
                    return mixt__fail(MIXT_ERROR_DATA,
                                      "%s: sample %lld, element %lld: %g leaves FP32 once the mean %g is subtracted "
                                      "and divided by the deviation %g; scale the data to a smaller range",
                                      table->path, (long long)i, (long long)(k + c), (double)row[k + c],
                                      (double)state->mean[c], (double)state->std[c]);
    }
    return MIXT_OK;
}

static mixt_status take_channel_block(mixt_data *data, table_state *state)
{
    int64_t channels = state->table.dims[state->table.rank - 1];
    state->mean = mixt__alloc((size_t)channels * 4 * sizeof(float));
    if (!state->mean)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for %lld channels", data->path, (long long)channels);
    state->std = state->mean + channels;
    state->scale = state->std + channels;
    state->shift = state->scale + channels;
    return MIXT_OK;
}

/** Crops, flips and resizing, where the options ask for any. */
static mixt_status augment(mixt_data *data, table_state *state)
{
    const mixt_data_options *o = &data->options;
    const mixt__table *table = &state->table;
    state->crops = o->crop || o->pad || o->flip || o->min_area > 0 || o->resize;
    if (!state->crops)
        return MIXT_OK;
    if (table->rank != 3)
        return mixt__fail(MIXT_ERROR_CONFIG,
                          "%s: crop, pad, flip, min_area and resize are for images (height, width, channels), samples "
                          "here have %d dimensions",
                          table->path, table->rank);
    int64_t height = table->dims[0], width = table->dims[1];
    if (o->resize && !o->crop && o->resize < (height < width ? height : width))
        return mixt__fail(
            MIXT_ERROR_CONFIG,
            "%s: images of %lld x %lld resized to %lld are smaller than a sample; set data.crop to %lld or less",
            table->path, (long long)height, (long long)width, (long long)o->resize, (long long)o->resize);
    return mixt__augment_of(o, table->path, height, width, &state->augment);
}

static void describe(mixt_data *data, const table_state *state, int64_t samples)
{
    const mixt__table *table = &state->table;
    mixt_data_info *info = &data->info;
    info->samples = samples;
    info->input_dtype = MIXT_DTYPE_FP32;
    info->input_rank = table->rank;
    memcpy(info->input_dims, table->dims, sizeof info->input_dims);
    if (state->crops) {
        info->input_dims[0] = state->augment.height;
        info->input_dims[1] = state->augment.width;
    }
    info->target = table->labels ? MIXT_TARGET_CLASS : MIXT_TARGET_VALUES;
    info->target_elements = table->labels ? 1 : table->value_count;
    info->classes = table->classes;
    info->class_names = table->class_names;
    info->channels = table->dims[table->rank - 1];
    info->mean = state->mean;
    info->std = state->std;
}

/** How one value to predict is learned. `train` is the training file's table for a part with its own. */
static mixt_status scale_targets(mixt_data *data, const mixt__table_reader *reader, const table_state *state,
                                 const mixt__table *train)
{
    const mixt__table *table = train ? train : &state->table;
    mixt__shares shares = state->shares;
    int64_t *rows = NULL, count = table->rows;
    double mean, deviation;
    bool one;
    MIXT_TRY(mixt__target_check(data, state->table.values != NULL, state->table.value_count, &one));
    if (!one)
        return MIXT_OK;
    if (data->options.like)
        return mixt__target_learned(data, 0, 0);
    if (train)
        MIXT_TRY(mixt__shares_of(data, train->rows, reader->find(data, MIXT_PART_VAL) != NULL,
                                 reader->find(data, MIXT_PART_TEST) != NULL, &shares));
    if (shares.train)
        MIXT_TRY(rows_of_part(table, &shares, MIXT_PART_TRAIN, &rows, &count));
    mixt__table_value_scale(table, rows, count, &mean, &deviation);
    mixt__free(rows);
    return mixt__target_learned(data, mean, deviation);
}

/** Numbers of words stand beside the features, as an input of their own. */
static mixt_status describe_words(mixt_data *data, const table_state *state)
{
    const mixt__schema *schema = state->table.schema;
    if (!state->table.ids)
        return MIXT_OK;
    mixt_data_array *arrays = mixt__arena_alloc(&data->arena, 3 * sizeof *arrays);
    if (!arrays)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to describe its inputs", data->path);
    bool labels = state->table.labels != NULL;
    arrays[0] = (mixt_data_array){.name = "input", .dtype = MIXT_DTYPE_FP32, .rank = 1, .dims = {schema->features}};
    arrays[1] = (mixt_data_array){.name = MIXT_WORDS_INPUT, .dtype = MIXT_DTYPE_INT32, .rank = 1, .ids = schema->ids};
    arrays[1].dims[0] = schema->embedded;
    arrays[2] = (mixt_data_array){.name = "target", .target = true, .elements = 1};
    arrays[2].dtype = labels ? MIXT_DTYPE_INT32 : MIXT_DTYPE_FP32;
    arrays[2].rank = !labels;
    arrays[2].dims[0] = !labels;
    arrays[2].ids = labels ? state->table.classes : 0;
    arrays[0].elements = schema->features;
    arrays[1].elements = schema->embedded;
    data->info.arrays = arrays;
    data->info.array_count = 3;
    return MIXT_OK;
}

/** Cells without a value get one before anything is measured, in `train` too: the table of the training file, for a
 * part with its own. */
static mixt_status fill_missing(mixt_data *data, const mixt__table_reader *reader, table_state *state,
                                mixt__table *train)
{
    const mixt__table *table = train ? train : &state->table;
    mixt__shares shares = state->shares;
    int64_t *rows = NULL, count = table->rows;
    if (!data->options.like || !mixt__missing_copy(data, data->options.like, &state->table)) {
        if (train)
            MIXT_TRY(mixt__shares_of(data, train->rows, reader->find(data, MIXT_PART_VAL) != NULL,
                                     reader->find(data, MIXT_PART_TEST) != NULL, &shares));
        if (shares.train)
            MIXT_TRY(rows_of_part(table, &shares, MIXT_PART_TRAIN, &rows, &count));
        mixt_status status = mixt__missing_learn(data, table, rows, count);
        mixt__free(rows);
        MIXT_TRY(status);
    }
    mixt__missing_fill(data, &state->table);
    if (train)
        mixt__missing_fill(data, train);
    return mixt__missing_warn(data, &state->table);
}

/** Whether the training part to agree with is of the same files, cut the same way. Without `like` it is. */
static bool same_set(const mixt_data *data)
{
    const mixt_data_options *mine = &data->options, *its = mine->like ? &mine->like->options : mine;
    return !mine->like ||
           (mine->like->kind == data->kind && !strcmp(mine->like->path, data->path) && its->crop == mine->crop &&
            !its->shape == !mine->shape && (!its->shape || !strcmp(its->shape, mine->shape)));
}

/** Reads the part from `path`. `train` is the training file's table for a part with its own file, else empty. */
static mixt_status open_part(mixt_data *data, const mixt__table_reader *reader, const char *path, bool own,
                             mixt__table *train)
{
    table_state *state = data->state;
    const mixt_data *like = data->options.like;
    const mixt__table *agree = train->rows ? train : NULL;
    if (like && like->kind->sample == mixt__table_sample)
        agree = &((const table_state *)like->state)->table;
    MIXT_TRY(load(data, reader, path, agree, &state->table));
    int64_t samples = state->table.rows;
    if (agree && same_set(data))
        MIXT_TRY(check_samples(data, agree, &state->table));
    if (train->classes > state->table.classes)
        state->table.classes = train->classes;
    if (!own) {
        bool has_val = reader->find(data, MIXT_PART_VAL) != NULL, has_test = reader->find(data, MIXT_PART_TEST) != NULL;
        MIXT_TRY(mixt__shares_of(data, samples, has_val, has_test, &state->shares));
        if ((data->part == MIXT_PART_VAL && !state->shares.val) ||
            (data->part == MIXT_PART_TEST && !state->shares.test))
            return mixt__part_missing(data);
        MIXT_TRY(rows_of_part(&state->table, &state->shares, data->part, &state->rows, &samples));
    }
    MIXT_TRY(fill_missing(data, reader, state, own && train->rows ? train : NULL));
    MIXT_TRY(take_channel_block(data, state));
    MIXT_TRY(normalise(data, reader, state, own ? train : NULL));
    MIXT_TRY(check_finite(state, samples));
    MIXT_TRY(augment(data, state));
    describe(data, state, samples);
    MIXT_TRY(describe_words(data, state));
    MIXT_TRY(scale_targets(data, reader, state, own && train->rows ? train : NULL));
    bool first = data->part == MIXT_PART_TRAIN || data->part == MIXT_PART_ALL; // others of the same file say the same
    if ((own || first) && !state->crops)
        MIXT_TRY(mixt__table_suspects(data, &state->table, state->mean, state->std));
    return mixt__table_warning(data, &state->table);
}

mixt_status mixt__table_open(mixt_data *data, const mixt__table_reader *reader)
{
    table_state *state;
    MIXT_TRY(new_state(data, &state));
    bool held_out = data->part == MIXT_PART_VAL || data->part == MIXT_PART_TEST;
    const char *own = held_out ? reader->find(data, data->part) : NULL, *shared = reader->find(data, MIXT_PART_TRAIN);
    if (!own && !shared)
        return mixt__part_missing(data);
    mixt__table train = {0};
    if (own && shared && !data->options.like)
        MIXT_TRY(load(data, reader, shared, NULL, &train));
    mixt_status status = open_part(data, reader, own ? own : shared, own != NULL, &train);
    mixt__table_free(&train);
    return status;
}

mixt_status mixt__table_adopt(mixt_data *data, mixt__table *table, float mean, float std)
{
    table_state *state;
    mixt_status status = new_state(data, &state);
    if (status != MIXT_OK) {
        mixt__table_free(table);
        return status;
    }
    state->table = *table;
    MIXT_TRY(reshape(data, &state->table));
    MIXT_TRY(take_channel_block(data, state));
    for (int64_t c = 0; c < state->table.dims[state->table.rank - 1]; c++) {
        state->mean[c] = mean;
        state->std[c] = std;
    }
    MIXT_TRY(normalise(data, NULL, state, NULL));
    MIXT_TRY(check_finite(state, state->table.rows));
    MIXT_TRY(augment(data, state));
    describe(data, state, state->table.rows);
    return mixt__table_warning(data, &state->table);
}

static void widen_row(const table_state *state, int64_t row, int64_t elements, float *input)
{
    int64_t channels = state->table.dims[state->table.rank - 1];
    const float *scale = state->scale, *shift = state->shift;
    if (state->table.dtype == MIXT_DTYPE_UINT8) {
        const unsigned char *bytes = (const unsigned char *)state->table.input + row * elements;
        if (channels == 1) {
            for (int64_t i = 0; i < elements; i++)
                input[i] = (float)bytes[i] * scale[0] + shift[0];
            return;
        }
        for (int64_t i = 0; i < elements; i += channels)
            for (int64_t c = 0; c < channels; c++)
                input[i + c] = (float)bytes[i + c] * scale[c] + shift[c];
        return;
    }
    const float *floats = (const float *)state->table.input + row * elements;
    for (int64_t i = 0; i < elements; i += channels)
        for (int64_t c = 0; c < channels; c++)
            input[i + c] = (floats[i + c] - state->mean[c]) * scale[c]; // subtract first: a large mean must not cancel
}

/** A window of a row's image, drawn for this sample and epoch. */
static mixt_status crop_row(const mixt_data *data, int64_t row, int64_t index, int64_t epoch, float *input)
{
    const table_state *state = data->state;
    const mixt__table *table = &state->table;
    size_t bytes = (size_t)(row * mixt__table_elements(table)) * mixt_dtype_size(table->dtype);
    mixt__image image = {.pixels = (const char *)table->input + bytes, .dtype = table->dtype};
    image.height = table->dims[0];
    image.width = table->dims[1];
    image.channels = table->dims[2];
    mixt__normal normal = {.mean = state->mean, .scale = state->scale, .shift = state->shift};
    mixt__window window =
        mixt__augment_window(&state->augment, image.height, image.width, data->options.seed, epoch, index);
    return mixt__augment_apply(&state->augment, &image, &window, &normal, input);
}

mixt_status mixt__table_arrays(const mixt_data *data, const mixt_data_info *as, int64_t index, int64_t epoch,
                               char *const *at)
{
    const table_state *state = data->state;
    const mixt__table *table = &state->table;
    int64_t row = state->rows ? state->rows[index] : index, embedded = table->ids ? table->schema->embedded : 0;
    (void)as;
    if (embedded)
        memcpy(at[1], table->ids + row * embedded, (size_t)embedded * sizeof *table->ids);
    return mixt__table_sample(data, index, epoch, at[0], at[embedded ? 2 : 1]);
}

mixt_status mixt__table_sample(const mixt_data *data, int64_t index, int64_t epoch, void *input, void *target)
{
    const table_state *state = data->state;
    const mixt__table *table = &state->table;
    int64_t row = state->rows ? state->rows[index] : index;
    if (state->crops)
        MIXT_TRY(crop_row(data, row, index, epoch, input));
    else
        widen_row(state, row, mixt__table_elements(table), input);
    if (table->labels)
        memcpy(target, table->labels + row, sizeof(int32_t));
    else
        memcpy(target, table->values + row * table->value_count, (size_t)table->value_count * sizeof(float));
    return MIXT_OK;
}
