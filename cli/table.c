/* The table printer: widths first, then lines. */
#include "cli/table.h"

#include "cli/support.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { GAP = 2, LAST_MIN = 36, BELOW = 6, CUT_MIN = 10 };

/** How a table fits its stream. */
typedef struct layout {
    int indent, widths[CLI_COLUMNS_MAX];
    int columns; // of the terminal; 0: no terminal, as wide as it gets
    int start;   // of the last column
    bool below;  // the last column has no room beside the others: it goes below them
} layout;

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

/** Bytes of `text` that take at most `width` columns. */
static int bytes_within(const char *text, int width)
{
    int bytes = 0;
    for (int columns = 0; text[bytes]; bytes++) {
        columns += ((unsigned char)text[bytes] & 0xc0) != 0x80;
        if (columns > width)
            break;
    }
    return bytes;
}

static void print_cell(FILE *stream, const char *text, cli_style style, cli_align align, int width, bool pad)
{
    int blanks = width - cli_text_width(text);
    if (blanks < 0 && pad) { // a column that was cut
        fprintf(stream, "%s%.*s~%s", cli_style_on(stream, style), bytes_within(text, width - 1), text,
                style ? cli_style_off(stream) : "");
        return;
    }
    if (align == CLI_RIGHT)
        fprintf(stream, "%*s", blanks, "");
    fprintf(stream, "%s%s%s", cli_style_on(stream, style), text, style ? cli_style_off(stream) : "");
    if (align == CLI_LEFT && pad)
        fprintf(stream, "%*s", blanks, "");
}

/** The widest columns of text are narrowed until all but the last fit; that one is wrapped. */
static layout fit(const cli_table *table, FILE *stream, int indent)
{
    layout l = {.indent = indent, .start = indent, .columns = cli_is_terminal(stream) ? cli_columns(stream) : 0};
    int last = table->columns - 1;
    for (int c = 0; c < table->columns; c++)
        l.widths[c] = cli_text_width(table->heads[c]);
    for (int64_t i = 0; i < table->count; i++) {
        int c = (int)(i % table->columns), width = cli_text_width(table->cells[i]);
        l.widths[c] = width > l.widths[c] ? width : l.widths[c];
    }
    for (int c = 0; c < last; c++)
        l.start += l.widths[c] + GAP;
    int tail = table->aligns[last] == CLI_RIGHT ? l.widths[last] : -GAP; // numbers are never wrapped
    while (l.columns && l.start + tail > l.columns) {
        int widest = -1;
        for (int c = 0; c < last; c++)
            if (table->aligns[c] == CLI_LEFT && (widest < 0 || l.widths[c] > l.widths[widest]))
                widest = c;
        if (widest < 0 || l.widths[widest] <= CUT_MIN)
            break;
        l.widths[widest]--;
        l.start--;
    }
    int wanted = l.widths[last] < LAST_MIN ? l.widths[last] : LAST_MIN;
    l.below = l.columns && table->aligns[last] == CLI_LEFT && l.columns - l.start < wanted;
    return l;
}

static void print_head(const cli_table *table, FILE *stream, const layout *l)
{
    bool named = false;
    int count = table->columns - l->below;
    for (int c = 0; c < count; c++)
        named |= *table->heads[c] != 0;
    if (!named)
        return;
    fprintf(stream, "%*s", l->indent, "");
    for (int c = 0; c < count; c++) {
        bool last = c + 1 == count;
        print_cell(stream, table->heads[c], CLI_BOLD, table->aligns[c], l->widths[c], !last);
        fprintf(stream, "%*s", last ? 0 : GAP, "");
    }
    fputc('\n', stream);
}

/** The last cell of a row, and the end of its line. */
static void print_last(const cli_table *table, FILE *stream, const layout *l, int64_t i)
{
    int c = table->columns - 1, start = l->below ? l->indent + BELOW : l->start;
    const char *text = table->cells[i];
    bool wrapped = l->columns && table->aligns[c] == CLI_LEFT && !table->styles[i];
    if (l->below && *text)
        fprintf(stream, "\n%*s", start, "");
    if (wrapped) {
        cli_wrap(stream, text, start, start, l->columns);
        return;
    }
    print_cell(stream, text, table->styles[i], table->aligns[c], l->below ? 0 : l->widths[c], false);
    fputc('\n', stream);
}

void cli_table_print(const cli_table *table, FILE *stream, int indent)
{
    if (table->out_of_memory) {
        cli_output_lose();
        return;
    }
    layout l = fit(table, stream, indent);
    print_head(table, stream, &l);
    for (int64_t i = 0; i < table->count; i++) {
        int c = (int)(i % table->columns);
        if (c == 0)
            fprintf(stream, "%*s", indent, "");
        if (c + 1 == table->columns) {
            print_last(table, stream, &l, i);
            continue;
        }
        bool at_end = l.below && c + 2 == table->columns; // nothing follows on this line
        print_cell(stream, table->cells[i], table->styles[i], table->aligns[c], l.widths[c], true);
        fprintf(stream, "%*s", at_end ? 0 : GAP, "");
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
