/* Looking at rows: which members there are says which form it is. */
#include "data/chat/chat_forms.h"

#include "base/alloc.h"
#include "base/status.h"
#include "store/json.h"

#include <string.h>

const char *const mixt__chat_form_names[MIXT_CHAT_FORMS] = {
    "messages", "prompt_completion", "conversational_prompt_completion", "text", "alpaca", "sharegpt"};

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
        return mixt__fail(MIXT_ERROR_DATA,
                          "a pair of answers, \"chosen\" and \"rejected\", is not a form to train on here: keep the "
                          "chosen one, as \"messages\" or \"prompt\" and \"completion\"");
    if (json_object_get(row, "prompt"))
        return mixt__fail(MIXT_ERROR_DATA, "\"prompt\" without \"completion\": there is no answer to learn");
    if (json_object_get(row, "instruction"))
        return mixt__fail(MIXT_ERROR_DATA, "\"instruction\" without \"output\": there is no answer to learn");
    return mixt__fail(MIXT_ERROR_DATA,
                      "no form that is known: expected \"messages\", \"prompt\" and \"completion\", \"text\", "
                      "\"instruction\" and \"output\", or \"conversations\"%s%s%s",
                      first ? "; it has \"" : "", first ? first : "", first ? "\"" : "");
}

mixt_status mixt__chat_form_of(const json_t *row, mixt__chat_form *form)
{
    if (!json_is_object(row))
        return mixt__fail(MIXT_ERROR_DATA, "a row must be a JSON object");
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

static mixt_status fill_messages(const json_t *row, mixt__chat_turns *t)
{
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

mixt_status mixt__chat_turns_of(const json_t *row, mixt__chat_form form, mixt__chat_turns *t)
{
    *t = (mixt__chat_turns){.form = form};
    if (form == MIXT_CHAT_TEXT)
        return text_of(row, "text", &t->text, &t->text_size);
    if (form == MIXT_CHAT_COMPLETION) {
        MIXT_TRY(text_of(row, "prompt", &t->text, &t->text_size));
        return text_of(row, "completion", &t->completion, &t->completion_size);
    }
    t->messages = json_array();
    t->others = json_object();
    mixt_status status = t->messages && t->others ? fill_messages(row, t) : no_memory();
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
