/* A conversation with a model: the template makes text of all that was said, the model writes on from there until an
 * end comes.
 *
 * What was said is kept as messages; tokens are made of them anew for each question, and the model reads only what it
 * does not remember (generator.h).
 */
#include "mixt/chat.h"

#include "api/api.h"
#include "base/options.h"
#include "data/chat/ends.h"
#include "data/data.h"
#include "run/open/generator.h"
#include "run/open/inputs.h"
#include "store/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mixt_chat {
    mixt__handle handle;
    mixt_context *context;
    mixt_generator *generator; // of the context
    mixt_tokenizer *tokenizer;
    mixt_chat_template *chat_template;
    mixt_decoder *decoder;
    mixt_stops *stops;
    mixt__chat_ends ends;
    json_t *messages, *variables; // variables: NULL: none
    bool system;                  // messages begin with one of the system
    int64_t most;
    mixt_sampling sampling;
    char *answer; // so far
    int64_t size, capacity;
    bool answering;
    mixt_chat_state state;
};

/* ---- opening ---- */

static mixt_status keep_text(json_t *messages, const char *role, const char *text, int64_t size)
{
    json_t *content = json_stringn(text, (size_t)size);
    if (!content)
        return mixt__fail(MIXT_ERROR_DATA, "a message of the %s is not UTF-8", role);
    json_t *message = json_pack("{s:s, s:o}", "role", role, "content", content);
    return mixt__json_add(messages, message) ? mixt__fail(MIXT_ERROR_MEMORY, "no memory for a message") : MIXT_OK;
}

/** Where the files of a model's tokenizer and template are: of a run, its vocabulary's. */
static const char *files_of(const char *folder, char *room, size_t size)
{
    snprintf(room, size, "%s/" MIXT_VOCAB_FOLDER, folder);
    return mixt__path_is_directory(room) ? room : folder;
}

static mixt_status read_variables(mixt_chat *c, const char *text)
{
    if (!text)
        return MIXT_OK;
    MIXT_TRY(mixt__json_parse("variables", text, strlen(text), 0, &c->variables));
    return json_is_object(c->variables)
               ? MIXT_OK
               : mixt__fail(MIXT_ERROR_ARGUMENT, "variables of a template are a JSON object: {\"enable_thinking\": "
                                                 "false}");
}

static mixt_status open_template(mixt_chat *c, const char *folder, const mixt_chat_options *o)
{
    char room[4400];
    const char *files = files_of(folder, room, sizeof room);
    mixt_status status = mixt_chat_template_read(o->chat_template ? o->chat_template : files, &c->chat_template);
    if (status != MIXT_OK && !o->chat_template)
        return mixt__fail_context(status,
                                  "%s: no template to talk to it by (a model that writes on is asked with mixt "
                                  "generate)",
                                  folder);
    MIXT_TRY(status);
    MIXT_TRY(read_variables(c, o->variables));
    MIXT_TRY(mixt__chat_ends_find(files, c->chat_template, c->variables, c->tokenizer, &c->ends));
    const char *const stops[] = {c->ends.text, o->stop};
    MIXT_TRY(mixt_stops_new(stops, 1 + (o->stop != NULL), &c->stops));
    return mixt_decoder_new(c->tokenizer, true, &c->decoder);
}

static mixt_status fill(mixt_chat *c, const char *folder, const mixt_chat_options *o)
{
    c->most = o->most;
    c->sampling = o->sampling;
    if (o->most < 1)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "an answer of %lld tokens at most: expected 1 or more",
                          (long long)o->most);
    if (o->context < 0)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "a context of %lld tokens: expected 1 or more", (long long)o->context);
    MIXT_TRY(
        mixt__generator_load(c->context, folder, o->weights, o->adapter, o->context, &c->generator, &c->tokenizer));
    if (!c->tokenizer)
        return mixt__fail(MIXT_ERROR_DATA,
                          "%s: has no tokenizer, without which there is no conversation: put its tokenizer.json into "
                          "the folder",
                          folder);
    MIXT_TRY(open_template(c, folder, o));
    c->messages = json_array();
    if (!c->messages)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a conversation");
    c->system = o->system != NULL;
    c->state.context = c->generator->inner.context;
    return c->system ? keep_text(c->messages, "system", o->system, (int64_t)strlen(o->system)) : MIXT_OK;
}

mixt_status mixt_chat_open(mixt_context *context, const char *folder, const mixt_chat_options *options,
                           mixt_chat **chat)
{
    mixt_chat_options o = MIXT_OPTIONS(mixt_chat_options);
    MIXT_TRY(mixt__need(chat));
    *chat = NULL;
    MIXT_TRY(mixt__need_context(context));
    MIXT_TRY(mixt__need_in(context, folder));
    MIXT_TRY(mixt__context_note(context, mixt__options(mixt_chat_options, &o, options)));
    const char **texts[] = {&o.weights, &o.adapter, &o.chat_template, &o.system, &o.variables, &o.stop};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (*texts[i] && !**texts[i])
            *texts[i] = NULL;
    mixt_chat *c = mixt__alloc(sizeof *c);
    if (!c)
        return mixt__context_note(context, mixt__fail(MIXT_ERROR_MEMORY, "no memory for a conversation"));
    c->context = context;
    mixt__handle_add(&c->handle, c, "chat", NULL);
    mixt_status status = mixt__context_note(context, fill(c, folder, &o));
    if (status == MIXT_OK)
        *chat = c;
    else
        mixt_chat_close(c);
    return status;
}

void mixt_chat_close(mixt_chat *c)
{
    if (!c || mixt__need_open(c, "chat") != MIXT_OK)
        return;
    mixt__handle_remove(c);
    mixt_decoder_free(c->decoder);
    mixt_stops_free(c->stops);
    mixt_chat_template_free(c->chat_template);
    mixt_tokenizer_close(c->tokenizer);
    json_decref(c->messages);
    json_decref(c->variables);
    mixt__free(c->answer);
    mixt__free(c);
}

const char *mixt_chat_warning(const mixt_chat *c)
{
    return mixt__need_open(c, "chat") == MIXT_OK ? mixt_generator_warning(c->generator) : "";
}

/* ---- asking ---- */

static mixt_status encode(const mixt_chat *c, const json_t *messages, int32_t **tokens, int64_t *count)
{
    char *text;
    size_t size;
    MIXT_TRY(mixt__chat_render(c->chat_template, messages, c->variables, true, &text, &size));
    mixt_status status = mixt_tokenizer_encode_marked(c->tokenizer, text, (int64_t)size, tokens, count);
    mixt__free(text);
    return status;
}

/** Drops the oldest question with what was answered; false: only the last one is left. */
static bool drop_oldest(const mixt_chat *c, json_t *messages, int64_t *dropped)
{
    size_t first = c->system;
    if (json_array_size(messages) <= first + 1)
        return false;
    do {
        json_array_remove(messages, first);
        ++*dropped;
    } while (json_array_size(messages) > first + 1 &&
             strcmp(json_string_value(json_object_get(json_array_get(messages, first), "role")), "user"));
    return true;
}

/** Reads a conversation that leaves room for an answer: a quarter of the context, or what an answer has at most. */
static mixt_status start(mixt_chat *c, json_t *messages)
{
    int64_t context = c->state.context, room = c->most < context / 4 ? c->most : context / 4, count, dropped = 0;
    for (;;) {
        int32_t *tokens;
        MIXT_TRY(encode(c, messages, &tokens, &count));
        if (count + room <= context && count) {
            c->state.prompt = count;
            c->state.dropped = dropped;
            mixt_status status = mixt__generator_start_again(&c->generator->inner, tokens, count, &c->state.reread);
            mixt_tokens_free(tokens);
            return status;
        }
        mixt_tokens_free(tokens);
        if (!drop_oldest(c, messages, &dropped))
            return mixt__fail(MIXT_ERROR_DATA,
                              "this message alone makes %lld tokens, which with room for an answer do not fit the "
                              "context of %lld: shorten it%s",
                              (long long)count, (long long)context, c->system ? ", or what the system says" : "");
    }
}

static mixt_status ask(mixt_chat *c, const char *message, int64_t size)
{
    json_t *messages = json_array();
    size_t i;
    json_t *one;
    if (!messages)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a conversation");
    json_array_foreach(c->messages, i, one) mixt__json_add(messages, json_incref(one));
    mixt_status status = keep_text(messages, "user", message, size);
    if (status == MIXT_OK)
        status = start(c, messages);
    if (status != MIXT_OK) {
        json_decref(messages);
        return status;
    }
    json_decref(c->messages);
    c->messages = messages;
    c->state.tokens = c->size = 0;
    c->state.end = NULL;
    c->sampling.seed++; // another answer where the same is asked again
    c->answering = true;
    return MIXT_OK;
}

mixt_status mixt_chat_ask(mixt_chat *c, const char *message, int64_t size)
{
    MIXT_TRY(mixt__need_open(c, "chat"));
    MIXT_TRY(mixt__need_in(c->context, message));
    if (size < 0)
        return mixt__context_note(c->context,
                                  mixt__fail(MIXT_ERROR_ARGUMENT, "a message of %lld bytes", (long long)size));
    if (c->answering)
        MIXT_TRY(mixt_chat_cut(c));
    return mixt__context_note(c->context, ask(c, message, size));
}

/* ---- answering ---- */

static mixt_status keep(mixt_chat *c, const char *text, int64_t size)
{
    if (c->size + size > c->capacity) {
        int64_t capacity = 2 * (c->size + size + 128);
        char *grown = mixt__realloc(c->answer, (size_t)capacity);
        if (!grown)
            return mixt__fail(MIXT_ERROR_MEMORY, "no memory for an answer");
        c->answer = grown;
        c->capacity = capacity;
    }
    if (size)
        memcpy(c->answer + c->size, text, (size_t)size);
    c->size += size;
    return MIXT_OK;
}

/** Text of the answer, as far as no stop begins in it. */
static mixt_status put(mixt_chat *c, const char *piece, int64_t bytes, bool *found)
{
    const char *text;
    int64_t size;
    MIXT_TRY(mixt_stops_put(c->stops, piece, bytes, &text, &size, found));
    return keep(c, text, size);
}

/** Ends the answer, with what was held back of it. @param stopped at a text: what is behind that is dropped */
static mixt_status finish(mixt_chat *c, const char *why, bool stopped)
{
    const char *text;
    int64_t size;
    MIXT_TRY(mixt_decoder_end(c->decoder, &text, &size));
    if (!stopped)
        MIXT_TRY(put(c, text, size, &stopped));
    MIXT_TRY(mixt_stops_end(c->stops, &text, &size));
    if (!stopped)
        MIXT_TRY(keep(c, text, size));
    c->answering = false;
    c->state.end = why;
    return keep_text(c->messages, "assistant", c->size ? c->answer : "", c->size);
}

static mixt_status answer(mixt_chat *c)
{
    const char *piece;
    int64_t bytes;
    int32_t token;
    bool found;
    const mixt__generator *g = &c->generator->inner;
    if (c->state.tokens >= c->most)
        return finish(c, "length", false);
    if (!g->endless && g->known >= c->state.context)
        return finish(c, "context", false);
    MIXT_TRY(mixt_generator_next(c->generator, &c->sampling, &token));
    if (mixt__chat_ends_have(&c->ends, token))
        return finish(c, "end", false);
    c->state.tokens++;
    MIXT_TRY(mixt_decoder_put(c->decoder, &token, 1, &piece, &bytes));
    MIXT_TRY(put(c, piece, bytes, &found));
    return found ? finish(c, "stop", true) : MIXT_OK;
}

mixt_status mixt_chat_next(mixt_chat *c, const char **text, int64_t *size, bool *more)
{
    MIXT_TRY(mixt__need_open(c, "chat"));
    MIXT_TRY(mixt__need_in(c->context, text));
    MIXT_TRY(mixt__need_in(c->context, size));
    MIXT_TRY(mixt__need_in(c->context, more));
    *text = "";
    *size = 0;
    *more = false;
    if (!c->answering)
        return mixt__context_note(c->context, mixt__fail(MIXT_ERROR_STATE, "nothing was asked: mixt_chat_ask asks"));
    int64_t before = c->size;
    MIXT_TRY(mixt__context_note(c->context, answer(c)));
    *size = c->size - before;
    if (*size)
        *text = c->answer + before;
    *more = c->answering;
    return MIXT_OK;
}

mixt_status mixt_chat_cut(mixt_chat *c)
{
    MIXT_TRY(mixt__need_open(c, "chat"));
    return c->answering ? mixt__context_note(c->context, finish(c, "cut", false)) : MIXT_OK;
}

mixt_status mixt_chat_reset(mixt_chat *c)
{
    MIXT_TRY(mixt__need_open(c, "chat"));
    MIXT_TRY(mixt_chat_cut(c));
    while (json_array_size(c->messages) > c->system)
        json_array_remove(c->messages, c->system);
    c->state.end = NULL;
    return MIXT_OK;
}

mixt_chat_state mixt_chat_state_get(const mixt_chat *c)
{
    if (mixt__need_open(c, "chat") != MIXT_OK)
        return (mixt_chat_state){0};
    mixt_chat_state state = c->state;
    state.messages = (int64_t)json_array_size(c->messages);
    return state;
}
