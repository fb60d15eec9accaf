/* Ready token files: mixt's own (*.tokens), or raw 16-bit tokens (*.bin) once the vocabulary's size is known. */
#include "data/windows.h"

static const char *find(mixt_data *data, mixt__part part)
{
    const char *path = mixt__path_of_part(data, part, ".tokens");
    return path ? path : mixt__path_of_part(data, part, ".bin");
}

/** What raw tokens do not say themselves: the vocabulary's size and special tokens. */
static mixt_status ask_vocabulary(const mixt_data *data, const char *path, int64_t *size, mixt__special_tokens *special)
{
    mixt_tokenizer *tokenizer;
    *size = data->options.classes;
    *special = (mixt__special_tokens){-1, -1, -1, -1, -1};
    if (!data->options.vocab || !*data->options.vocab || mixt__token_file_has_header(path))
        return MIXT_OK;
    MIXT_TRY(mixt_tokenizer_open(data->options.tokenizer, data->options.vocab, &tokenizer));
    *size = tokenizer->size;
    *special = tokenizer->special;
    mixt_tokenizer_close(tokenizer);
    return MIXT_OK;
}

static mixt_status load(mixt_data *data, const char *path, mixt__windows *w)
{
    int64_t size;
    mixt__special_tokens special;
    MIXT_TRY(ask_vocabulary(data, path, &size, &special));
    MIXT_TRY(mixt__token_file_open(path, size, mixt__windows_known(data), &w->file));
    mixt__windows_adopt(w);
    if (!w->file.facts.fingerprint) // raw
        w->special = special;
    return MIXT_OK;
}

static mixt_status open_tokens(mixt_data *data)
{
    return mixt__windows_open(data, find, load);
}

const mixt__data_kind mixt__data_tokens = {
    .name = "tokens",
    .what = "file of tokens",
    .uses = MIXT_DATA_WORDS | MIXT_DATA_CLASSES | MIXT_DATA_SEQ,
    .open = open_tokens,
    .sample = mixt__windows_sample,
    .close = mixt__windows_close,
    .raw = mixt__windows_raw,
};
