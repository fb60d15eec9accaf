/* Opening tokenizers by name or by what a folder holds; bytes as tokens; encoding and decoding in one call. */
#include "data/text/tokenizer.h"

#include "base/alloc.h"
#include "base/status.h"
#include "base/words.h"
#include "data/data.h"
#include "data/text/gpt2_files.h"
#include "data/hash.h"

static const mixt__tokenizer_kind *const kinds[] = {&mixt__tokenizer_bytes, &mixt__tokenizer_gpt2,
                                                    &mixt__tokenizer_wordpiece, &mixt__tokenizer_wordpiece_cased,
                                                    &mixt__tokenizer_json};

enum { KIND_COUNT = sizeof kinds / sizeof kinds[0] };

/* ---- tokens ---- */

mixt_status mixt__tokens_reserve(mixt__tokens *tokens, int64_t more)
{
    if (tokens->count + more <= tokens->capacity)
        return MIXT_OK;
    int64_t capacity = tokens->capacity * 2 > tokens->count + more ? tokens->capacity * 2 : tokens->count + more + 256;
    uint32_t *ids = mixt__realloc(tokens->ids, (size_t)capacity * sizeof *ids);
    if (!ids)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for %lld tokens", (long long)capacity);
    tokens->ids = ids;
    tokens->capacity = capacity;
    return MIXT_OK;
}

void mixt__tokens_free(mixt__tokens *tokens)
{
    mixt__free(tokens->ids);
    *tokens = (mixt__tokens){0};
}

/* ---- bytes ---- */

static mixt_status open_bytes(mixt_tokenizer *t, const char *folder)
{
    (void)folder;
    unsigned char *pieces = t->state = mixt__alloc(256);
    if (!pieces)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a tokenizer");
    t->size = 256;
    for (int i = 0; i < 256; i++)
        pieces[i] = (unsigned char)i;
    return MIXT_OK;
}

static void close_bytes(mixt_tokenizer *t)
{
    mixt__free(t->state);
}

static mixt_status encode_bytes(const mixt_tokenizer *t, void *worker, const unsigned char *text, int64_t size,
                                mixt__tokens *tokens)
{
    (void)t;
    (void)worker;
    MIXT_TRY(mixt__tokens_reserve(tokens, size));
    for (int64_t i = 0; i < size; i++)
        tokens->ids[tokens->count++] = text[i];
    return MIXT_OK;
}

static int64_t anywhere(const unsigned char *text, int64_t low, int64_t high)
{
    (void)text;
    (void)low;
    return high;
}

static mixt_status decode_byte(const mixt_tokenizer *t, uint32_t id, bool first, FILE *stream)
{
    (void)t;
    (void)first;
    fputc((int)id, stream);
    return MIXT_OK;
}

const mixt__tokenizer_kind mixt__tokenizer_bytes = {
    .name = "bytes",
    .files = "nothing",
    .open = open_bytes,
    .encode = encode_bytes,
    .boundary = anywhere,
    .decode = decode_byte,
    .close = close_bytes,
};

/* ---- open, close ---- */

static mixt_status choose_kind(const char *name, const char *folder, const mixt__tokenizer_kind **kind)
{
    char path[4200], list[160];
    *kind = NULL;
    if (name && *name && strcmp(name, "auto")) {
        for (int i = 0; i < KIND_COUNT; i++)
            if (!strcmp(kinds[i]->name, name))
                *kind = kinds[i];
        return *kind ? MIXT_OK
                     : mixt__fail(MIXT_ERROR_CONFIG, "no tokenizer '%s'; there are %s", name,
                                  mixt__choice_list("bytes|gpt2|wordpiece|wordpiece-cased|json", list, sizeof list));
    }
    if (!folder || !*folder)
        *kind = &mixt__tokenizer_bytes;
    else if (mixt__vocabulary_file(folder, "tokenizer.json", NULL, path, sizeof path))
        *kind = &mixt__tokenizer_json; // says how text is cut; files beside it do not
    else if (mixt__vocabulary_file(folder, "vocab.bpe", "merges.txt", path, sizeof path))
        *kind = &mixt__tokenizer_gpt2;
    else if (mixt__vocabulary_file(folder, "vocab.txt", NULL, path, sizeof path))
        *kind = &mixt__tokenizer_wordpiece;
    return *kind ? MIXT_OK
                 : mixt__fail(MIXT_ERROR_FILE,
                              "%s: no vocabulary here; expected a folder with %s, vocab.txt (WordPiece), or "
                              "tokenizer.json",
                              folder, mixt__tokenizer_gpt2.files);
}

mixt_status mixt_tokenizer_open(const char *name, const char *folder, mixt_tokenizer **result)
{
    MIXT_TRY(mixt__need(result));
    *result = NULL;
    const mixt__tokenizer_kind *kind;
    MIXT_TRY(choose_kind(name, folder, &kind));
    if (kind != &mixt__tokenizer_bytes && (!folder || !*folder))
        return mixt__fail(MIXT_ERROR_CONFIG, "tokenizer %s: needs the folder of its vocabulary, with %s", kind->name,
                          kind->files);
    mixt_tokenizer *t = mixt__alloc(sizeof *t);
    if (!t)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a tokenizer");
    mixt__handle_add(&t->handle, t, "tokenizer", NULL);
    t->kind = kind;
    t->special = (mixt__special_tokens){-1, -1, -1, -1, -1};
    mixt_status status = kind->open(t, folder);
    if (t->vocabulary.count)
        t->size = t->vocabulary.count;
    t->fingerprint = mixt__hash_bytes(t->fingerprint, kind->name, (int64_t)strlen(kind->name));
    if (status != MIXT_OK)
        mixt_tokenizer_close(t);
    else
        *result = t;
    return status;
}

void mixt_tokenizer_close(mixt_tokenizer *t)
{
    if (!t || mixt__need_open(t, "tokenizer") != MIXT_OK)
        return;
    mixt__handle_remove(t);
    if (t->kind->close)
        t->kind->close(t);
    mixt__vocabulary_free(&t->vocabulary);
    mixt__added_free(&t->added);
    mixt__free(t);
}

/* Counts from 0 for the owner alone, so that whoever comes to -1 is the last. */

mixt_tokenizer *mixt__tokenizer_hold(mixt_tokenizer *t)
{
    __atomic_add_fetch(&t->holders, 1, __ATOMIC_RELAXED);
    return t;
}

void mixt__tokenizer_drop(mixt_tokenizer *t)
{
    if (t && __atomic_sub_fetch(&t->holders, 1, __ATOMIC_ACQ_REL) < 0)
        mixt_tokenizer_close(t);
}

mixt_tokenizer_info mixt_tokenizer_describe(const mixt_tokenizer *t)
{
    if (mixt__need_open(t, "tokenizer") != MIXT_OK)
        return (mixt_tokenizer_info){"none", 0, -1, -1, -1, -1, -1};
    const mixt__special_tokens *s = &t->special;
    return (mixt_tokenizer_info){t->kind->name, t->size, s->end, s->mask, s->start, s->unknown, s->pad};
}

mixt_status mixt_tokenizer_piece(const mixt_tokenizer *t, int32_t token, const char **bytes, int64_t *size)
{
    MIXT_TRY(mixt__need_open(t, "tokenizer"));
    MIXT_TRY(mixt__need(bytes));
    MIXT_TRY(mixt__need(size));
    if (token < 0 || token >= t->size)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "token %d, but the vocabulary has %lld", (int)token, (long long)t->size);
    mixt__span piece = t->vocabulary.count ? mixt__vocabulary_at(&t->vocabulary, token)
                                           : (mixt__span){(const unsigned char *)t->state + token, 1};
    *bytes = (const char *)piece.bytes;
    *size = piece.size;
    return MIXT_OK;
}

/* ---- whole texts ---- */

static mixt_status append(void *user, const uint32_t *ids, int64_t count)
{
    mixt__tokens *tokens = user;
    if (!count)
        return MIXT_OK;
    MIXT_TRY(mixt__tokens_reserve(tokens, count));
    if (count) // no tokens: perhaps no array either
        memcpy(tokens->ids + tokens->count, ids, (size_t)count * sizeof *ids);
    tokens->count += count;
    return MIXT_OK;
}

mixt_status mixt__tokenizer_encode(const mixt_tokenizer *t, const void *text, int64_t size, mixt__tokens *tokens)
{
    mixt__tokenize_job job = {.tokenizer = t, .text = text, .size = size, .sink = append, .sink_user = tokens};
    return mixt__tokenize(&job);
}

mixt_status mixt_tokenizer_encode(const mixt_tokenizer *t, const void *text, int64_t size, int32_t **tokens,
                                  int64_t *count)
{
    mixt__tokens made = {0};
    MIXT_TRY(mixt__need(tokens));
    MIXT_TRY(mixt__need(count));
    *tokens = NULL;
    *count = 0;
    MIXT_TRY(mixt__need_open(t, "tokenizer"));
    MIXT_TRY(size ? mixt__need(text) : MIXT_OK);
    if (size < 0)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "a text of %lld bytes", (long long)size);
    mixt_status status = mixt__tokenizer_encode(t, text, size, &made);
    if (status != MIXT_OK)
        mixt__tokens_free(&made);
    *tokens = (int32_t *)made.ids; // below 2^24
    *count = made.count;
    return status;
}

mixt_status mixt_tokenizer_encode_file(const mixt_tokenizer *t, const char *path, int32_t **tokens, int64_t *count)
{
    mixt__bytes text;
    MIXT_TRY(mixt__need(tokens));
    *tokens = NULL;
    MIXT_TRY(mixt__need(path));
    MIXT_TRY(mixt__bytes_read(path, &text));
    mixt_status status = mixt_tokenizer_encode(t, text.bytes, text.size, tokens, count);
    mixt__bytes_free(&text);
    return status;
}

void mixt_tokens_free(int32_t *tokens)
{
    mixt__free(tokens);
}

mixt_status mixt__tokenizer_decode(const mixt_tokenizer *t, const uint32_t *ids, int64_t count, bool more, FILE *stream)
{
    for (int64_t i = 0; i < count; i++) {
        if (ids[i] >= t->size)
            return mixt__fail(MIXT_ERROR_DATA, "token %lld is %lld, but the vocabulary has %lld", (long long)i,
                              (long long)ids[i], (long long)t->size);
        MIXT_TRY(t->kind->decode(t, ids[i], i == 0 && !more, stream));
    }
    return MIXT_OK;
}
