/* Synthetic samples for benchmarks: standard normal inputs with uniform classes, or uniform tokens.
 *
 * A sample is a slice of one pool of numbers, at a place that depends only on (seed, part, index): a batch costs a
 * copy and no number is drawn while a benchmark runs. There is nothing in it to learn.
 */
#include "data/data.h"

#include <string.h>

enum { POOL = 1 << 20, MAX_ELEMENTS = 1 << 28, DEFAULT_CLASSES = 10, DEFAULT_VOCABULARY = 256 };

static const int64_t default_samples[MIXT_PART_COUNT] = {20000, 2000, 4000, 20000};

typedef struct random_state {
    int64_t size;    // of the pool: POOL places to begin at, and one sample more
    float *normals;  // or NULL
    int32_t *tokens; // or NULL
} random_state;

static bool is_tokens(const mixt_data *data)
{
    return !strcmp(data->path, "tokens");
}

static mixt_status describe(mixt_data *data)
{
    mixt_data_info *info = &data->info;
    bool tokens = is_tokens(data);
    int64_t fallback = tokens ? DEFAULT_VOCABULARY : DEFAULT_CLASSES;
    info->samples = data->options.samples ? data->options.samples : default_samples[data->part];
    info->classes = data->options.classes ? data->options.classes : fallback;
    info->input_dtype = tokens ? MIXT_DTYPE_INT32 : MIXT_DTYPE_FP32;
    info->target = tokens ? MIXT_TARGET_TOKENS : MIXT_TARGET_CLASS;
    info->target_elements = 1;
    if (tokens) {
        info->input_rank = 1;
        info->input_dims[0] = info->target_elements = data->options.seq;
        return mixt__need_seq(data);
    }
    const char *shape = data->options.shape ? data->options.shape : *data->path ? data->path : "28x28x1";
    return mixt__shape_parse(shape, &info->input_rank, info->input_dims);
}

static mixt_status open_random(mixt_data *data)
{
    random_state *state = data->state = mixt__alloc(sizeof *state);
    if (!state)
        return mixt__fail(MIXT_ERROR_MEMORY, "random: no memory");
    MIXT_TRY(describe(data));
    int64_t elements;
    if (!mixt__shape_elements(data->info.input_rank, data->info.input_dims, &elements) || elements > MAX_ELEMENTS)
        return mixt__fail(MIXT_ERROR_CONFIG, "random: more than %d elements per sample", MAX_ELEMENTS);
    state->size = POOL + elements + 1;
    void *pool = mixt__alloc_uninit((size_t)state->size * sizeof(float));
    if (!pool)
        return mixt__fail(MIXT_ERROR_MEMORY, "random: no memory for %lld numbers", (long long)state->size);
    mixt__rng rng = mixt__rng_start(mixt__rng_key(data->options.seed, MIXT_STREAM_POOL, 0));
    if (is_tokens(data)) {
        state->tokens = pool;
        for (int64_t i = 0; i < state->size; i++)
            state->tokens[i] = (int32_t)mixt__rng_below(&rng, (uint64_t)data->info.classes);
        return MIXT_OK;
    }
    state->normals = pool;
    for (int64_t i = 0; i < state->size; i++) // drawing all of a very large sample would take longer than a benchmark
        state->normals[i] = i < 2 * POOL ? mixt__rng_normal(&rng) : state->normals[i - POOL];
    return MIXT_OK;
}

static mixt_status sample(const mixt_data *data, int64_t index, int64_t epoch, void *input, void *target)
{
    (void)epoch;
    const random_state *state = data->state;
    const mixt_data_info *info = &data->info;
    mixt__rng rng = mixt__rng_start(
        mixt__rng_key(data->options.seed, MIXT_STREAM_POOL, (uint64_t)index * MIXT_PART_COUNT + data->part + 1));
    int64_t start = (int64_t)mixt__rng_below(&rng, POOL);
    size_t bytes = (size_t)info->input_elements * sizeof(float);
    if (state->tokens) {
        memcpy(input, state->tokens + start, bytes);
        memcpy(target, state->tokens + start + 1, bytes);
        return MIXT_OK;
    }
    memcpy(input, state->normals + start, bytes);
    *(int32_t *)target = (int32_t)mixt__rng_below(&rng, (uint64_t)info->classes);
    return MIXT_OK;
}

static void close_random(mixt_data *data)
{
    random_state *state = data->state;
    if (!state)
        return;
    mixt__free(state->normals);
    mixt__free(state->tokens);
    mixt__free(state);
    data->state = NULL;
}

const mixt__data_kind mixt__data_random = {
    .name = "random",
    .what = "synthetic numbers, for benchmarks",
    .uses = MIXT_DATA_LABELS | MIXT_DATA_WORDS | MIXT_DATA_IMAGES | MIXT_DATA_FRAMES | MIXT_DATA_NUMBERS |
            MIXT_DATA_CLASSES | MIXT_DATA_SHAPE | MIXT_DATA_SAMPLES | MIXT_DATA_SEQ, // stands in for any of them
    .drawn = true,
    .open = open_random,
    .sample = sample,
    .close = close_random,
};
