/* A template from a file or a model's folder, and what it is given: messages, tools, special tokens. */
#include "data/chat/chat_template.h"

#include "base/alloc.h"
#include "base/options.h"
#include "data/data.h"
#include "store/json.h"

#include <stdlib.h>
#include <string.h>

/** Tokens that templates know by name. */
static const char *const special_names[] = {"bos_token", "eos_token", "unk_token", "pad_token",
                                            "cls_token", "sep_token", "mask_token"};

/** The text of a special token: a string, or an object with "content". */
static const char *token_text(const json_t *token)
{
    return json_string_value(json_is_object(token) ? json_object_get(token, "content") : token);
}

static mixt_status keep_special(mixt_chat_template *chat, const json_t *config)
{
    for (size_t i = 0; i < sizeof special_names / sizeof special_names[0]; i++) {
        const char *text = token_text(json_object_get(config, special_names[i]));
        if (text && mixt__json_set(chat->special, special_names[i], json_string(text)) < 0)
            return mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory for its tokens", chat->path);
    }
    return MIXT_OK;
}

/** The template of tokenizer_config.json: a string, or a list of some with names, of which "default" is for chats. */
static mixt_status template_in(const char *path, const json_t *config, const char **text, size_t *size)
{
    const json_t *found = json_object_get(config, "chat_template"), *one;
    for (size_t i = 0; json_is_array(found) && i < json_array_size(found); i++) {
        one = json_array_get(found, i);
        const char *name = json_string_value(json_object_get(one, "name"));
        if (name && !strcmp(name, "default")) {
            found = json_object_get(one, "template");
            break;
        }
    }
    if (!json_is_string(found))
        return mixt__fail(
            MIXT_ERROR_DATA,
            "%s has no chat_template: this model was not made for conversations; name the file of a template", path);
    *text = json_string_value(found);
    *size = json_string_length(found);
    return MIXT_OK;
}

static mixt_status read_config(const char *path, json_t **config)
{
    mixt__bytes bytes;
    *config = NULL;
    MIXT_TRY(mixt__bytes_read(path, &bytes));
    mixt_status status = mixt__json_parse(path, bytes.bytes, (size_t)bytes.size, 0, config);
    mixt__bytes_free(&bytes);
    if (status == MIXT_OK && !json_is_object(*config)) {
        json_decref(*config);
        *config = NULL;
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: not a JSON object", path);
    }
    return status;
}

static mixt_status read_text(mixt_chat_template *chat)
{
    mixt__bytes bytes;
    MIXT_TRY(mixt__bytes_read_most(chat->path, MIXT_TEMPLATE_SOURCE_MAX, &bytes));
    mixt_status status = mixt__template_read(chat->path, (const char *)bytes.bytes, (size_t)bytes.size, &chat->read);
    mixt__bytes_free(&bytes);
    return status;
}

static mixt_status read_from_config(mixt_chat_template *chat, const json_t *config)
{
    const char *text = NULL;
    size_t size = 0;
    MIXT_TRY(template_in(chat->path, config, &text, &size));
    return mixt__template_read(chat->path, text, size, &chat->read);
}

/** Takes `path` over. */
static mixt_status set_path(mixt_chat_template *chat, char *path)
{
    mixt__free(chat->path);
    chat->path = path;
    return path ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory to read a template");
}

/** @param needed whether it is a failure that the folder has no template */
static mixt_status read_folder(mixt_chat_template *chat, const char *folder, bool needed)
{
    mixt__arena arena = {0};
    json_t *config = NULL;
    mixt_status status = MIXT_OK;
    const char *about = mixt__arena_text(&arena, "%s/tokenizer_config.json", folder);
    const char *file = mixt__arena_text(&arena, "%s/chat_template.jinja", folder);
    if (arena.short_of_memory)
        MIXT_TRY_CLEANUP(mixt__fail(MIXT_ERROR_MEMORY, "no memory to read a template"));
    if (mixt__path_is_file(about)) {
        MIXT_TRY_CLEANUP(set_path(chat, mixt__strdup(about)));
        MIXT_TRY_CLEANUP(read_config(about, &config));
        MIXT_TRY_CLEANUP(keep_special(chat, config));
    }
    bool alone = mixt__path_is_file(file); // newer folders have the template in a file of its own
    if (!needed && !alone && !json_object_get(config, "chat_template"))
        goto cleanup;
    if (!alone && !config)
        MIXT_TRY_CLEANUP(
            mixt__fail(MIXT_ERROR_FILE, "%s: neither chat_template.jinja nor tokenizer_config.json is there", folder));
    MIXT_TRY_CLEANUP(set_path(chat, mixt__strdup(alone ? file : about)));
    MIXT_TRY_CLEANUP(alone ? read_text(chat) : read_from_config(chat, config));
cleanup:
    json_decref(config);
    mixt__arena_free(&arena);
    return status;
}

static mixt_status read_file(mixt_chat_template *chat, const char *path)
{
    size_t length = strlen(path);
    MIXT_TRY(set_path(chat, mixt__strdup(path)));
    if (length < 5 || strcmp(path + length - 5, ".json") != 0)
        return read_text(chat);
    json_t *config;
    MIXT_TRY(read_config(path, &config));
    mixt_status status = keep_special(chat, config);
    if (status == MIXT_OK)
        status = read_from_config(chat, config);
    json_decref(config);
    return status;
}

static mixt_chat_template *make_template(const char *path)
{
    mixt_chat_template *made = mixt__alloc(sizeof *made);
    if (made && (made->special = json_object()))
        return made;
    mixt__free(made);
    mixt__fail(MIXT_ERROR_MEMORY, "%s: no memory to read a template", path);
    return NULL;
}

/** Takes `made` over. */
static mixt_status hand_out(mixt_status status, mixt_chat_template *made, mixt_chat_template **chat)
{
    if (status == MIXT_OK)
        *chat = made;
    else
        mixt_chat_template_free(made);
    return status;
}

mixt_status mixt_chat_template_read(const char *path, mixt_chat_template **chat)
{
    MIXT_TRY(mixt__need(chat));
    *chat = NULL;
    MIXT_TRY(mixt__need(path));
    mixt_chat_template *made = make_template(path);
    if (!made)
        return MIXT_ERROR_MEMORY;
    return hand_out(mixt__path_is_directory(path) ? read_folder(made, path, true) : read_file(made, path), made, chat);
}

mixt_status mixt__chat_template_find(const char *path, const char *folder, mixt_chat_template **chat)
{
    bool named = path && *path;
    *chat = NULL;
    mixt_chat_template *made = make_template(named ? path : "tokenizer_config.json");
    if (!made)
        return MIXT_ERROR_MEMORY;
    mixt_status status = MIXT_OK;
    if (folder && *folder)
        status = read_folder(made, folder, false);
    if (status == MIXT_OK && named) { // with the folder's tokens, and its own where it names some
        mixt__template_free(made->read);
        made->read = NULL;
        status = mixt__path_is_directory(path) ? read_folder(made, path, true) : read_file(made, path);
    }
    return hand_out(status, made, chat);
}

const char *mixt__chat_special(const mixt_chat_template *chat, const char *name)
{
    return json_string_value(json_object_get(chat->special, name));
}

void mixt_chat_template_free(mixt_chat_template *chat)
{
    if (!chat)
        return;
    mixt__template_free(chat->read);
    json_decref(chat->special);
    mixt__free(chat->path);
    mixt__free(chat);
}

/** Members of messages by names that other formats have for them: what an assistant thought before it answered. */
static int alias_reasoning(json_t *messages)
{
    static const char *const names[] = {"reasoning_content", "thinking", "reasoning"};
    size_t index;
    json_t *message;
    int failed = 0;
    json_array_foreach(messages, index, message)
    {
        const json_t *thought = NULL;
        for (int i = 0; i < 3 && json_is_object(message); i++) {
            const json_t *found = json_object_get(message, names[i]);
            if (!thought && found && !json_is_null(found))
                thought = found;
        }
        for (int i = 0; i < 2 && thought; i++) {
            const json_t *found = json_object_get(message, names[i]);
            if (!found || json_is_null(found))
                failed |= mixt__json_set(message, names[i], mixt__json_copy(thought));
        }
    }
    return failed;
}

mixt_status mixt__chat_render(const mixt_chat_template *chat, const json_t *messages, const json_t *others,
                              bool generation_prompt, char **text, size_t *size)
{
    json_t *variables = json_object(), *own = mixt__json_copy(messages);
    *text = NULL;
    int failed = !variables || !own || mixt__json_set(variables, "tools", json_null()) ||
                 mixt__json_set(variables, "documents", json_null()) || mixt__json_merge(variables, chat->special) ||
                 (others && mixt__json_merge(variables, others)) || alias_reasoning(own) ||
                 mixt__json_set(variables, "add_generation_prompt", json_boolean(generation_prompt)) ||
                 mixt__json_set(variables, "messages", json_incref(own));
    mixt_status status = failed ? mixt__fail(MIXT_ERROR_MEMORY, "no memory to render a conversation")
                                : mixt__template_render(chat->read, variables, text, size);
    json_decref(own);
    json_decref(variables);
    return status;
}

void mixt_chat_render_options_default(mixt_chat_render_options *options, size_t size)
{
    static const mixt_chat_render_options own = {MIXT_DEFAULTS_mixt_chat_render_options};
    mixt__options_fill(options, size, &own, sizeof own);
}

static mixt_status check_messages(const char *name, const json_t *messages)
{
    size_t index;
    const json_t *message;
    if (!json_is_array(messages))
        return mixt__fail(MIXT_ERROR_FORMAT, "%s: neither an array of messages nor an object with \"messages\"", name);
    json_array_foreach(messages, index, message)
    {
        if (!json_is_object(message))
            return mixt__fail(MIXT_ERROR_FORMAT, "%s: message %zu is not an object with \"role\" and \"content\"", name,
                              index + 1);
    }
    return MIXT_OK;
}

static mixt_status render_value(const mixt_chat_template *chat, const json_t *value, const char *name,
                                const mixt_chat_render_options *options, char **text, size_t *size)
{
    const json_t *messages = json_is_object(value) ? json_object_get(value, "messages") : value;
    json_t *others = json_is_object(value) ? mixt__json_copy(value) : json_object();
    mixt_status status = check_messages(name, messages);
    if (status == MIXT_OK &&
        (!others || (options->bos && mixt__json_set(others, "bos_token", mixt__json_string(options->bos))) ||
         (options->eos && mixt__json_set(others, "eos_token", mixt__json_string(options->eos)))))
        status = mixt__fail(MIXT_ERROR_MEMORY, "no memory to render a conversation");
    if (status == MIXT_OK)
        status = mixt__chat_render(chat, messages, others, options->generation_prompt, text, size);
    json_decref(others);
    return status;
}

static mixt_status render(const mixt_chat_template *chat, const char *messages, size_t bytes, const char *name,
                          const mixt_chat_render_options *given, char **text, int64_t *size)
{
    mixt_chat_render_options options = {MIXT_DEFAULTS_mixt_chat_render_options};
    json_t *value = NULL;
    char *made = NULL;
    size_t length = 0;
    MIXT_TRY(mixt__options(mixt_chat_render_options, &options, given));
    mixt_status status = mixt__json_parse(name, messages, bytes, JSON_ALLOW_NUL, &value);
    if (status == MIXT_OK)
        status = render_value(chat, value, name, &options, &made, &length);
    if (status == MIXT_OK) {
        *text = malloc(length + 1); // mixt_free frees it
        if (*text)
            memcpy(*text, made, length + 1);
        else
            status = mixt__fail(MIXT_ERROR_MEMORY, "no memory for a rendering");
        if (size)
            *size = (int64_t)length;
    }
    json_decref(value);
    mixt__free(made);
    return status;
}

mixt_status mixt_chat_render(const mixt_chat_template *chat, const char *messages, const char *name,
                             const mixt_chat_render_options *options, char **text, int64_t *size)
{
    MIXT_TRY(mixt__need(text));
    *text = NULL;
    MIXT_TRY(mixt__need(chat));
    MIXT_TRY(mixt__need(messages));
    return render(chat, messages, strlen(messages), name ? name : "messages", options, text, size);
}

mixt_status mixt_chat_render_file(const mixt_chat_template *chat, const char *path,
                                  const mixt_chat_render_options *options, char **text, int64_t *size)
{
    mixt__bytes bytes;
    MIXT_TRY(mixt__need(text));
    *text = NULL;
    MIXT_TRY(mixt__need(chat));
    MIXT_TRY(mixt__need(path));
    MIXT_TRY(mixt__bytes_read(path, &bytes));
    mixt_status status = render(chat, (const char *)bytes.bytes, (size_t)bytes.size, path, options, text, size);
    mixt__bytes_free(&bytes);
    return status;
}
