/* A run directory: config.yaml, metrics.jsonl, model.safetensors, and policy.yaml where a policy file was used. Made
 * new, never overwritten; enough to evaluate the run from any folder, as long as the data stays where it is.
 */
#ifndef MIXT_CLI_RUN_DIR_H
#define MIXT_CLI_RUN_DIR_H

#include "config/config.h"

#include <jansson.h>
#include <stdio.h>

typedef struct cli_run_dir {
    char path[1024]; // "": not made
    FILE *metrics;
} cli_run_dir;

/** Creates the directory that the configuration names (or runs/<model>-<precision>-<number>), copies the policy file
 * into it, makes the configuration's names of files absolute, and writes config.yaml. `kind` is that of the opened
 * data. */
mixt_status cli_run_dir_create(cli_run_dir *dir, mixt__config *config, const char *kind);
/** Takes back a directory in which nothing has happened yet, so that the same command can be tried again. */
void cli_run_dir_discard(cli_run_dir *dir);
/** The configuration of a finished run, with the policy that lies beside it. */
mixt_status cli_run_dir_config(const char *run, mixt__config **config);
/** Path of a file inside; `text` has room for 1200 bytes. */
const char *cli_run_dir_file(const cli_run_dir *dir, const char *name, char text[1200]);
void cli_run_dir_close(cli_run_dir *dir);

/** Finds and makes the first free runs/demo-<number>. */
mixt_status cli_demo_folder(char *path, size_t size);

/** A number for JSON, which has no NaN and no infinity: null for those. */
json_t *cli_json_real(double value);

/** One row of metrics.jsonl; NaN leaves a figure out (accuracy, validation, energy) or writes null. */
typedef struct cli_metrics_row {
    int64_t step, epoch, skipped, memory;
    double loss, accuracy, lr, scale, grad_norm, samples_s, val_loss, val_accuracy;
    double energy;              // joules since the run began
    const char *overflow_layer; // NULL: none
} cli_metrics_row;

/** Appends a row and hands it to the system, so that a killed run keeps what it logged. */
mixt_status cli_run_dir_log(cli_run_dir *dir, const cli_metrics_row *row);

#endif
