/* What lies beside exported weights: the tokenizer as transformers reads it, and what the model's inputs are. */
#ifndef MIXT_RUN_EXPORT_INPUTS_H
#define MIXT_RUN_EXPORT_INPUTS_H

#include "config/config.h"
#include "data/text/tokenizer.h"
#include "store/weights.h"

#include "mixt/weights.h"

#include <jansson.h>

typedef struct mixt__export_inputs {
    const json_t *inputs;      // of the run; NULL: it has none, and nothing is written
    mixt_tokenizer *tokenizer; // of its texts; NULL: none, or not known
    const mixt_config *config;
    const char **labels; // names of its classes, the texts in `inputs`; NULL: they have none
    bool unknown;        // tokens of a vocabulary that nobody named
} mixt__export_inputs;

/** Tokens that are not padding: chosen, or as many as the data has or, where the run remembers (inputs), had
 *  (export.c). */
mixt_status mixt__export_vocab(const mixt_export_options *options, const mixt_config *config, const json_t *inputs,
                               int64_t *vocab);
/** Opens the tokenizer where another program can use it, and fills the facts that are the tokenizer's and the
 *  data's. */
mixt_status mixt__export_inputs_open(mixt__export_inputs *x, mixt__export_request *request);
/** Name `index` of the files that mixt__export_inputs_write makes; NULL: there is no more. */
const char *mixt__export_inputs_file(const mixt__export_inputs *x, int index);
mixt_status mixt__export_inputs_write(const mixt__export_inputs *x, const mixt__export_request *request);
void mixt__export_inputs_close(mixt__export_inputs *x);

#endif
