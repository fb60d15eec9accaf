/* What a terminal needs: colours only where they show, widths, wrapped text, and numbers for people. */
#ifndef MIXT_CLI_TERM_H
#define MIXT_CLI_TERM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef enum cli_style { CLI_PLAIN, CLI_BOLD, CLI_DIM, CLI_RED, CLI_GREEN, CLI_YELLOW, CLI_CYAN } cli_style;

/** True when the stream is a terminal that understands control sequences. */
bool cli_is_terminal(FILE *stream);
/** The sequence that starts a style, "" where colours are off: no terminal, or NO_COLOR is set. */
const char *cli_style_on(FILE *stream, cli_style style);
const char *cli_style_off(FILE *stream);

/** Columns of the terminal; 80 for anything else. */
int cli_columns(FILE *stream);
/** Columns that UTF-8 text takes (one a code point: enough for names and numbers). */
int cli_text_width(const char *text);
/** Prints text wrapped at `width` columns; the first line starts at column `column`, the others at `indent`. */
void cli_wrap(FILE *stream, const char *text, int column, int indent, int width);
/** The same of the first `bytes` of a text, from column 0. */
void cli_wrap_part(FILE *stream, const char *text, size_t bytes, int width);
/** Prints `label` and a line of text: on a terminal wrapped at its width, further lines below the text; else as it is.
 */
void cli_line(FILE *stream, const char *label, const char *format, ...) __attribute__((format(printf, 3, 4)));

/** Each writes to `text` (at least 32 bytes) and returns it. */
const char *cli_format_bytes(char text[32], double bytes);      // 512 B, 1.50 KiB, 3.20 GiB
const char *cli_format_duration(char text[32], double seconds); // 85 ms, 4.2 s, 3m07s, 2h05m
const char *cli_format_count(char text[32], double count);      // 950, 12.3k, 4.56M
const char *cli_format_loss(char text[32], double loss);        // 2.3026, 0.003412, 3.1e-06, 1.234e+05

#endif
