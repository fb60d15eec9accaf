/* Runs as a page to look at: curves of all that was measured, alerts and decisions marked on them, tables, and what to
 * do. One file that opens anywhere, without a network.
 *
 *   const char *const runs[] = {"runs/a", "runs/b"};
 *   mixt_page_write(runs, 2, "report.html", NULL);
 *
 * Nothing is sampled away: the page holds every row, and where several fall into one column of pixels it draws them
 * from the least to the greatest.
 */
#ifndef MIXT_PAGE_H
#define MIXT_PAGE_H

#include "mixt/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Zero-initialised: every default. */
typedef struct mixt_page_options {
    bool overwrite; /**< replace a file that is there */
} mixt_page_options;

enum { MIXT_PAGE_RUNS_MAX = 1000 };

/**
 * Writes the page of some runs, whole or not at all. A run may still be training; what it lacks, and rows that cannot
 * be read, the page says.
 * @param runs directories of runs, `count` of them, 1 to MIXT_PAGE_RUNS_MAX.
 * @param path of the file to write.
 * @param options NULL: the defaults.
 * @return MIXT_ERROR_FILE where a directory is missing or is no run's, and where the file cannot be written or is
 * there.
 */
mixt_status mixt_page_write(const char *const *runs, int64_t count, const char *path, const mixt_page_options *options);

#ifdef __cplusplus
}
#endif
#endif
