/* The ends of answers, from three files and the template itself. */
#include "data/chat/ends.h"

#include "base/alloc.h"
#include "base/status.h"
#include "data/data.h"
#include "data/text/gpt2_files.h"
#include "store/json.h"

#include <stdio.h>
#include <string.h>

bool mixt__chat_ends_have(const mixt__chat_ends *ends, int32_t token)
{
    for (int i = 0; i < ends->count; i++)
        if (ends->tokens[i] == token)
            return true;
    return false;
}

static void add(mixt__chat_ends *ends, int64_t token, const mixt_tokenizer *t)
{
    if (token >= 0 && token < t->size && ends->count < MIXT_CHAT_ENDS && !mixt__chat_ends_have(ends, (int32_t)token))
        ends->tokens[ends->count++] = (int32_t)token;
}

/* ---- files ---- */

static mixt_status load(const char *folder, const char *name, json_t **value)
{
    char path[4400];
    mixt__bytes bytes;
    *value = NULL;
    if (!mixt__vocabulary_file(folder, name, NULL, path, sizeof path))
        return MIXT_OK;
    MIXT_TRY(mixt__bytes_read(path, &bytes));
    mixt_status status = mixt__json_parse(path, bytes.bytes, (size_t)bytes.size, 0, value);
    mixt__bytes_free(&bytes);
    return status;
}

/** Numbers, or one, under "eos_token_id". */
static mixt_status add_numbers(mixt__chat_ends *ends, const char *folder, const char *name, const mixt_tokenizer *t)
{
    json_t *value;
    MIXT_TRY(load(folder, name, &value));
    const json_t *found = json_object_get(value, "eos_token_id");
    if (json_is_integer(found))
        add(ends, json_integer_value(found), t);
    for (size_t i = 0; i < json_array_size(found); i++)
        if (json_is_integer(json_array_get(found, i)))
            add(ends, json_integer_value(json_array_get(found, i)), t);
    json_decref(value);
    return MIXT_OK;
}

/* ---- the template ---- */

#define SAID "mixt0said"
#define NEXT "mixt1next"

/** A question, an answer, and perhaps the next question, as messages. */
static json_t *sample(bool again)
{
    json_t *messages = json_array();
    mixt__json_add(messages, json_pack("{s:s, s:s}", "role", "user", "content", "mixt2ask"));
    mixt__json_add(messages, json_pack("{s:s, s:s}", "role", "assistant", "content", SAID));
    if (again)
        mixt__json_add(messages, json_pack("{s:s, s:s}", "role", "user", "content", NEXT));
    return messages;
}

/** What the template writes behind an answer, up to the next question's text; "" where it refuses such conversations.
 *  @param text freed with mixt__free */
static mixt_status behind(const mixt_chat_template *chat, const json_t *others, bool again, char **text)
{
    json_t *messages = sample(again);
    size_t size;
    *text = NULL;
    if (!mixt__json_whole(messages)) {
        json_decref(messages);
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to find how answers end");
    }
    mixt_status status = mixt__chat_render(chat, messages, others, false, text, &size);
    json_decref(messages);
    if (status == MIXT_ERROR_MEMORY)
        return status;
    char *said = status == MIXT_OK ? strstr(*text, SAID) : NULL;
    if (!said) {
        mixt__free(*text);
        *text = mixt__strdup("");
        return *text ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory to find how answers end");
    }
    memmove(*text, said + strlen(SAID), strlen(said + strlen(SAID)) + 1);
    char *next = strstr(*text, NEXT);
    if (next)
        *next = '\0';
    return MIXT_OK;
}

/** The token that a text begins with, blanks left out; -1: it begins with no marker. */
static int64_t marker_at(const mixt_tokenizer *t, const char *text)
{
    text += strspn(text, " \n");
    int64_t size = (int64_t)strlen(text);
    if (!size)
        return -1;
    mixt__stretch first = mixt__added_next(&t->added, (const unsigned char *)text, size, 0, false);
    return first.begin == 0 ? first.id : -1;
}

static mixt_status add_template(mixt__chat_ends *ends, const mixt_chat_template *chat, const json_t *others,
                                const mixt_tokenizer *t)
{
    char *text;
    MIXT_TRY(behind(chat, others, false, &text));
    int64_t marker = marker_at(t, text);
    mixt__free(text);
    if (marker >= 0) {
        add(ends, marker, t);
        return MIXT_OK;
    }
    MIXT_TRY(behind(chat, others, true, &text)); // no token ends it: then what the next question begins with does
    marker = marker_at(t, text);
    add(ends, marker, t);
    if (marker < 0 && strspn(text, " \n") < strlen(text) && strlen(text) < sizeof ends->text)
        snprintf(ends->text, sizeof ends->text, "%s", text);
    mixt__free(text);
    return MIXT_OK;
}

mixt_status mixt__chat_ends_find(const char *folder, const mixt_chat_template *chat, const json_t *others,
                                 const mixt_tokenizer *t, mixt__chat_ends *ends)
{
    const char *end = json_string_value(json_object_get(chat->special, "eos_token"));
    *ends = (mixt__chat_ends){.count = 0};
    MIXT_TRY(add_numbers(ends, folder, "generation_config.json", t));
    MIXT_TRY(add_numbers(ends, folder, "config.json", t));
    if (end && *end)
        add(ends, mixt__vocabulary_find(&t->vocabulary, end, (int64_t)strlen(end)), t);
    add(ends, t->special.end, t);
    return add_template(ends, chat, others, t);
}
