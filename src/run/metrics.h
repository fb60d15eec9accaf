/* metrics.jsonl: one row of JSON an update. Rows go to the system as they come, so that a killed run keeps what it
 * logged; while the disk is full they wait in memory, so that a run does not end for want of a few bytes. One process
 * writes at a time.
 */
#ifndef MIXT_RUN_METRICS_H
#define MIXT_RUN_METRICS_H

#include "mixt/run.h"

typedef struct mixt__metrics {
    char path[1200];
    int fd;        // meaningful while `open`
    int64_t bytes; // in the file, all of them whole rows
    char *waiting; // rows that the disk had no room for
    size_t waiting_bytes;
    bool open;
} mixt__metrics;

/** Makes the file, or goes on with one that is there: its first `keep` bytes, as far as they are whole rows. Fails when
 * it exists and is not to be kept (`keep` negative), or when another process has it open.
 *  @param path kept up to 1199 bytes */
mixt_status mixt__metrics_open(mixt__metrics *metrics, const char *path, int64_t keep);
mixt_status mixt__metrics_log(mixt__metrics *metrics, const mixt_run_row *row);
/** The observer that writes rows; `user` is a mixt__metrics. */
mixt_observer mixt__metrics_observe;
/** Bytes of all rows so far, also of those that wait. */
int64_t mixt__metrics_length(const mixt__metrics *metrics);
/** Brings waiting rows to the file: the end of a run. */
mixt_status mixt__metrics_flush(mixt__metrics *metrics);
/** Nothing to do on one that is not open. */
void mixt__metrics_close(mixt__metrics *metrics);

#endif
