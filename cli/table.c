/* The table printer: widths first, then lines. */
#include "cli/table.h"

#include "cli/support.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { GAP = 2 };

void cli_table_column(cli_table *table, const char *head, cli_align align)
{
    assert(table->columns < CLI_COLUMNS_MAX && !table->count);
    table->heads[table->columns] = head;
    table->aligns[table->columns++] = align;
}

void cli_table_cell_styled(cli_table *table, cli_style style, const char *text)
{
    char *copy = strdup(text);
    if (!copy || !cli_grow((void **)&table->cells, &table->capacity, table->count, sizeof *table->cells) ||
        !cli_grow((void **)&table->styles, &table->style_capacity, table->count, sizeof *table->styles)) {
        free(copy);
        table->out_of_memory = true;
        return;
    }
    table->cells[table->count] = copy;
    table->styles[table->count++] = style;
}

void cli_table_cell(cli_table *table, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    cli_table_cell_styled(table, CLI_PLAIN, text);
}

static void print_cell(FILE *stream, const char *text, cli_style style, cli_align align, int width, bool pad)
{
    int blanks = width - cli_text_width(text);
    if (align == CLI_RIGHT)
        fprintf(stream, "%*s", blanks, "");
    fprintf(stream, "%s%s%s", cli_style_on(stream, style), text, style ? cli_style_off(stream) : "");
    if (align == CLI_LEFT && pad)
        fprintf(stream, "%*s", blanks, "");
}

static void print_head(const cli_table *table, FILE *stream, int indent, const int *widths)
{
    bool named = false;
    for (int c = 0; c < table->columns; c++)
        named |= *table->heads[c] != 0;
    if (!named)
        return;
    fprintf(stream, "%*s", indent, "");
    for (int c = 0; c < table->columns; c++) {
        bool last = c + 1 == table->columns;
        print_cell(stream, table->heads[c], CLI_BOLD, table->aligns[c], widths[c], !last);
        fprintf(stream, "%*s", last ? 0 : GAP, "");
    }
    fputc('\n', stream);
}

void cli_table_print(const cli_table *table, FILE *stream, int indent)
{
    if (table->out_of_memory) {
        fprintf(stream, "%*s(no memory for this table)\n", indent, "");
        return;
    }
    int widths[CLI_COLUMNS_MAX] = {0};
    for (int c = 0; c < table->columns; c++)
        widths[c] = cli_text_width(table->heads[c]);
    for (int64_t i = 0; i < table->count; i++) {
        int c = (int)(i % table->columns), width = cli_text_width(table->cells[i]);
        widths[c] = width > widths[c] ? width : widths[c];
    }
    print_head(table, stream, indent, widths);
    int start = indent; // of the last column
    for (int c = 0; c + 1 < table->columns; c++)
        start += widths[c] + GAP;
    for (int64_t i = 0; i < table->count; i++) {
        int c = (int)(i % table->columns);
        bool last = c + 1 == table->columns;
        if (c == 0)
            fprintf(stream, "%*s", indent, "");
        if (last && table->aligns[c] == CLI_LEFT && !table->styles[i] && cli_is_terminal(stream) &&
            cli_columns(stream) - start >= 24) {
            cli_wrap(stream, table->cells[i], start, start, cli_columns(stream));
            continue;
        }
        print_cell(stream, table->cells[i], table->styles[i], table->aligns[c], widths[c], !last);
        fprintf(stream, last ? "\n" : "%*s", GAP, "");
    }
}

void cli_table_free(cli_table *table)
{
    for (int64_t i = 0; i < table->count; i++)
        free(table->cells[i]);
    free(table->cells);
    free(table->styles);
    *table = (cli_table){0};
}
