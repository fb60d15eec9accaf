/* A run directory: config.yaml, metrics.jsonl, model.safetensors. Made new, never overwritten. */
#ifndef MIXT_CLI_RUN_DIR_H
#define MIXT_CLI_RUN_DIR_H

#include "config/config.h"

#include <stdio.h>

typedef struct cli_run_dir {
    char path[1024];
    FILE *metrics;
} cli_run_dir;

/** Creates the directory that the configuration names (or runs/<model>-<precision>-<number>) and writes config.yaml. */
mixt_status cli_run_dir_create(cli_run_dir *dir, const mixt__config *config);
/** Path of a file inside; `text` has room for 1200 bytes. */
const char *cli_run_dir_file(const cli_run_dir *dir, const char *name, char text[1200]);
void cli_run_dir_close(cli_run_dir *dir);

/** Finds and makes the first free runs/demo-<number>. */
mixt_status cli_demo_folder(char *path, size_t size);

/** One row of metrics.jsonl; NaN leaves a figure out (accuracy, validation) or writes null. */
typedef struct cli_metrics_row {
    int64_t step, epoch, skipped, memory;
    double loss, accuracy, lr, scale, grad_norm, samples_s, val_loss, val_accuracy;
    const char *overflow_layer; // NULL: none
} cli_metrics_row;

/** Appends a row and hands it to the system, so that a killed run keeps what it logged. */
mixt_status cli_run_dir_log(cli_run_dir *dir, const cli_metrics_row *row);

#endif
