/* Text as bytes: a sample is a window of seq tokens and the same window one byte later.
 *
 * Windows do not overlap. In training every epoch begins somewhere else within the first window, so that over the
 * epochs a model sees every alignment; evaluation always begins at the first byte. Held-out parts are the last bytes
 * of the file: text must not be split in between.
 */
#include "data/data.h"

enum { DEFAULT_SEQ = 256, BYTE_VALUES = 256 };

typedef struct text_state {
    mixt__bytes file;
    const unsigned char *bytes; // of the part
    int64_t size;
} text_state;

/** The bytes of the part: its own file, or a share of the training file. */
static mixt_status choose_part(mixt_data *data, text_state *state)
{
    bool held_out = data->part == MIXT_PART_VAL || data->part == MIXT_PART_TEST;
    const char *own = held_out ? mixt__path_of_part(data, data->part, ".txt") : NULL;
    const char *path = own ? own : mixt__path_of_part(data, MIXT_PART_TRAIN, ".txt");
    if (!path)
        return mixt__part_missing(data);
    MIXT_TRY(mixt__bytes_read(path, &state->file));
    state->bytes = state->file.bytes;
    state->size = state->file.size;
    if (own)
        return MIXT_OK;
    mixt__shares shares;
    MIXT_TRY(mixt__shares_of(data, state->size, mixt__path_of_part(data, MIXT_PART_VAL, ".txt") != NULL,
                             mixt__path_of_part(data, MIXT_PART_TEST, ".txt") != NULL, &shares));
    if (data->part == MIXT_PART_VAL)
        state->bytes += shares.train;
    else if (data->part == MIXT_PART_TEST)
        state->bytes += shares.train + shares.val;
    state->size = data->part == MIXT_PART_VAL ? shares.val : data->part == MIXT_PART_TEST ? shares.test : shares.train;
    return state->size > 0 ? MIXT_OK : mixt__part_missing(data);
}

static mixt_status open_text(mixt_data *data)
{
    text_state *state = data->state = mixt__alloc(sizeof *state);
    if (!state)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory", data->path);
    MIXT_TRY(choose_part(data, state));
    int64_t seq = data->options.seq ? data->options.seq : DEFAULT_SEQ;
    if (state->size < seq + 1)
        return mixt__fail(
            MIXT_ERROR_DATA,
            "text:%s: the %s part has %lld bytes, fewer than one sample of seq + 1 = %lld; lower seq or use "
            "a longer text",
            data->path, mixt__part_names[data->part], (long long)state->size, (long long)seq + 1);
    mixt_data_info *info = &data->info;
    info->samples = (state->size - 1) / seq;
    info->input_dtype = MIXT_DTYPE_INT32;
    info->input_rank = 1;
    info->input_dims[0] = seq;
    info->target = MIXT_TARGET_TOKENS;
    info->target_elements = seq;
    info->classes = BYTE_VALUES;
    return MIXT_OK;
}

static mixt_status sample(const mixt_data *data, int64_t index, int64_t epoch, void *input, void *target)
{
    const text_state *state = data->state;
    int64_t seq = data->info.input_dims[0], start = index * seq, last = state->size - seq - 1;
    if (epoch >= 0 && !data->options.in_order) {
        mixt__rng rng = mixt__rng_start(mixt__rng_key(data->options.seed, MIXT_STREAM_SHIFT, (uint64_t)epoch));
        start += (int64_t)mixt__rng_below(&rng, (uint64_t)seq);
    }
    if (start > last)
        start = last; // only the final window: it moves as far as the text allows
    int32_t *tokens = input, *next = target;
    for (int64_t i = 0; i < seq; i++) {
        tokens[i] = state->bytes[start + i];
        next[i] = state->bytes[start + i + 1];
    }
    return MIXT_OK;
}

static void close_text(mixt_data *data)
{
    text_state *state = data->state;
    if (!state)
        return;
    mixt__bytes_free(&state->file);
    mixt__free(state);
    data->state = NULL;
}

const mixt__data_kind mixt__data_text = {
    .name = "text",
    .what = "file whose bytes are tokens",
    .open = open_text,
    .sample = sample,
    .close = close_text,
};
