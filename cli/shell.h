/* Names as words of the shell, for commands that are printed to be typed. */
#ifndef MIXT_CLI_SHELL_H
#define MIXT_CLI_SHELL_H

#include <stdio.h>

/** Writes a word, quoted where the shell would read something else. */
void cli_shell_word(FILE *stream, const char *word);

#endif
