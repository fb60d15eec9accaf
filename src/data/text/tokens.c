/* Ready token files: mixt's own (*.tokens), or raw 16-bit tokens (*.bin) once the vocabulary's size is known. */
#include "base/files.h"
#include "base/unicode.h"
#include "data/text/windows.h"

#include <ctype.h>
#include <stdio.h>

static const char *find(mixt_data *data, mixt__part part)
{
    const char *path = mixt__path_of_part(data, part, ".tokens");
    return path ? path : mixt__path_of_part(data, part, ".bin");
}

/** What the vocabulary says of its tokens, where one is named; raw tokens say nothing themselves. */
static mixt_status ask_vocabulary(const mixt_data *data, mixt__token_facts *facts)
{
    mixt_tokenizer *tokenizer;
    *facts = (mixt__token_facts){.vocabulary = data->options.classes, .special = {-1, -1, -1, -1, -1}};
    if (!data->options.vocab || !*data->options.vocab)
        return MIXT_OK;
    MIXT_TRY(mixt_tokenizer_open(data->options.tokenizer, data->options.vocab, &tokenizer));
    facts->vocabulary = tokenizer->size;
    facts->special = tokenizer->special;
    facts->fingerprint = tokenizer->fingerprint;
    mixt_tokenizer_close(tokenizer);
    return MIXT_OK;
}

/** Whether a file begins with UTF-8 and nothing that no text has: numbers of 16 bits have such bytes soon. */
static bool is_text(const char *path)
{
    unsigned char bytes[4096];
    FILE *file = mixt__file_open_stream(path);
    int64_t count = file ? (int64_t)fread(bytes, 1, sizeof bytes, file) : 0;
    if (file)
        fclose(file);
    for (int64_t i = 0; i < count; i++)
        if (bytes[i] == 0x7f || (bytes[i] < ' ' && !isspace(bytes[i])))
            return false;
    return count > 0 && count - mixt__utf8_valid(bytes, count) < MIXT_UTF8_MAX; // the last character may be cut
}

static mixt_status load(mixt_data *data, const char *path, mixt__windows *w)
{
    mixt__token_facts named;
    bool raw = !mixt__token_file_has_header(path);
    mixt_status asked = ask_vocabulary(data, &named);
    if (raw || asked == MIXT_ERROR_MEMORY) // else a vocabulary that is not there is not needed either
        MIXT_TRY(asked);
    if (raw && is_text(path))
        return mixt__fail(MIXT_ERROR_DATA, "%s: is a text, not tokens: use data.kind=text, or 'mixt tokenize'", path);
    MIXT_TRY(mixt__token_file_open(path, named.vocabulary, mixt__windows_known(data), &w->file));
    mixt__windows_adopt(w);
    if (raw)
        w->special = named.special;
    else if (asked == MIXT_OK && named.fingerprint && w->file.facts.fingerprint != named.fingerprint)
        return mixt__fail(MIXT_ERROR_DATA, "%s: was made with another vocabulary or tokenizer than the given one, %s",
                          path, data->options.vocab);
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
