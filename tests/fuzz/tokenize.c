/* What must hold for every tokenizer: tokens of the vocabulary, whatever the chunks, and back. */
#include "tokenize.h"

#include "base/threads.h"
#include "data/text/tokenizer.h"

#include <stdio.h>
#include <string.h>

enum { SMALL_CHUNK = 7 };

static mixt_status append(void *user, const uint32_t *ids, int64_t count)
{
    mixt__tokens *tokens = user;
    mixt_status status = mixt__tokens_reserve(tokens, count);
    if (status == MIXT_OK && count) {
        memcpy(tokens->ids + tokens->count, ids, (size_t)count * sizeof *ids);
        tokens->count += count;
    }
    return status;
}

static void decode(const mixt_tokenizer *tokenizer, const mixt__tokens *tokens, const uint8_t *text, size_t size,
                   bool exact)
{
    char *back = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&back, &length);
    fuzz_require(stream);
    fuzz_require(mixt__tokenizer_decode(tokenizer, tokens->ids, tokens->count, false, stream) == MIXT_OK);
    fuzz_require(!fclose(stream));
    fuzz_require(!exact || (length == size && !memcmp(back, text, size)));
    free(back);
}

void fuzz_tokenizer(const char *kind, const uint8_t *text, size_t size, bool exact)
{
    mixt_tokenizer *tokenizer;
    mixt__tokens whole = {0}, parts = {0};
    mixt__threads_set(1); // what is sought here is not in the threads, and each would cost a start
    if (!fuzz_taken(mixt_tokenizer_open(kind, fuzz_path(""), &tokenizer)))
        return;
    mixt__tokenize_job job = {.tokenizer = tokenizer,
                              .text = text,
                              .size = (int64_t)size,
                              .chunk = SMALL_CHUNK,
                              .sink = append,
                              .sink_user = &parts};
    fuzz_require(mixt__tokenizer_encode(tokenizer, text, (int64_t)size, &whole) == MIXT_OK);
    fuzz_require(mixt__tokenize(&job) == MIXT_OK);
    fuzz_require(whole.count == parts.count);
    fuzz_require(!whole.count || !memcmp(whole.ids, parts.ids, (size_t)whole.count * sizeof *whole.ids));
    decode(tokenizer, &whole, text, size, exact);
    mixt__tokens_free(&whole);
    mixt__tokens_free(&parts);
    mixt_tokenizer_close(tokenizer);
}
