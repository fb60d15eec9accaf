/* The progress line of tokenising a text. */
#ifndef MIXT_CLI_TOKENIZE_PROGRESS_H
#define MIXT_CLI_TOKENIZE_PROGRESS_H

#include <stdint.h>

/** As mixt_data_options.progress: a live bar on a terminal, gone when done; else one line for work that took long. */
void cli_tokenize_progress(void *user, const char *what, int64_t done, int64_t total);

#endif
