/* Tables without boxes: aligned columns. On a terminal the head is bold and nothing is wider than it: the last column
 * is wrapped, below its row where it has no room beside the others, and columns that are too wide even so are cut
 * ("h.0.attn.qk~").
 */
#ifndef MIXT_CLI_TABLE_H
#define MIXT_CLI_TABLE_H

#include "cli/term.h"

typedef enum cli_align { CLI_LEFT, CLI_RIGHT } cli_align;

enum { CLI_COLUMNS_MAX = 24 };

/** Zero-initialise, add columns, then cells row by row; cells are copied. */
typedef struct cli_table {
    const char *heads[CLI_COLUMNS_MAX];
    cli_align aligns[CLI_COLUMNS_MAX];
    int columns;
    char **cells;
    cli_style *styles;
    int64_t count, capacity, style_capacity;
    bool out_of_memory; // sticky; cli_table_print then prints nothing, and the command fails
} cli_table;

void cli_table_column(cli_table *table, const char *head, cli_align align);
/** The next cell of the current row. */
void cli_table_cell(cli_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** The next cell with a colour, shown on terminals only. */
void cli_table_cell_styled(cli_table *table, cli_style style, const char *text);
/** Prints head (where one column has a name) and rows, each line after `indent` blanks. */
void cli_table_print(const cli_table *table, FILE *stream, int indent);
void cli_table_free(cli_table *table);

#endif
