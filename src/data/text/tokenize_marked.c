/* Tokens of a text in which added tokens are written out, as a chat template writes them: those become themselves, and
 * what lies between is tokenised part by part. Small texts, so one thread does it.
 */
#include "data/text/tokenizer.h"

#include "base/alloc.h"
#include "base/status.h"

static mixt_status add(mixt__tokens *tokens, int64_t id)
{
    MIXT_TRY(mixt__tokens_reserve(tokens, 1));
    tokens->ids[tokens->count++] = (uint32_t)id;
    return MIXT_OK;
}

/** A part between tokens that are found in the text as it is. */
static mixt_status encode_part(const mixt_tokenizer *t, void *worker, const unsigned char *text, int64_t size,
                               bool first, mixt__tokens *tokens)
{
    unsigned char *made = NULL;
    int64_t bytes = size;
    mixt_status status = MIXT_OK;
    if (!t->kind->part)
        return t->kind->encode(t, worker, text, size, tokens);
    if (!t->added.any_normal)
        return t->kind->part(t, worker, text, size, first, tokens);
    MIXT_TRY(t->kind->normalise(t, text, size, first, &made, &bytes));
    for (int64_t at = 0; status == MIXT_OK && at < bytes;) {
        mixt__stretch next = mixt__added_next(&t->added, made, bytes, at, true);
        status = next.id >= 0 ? add(tokens, next.id)
                              : t->kind->encode_normal(t, worker, made + next.begin, next.end - next.begin, tokens);
        at = next.end;
    }
    mixt__free(made);
    return status;
}

static mixt_status encode_stretch(const mixt_tokenizer *t, void *worker, const unsigned char *text,
                                  mixt__stretch stretch, mixt__tokens *tokens)
{
    return stretch.id >= 0
               ? add(tokens, stretch.id)
               : encode_part(t, worker, text + stretch.begin, stretch.end - stretch.begin, stretch.begin == 0, tokens);
}

mixt_status mixt__tokenizer_encode_marked(const mixt_tokenizer *t, void *worker, const void *text, int64_t size,
                                          mixt__tokens *tokens)
{
    for (int64_t at = 0; at < size;) {
        mixt__stretch next = mixt__added_next(&t->added, text, size, at, false);
        MIXT_TRY(encode_stretch(t, worker, text, next, tokens));
        at = next.end;
    }
    return MIXT_OK;
}

/** How many tokens, from `begin` on, the text up to `cut` has in common with the whole; the cut is inside a stretch. */
static mixt_status common_tokens(const mixt_tokenizer *t, void *worker, const unsigned char *text,
                                 mixt__stretch stretch, int64_t cut, const mixt__tokens *whole, int64_t begin,
                                 int64_t *common)
{
    mixt__tokens own = {0};
    stretch.end = cut;
    mixt_status status = stretch.id >= 0 ? mixt__tokenizer_encode_marked(t, worker, text, cut, &own)
                                         : encode_stretch(t, worker, text, stretch, &own);
    *common = begin;
    for (int64_t i = 0; i < own.count && *common < whole->count && own.ids[i] == whole->ids[*common]; i++)
        ++*common;
    mixt__tokens_free(&own);
    return status;
}

mixt_status mixt__tokenizer_encode_cut(const mixt_tokenizer *t, void *worker, const void *text, int64_t size,
                                       const int64_t *cuts, int64_t count, int64_t *places, mixt__tokens *tokens)
{
    int64_t first = tokens->count, done = 0;
    for (int64_t at = 0; at < size;) {
        mixt__stretch next = mixt__added_next(&t->added, text, size, at, false);
        int64_t before = tokens->count;
        MIXT_TRY(encode_stretch(t, worker, text, next, tokens));
        for (; done < count && cuts[done] < next.end; done++) {
            if (cuts[done] <= next.begin)
                places[done] = before;
            else
                MIXT_TRY(common_tokens(t, worker, text, next, cuts[done], tokens, next.id >= 0 ? first : before,
                                       &places[done]));
        }
        at = next.end;
    }
    while (done < count)
        places[done++] = tokens->count;
    return MIXT_OK;
}

mixt_status mixt_tokenizer_encode_marked(const mixt_tokenizer *t, const void *text, int64_t size, int32_t **tokens,
                                         int64_t *count)
{
    mixt__tokens made = {0};
    void *worker = NULL;
    MIXT_TRY(mixt__need(tokens));
    MIXT_TRY(mixt__need(count));
    *tokens = NULL;
    *count = 0;
    MIXT_TRY(mixt__need_open(t, "tokenizer"));
    MIXT_TRY(size ? mixt__need(text) : MIXT_OK);
    if (size < 0)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "a text of %lld bytes", (long long)size);
    mixt_status status = t->kind->worker_new ? t->kind->worker_new(t, &worker) : MIXT_OK;
    if (status == MIXT_OK)
        status = mixt__tokenizer_encode_marked(t, worker, text, size, &made);
    if (worker)
        t->kind->worker_free(worker);
    if (status != MIXT_OK)
        mixt__tokens_free(&made);
    *tokens = (int32_t *)made.ids; // below 2^24
    *count = made.count;
    return status;
}
