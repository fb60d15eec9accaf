/* Text: its bytes as tokens, or the tokens of a vocabulary, made once and kept. Without a path mixt writes one itself,
 * whose tokens are made anew each time: that takes no longer than to look for them. */
#include "data/text/parallel.h"
#include "data/text/token_cache.h"
#include "data/text/windows.h"

enum {
    BYTE_VALUES = 256,
    DRAWN = 440000, // bytes of a text that mixt writes: less a tenth to validate on, 400 KB to train on
};

static const char *find(mixt_data *data, mixt__part part)
{
    return mixt__path_of_part(data, part, ".txt");
}

/** Bytes that are there become the tokens. */
static void adopt_bytes(mixt__windows *w)
{
    w->ids = w->bytes.bytes;
    w->width = 1;
    w->count = w->bytes.size;
    w->vocabulary = BYTE_VALUES;
}

static mixt_status load_bytes(const char *path, mixt__windows *w)
{
    MIXT_TRY(mixt__bytes_read(path, &w->bytes));
    MIXT_TRY(mixt__text_check(path, w->bytes.bytes, w->bytes.size));
    adopt_bytes(w);
    return MIXT_OK;
}

static mixt_status load_tokens(mixt_data *data, const mixt_tokenizer *tokenizer, const char *path, mixt__windows *w)
{
    const mixt_data_options *o = &data->options;
    MIXT_TRY(mixt__token_cache_open(tokenizer, path, mixt__windows_known(data), (mixt__teller){o->progress, o->user},
                                    &w->file));
    if (w->file.block && !o->like) // said once, for the training part
        MIXT_TRY(mixt__data_warn(data,
                                 "%s: no cache folder is writable: the text is tokenised again in each run; set "
                                 "MIXT_CACHE to a folder with space",
                                 path));
    mixt__windows_adopt(w);
    return MIXT_OK;
}

/** Whether tokens are bytes: also those of a vocabulary that has nothing else, as it goes with an exported model that
 *  was trained on bytes. Its text is then the same data, to the bit. */
static bool are_bytes(const mixt_tokenizer *t)
{
    if (t->kind == &mixt__tokenizer_bytes)
        return true;
    bool bytes = t->kind == &mixt__tokenizer_gpt2 && t->size == BYTE_VALUES;
    for (int64_t id = 0; bytes && id < BYTE_VALUES; id++) {
        mixt__span token = mixt__vocabulary_at(&t->vocabulary, id);
        bytes = token.size == 1 && token.bytes[0] == id;
    }
    return bytes;
}

static mixt_status draw_text(const mixt_data *data, const mixt_tokenizer *tokenizer, mixt__windows *w)
{
    MIXT_TRY(mixt__sums_write(data->options.seed, DRAWN, &w->bytes));
    if (are_bytes(tokenizer)) {
        adopt_bytes(w);
        return MIXT_OK;
    }
    MIXT_TRY(mixt__tokens_of_memory(tokenizer, w->bytes.bytes, w->bytes.size, &w->file));
    mixt__bytes_free(&w->bytes);
    mixt__windows_adopt(w);
    return MIXT_OK;
}

static mixt_status load(mixt_data *data, const char *path, mixt__windows *w)
{
    mixt_tokenizer *tokenizer;
    MIXT_TRY(mixt_tokenizer_open(data->options.tokenizer, data->options.vocab, &tokenizer));
    mixt_status status = !*path                 ? draw_text(data, tokenizer, w)
                         : are_bytes(tokenizer) ? load_bytes(path, w)
                                                : load_tokens(data, tokenizer, path, w);
    mixt_tokenizer_close(tokenizer);
    return status;
}

static mixt_status open_text(mixt_data *data)
{
    return mixt__windows_open(data, find, load);
}

const mixt__data_kind mixt__data_text = {
    .name = "text",
    .what = "text, as bytes or tokens",
    .uses = MIXT_DATA_WORDS | MIXT_DATA_SEQ,
    .open = open_text,
    .sample = mixt__windows_sample,
    .close = mixt__windows_close,
    .raw = mixt__windows_raw,
    .draws = true,
};
