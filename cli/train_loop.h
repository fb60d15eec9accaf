/* The training loop of the command: steps, validation, metrics, progress, a clean stop. */
#ifndef MIXT_CLI_TRAIN_LOOP_H
#define MIXT_CLI_TRAIN_LOOP_H

#include "cli/experiment.h"
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
    mixt_memory memory;
} cli_train_result;

/** Trains to the end of the configuration, to an early stop, or to SIGINT or SIGTERM. */
mixt_status cli_train_loop(cli_experiment *e, cli_run_dir *dir, bool quiet, cli_train_result *result);

#endif
