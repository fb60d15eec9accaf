/* Which weights of a run a command works with: the final ones, or those of a checkpoint. */
#ifndef MIXT_CLI_WEIGHTS_H
#define MIXT_CLI_WEIGHTS_H

#include "mixt/types.h"

enum { CLI_WEIGHTS_PATH = 4200 };

/** For the table of a command's options. */
#define CLI_CHECKPOINT_OPTION                                                                                          \
    {                                                                                                                  \
        "checkpoint", 'c', CLI_CHOICE_OR_COUNT, "C", "final|best|last",                                                \
            .fallback = "final",                                                                                       \
            .help = "whose weights: of model.safetensors, of the best or last checkpoint, or the step of one"          \
    }

/** The file with the weights that `which`, a value of that option, names. A checkpoint is checked whole. */
mixt_status cli_weights_path(const char *run, const char *which, char path[CLI_WEIGHTS_PATH]);

/** Fails when the run's training is not over: it has checkpoints but no model.safetensors, or went on since that was
 * written. Both are of a run that was killed, or is going on.
 *  @param instead what the message says to do */
mixt_status cli_weights_final(const char *run, const char *instead);

#endif
