/* Text of a model on a terminal. */
#ifndef MIXT_CLI_SHOWN_H
#define MIXT_CLI_SHOWN_H

#include <stdint.h>
#include <stdio.h>

/** Writes text with its control characters replaced: it must not steer the terminal. */
void cli_show(FILE *stream, const char *text, int64_t length);

#endif
