/* Text that comes token by token: each token's bytes, gathered until they are whole characters. */
#include "base/alloc.h"
#include "base/status.h"
#include "base/utf8.h"
#include "data/text/tokenizer.h"

#include <stdlib.h>

struct mixt_decoder {
    mixt__handle handle;
    const mixt_tokenizer *tokenizer; // borrowed
    bool inside;                     // something of the text went before
    mixt__utf8 utf8;
    char *text; // what the last call gave
    int64_t length, capacity;
};

mixt_status mixt_decoder_new(const mixt_tokenizer *tokenizer, bool inside, mixt_decoder **decoder)
{
    MIXT_TRY(mixt__need(decoder));
    *decoder = NULL;
    MIXT_TRY(mixt__need_open(tokenizer, "tokenizer"));
    mixt_decoder *d = *decoder = mixt__alloc(sizeof *d);
    if (!d)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to decode tokens");
    mixt__handle_add(&d->handle, d, "decoder", NULL);
    d->tokenizer = tokenizer;
    d->inside = inside;
    return MIXT_OK;
}

void mixt_decoder_free(mixt_decoder *decoder)
{
    if (!decoder || mixt__need_open(decoder, "decoder") != MIXT_OK)
        return;
    mixt__handle_remove(decoder);
    mixt__free(decoder->text);
    mixt__free(decoder);
}

/** Room for what one more byte can complete. */
static mixt_status reserve(mixt_decoder *d)
{
    if (d->length + MIXT_UTF8_ROOM <= d->capacity)
        return MIXT_OK;
    int64_t capacity = d->capacity ? 2 * d->capacity : 64;
    char *text = mixt__realloc(d->text, (size_t)capacity);
    if (!text)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the text");
    d->text = text;
    d->capacity = capacity;
    return MIXT_OK;
}

static mixt_status give(const mixt_decoder *d, const char **text, int64_t *size)
{
    *text = d->text;
    *size = d->length;
    return MIXT_OK;
}

static mixt_status check_count(int64_t count)
{
    return count < 0 ? mixt__fail(MIXT_ERROR_ARGUMENT, "decoding %lld: expected 0 or more", (long long)count) : MIXT_OK;
}

mixt_status mixt_decoder_put_bytes(mixt_decoder *d, const void *bytes, int64_t count, const char **text, int64_t *size)
{
    MIXT_TRY(mixt__need_open(d, "decoder"));
    MIXT_TRY(check_count(count));
    MIXT_TRY(count ? mixt__need(bytes) : MIXT_OK);
    MIXT_TRY(mixt__need(text));
    MIXT_TRY(mixt__need(size));
    d->length = 0;
    MIXT_TRY(reserve(d));
    d->text[0] = 0;
    for (int64_t i = 0; i < count; i++) {
        MIXT_TRY(reserve(d));
        d->length += (int64_t)mixt__utf8_put(&d->utf8, ((const unsigned char *)bytes)[i], d->text + d->length);
    }
    d->inside |= count > 0;
    return give(d, text, size);
}

static mixt_status check_tokens(const mixt_tokenizer *t, const int32_t *tokens, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (tokens[i] < 0 || tokens[i] >= t->size)
            return mixt__fail(MIXT_ERROR_DATA, "token %lld is %d, but the vocabulary has %lld", (long long)i,
                              (int)tokens[i], (long long)t->size);
    return MIXT_OK;
}

mixt_status mixt_decoder_put(mixt_decoder *d, const int32_t *tokens, int64_t count, const char **text, int64_t *size)
{
    char *bytes = NULL;
    size_t length = 0;
    MIXT_TRY(mixt__need_open(d, "decoder"));
    MIXT_TRY(mixt__need_open_at(__func__, "tokenizer", d->tokenizer, "tokenizer"));
    MIXT_TRY(check_count(count));
    MIXT_TRY(count ? mixt__need(tokens) : MIXT_OK);
    MIXT_TRY(check_tokens(d->tokenizer, tokens, count));
    FILE *stream = open_memstream(&bytes, &length);
    mixt_status status = stream
                             ? mixt__tokenizer_decode(d->tokenizer, (const uint32_t *)tokens, count, d->inside, stream)
                             : mixt__fail(MIXT_ERROR_MEMORY, "no memory for the text");
    if (stream && fclose(stream) && status == MIXT_OK)
        status = mixt__fail(MIXT_ERROR_MEMORY, "no memory for the text");
    if (status == MIXT_OK)
        status = mixt_decoder_put_bytes(d, bytes, (int64_t)length, text, size);
    free(bytes);
    return status;
}

mixt_status mixt_decoder_end(mixt_decoder *d, const char **text, int64_t *size)
{
    MIXT_TRY(mixt__need_open(d, "decoder"));
    MIXT_TRY(mixt__need(text));
    MIXT_TRY(mixt__need(size));
    d->length = 0;
    MIXT_TRY(reserve(d));
    d->text[0] = 0;
    d->length = (int64_t)mixt__utf8_end(&d->utf8, d->text);
    return give(d, text, size);
}
