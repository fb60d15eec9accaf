/* Folders of Hugging Face models: config.json, weights and perhaps a tokenizer, used as if mixt had trained them. */
#ifndef MIXT_RUN_HF_FOLDER_H
#define MIXT_RUN_HF_FOLDER_H

#include "api/weights.h"
#include "config/config.h"

#include <jansson.h>

/** Whether a folder is one: it has config.json and weights, but no configuration of a run. */
bool mixt__hf_folder_is(const char *folder);
/** A configuration that makes its model, in FP32, on text with its tokenizer. */
mixt_status mixt__hf_folder_config(const char *folder, mixt_config **config);
/** Sizes of the model that a configuration leaves open, from the config.json of the folder that it begins with (init);
 *  nothing where that has none, or one of another model. */
mixt_status mixt__hf_folder_fill(mixt_config *config);
/** What inputs.json would say of a classifier of texts, from the folder's config.json and the configuration: as many
 *  tokens as the model can read, classes by name. @param inputs NULL: of other models, and where only the data that is
 *  given can say what a class is called. The caller's. */
mixt_status mixt__hf_folder_inputs(const char *folder, const mixt_config *config, json_t **inputs);
/** The names of a model's classes.
 *  @param facts what its run remembers of the data; NULL: nothing, and the folder's config.json is asked
 *  @param labels (count) in the arena, or the facts' own; NULL: classes have no names */
mixt_status mixt__hf_folder_labels(const char *folder, const mixt_data *facts, mixt__arena *arena,
                                   const char *const **labels, int64_t *count);
/** Whether it has files of a tokenizer. */
bool mixt__hf_folder_has_tokenizer(const char *folder);
/** Fails where a model is given text, data of this kind, and nobody knows its tokens: the folder has no tokenizer, and
 *  the configuration names none. */
mixt_status mixt__hf_folder_check_text(const char *folder, const mixt_config *config, const char *kind);

#endif
