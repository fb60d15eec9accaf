/* A model's template with the tokens that its renderings have, and conversations as texts. */
#ifndef MIXT_DATA_CHAT_CHAT_TEMPLATE_H
#define MIXT_DATA_CHAT_CHAT_TEMPLATE_H

#include "mixt/chat.h"

#include "template/template.h"

struct mixt_chat_template {
    mixt__template *read; // NULL: none, only special tokens
    char *path;           // of the file that it was read from
    json_t *special;      // bos_token, eos_token, … as far as the folder names them
};

/** A rendering. @param variables messages and what else the template sees; the special tokens are added
 *  @param text freed with mixt__free */
mixt_status mixt__chat_render(const mixt_chat_template *chat, const json_t *messages, const json_t *others,
                              bool generation_prompt, char **text, size_t *size);

/** The template at `path`, or where that is NULL or "" that of a model's folder; with special tokens of the folder.
 *  `read` is NULL where the folder has none: then there are only the tokens. @param folder may be NULL or "" */
mixt_status mixt__chat_template_find(const char *path, const char *folder, mixt_chat_template **chat);
/** The text of a special token, "eos_token"; NULL: none is named. */
const char *mixt__chat_special(const mixt_chat_template *chat, const char *name);

#endif
