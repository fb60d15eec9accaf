/* Chat templates: the part of Jinja2 that the templates of instruction models are written in.
 *
 * A template comes with a model that somebody published, so it is untrusted input: a rendering has at most
 * MIXT_TEMPLATE_STEPS steps, MIXT_TEMPLATE_BYTES bytes and a bounded depth, and fails beyond them. What a template says
 * beyond the part that is known here is refused by name and line, never guessed. Whitespace is treated as transformers
 * does it: trim_blocks and lstrip_blocks are on.
 */
#ifndef MIXT_TEMPLATE_TEMPLATE_H
#define MIXT_TEMPLATE_TEMPLATE_H

#include "mixt/types.h"

#include <jansson.h>

typedef struct mixt__template mixt__template;

enum {
    MIXT_TEMPLATE_STEPS = 8000000,       // of a rendering: nodes evaluated, and bytes worked on by the dozen
    MIXT_TEMPLATE_BYTES = 60 << 20,      // of a template and its rendering together
    MIXT_TEMPLATE_SOURCE_MAX = 256 << 10 // bytes of a template
};

/** Reads a template.
 *  @param name of its file, for messages
 *  @return MIXT_ERROR_FORMAT for what is no template, MIXT_ERROR_UNSUPPORTED for what is not known here; both name the
 *    line */
mixt_status mixt__template_read(const char *name, const char *text, size_t size, mixt__template **read);
/** NULL is allowed. */
void mixt__template_free(mixt__template *read);

/** What a template renders: any number of threads may do so at once.
 *  @param variables an object: messages, add_generation_prompt, bos_token, …; borrowed
 *  @param text set to `size` bytes and a zero behind them, freed with mixt__free
 *  @return MIXT_ERROR_DATA where the template raises an exception: the message is the template's own */
mixt_status mixt__template_render(const mixt__template *read, const json_t *variables, char **text, size_t *size);

#endif
