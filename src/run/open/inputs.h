/* inputs.json of a run directory: what prediction needs of the data that the run was trained on, so that the data
 * itself is not needed, and by which checksums it is known again. Beside it vocab/, the files of the tokenizer.
 */
#ifndef MIXT_RUN_INPUTS_H
#define MIXT_RUN_INPUTS_H

#include "run/open/experiment.h"

#include <jansson.h>

#define MIXT_INPUTS_FILE "inputs.json"
#define MIXT_VOCAB_FOLDER "vocab"

enum { MIXT_INPUTS_VERSION = 1 };

/** The graph of a model that is an ONNX file, without its weights: in the run's directory. */
#define MIXT_GRAPH_FILE "model.onnx"

/** Writes both for an experiment whose data is open: vocab/ first, then inputs.json whole or not at all. */
mixt_status mixt__run_inputs_write(const char *folder, mixt__experiment *e);
/** Reads inputs.json and checks it.
 *  @param inputs its content, given back with json_decref; NULL on failure, and where a run has none: one of a mixt
 *    that did not write it */
mixt_status mixt__run_inputs_read(const char *folder, json_t **inputs);
/** Where the run has a vocabulary of its own, makes it that of the configuration: the one that it was copied from may
 *  be gone or another by now. */
mixt_status mixt__run_inputs_vocab(const char *folder, mixt_config *config);
/** The settings by which data was cut into its parts, as inputs.json of an export has them ("cut"): by the names of
 *  their keys, those alone that were set; NULL: no memory. */
json_t *mixt__run_inputs_cut(const mixt_config *config);
/** Sets them where the configuration does not say. @param origin the file that they are of */
mixt_status mixt__run_inputs_cut_set(const json_t *cut, mixt_config *config, const char *origin);
/** The folder that weights belong to: that of their file, of a checkpoint that of its run.
 *  @param weights a file or a folder */
void mixt__run_inputs_folder(const char *weights, char *folder, size_t size);
/** Places of a text that weights have learned, of the `rows` that they have: what the run beside the file says, else
 * all.
 */
int64_t mixt__run_inputs_positions(const char *weights, int64_t rows);
/** Writes a JSON file for people to read, whole or not at all. `value` is given back; NULL: there was no memory. */
mixt_status mixt__run_json_write(const char *path, json_t *value, bool overwrite);
/** Takes back what was written; as mixt__run_dir_discard. */
void mixt__run_inputs_discard(const char *folder);

#endif
