/* A run opened for its weights alone: model and trainer from what the run's directory says (inputs.json), the data only
 * when somebody asks for a part of it. */
#ifndef MIXT_RUN_WITHOUT_DATA_H
#define MIXT_RUN_WITHOUT_DATA_H

#include "run/run.h"

/** Opens the experiment of run->config; with the data, where the directory does not say what prediction needs. */
mixt_status mixt__without_data_open(mixt_run *run, const char *folder);
/** A part of the data of such a run, its samples held against what the model takes; a note warns where they are not
 * those trained on. */
mixt_status mixt__without_data_part(mixt_run *run, const char *split, mixt_data **data);
/** Opens training and validation part of such a run, to train it; nothing to do for any other. */
mixt_status mixt__without_data_data(mixt_run *run);
/** Whether data may take the place of what a run was trained on: `facts`, samples of one shape and classes of the same
 *  names. @param folder of the run */
mixt_status mixt__without_data_check(const mixt_config *config, const char *folder, const mixt_data *facts,
                                     const mixt_data *data);
/** After a failure: where the data's path is no longer there, says how to name another. @return `status`, or that */
mixt_status mixt__data_gone(const mixt_config *config, const char *folder, mixt_status status);
void mixt__without_data_close(mixt__without_data *known);

#endif
