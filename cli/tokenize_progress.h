/* The progress line of tokenising a text. */
#ifndef MIXT_CLI_TOKENIZE_PROGRESS_H
#define MIXT_CLI_TOKENIZE_PROGRESS_H

#include <mixt/progress.h>

/** A mixt_progress_fn for data that is made ready: a live bar on a terminal, gone when done; else one line for work
 *  that took long. Of other kinds of progress it shows nothing. */
bool cli_tokenize_progress(void *user, const mixt_progress *progress);

#endif
