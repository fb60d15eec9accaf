/* Which weights of a run are meant: see mixt_run_folder_weights in mixt/run.h. */
#ifndef MIXT_RUN_WEIGHTS_H
#define MIXT_RUN_WEIGHTS_H

#include "mixt/run.h"

enum { MIXT_WEIGHTS_PATH = 4200 };

/** What mixt_run_folder_weights finds; fails where it has no room in `size` bytes. */
mixt_status mixt__run_folder_weights(const char *folder, const char *weights, char *path, size_t size);

/** Fails when the run's training is not over: it has checkpoints but no model.safetensors, or went on since that was
 * written. Both are of a run that was killed, or is going on.
 *  @param instead what the message says to do */
mixt_status mixt__run_weights_final(const char *run, const char *instead);

#endif
