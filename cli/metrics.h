/* metrics.jsonl: one row of JSON an update. Rows go to the system as they come, so that a killed run keeps what it
 * logged; while the disk is full they wait in memory, so that a run does not end for want of a few bytes. One process
 * writes at a time.
 */
#ifndef MIXT_CLI_METRICS_H
#define MIXT_CLI_METRICS_H

#include "cli/json.h"

typedef struct cli_metrics {
    char path[1200];
    int fd;        // meaningful while `open`
    int64_t bytes; // in the file, all of them whole rows
    char *waiting; // rows that the disk had no room for
    size_t waiting_bytes;
    bool open;
} cli_metrics;

/** One row; NaN leaves a figure out (accuracy, validation, energy) or writes null. */
typedef struct cli_metrics_row {
    int64_t step, epoch, skipped, memory;
    double loss, accuracy, lr, scale, grad_norm, samples_s, val_loss, val_accuracy;
    double energy;              // joules since the run began
    double checkpoint_stall;    // seconds that training stood still for checkpoints since the last row; 0: none
    const char *overflow_layer; // NULL: none
} cli_metrics_row;

/** Makes the file, or goes on with one that is there: its first `keep` bytes, as far as they are whole rows. Fails when
 * it exists and is not to be kept (`keep` negative), or when another process has it open.
 *  @param path kept up to 1199 bytes */
mixt_status cli_metrics_open(cli_metrics *metrics, const char *path, int64_t keep);
mixt_status cli_metrics_log(cli_metrics *metrics, const cli_metrics_row *row);
/** Bytes of all rows so far, also of those that wait. */
int64_t cli_metrics_length(const cli_metrics *metrics);
/** Brings waiting rows to the file: the end of a run. */
mixt_status cli_metrics_flush(cli_metrics *metrics);
/** Nothing to do on one that is not open. */
void cli_metrics_close(cli_metrics *metrics);

#endif
