/* A program's own arrays as a data set: numbers become a table, as rows of a file do; tokens stay as they are.
 *
 * Everything is checked when the set is opened, so that reading it cannot fail. Borrowed arrays are only ever read.
 */
#include "data/data.h"

#include "base/options.h"
#include "store/tensor.h"

#include <math.h>
#include <string.h>

/* ---- checks ---- */

static const char *name_of(const mixt_data_arrays *a)
{
    return a->name ? a->name : "memory";
}

static int64_t elements_of(const mixt_data_arrays *a)
{
    int64_t elements = 1;
    for (int i = 0; i < a->input_rank; i++)
        elements *= a->input_dims[i];
    return elements;
}

/** Numbers of a sample's target. */
static int64_t targets_of(const mixt_data_arrays *a)
{
    if (a->target == MIXT_TARGET_TOKENS)
        return a->input_dims[0];
    return a->target == MIXT_TARGET_VALUES ? a->target_elements : 1;
}

static mixt_status check_shape(const mixt_data_arrays *a)
{
    int64_t elements, numbers;
    if (a->samples < 1)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%s: %lld samples: at least 1 is needed", name_of(a),
                          (long long)a->samples);
    if (a->input_rank < 1 || a->input_rank >= MIXT_MAX_RANK)
        return mixt__fail(MIXT_ERROR_SHAPE, "%s: samples of %d dimensions: expected 1 to %d", name_of(a), a->input_rank,
                          MIXT_MAX_RANK - 1);
    for (int i = 0; i < a->input_rank; i++)
        if (a->input_dims[i] < 1)
            return mixt__fail(MIXT_ERROR_SHAPE, "%s: dimension %d of a sample is %lld: must be at least 1", name_of(a),
                              i, (long long)a->input_dims[i]);
    if (a->target_elements < 1)
        return mixt__fail(MIXT_ERROR_SHAPE, "%s: %lld numbers per target: must be at least 1", name_of(a),
                          (long long)a->target_elements);
    if (!mixt__shape_elements(a->input_rank, a->input_dims, &elements) ||
        !mixt__shape_elements(2, (int64_t[]){a->samples, elements}, &numbers) ||
        !mixt__shape_elements(2, (int64_t[]){a->samples, targets_of(a)}, &numbers))
        return mixt__fail(MIXT_ERROR_SHAPE, "%s: %lld samples of this shape are too large", name_of(a),
                          (long long)a->samples);
    return MIXT_OK;
}

static mixt_status check_kinds(const mixt_data_arrays *a)
{
    mixt_dtype dtype = a->input_dtype;
    bool tokens = dtype == MIXT_DTYPE_INT32;
    if (dtype != MIXT_DTYPE_FP32 && dtype != MIXT_DTYPE_UINT8 && !tokens)
        return mixt__fail(MIXT_ERROR_DTYPE, "%s: inputs of %s: expected fp32, uint8, or int32 tokens", name_of(a),
                          mixt_dtype_name(dtype));
    if (a->target != MIXT_TARGET_CLASS && a->target != MIXT_TARGET_VALUES && a->target != MIXT_TARGET_TOKENS)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%s: .target must be MIXT_TARGET_CLASS, _VALUES or _TOKENS", name_of(a));
    if (a->target == MIXT_TARGET_TOKENS && !tokens)
        return mixt__fail(MIXT_ERROR_DTYPE, "%s: targets are tokens, but inputs are %s: expected int32", name_of(a),
                          mixt_dtype_name(dtype));
    if (tokens && a->input_rank != 1)
        return mixt__fail(MIXT_ERROR_SHAPE, "%s: tokens have one dimension per sample, not %d", name_of(a),
                          a->input_rank);
    if (a->classes < 0 || a->classes > 1 << 24)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%s: %lld classes: expected 0 (count them) to %d", name_of(a),
                          (long long)a->classes, 1 << 24);
    if (a->target_elements > 1 && a->target != MIXT_TARGET_VALUES)
        return mixt__fail(MIXT_ERROR_SHAPE, "%s: .target_elements is for values", name_of(a));
    return a->class_names && !a->classes
               ? mixt__fail(MIXT_ERROR_ARGUMENT, "%s: class names need .classes, their number", name_of(a))
               : MIXT_OK;
}

/** Whole numbers from `least`, below `classes`; 0 there: any, and *classes becomes the largest + 1. */
static mixt_status check_integers(const mixt_data_arrays *a, const char *what, const int32_t *numbers, int64_t width,
                                  int32_t least, int64_t *classes)
{
    int64_t bound = *classes ? *classes : 1 << 24, largest = 0;
    for (int64_t i = 0; i < a->samples * width; i++) {
        if (numbers[i] < least || numbers[i] >= bound)
            return mixt__fail(MIXT_ERROR_DATA, "%s: sample %lld: %s %d is out of range, expected %d to %lld",
                              name_of(a), (long long)(i / width), what, numbers[i], least, (long long)bound - 1);
        largest = numbers[i] > largest ? numbers[i] : largest;
    }
    *classes = *classes ? *classes : largest + 1;
    return MIXT_OK;
}

/** NaN is allowed where `gaps`. */
static mixt_status check_floats(const mixt_data_arrays *a, const char *what, const float *numbers, int64_t width,
                                bool gaps)
{
    for (int64_t i = 0; i < a->samples * width; i++)
        if (!isfinite(numbers[i]) && !(gaps && isnan(numbers[i])))
            return mixt__fail(MIXT_ERROR_DATA, "%s: sample %lld: %s %lld is %g: expected a finite number", name_of(a),
                              (long long)(i / width), what, (long long)(i % width), (double)numbers[i]);
    return MIXT_OK;
}

/** Classes that labels or tokens must stay below; 0 when nothing says so. */
static int64_t known_classes(const mixt_data *data)
{
    const mixt_data *like = data->options.like;
    if (data->options.classes)
        return data->options.classes;
    return data->arrays->classes ? data->arrays->classes : like ? like->info.classes : 0;
}

static mixt_status no_memory(const mixt_data *data)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for %lld samples", data->path,
                      (long long)data->arrays->samples);
}

/** The array itself where it is borrowed, else a copy; NULL when memory ends. */
static void *take(const mixt_data_arrays *a, const void *array, int64_t width, mixt_dtype dtype)
{
    size_t bytes = (size_t)(a->samples * width) * mixt_dtype_size(dtype);
    if (a->borrow)
        return (void *)(uintptr_t)array;
    void *copy = mixt__alloc_uninit(bytes);
    return copy ? memcpy(copy, array, bytes) : NULL;
}

static mixt_status take_names(mixt_data *data)
{
    const mixt_data_arrays *a = data->arrays;
    if (!a->class_names)
        return MIXT_OK;
    if (data->info.classes != a->classes)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%s: names of %lld classes, but the data has %lld", data->path,
                          (long long)a->classes, (long long)data->info.classes);
    const char **names = mixt__arena_alloc(&data->arena, (size_t)a->classes * sizeof *names);
    for (int64_t i = 0; names && i < a->classes; i++) {
        if (!a->class_names[i])
            return mixt__fail(MIXT_ERROR_ARGUMENT, "%s: class %lld has no name", data->path, (long long)i);
        names[i] = mixt__arena_strdup(&data->arena, a->class_names[i]);
        if (!names[i])
            return no_memory(data);
    }
    data->info.class_names = names;
    return names ? MIXT_OK : no_memory(data);
}

/* ---- numbers: a table ---- */

static const char *find(mixt_data *data, mixt__part part)
{
    return part == MIXT_PART_TRAIN ? data->path : NULL;
}

static mixt_status load(mixt_data *data, const char *path, mixt__table *table)
{
    const mixt_data_arrays *a = data->arrays;
    *table = (mixt__table){.path = path, .borrowed = a->borrow, .dtype = a->input_dtype, .rows = a->samples};
    table->rank = a->input_rank;
    memcpy(table->dims, a->input_dims, (size_t)a->input_rank * sizeof *a->input_dims);
    if (table->dtype == MIXT_DTYPE_FP32)
        MIXT_TRY(check_floats(a, "element", a->inputs, elements_of(a), false));
    table->input = table->block = take(a, a->inputs, elements_of(a), table->dtype);
    if (a->target == MIXT_TARGET_CLASS) {
        table->classes = known_classes(data);
        MIXT_TRY(check_integers(a, "class", a->targets, 1, 0, &table->classes));
        table->labels = take(a, a->targets, 1, MIXT_DTYPE_INT32);
    } else {
        MIXT_TRY(check_floats(a, "value", a->targets, targets_of(a), true));
        table->value_count = targets_of(a);
        table->values = take(a, a->targets, targets_of(a), MIXT_DTYPE_FP32);
    }
    return table->block && (table->labels || table->values) ? MIXT_OK : no_memory(data);
}

/** Without a split the arrays are the set, whole. */
static void choose_part(mixt_data *data)
{
    if (!data->options.split)
        data->part = MIXT_PART_ALL;
}

static mixt_status open_numbers(mixt_data *data)
{
    static const mixt__table_reader reader = {find, load};
    choose_part(data);
    MIXT_TRY(mixt__table_open(data, &reader));
    return take_names(data);
}

static const mixt__data_kind numbers = {
    .name = "arrays",
    .what = "arrays of the program",
    .uses = MIXT_DATA_IMAGES | MIXT_DATA_NUMBERS | MIXT_DATA_CLASSES | MIXT_DATA_SHAPE | MIXT_DATA_VALUES,
    .open = open_numbers,
    .sample = mixt__table_sample,
    .close = mixt__table_close,
    .raw = mixt__table_raw,
};

/* ---- tokens ---- */

typedef struct token_state {
    void *inputs, *targets; // owned unless borrowed
    bool borrowed;
    int64_t first; // row of the part's first sample: parts of texts are not mixed
    int64_t rows, width, target_width;
} token_state;

/** Whether each target is the input's next token, wherever the input shows it. */
static bool are_next(const mixt_data_arrays *a)
{
    const int32_t *x = a->inputs, *y = a->targets;
    int64_t width = a->input_dims[0];
    for (int64_t i = 0; i < a->samples * width; i++)
        if ((i + 1) % width && y[i] != x[i + 1])
            return false;
    return width > 1;
}

static mixt_status choose_rows(mixt_data *data, token_state *s)
{
    mixt__shares shares;
    choose_part(data);
    MIXT_TRY(mixt__shares_of(data, s->rows, false, false, &shares));
    bool val = data->part == MIXT_PART_VAL, test = data->part == MIXT_PART_TEST;
    if ((val && !shares.val) || (test && !shares.test))
        return mixt__part_missing(data);
    s->first = val ? shares.train : test ? shares.train + shares.val : 0;
    data->info.samples = val ? shares.val : test ? shares.test : shares.train;
    return MIXT_OK;
}

static mixt_status check_tokens(const mixt_data *data, int64_t *classes)
{
    const mixt_data_arrays *a = data->arrays;
    int64_t vocabulary = a->target == MIXT_TARGET_TOKENS ? known_classes(data) : 0, labels = known_classes(data);
    MIXT_TRY(check_integers(a, "token", a->inputs, a->input_dims[0], 0, &vocabulary));
    if (a->target == MIXT_TARGET_VALUES)
        return check_floats(a, "value", a->targets, targets_of(a), true);
    if (a->target == MIXT_TARGET_CLASS)
        MIXT_TRY(check_integers(a, "class", a->targets, 1, 0, &labels));
    else
        MIXT_TRY(check_integers(a, "target", a->targets, a->input_dims[0], -1, &labels));
    *classes = a->target == MIXT_TARGET_TOKENS && vocabulary > labels ? vocabulary : labels;
    return MIXT_OK;
}

static mixt_status open_tokens(mixt_data *data)
{
    const mixt_data_arrays *a = data->arrays;
    token_state *s = data->state = mixt__alloc(sizeof *s);
    mixt_data_info *info = &data->info;
    if (!s)
        return no_memory(data);
    s->borrowed = a->borrow;
    s->rows = a->samples;
    s->width = a->input_dims[0];
    s->target_width = targets_of(a);
    MIXT_TRY(choose_rows(data, s));
    MIXT_TRY(check_tokens(data, &info->classes));
    s->inputs = take(a, a->inputs, s->width, MIXT_DTYPE_INT32);
    s->targets = take(a, a->targets, s->target_width, MIXT_DTYPE_INT32); // FP32 values are as wide
    info->input_dtype = MIXT_DTYPE_INT32;
    info->input_rank = 1;
    info->input_dims[0] = s->width;
    info->target = a->target;
    info->target_elements = s->target_width;
    info->next_tokens = a->target == MIXT_TARGET_TOKENS && are_next(a);
    return s->inputs && s->targets ? take_names(data) : no_memory(data);
}

static mixt_status sample_tokens(const mixt_data *data, int64_t index, int64_t epoch, void *input, void *target)
{
    (void)epoch;
    const token_state *s = data->state;
    int64_t row = s->first + index;
    memcpy(input, (const int32_t *)s->inputs + row * s->width, (size_t)s->width * sizeof(int32_t));
    memcpy(target, (const int32_t *)s->targets + row * s->target_width, (size_t)s->target_width * sizeof(int32_t));
    return MIXT_OK;
}

static const void *raw_tokens(const mixt_data *data, int index, size_t *bytes)
{
    const token_state *s = data->state;
    *bytes = (size_t)(s->rows * (index ? s->target_width : s->width)) * sizeof(int32_t);
    return index == 0 ? s->inputs : index == 1 ? s->targets : NULL;
}

static void close_tokens(mixt_data *data)
{
    token_state *s = data->state;
    if (s && !s->borrowed) {
        mixt__free(s->inputs);
        mixt__free(s->targets);
    }
    mixt__free(s);
    data->state = NULL;
}

static const mixt__data_kind tokens = {
    .name = "arrays",
    .what = "arrays of tokens of a program",
    .uses = MIXT_DATA_NUMBERS | MIXT_DATA_CLASSES, // as of numbers: one caller may have both
    .open = open_tokens,
    .sample = sample_tokens,
    .close = close_tokens,
    .raw = raw_tokens,
};

mixt_status mixt_data_from(const mixt_data_arrays *arrays, const mixt_data_options *options, mixt_data **data)
{
    mixt_data_arrays own = MIXT_OPTIONS(mixt_data_arrays);
    MIXT_TRY(mixt__need(data));
    *data = NULL;
    MIXT_TRY(mixt__need(arrays));
    MIXT_TRY(mixt__options(mixt_data_arrays, &own, arrays));
    if (!own.inputs || !own.targets)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "mixt_data_from: %s: .inputs and .targets must not be NULL",
                          name_of(&own));
    MIXT_TRY(check_shape(&own));
    MIXT_TRY(check_kinds(&own));
    return mixt__data_open_arrays(own.input_dtype == MIXT_DTYPE_INT32 ? &tokens : &numbers, &own, options, data);
}
