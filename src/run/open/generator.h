/* The language model of a run or a folder, with an adapter. */
#ifndef MIXT_RUN_GENERATOR_H
#define MIXT_RUN_GENERATOR_H

#include "mixt/generate.h"

/** mixt_generator_load, with an adapter beside the weights of a Hugging Face folder. @param adapter NULL: none
 *  @param places tokens to look back at; 0: data.seq of the configuration */
mixt_status mixt__generator_load(mixt_context *context, const char *folder, const char *weights, const char *adapter,
                                 int64_t places, mixt_generator **generator, mixt_tokenizer **tokenizer);

#endif
