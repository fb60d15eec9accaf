/* Looking at rows: which members there are says which form it is. */
#include "data/chat/chat_forms.h"

#include "base/alloc.h"
#include "base/status.h"
#include "store/json.h"

#include <string.h>

const char *const mixt__chat_form_names[MIXT_CHAT_FORMS] = {
    "messages", "prompt_completion", "conversational_prompt_completion", "text", "alpaca",
    "sharegpt", "preference",        "conversational_preference"};

/* ---- which form ---- */

/** The list of turns of a row: by ShareGPT's name or by that of the chat templates. */
static const json_t *list_of(const json_t *row)
{
    const json_t *messages = json_object_get(row, "messages");
    return messages ? messages : json_object_get(row, "conversations");
}

static mixt_status no_form(const json_t *row)
{
    const char *first = json_object_iter_key(json_object_iter((json_t *)row));
    if (json_object_get(row, "chosen") || json_object_get(row, "rejected"))
        return mixt__fail(MIXT_ERROR_DATA, "\"%s\" without \"%s\": a preference is between two answers",
                          json_object_get(row, "chosen") ? "chosen" : "rejected",
                          json_object_get(row, "chosen") ? "rejected" : "chosen");
    if (json_object_get(row, "prompt"))
        return mixt__fail(MIXT_ERROR_DATA, "\"prompt\" without \"completion\": there is no answer to learn");
    if (json_object_get(row, "instruction"))
        return mixt__fail(MIXT_ERROR_DATA, "\"instruction\" without \"output\": there is no answer to learn");
    return mixt__fail(MIXT_ERROR_DATA,
                      "no form that is known: expected \"messages\", \"prompt\" and \"completion\", \"text\", "
                      "\"instruction\" and \"output\", or \"conversations\"%s%s%s",
                      first ? "; it has \"" : "", first ? first : "", first ? "\"" : "");
}

/** Of a row with two answers. */
static mixt_status pair_form(const json_t *row, mixt__chat_form *form)
{
    const json_t *prompt = json_object_get(row, "prompt"), *chosen = json_object_get(row, "chosen"),
                 *rejected = json_object_get(row, "rejected");
    if (json_is_array(chosen) && json_is_array(rejected) && (!prompt || json_is_array(prompt)))
        *form = MIXT_CHAT_CHOICE;
    else if (json_is_string(chosen) && json_is_string(rejected) && json_is_string(prompt))
        *form = MIXT_CHAT_PREFERENCE;
    else
        return mixt__fail(MIXT_ERROR_DATA,
                          "\"prompt\", \"chosen\" and \"rejected\" must be three texts, or three lists of messages "
                          "(then \"prompt\" may be what the other two begin with)");
    return MIXT_OK;
}

mixt_status mixt__chat_form_of(const json_t *row, mixt__chat_form *form)
{
    if (!json_is_object(row))
        return mixt__fail(MIXT_ERROR_DATA, "a row must be a JSON object");
    if (json_object_get(row, "chosen") && json_object_get(row, "rejected"))
        return pair_form(row, form);
    const json_t *list = list_of(row), *prompt = json_object_get(row, "prompt"),
                 *completion = json_object_get(row, "completion");
    if (list && !json_is_array(list))
        return mixt__fail(MIXT_ERROR_DATA, "\"%s\" must be a list of messages",
                          json_object_get(row, "messages") ? "messages" : "conversations");
    if (list)
        *form = json_object_get(json_array_get(list, 0), "from") ? MIXT_CHAT_SHAREGPT : MIXT_CHAT_MESSAGES;
    else if (prompt && completion && json_is_array(prompt) != json_is_array(completion))
        return mixt__fail(MIXT_ERROR_DATA,
                          "\"prompt\" and \"completion\" must both be texts, or both lists of messages");
    else if (prompt && completion)
        *form = json_is_array(prompt) ? MIXT_CHAT_CONVERSATION : MIXT_CHAT_COMPLETION;
    else if (json_object_get(row, "instruction") && json_object_get(row, "output"))
        *form = MIXT_CHAT_ALPACA;
    else if (!prompt && !json_object_get(row, "instruction") && json_object_get(row, "text"))
        *form = MIXT_CHAT_TEXT;
    else
        return no_form(row);
    return MIXT_OK;
}

/* ---- what it says ---- */

static mixt_status no_memory(void)
{
    return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a conversation");
}

static mixt_status text_of(const json_t *row, const char *key, const char **text, size_t *size)
{
    const json_t *value = json_object_get(row, key);
    if (!json_is_string(value))
        return mixt__fail(MIXT_ERROR_DATA, "\"%s\" must be a text", key);
    *text = json_string_value(value);
    *size = json_string_length(value);
    return MIXT_OK;
}

bool mixt__chat_is_answer(const json_t *message)
{
    const char *role = json_string_value(json_object_get(message, "role"));
    return role && !strcmp(role, "assistant");
}

/** A message as templates want it. */
static mixt_status check_message(const json_t *message, size_t index)
{
    const json_t *role = json_object_get(message, "role"), *content = json_object_get(message, "content");
    if (!json_is_object(message) || !json_is_string(role))
        return mixt__fail(MIXT_ERROR_DATA, "message %zu has no \"role\"", index + 1);
    bool calls = json_is_array(json_object_get(message, "tool_calls"));
    if (!json_is_string(content) && !json_is_array(content) && !calls)
        return mixt__fail(MIXT_ERROR_DATA, "message %zu, of role '%s', has no \"content\"", index + 1,
                          json_string_value(role));
    return MIXT_OK;
}

static mixt_status add_all(json_t *messages, const json_t *list)
{
    size_t index;
    json_t *message;
    json_array_foreach(list, index, message)
    {
        MIXT_TRY(check_message(message, index));
        if (mixt__json_add(messages, json_incref(message)))
            return no_memory();
    }
    return MIXT_OK;
}

static mixt_status add_message(json_t *messages, const char *role, const json_t *content)
{
    json_t *message = json_object();
    int failed = mixt__json_set(message, "role", json_string(role));
    failed |= mixt__json_set(message, "content", json_incref((json_t *)content));
    failed |= mixt__json_add(messages, message);
    return failed ? no_memory() : MIXT_OK;
}

/** What ShareGPT's names mean. */
static const char *role_of(const char *from)
{
    static const char *const names[][2] = {{"human", "user"},        {"user", "user"},       {"gpt", "assistant"},
                                           {"chatgpt", "assistant"}, {"model", "assistant"}, {"assistant", "assistant"},
                                           {"system", "system"},     {"tool", "tool"},       {"observation", "tool"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(names[i][0], from))
            return names[i][1];
    return NULL;
}

static mixt_status add_shared(json_t *messages, const json_t *list)
{
    size_t index;
    json_t *turn;
    json_array_foreach(list, index, turn)
    {
        const char *from = json_string_value(json_object_get(turn, "from")), *role = from ? role_of(from) : NULL;
        const json_t *value = json_object_get(turn, "value");
        if (!from)
            return mixt__fail(MIXT_ERROR_DATA, "turn %zu has no \"from\"", index + 1);
        if (!role)
            return mixt__fail(MIXT_ERROR_DATA,
                              "turn %zu is from '%s': expected human, gpt, system or tool, as ShareGPT has them",
                              index + 1, from);
        if (!json_is_string(value))
            return mixt__fail(MIXT_ERROR_DATA, "turn %zu, from '%s', has no \"value\"", index + 1, from);
        MIXT_TRY(add_message(messages, role, value));
    }
    return MIXT_OK;
}

static bool has_text(const json_t *value)
{
    return json_is_string(value) && json_string_length(value);
}

static mixt_status add_system(json_t *messages, const json_t *row)
{
    const json_t *system = json_object_get(row, "system");
    return has_text(system) ? add_message(messages, "system", system) : MIXT_OK;
}

/** Instruction and input, a blank line between them. */
static mixt_status add_alpaca(json_t *messages, const json_t *row)
{
    const char *text;
    size_t size;
    const json_t *instruction = json_object_get(row, "instruction"), *input = json_object_get(row, "input");
    MIXT_TRY(text_of(row, "instruction", &text, &size));
    MIXT_TRY(text_of(row, "output", &text, &size));
    MIXT_TRY(add_system(messages, row));
    json_t *question = has_text(input)
                           ? json_sprintf("%s\n\n%s", json_string_value(instruction), json_string_value(input))
                           : json_incref((json_t *)instruction);
    mixt_status status = question ? add_message(messages, "user", question) : no_memory();
    json_decref(question);
    return status == MIXT_OK ? add_message(messages, "assistant", json_object_get(row, "output")) : status;
}

/** Tools may be written as a text of JSON. */
static mixt_status add_others(json_t *others, const json_t *row)
{
    static const char *const names[] = {"tools", "documents"};
    const json_t *more = json_object_get(row, "chat_template_kwargs");
    for (int i = 0; i < 2; i++) {
        const json_t *value = json_object_get(row, names[i]);
        json_t *own = NULL;
        if (!value || json_is_null(value))
            continue;
        if (json_is_string(value))
            MIXT_TRY(mixt__json_parse(names[i], json_string_value(value), json_string_length(value), 0, &own));
        if (mixt__json_set(others, names[i], own ? own : json_incref((json_t *)value)))
            return no_memory();
    }
    return json_is_object(more) && mixt__json_merge(others, more) ? no_memory() : MIXT_OK;
}

/** Messages that two lists begin with. */
static size_t common_front(const json_t *a, const json_t *b)
{
    size_t same = 0;
    while (same < json_array_size(a) && json_equal(json_array_get(a, same), json_array_get(b, same)))
        same++;
    return same;
}

/** The prompt, given or what both answers begin with, and one of the answers. */
static mixt_status add_choice(const json_t *row, bool rejected, mixt__chat_turns *t)
{
    const json_t *chosen = json_object_get(row, "chosen"), *other = json_object_get(row, "rejected");
    const json_t *prompt = json_object_get(row, "prompt"), *answer = rejected ? other : chosen;
    if (prompt)
        MIXT_TRY(add_all(t->messages, prompt));
    t->prompt = prompt ? json_array_size(prompt) : common_front(chosen, other);
    if (!t->prompt)
        return mixt__fail(MIXT_ERROR_DATA, "no \"prompt\", and \"chosen\" and \"rejected\" begin with other messages");
    if (t->prompt >= json_array_size(answer) + (prompt ? t->prompt : 0))
        return mixt__fail(MIXT_ERROR_DATA, "an empty \"%s\": there is no answer to compare",
                          rejected ? "rejected" : "chosen");
    return add_all(t->messages, answer);
}

static mixt_status fill_messages(const json_t *row, bool rejected, bool pair, mixt__chat_turns *t)
{
    if (pair) {
        MIXT_TRY(add_others(t->others, row));
        return add_choice(row, rejected, t);
    }
    if (t->form == MIXT_CHAT_ALPACA)
        return add_alpaca(t->messages, row);
    MIXT_TRY(add_others(t->others, row));
    if (t->form == MIXT_CHAT_SHAREGPT) {
        MIXT_TRY(add_system(t->messages, row));
        return add_shared(t->messages, list_of(row));
    }
    if (t->form == MIXT_CHAT_MESSAGES)
        return add_all(t->messages, list_of(row));
    MIXT_TRY(add_all(t->messages, json_object_get(row, "prompt")));
    t->prompt = json_array_size(t->messages);
    return add_all(t->messages, json_object_get(row, "completion"));
}

/** A row that teaches nothing is a mistake in the file. */
static mixt_status check_answer(const mixt__chat_turns *t)
{
    size_t index, count = json_array_size(t->messages);
    json_t *message;
    if (t->form == MIXT_CHAT_CONVERSATION)
        return t->prompt < count ? MIXT_OK
                                 : mixt__fail(MIXT_ERROR_DATA, "an empty \"completion\": there is no answer to learn");
    json_array_foreach(t->messages, index, message)
    {
        if (mixt__chat_is_answer(message))
            return MIXT_OK;
    }
    return mixt__fail(MIXT_ERROR_DATA, count ? "no message of the assistant: there is no answer to learn"
                                             : "a conversation without messages");
}

mixt_status mixt__chat_turns_of(const json_t *row, mixt__chat_form form, bool rejected, mixt__chat_turns *t)
{
    bool pair = mixt__chat_form_pairs(form);
    const char *answer = !pair ? "completion" : rejected ? "rejected" : "chosen";
    if (pair)
        form = form == MIXT_CHAT_CHOICE ? MIXT_CHAT_CONVERSATION : MIXT_CHAT_COMPLETION;
    *t = (mixt__chat_turns){.form = form};
    if (form == MIXT_CHAT_TEXT)
        return text_of(row, "text", &t->text, &t->text_size);
    if (form == MIXT_CHAT_COMPLETION) {
        MIXT_TRY(text_of(row, "prompt", &t->text, &t->text_size));
        return text_of(row, answer, &t->completion, &t->completion_size);
    }
    t->messages = json_array();
    t->others = json_object();
    mixt_status status = t->messages && t->others ? fill_messages(row, rejected, pair, t) : no_memory();
    if (status == MIXT_OK)
        status = check_answer(t);
    if (status != MIXT_OK)
        mixt__chat_turns_free(t);
    return status;
}

void mixt__chat_turns_free(mixt__chat_turns *t)
{
    json_decref(t->messages);
    json_decref(t->others);
    *t = (mixt__chat_turns){0};
}
