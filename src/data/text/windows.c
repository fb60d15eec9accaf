/* Windows over tokens. To predict the next token, a sample is seq tokens and the same one token later; to fill in
 * masked ones (options.mask), it is [CLS], tokens, [SEP], of which some are hidden, and targets only at those.
 *
 * Windows do not overlap. In training every epoch begins somewhere else within the first window, so that over the
 * epochs a model sees every alignment; evaluation always begins at the first token. Held-out parts are the last tokens
 * of the file: text must not be split in between.
 */
#include "data/text/windows.h"

#include <string.h>

bool mixt__windows_known(const mixt_data *data)
{
    const mixt_data *like = data->options.like;
    return like && like->kind == data->kind && !strcmp(like->path, data->path);
}

uint64_t mixt__windows_tokenizer(const mixt_data *data)
{
    const mixt__windows *w = data->state;
    return w->file.facts.fingerprint;
}

void mixt__windows_adopt(mixt__windows *w)
{
    w->ids = w->file.ids;
    w->width = w->file.width;
    w->count = w->file.count;
    w->vocabulary = w->file.facts.vocabulary;
    w->special = w->file.facts.special;
}

/* ---- open ---- */

static mixt_status choose_part(mixt_data *data, mixt__windows *w, mixt__windows_find *find, mixt__windows_load *load)
{
    bool held_out = data->part == MIXT_PART_VAL || data->part == MIXT_PART_TEST;
    const char *own = held_out ? find(data, data->part) : NULL;
    const char *path = own ? own : find(data, MIXT_PART_TRAIN);
    if (!path)
        return mixt__part_missing(data);
    MIXT_TRY(load(data, path, w));
    if (own)
        return MIXT_OK;
    mixt__shares shares;
    MIXT_TRY(mixt__shares_of(data, w->count, find(data, MIXT_PART_VAL) != NULL, find(data, MIXT_PART_TEST) != NULL,
                             &shares));
    int64_t first = data->part == MIXT_PART_VAL    ? shares.train
                    : data->part == MIXT_PART_TEST ? shares.train + shares.val
                                                   : 0;
    w->count = data->part == MIXT_PART_VAL ? shares.val : data->part == MIXT_PART_TEST ? shares.test : shares.train;
    w->ids += first * w->width;
    return w->count > 0 ? MIXT_OK : mixt__part_missing(data);
}

/** Tokens of the text in a sample: all but [CLS] and [SEP]. */
static int64_t body_of(const mixt_data *data, const mixt__windows *w, int64_t seq)
{
    return data->options.mask > 0 ? seq - (w->special.start >= 0) - (w->special.end >= 0) : seq;
}

static mixt_status check_mask(const mixt_data *data, const mixt__windows *w, int64_t body)
{
    if (data->options.mask <= 0)
        return MIXT_OK;
    if (w->special.mask < 0)
        return mixt__fail(MIXT_ERROR_CONFIG,
                          "%s:%s: data.mask needs a token [MASK], which this vocabulary does not have; use "
                          "data.tokenizer=wordpiece with a vocab.txt that has it",
                          data->kind->name, data->path);
    return body > 0 ? MIXT_OK
                    : mixt__fail(MIXT_ERROR_CONFIG,
                                 "%s:%s: data.seq has no room for tokens next to [CLS] and [SEP]: raise it",
                                 data->kind->name, data->path);
}

mixt_status mixt__windows_open(mixt_data *data, mixt__windows_find *find, mixt__windows_load *load)
{
    mixt__windows *w = data->state = mixt__alloc(sizeof *w);
    if (!w)
        return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory", data->path);
    w->special = (mixt__special_tokens){-1, -1, -1, -1, -1};
    MIXT_TRY(choose_part(data, w, find, load));
    MIXT_TRY(mixt__need_seq(data));
    int64_t seq = data->options.seq, body = body_of(data, w, seq);
    bool masked = data->options.mask > 0;
    MIXT_TRY(check_mask(data, w, body));
    if (w->count < body + !masked)
        return mixt__fail(MIXT_ERROR_DATA,
                          "%s:%s: the %s part has %lld %s, fewer than one sample of %s = %lld; lower seq or use "
                          "a longer text",
                          data->kind->name, data->path, mixt__part_names[data->part], (long long)w->count,
                          w->width == 1 ? "bytes" : "tokens", masked ? "seq without [CLS] and [SEP]" : "seq + 1",
                          (long long)body + !masked);
    mixt_data_info *info = &data->info;
    info->samples = (w->count - !masked) / body;
    info->input_dtype = MIXT_DTYPE_INT32;
    info->input_rank = 1;
    info->input_dims[0] = seq;
    info->target = MIXT_TARGET_TOKENS;
    info->target_elements = seq;
    info->next_tokens = !masked;
    info->classes = w->vocabulary;
    return MIXT_OK;
}

/* ---- sample ---- */

static void copy_tokens(const mixt__windows *w, int64_t start, int64_t count, int32_t *to)
{
    const unsigned char *from = w->ids + start * w->width;
    if (w->width == 1)
        for (int64_t i = 0; i < count; i++)
            to[i] = from[i];
    else if (w->width == 2)
        for (int64_t i = 0; i < count; i++)
            to[i] = ((const uint16_t *)(const void *)from)[i];
    else
        memcpy(to, from, (size_t)count * sizeof *to);
}

static int64_t start_of(const mixt_data *data, int64_t index, int64_t epoch, int64_t body, int64_t last)
{
    int64_t start = index * body;
    if (epoch >= 0 && !data->options.in_order) {
        mixt__rng rng =
            mixt__rng_start(mixt__rng_key(mixt__data_order_seed(data, epoch), MIXT_STREAM_SHIFT, (uint64_t)epoch));
        start += (int64_t)mixt__rng_below(&rng, (uint64_t)body);
    }
    return start < last ? start : last; // only the final window: it moves as far as the text allows
}

/** Hides a token: eight times in ten behind [MASK], once behind a random token, once not at all. */
static int32_t hide(const mixt__windows *w, mixt__rng *rng, int32_t token)
{
    uint64_t way = mixt__rng_below(rng, 10);
    int32_t other = (int32_t)mixt__rng_below(rng, (uint64_t)w->vocabulary);
    return way < 8 ? (int32_t)w->special.mask : way == 8 ? other : token;
}

/** Chooses each token with the given chance, at least one: a sample without targets would teach nothing. The choice
 *  depends on (seed, epoch, sample) alone, and evaluation always sees the same. */
static void mask_tokens(const mixt_data *data, int64_t index, int64_t epoch, int64_t count, int32_t *tokens,
                        int32_t *target)
{
    const mixt__windows *w = data->state;
    mixt__rng rng = mixt__rng_start(mixt__rng_key(data->options.seed, MIXT_STREAM_MASK,
                                                  (uint64_t)(epoch < 0 ? 0 : epoch + 1) << 40 ^ (uint64_t)index));
    uint64_t chance = (uint64_t)(data->options.mask * 4294967296.0), chosen = 0;
    for (int64_t i = 0; i < count; i++) {
        target[i] = -1;
        if (mixt__rng_u32(&rng) >= chance)
            continue;
        target[i] = tokens[i];
        tokens[i] = hide(w, &rng, tokens[i]);
        chosen++;
    }
    if (!chosen) {
        int64_t i = (int64_t)mixt__rng_below(&rng, (uint64_t)count);
        target[i] = tokens[i];
        tokens[i] = hide(w, &rng, tokens[i]);
    }
}

mixt_status mixt__windows_sample(const mixt_data *data, int64_t index, int64_t epoch, void *input, void *target)
{
    const mixt__windows *w = data->state;
    int64_t seq = data->info.input_dims[0], body = body_of(data, w, seq);
    int32_t *tokens = input, *wanted = target;
    if (data->options.mask <= 0) {
        int64_t start = start_of(data, index, epoch, body, w->count - body - 1);
        copy_tokens(w, start, seq, tokens);
        copy_tokens(w, start + 1, seq, wanted);
        return mixt__file_map_check(&w->file.map);
    }
    int64_t front = w->special.start >= 0;
    copy_tokens(w, start_of(data, index, epoch, body, w->count - body), body, tokens + front);
    mask_tokens(data, index, epoch, body, tokens + front, wanted + front);
    if (front) {
        tokens[0] = (int32_t)w->special.start;
        wanted[0] = -1;
    }
    if (w->special.end >= 0) {
        tokens[seq - 1] = (int32_t)w->special.end;
        wanted[seq - 1] = -1;
    }
    return mixt__file_map_check(&w->file.map);
}

void mixt__windows_close(mixt_data *data)
{
    mixt__windows *w = data->state;
    if (!w)
        return;
    mixt__bytes_free(&w->bytes);
    mixt__token_file_close(&w->file);
    mixt__free(w);
    data->state = NULL;
}

const void *mixt__windows_raw(const mixt_data *data, int index, size_t *bytes)
{
    const mixt__windows *w = data->state;
    *bytes = (size_t)w->count * (size_t)w->width;
    return index == 0 ? w->ids : NULL;
}
