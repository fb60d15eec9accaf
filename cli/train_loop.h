/* The training loop of the command: steps, validation, metrics, progress, a clean stop. */
#ifndef MIXT_CLI_TRAIN_LOOP_H
#define MIXT_CLI_TRAIN_LOOP_H

#include "cli/experiment.h"
#include "cli/loop_state.h"
#include "cli/run_dir.h"

typedef struct cli_train_result {
    int64_t steps, skipped, validations;
    double loss, accuracy;         // of the last step
    double val_loss, val_accuracy; // of the last validation; NaN: none
    double best_val_loss;
    double seconds, step_seconds; // in all; in steps alone, validation and logging left out
    double samples_s;
    double energy; // joules of the device, validation included; NaN: not known
    bool stopped_early, interrupted;
    int64_t checkpoints_lost; // that could not be saved
    int64_t best_step;        // of the checkpoint with the best validation loss; -1: none
    mixt_memory memory;
} cli_train_result;

/** Trains to the end of the configuration, to an early stop, or to SIGINT or SIGTERM, which leave a checkpoint;
 *  then saves the weights as the run's model.safetensors.
 *  @param resumed where the loop goes on, the trainer being restored to the same update; NULL: at the beginning */
mixt_status cli_train_loop(cli_experiment *e, cli_run_dir *dir, bool quiet, const cli_loop_state *resumed,
                           cli_train_result *result);

#endif
