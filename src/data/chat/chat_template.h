/* A model's template with the tokens that its renderings have, and conversations as texts. */
#ifndef MIXT_DATA_CHAT_CHAT_TEMPLATE_H
#define MIXT_DATA_CHAT_CHAT_TEMPLATE_H

#include "mixt/chat.h"

#include "template/template.h"

struct mixt_chat_template {
    mixt__template *read;
    char *path;      // of the file that it was read from
    json_t *special; // bos_token, eos_token, … as far as the folder names them
};

/** A rendering. @param variables messages and what else the template sees; the special tokens are added
 *  @param text freed with mixt__free */
mixt_status mixt__chat_render(const mixt_chat_template *chat, const json_t *messages, const json_t *others,
                              bool generation_prompt, char **text, size_t *size);

#endif
