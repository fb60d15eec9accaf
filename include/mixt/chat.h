/* How do conversations become text? By the template that comes with a model: Jinja, of which what chat templates use is
 * known here; anything else is refused by name and line. A template is untrusted input: a rendering has a bounded
 * number of steps and bytes.
 */
#ifndef MIXT_CHAT_H
#define MIXT_CHAT_H

#include "mixt/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mixt_chat_template mixt_chat_template;

/**
 * Reads a chat template.
 * @param path a file of Jinja; or a tokenizer_config.json, or a folder that has one or a chat_template.jinja: its
 *   bos_token and eos_token are then those of renderings.
 * @param chat set to the template, or to NULL on failure; free it with mixt_chat_template_free. It is read-only: any
 *   number of threads may use it at once.
 */
MIXT_API mixt_status mixt_chat_template_read(const char *path, mixt_chat_template **chat);
/** NULL is allowed. */
MIXT_API void mixt_chat_template_free(mixt_chat_template *chat);

typedef struct mixt_chat_render_options {
    size_t struct_size;
    bool generation_prompt; /**< ends with what the assistant's answer begins with; default false */
    const char *bos, *eos;  /**< what the template knows as bos_token and eos_token; default NULL: those of the folder,
                                 undefined where there are none */
} mixt_chat_render_options;
MIXT_API void mixt_chat_render_options_default(mixt_chat_render_options *options, size_t size);
#define MIXT_DEFAULTS_mixt_chat_render_options .struct_size = sizeof(mixt_chat_render_options)

/**
 * The text of a conversation.
 * @param messages JSON: an array of messages, or an object with "messages" whose other members the template sees too
 *   ("tools", "documents", "enable_thinking").
 * @param name of the messages' file, for failures; NULL: "messages".
 * @param options NULL: the defaults.
 * @param text set to `size` bytes and a zero behind them, freed with mixt_free; NULL on failure.
 * @param size may be NULL.
 * @return MIXT_ERROR_DATA where the template refuses the conversation: mixt_error_text is the template's own message.
 */
MIXT_API mixt_status mixt_chat_render(const mixt_chat_template *chat, const char *messages, const char *name,
                                      const mixt_chat_render_options *options, char **text, int64_t *size);
/** The same of messages in a file; `text` is freed with mixt_free. */
MIXT_API mixt_status mixt_chat_render_file(const mixt_chat_template *chat, const char *path,
                                           const mixt_chat_render_options *options, char **text, int64_t *size);

#ifdef __cplusplus
}
#endif
#endif
