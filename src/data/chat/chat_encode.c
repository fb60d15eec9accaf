/* Tokens of rows, and which of them are trained: those that the whole does not have in common with what stands in front
 * of an answer. */
#include "data/chat/chat_encode.h"

#include "base/alloc.h"
#include "base/status.h"
#include "data/chat/chat_spans.h"
#include "store/json.h"

#include <string.h>

static void train(mixt__tokens *tokens, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        tokens->ids[i] |= MIXT_CHAT_TRAINED;
}

static mixt_status add(mixt__tokens *tokens, int64_t id)
{
    MIXT_TRY(mixt__tokens_reserve(tokens, 1));
    tokens->ids[tokens->count++] = (uint32_t)id;
    return MIXT_OK;
}

/* ---- texts ---- */

static bool ends_with(const char *text, size_t size, const char *end)
{
    size_t length = strlen(end);
    return size >= length && !memcmp(text + size - length, end, length);
}

/** Whether the tokenizer finds a marker that is written out. */
static bool is_marker(const mixt_tokenizer *t, const char *text)
{
    size_t size = strlen(text);
    for (int64_t i = 0; i < t->added.count; i++)
        if (t->added.tokens[i].size == (int64_t)size && !memcmp(t->added.tokens[i].text, text, size))
            return true;
    return false;
}

/** Prompt, completion and what ends a text, begun and ended as the tokenizer's own texts are. */
static mixt_status encode_texts(const mixt__chat_codec *c, void *worker, const mixt__chat_turns *t,
                                mixt__tokens *tokens)
{
    const char *last = t->completion ? t->completion : t->text, *end = c->end;
    size_t last_size = t->completion ? t->completion_size : t->text_size;
    bool ended = !end || ends_with(last, last_size, end), written = end && is_marker(c->tokenizer, end);
    size_t end_size = !ended && written ? strlen(end) : 0, size = t->text_size + t->completion_size + end_size;
    int64_t begin = tokens->count, cut = (int64_t)t->text_size, place = 0;
    char *text = mixt__alloc_uninit(size + 1);
    if (!text)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a text");
    memcpy(text, t->text, t->text_size);
    if (t->completion)
        memcpy(text + t->text_size, t->completion, t->completion_size);
    if (end_size)
        memcpy(text + size - end_size, end, end_size);
    bool framed = c->tokenizer->special.start >= 0 && !strcmp(c->tokenizer->kind->name, "json"); // <s>, not [CLS]
    mixt_status status = framed ? add(tokens, c->tokenizer->special.start) : MIXT_OK;
    if (status == MIXT_OK)
        status = mixt__tokenizer_encode_cut(c->tokenizer, worker, text, (int64_t)size, &cut, 1, &place, tokens);
    int64_t id = ended || written ? -1 : mixt__vocabulary_find(&c->tokenizer->vocabulary, end, (int64_t)strlen(end));
    if (status == MIXT_OK && id >= 0)
        status = add(tokens, id);
    mixt__free(text);
    if (status == MIXT_OK)
        train(tokens, t->completion && c->loss_on != MIXT_LOSS_ON_ALL ? place : begin, tokens->count);
    return status;
}

/* ---- conversations ---- */

static mixt_status encode_text(const mixt__chat_codec *c, void *worker, const char *text, size_t size,
                               mixt__tokens *tokens)
{
    return mixt__tokenizer_encode_marked(c->tokenizer, worker, text, (int64_t)size, tokens);
}

/** The tokens that a prompt, rendered alone, has in common with the whole. */
static mixt_status common_with_prompt(const mixt__chat_codec *c, void *worker, const mixt__chat_turns *t,
                                      const mixt__tokens *tokens, int64_t begin, int64_t *place)
{
    mixt__tokens own = {0};
    char *text = NULL;
    size_t size = 0;
    json_t *prompt = json_array();
    mixt_status status = prompt ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for a conversation");
    for (size_t i = 0; i < t->prompt && status == MIXT_OK; i++)
        if (mixt__json_add(prompt, json_incref(json_array_get(t->messages, i))))
            status = mixt__fail(MIXT_ERROR_MEMORY, "no memory for a conversation");
    if (status == MIXT_OK)
        status = mixt__chat_render(c->chat, prompt, t->others, true, &text, &size);
    if (status == MIXT_OK)
        status = encode_text(c, worker, text, size, &own);
    *place = begin;
    for (int64_t i = 0; i < own.count && *place < tokens->count && own.ids[i] == tokens->ids[*place]; i++)
        ++*place;
    json_decref(prompt);
    mixt__free(text);
    mixt__tokens_free(&own);
    return status;
}

/** All of a conversation, trained from the completion on, or whole. */
static mixt_status encode_whole(const mixt__chat_codec *c, void *worker, const mixt__chat_turns *t,
                                mixt__tokens *tokens)
{
    char *text = NULL;
    size_t size = 0;
    int64_t begin = tokens->count, place = begin;
    MIXT_TRY(mixt__chat_render(c->chat, t->messages, t->others, false, &text, &size));
    mixt_status status = encode_text(c, worker, text, size, tokens);
    mixt__free(text);
    if (status == MIXT_OK && c->loss_on != MIXT_LOSS_ON_ALL)
        status = common_with_prompt(c, worker, t, tokens, begin, &place);
    if (status == MIXT_OK)
        train(tokens, place, tokens->count);
    return status;
}

static mixt_status encode_answers(const mixt__chat_codec *c, void *worker, const mixt__chat_turns *t,
                                  mixt__tokens *tokens, mixt__chat_tally *tally)
{
    mixt__chat_spans spans;
    MIXT_TRY(
        mixt__chat_spans_find(c->chat, t->messages, t->others, c->loss_on == MIXT_LOSS_ON_LAST, c->silent, &spans));
    int64_t *cuts = mixt__alloc((size_t)(spans.count + 1) * 4 * sizeof *cuts), *places = cuts + 2 * (spans.count + 1);
    mixt_status status = cuts ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for a conversation");
    for (int64_t i = 0; i < spans.count && cuts; i++) {
        cuts[2 * i] = spans.span[i].begin;
        cuts[2 * i + 1] = spans.span[i].end;
    }
    if (status == MIXT_OK)
        status = mixt__tokenizer_encode_cut(c->tokenizer, worker, spans.text, spans.size, cuts, 2 * spans.count, places,
                                            tokens);
    for (int64_t i = 0; i < spans.count && status == MIXT_OK; i++)
        train(tokens, places[2 * i], places[2 * i + 1]);
    tally->thoughts += spans.thoughts;
    tally->found += spans.found;
    mixt__free(cuts);
    mixt__chat_spans_free(&spans);
    return status;
}

mixt_status mixt__chat_encode(const mixt__chat_codec *c, void *worker, const mixt__chat_turns *t, mixt__tokens *tokens,
                              mixt__chat_tally *tally)
{
    if (!t->messages)
        return encode_texts(c, worker, t, tokens);
    if (!c->chat)
        return mixt__fail(MIXT_ERROR_CONFIG,
                          "conversations become text by a model's chat template, and none is there: name the model's "
                          "folder (data.vocab=FOLDER) or a template (data.template=FILE)");
    if (t->form == MIXT_CHAT_CONVERSATION || c->loss_on == MIXT_LOSS_ON_ALL)
        return encode_whole(c, worker, t, tokens);
    return encode_answers(c, worker, t, tokens, tally);
}
