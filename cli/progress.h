/* The progress line of a long run: live with a bar and ETA on a terminal, else a plain line every ten seconds and at
 * the start of each epoch, so that a log stays short. */
#ifndef MIXT_CLI_PROGRESS_H
#define MIXT_CLI_PROGRESS_H

#include "cli/term.h"

#include <mixt/progress.h>

/** What to show. NaN hides a figure; steps or epochs 0 means that the total is not known. */
typedef struct cli_progress_info {
    int64_t step, steps;   // updates done, of all
    int64_t epoch, epochs; // the current one from 1, of all
    const char *part;      // what stands for "epoch"; NULL: that
    double loss, accuracy; // accuracy in [0, 1]
    double items_s;
    const char *item; // "samples", "tokens"; NULL: samples
    double scale;     // loss scale; NaN without scaling
} cli_progress_info;

typedef struct cli_progress {
    FILE *stream;
    bool live, quiet, line_open;
    double started, part_started, shown; // seconds on cli_time_now's clock
    int64_t first_step, epoch;
} cli_progress;

/** `first_step` is the number of updates done before (a resumed run), so that the ETA counts only what is new. */
void cli_progress_start(cli_progress *progress, FILE *stream, bool quiet, int64_t first_step);
/** Another part of the work begins, after this many updates of it: the ETA counts from here. */
void cli_progress_begin_part(cli_progress *progress, int64_t first_step);
/** Call after every step: draws at most ten times a second. */
void cli_progress_update(cli_progress *progress, const cli_progress_info *info);
/** Takes what a call tells of its steps into `info`, and does the same. */
void cli_progress_show(cli_progress *progress, cli_progress_info *info, const mixt_progress *told);
/** Prints a line that stays, above the live one: a validation result, a warning. Nothing when quiet. */
void cli_progress_note(cli_progress *progress, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** The same, also of a quiet run: what a user must know. */
void cli_progress_warn(cli_progress *progress, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** Draws the final state and ends the line. */
void cli_progress_finish(cli_progress *progress, const cli_progress_info *info);

#endif
