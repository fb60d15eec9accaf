/* A table as text, Markdown, CSV and LaTeX. Human formats have one list of columns, written in UTF-8 with "–" for what
 * is missing; each format then escapes what it must. Numbers are the same in every locale.
 */
#include "prove/table.h"

#include "base/c_locale.h"
#include "base/status.h"
#include "store/file.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELL = 700, COLUMNS_MAX = 16, TEXT_WIDTH = 100 };

#define MISSING "–"
#define TO " → "

/** The unit of memory in a table: that of its largest number. */
typedef struct unit {
    const char *name;
    double bytes;
} unit;

static unit find_unit(const mixt_table *t)
{
    static const unit units[] = {{"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}};
    double most = 0;
    for (int64_t i = 0; i < t->row_count; i++)
        for (int side = 0; side < MIXT_TABLE_SIDES; side++)
            most = fmax(most, t->rows[i].shown.sides[side].memory.total); // fmax passes NaN over
    int chosen = 0;
    while (chosen < 2 && most >= units[chosen + 1].bytes)
        chosen++;
    return units[chosen];
}

/* ---- cells for people ---- */

typedef struct column {
    const char *head;
    void (*write)(const mixt_table_row *row, const struct column *column, char cell[CELL]);
    size_t offset; // of a number in mixt_table_memory
    unit unit;     // of memory
    bool words;    // aligned to the left
} column;

static void add(char cell[CELL], const char *text)
{
    size_t used = strlen(cell);
    snprintf(cell + used, CELL - used, "%s", text);
}

/** About three digits, or whole numbers. */
static void add_number(char cell[CELL], double value)
{
    char text[64];
    if (isfinite(value))
        snprintf(text, sizeof text, "%.*f", fabs(value) < 10 ? 2 : fabs(value) < 100 ? 1 : 0, value);
    add(cell, isfinite(value) ? text : MISSING);
}

static void write_model(const mixt_table_row *row, const column *c, char cell[CELL])
{
    (void)c;
    add(cell, row->model);
}

static void write_precision(const mixt_table_row *row, const column *c, char cell[CELL])
{
    (void)c;
    for (int side = 0; side < MIXT_TABLE_SIDES; side++) {
        const char *name = row->sides[side].precision;
        add(cell, side ? TO : "");
        add(cell, *name ? name : MISSING);
    }
}

static void write_runs(const mixt_table_row *row, const column *c, char cell[CELL])
{
    (void)c;
    long long fp32 = (long long)row->sides[MIXT_TABLE_FP32].runs, mixed = (long long)row->sides[MIXT_TABLE_MIXED].runs;
    snprintf(cell, CELL, fp32 == mixed ? "%lld" : "%lld" TO "%lld", fp32, mixed);
}

static void write_fp32(const mixt_table_row *row, const column *c, char cell[CELL])
{
    (void)c;
    add_number(cell, row->sides[MIXT_TABLE_FP32].samples_s);
}

static void write_mixed(const mixt_table_row *row, const column *c, char cell[CELL])
{
    (void)c;
    add_number(cell, row->sides[MIXT_TABLE_MIXED].samples_s);
}

static void write_speedup(const mixt_table_row *row, const column *c, char cell[CELL])
{
    (void)c;
    add_number(cell, row->speedup);
    add(cell, isfinite(row->speedup) ? "×" : "");
}

static void write_memory(const mixt_table_row *row, const column *c, char cell[CELL])
{
    double bytes[MIXT_TABLE_SIDES];
    for (int side = 0; side < MIXT_TABLE_SIDES; side++)
        bytes[side] = *(const double *)(const void *)((const char *)&row->sides[side].memory + c->offset);
    add_number(cell, bytes[0] / c->unit.bytes);
    if (isnan(bytes[0]) && isnan(bytes[1]))
        return;
    add(cell, TO);
    add_number(cell, bytes[1] / c->unit.bytes);
}

static void write_saved(const mixt_table_row *row, const column *c, char cell[CELL])
{
    (void)c;
    char text[64];
    snprintf(text, sizeof text, "%.1f%%", 100 * row->saved);
    add(cell, isfinite(row->saved) ? text : MISSING);
}

/** "98.12 ± 0.30"; the interval's half. */
static void add_mean(char cell[CELL], const mixt_table_mean *m, double factor, int digits)
{
    char text[64];
    double half = factor * (m->interval.high - m->interval.low) / 2;
    if (!isfinite(m->mean)) {
        add(cell, MISSING);
        return;
    }
    snprintf(text, sizeof text, "%.*f", digits, factor * m->mean);
    add(cell, text);
    snprintf(text, sizeof text, " ± %.*f", digits, half);
    add(cell, isfinite(half) ? text : "");
}

static void add_means(const mixt_table_row *row, char cell[CELL], bool accuracy)
{
    const mixt_table_mean *means[MIXT_TABLE_SIDES];
    for (int side = 0; side < MIXT_TABLE_SIDES; side++)
        means[side] = accuracy ? &row->sides[side].accuracy : &row->sides[side].loss;
    bool diverged = row->sides[0].diverged || row->sides[1].diverged;
    bool none = isnan(means[0]->mean) && isnan(means[1]->mean) && !diverged;
    for (int side = 0; side < (none ? 1 : MIXT_TABLE_SIDES); side++) {
        char text[64];
        add(cell, side ? TO : "");
        add_mean(cell, means[side], accuracy ? 100 : 1, accuracy ? 2 : 4);
        snprintf(text, sizeof text, " (%lld diverged)", (long long)row->sides[side].diverged);
        add(cell, row->sides[side].diverged ? text : "");
    }
}

static void write_accuracy(const mixt_table_row *row, const column *c, char cell[CELL])
{
    (void)c;
    add_means(row, cell, true);
}

static void write_loss(const mixt_table_row *row, const column *c, char cell[CELL])
{
    (void)c;
    add_means(row, cell, false);
}

static bool has_accuracy(const mixt_table_row *row)
{
    return !isnan(row->sides[0].accuracy.mean) || !isnan(row->sides[1].accuracy.mean);
}

#define MEMORY(field) .write = write_memory, .offset = offsetof(mixt_table_memory, field)

/** All columns that this table needs: accuracy where there is one, the loss of what has none. */
static int find_columns(const mixt_table *t, column columns[COLUMNS_MAX])
{
    static const column all[] = {
        {"model", .write = write_model, .words = true},
        {"precision", .write = write_precision, .words = true},
        {"runs", .write = write_runs},
        {"FP32, samples/s", .write = write_fp32},
        {"mixed, samples/s", .write = write_mixed},
        {"speed-up", .write = write_speedup},
        {"weights", MEMORY(weights)},
        {"gradients", MEMORY(gradients)},
        {"moments", MEMORY(moments)},
        {"activations", MEMORY(activations)},
        {"workspace", MEMORY(workspace)},
        {"memory", MEMORY(total)},
        {"saved", .write = write_saved},
        {"accuracy, %", .write = write_accuracy},
        {"loss", .write = write_loss},
    };
    int count = 0;
    bool accuracy = false, loss = false;
    for (int64_t i = 0; i < t->row_count; i++) {
        accuracy = accuracy || has_accuracy(&t->rows[i].shown);
        loss = loss || !has_accuracy(&t->rows[i].shown);
    }
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        bool left_out = (all[i].write == write_accuracy && !accuracy) || (all[i].write == write_loss && !loss);
        columns[count] = all[i];
        columns[count].unit = find_unit(t);
        count += !left_out;
    }
    return count;
}

static void write_head(const column *c, char cell[CELL])
{
    bool memory = c->write == write_memory;
    snprintf(cell, CELL, "%s%s%s", c->head, memory ? ", " : "", memory ? c->unit.name : "");
}

/** A cell, or the head of a column where `row` is NULL. */
static void write_cell(const mixt_table_row *row, const column *c, char cell[CELL])
{
    cell[0] = '\0';
    if (row)
        c->write(row, c, cell);
    else
        write_head(c, cell);
}

/* ---- escapes ---- */

typedef struct escape {
    const char *from, *to;
} escape;

/** Writes a cell with what stands for something else replaced; control characters become blanks. */
static void put_escaped(FILE *out, const char *text, const escape *escapes)
{
    while (*text) {
        const escape *e = escapes;
        while (e->from && strncmp(text, e->from, strlen(e->from)))
            e++;
        if (e->from)
            fputs(e->to, out);
        else
            fputc((unsigned char)*text < 0x20 || *text == 0x7f ? ' ' : *text, out);
        text += e->from ? strlen(e->from) : 1;
    }
}

static const escape markdown_escapes[] = {{"|", "\\|"},  {"\\", "\\\\"}, {"`", "\\`"}, {"*", "\\*"},
                                          {"<", "&lt;"}, {"_", "\\_"},   {"[", "\\["}, {NULL, NULL}};
static const escape latex_escapes[] = {{"\\", "\\textbackslash{}"},
                                       {"_", "\\_"},
                                       {"%", "\\%"},
                                       {"&", "\\&"},
                                       {"#", "\\#"},
                                       {"$", "\\$"},
                                       {"{", "\\{"},
                                       {"}", "\\}"},
                                       {"~", "\\textasciitilde{}"},
                                       {"^", "\\textasciicircum{}"},
                                       {"<", "$<$"},
                                       {">", "$>$"},
                                       {"|", "$|$"},
                                       {MISSING, "--"},
                                       {"→", "$\\rightarrow$"},
                                       {"±", "$\\pm$"},
                                       {"×", "$\\times$"},
                                       {NULL, NULL}};
static const escape no_escapes[] = {{NULL, NULL}};

/* ---- formats ---- */

typedef struct grid {
    const mixt_table *table;
    column columns[COLUMNS_MAX];
    int count;
} grid;

static const mixt_table_row *row_of(const grid *g, int64_t index)
{
    return index < 0 ? NULL : &g->table->rows[index].shown;
}

static void print_lines(FILE *out, const grid *g, const char *begin, const char *between, const char *end,
                        const escape *escapes, const char *below_head)
{
    char cell[CELL];
    for (int64_t row = -1; row < g->table->row_count; row++) {
        fputs(begin, out);
        for (int i = 0; i < g->count; i++) {
            write_cell(row_of(g, row), &g->columns[i], cell);
            fputs(i ? between : "", out);
            put_escaped(out, cell, escapes);
        }
        fputs(end, out);
        if (row < 0)
            fputs(below_head, out);
    }
}

static void print_markdown(FILE *out, const grid *g)
{
    char rule[COLUMNS_MAX * 8] = "|";
    for (int i = 0; i < g->count; i++)
        strcat(rule, g->columns[i].words ? "---|" : "---:|");
    strcat(rule, "\n");
    print_lines(out, g, "| ", " | ", " |\n", markdown_escapes, rule);
}

static void print_latex(FILE *out, const grid *g)
{
    fputs("\\begin{tabular}{", out);
    for (int i = 0; i < g->count; i++)
        fputc(g->columns[i].words ? 'l' : 'r', out);
    fputs("}\n\\hline\n", out);
    print_lines(out, g, "", " & ", " \\\\\n", latex_escapes, "\\hline\n");
    fputs("\\hline\n\\end{tabular}\n", out);
}

/** Characters of UTF-8. */
static int width_of(const char *text)
{
    int width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static int widest(const grid *g, int64_t row)
{
    char cell[CELL];
    int most = 0;
    for (int i = 0; i < g->count; i++) {
        write_cell(row_of(g, row), &g->columns[i], cell);
        most = width_of(cell) > most ? width_of(cell) : most;
    }
    return most;
}

/** Rows [from, to) side by side below each other's figures. */
static void print_block(FILE *out, const grid *g, int64_t from, int64_t to)
{
    char cell[CELL];
    int heads = widest(g, -1);
    for (int i = 0; i < g->count; i++) {
        write_cell(NULL, &g->columns[i], cell);
        fprintf(out, "%s%*s", cell, heads - width_of(cell), "");
        for (int64_t row = from; row < to; row++) {
            write_cell(row_of(g, row), &g->columns[i], cell);
            fprintf(out, "  %*s", widest(g, row) - width_of(cell), "");
            put_escaped(out, cell, no_escapes);
        }
        fputc('\n', out);
    }
}

/** A figure a line: there are too many for one line a model. As many models side by side as fit. */
static void print_text(FILE *out, const grid *g)
{
    for (int64_t from = 0, to; from < g->table->row_count; from = to) {
        int used = widest(g, -1) + 2 + widest(g, from);
        for (to = from + 1; to < g->table->row_count && used + 2 + widest(g, to) <= TEXT_WIDTH; to++)
            used += 2 + widest(g, to);
        fputs(from ? "\n" : "", out);
        print_block(out, g, from, to);
    }
}

/* ---- CSV ---- */

/** Quoted where a reader would misunderstand it. */
static void put_quoted(FILE *out, const char *text)
{
    bool plain = !text[strcspn(text, ",\"\r\n")];
    if (plain) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++)
        fprintf(out, *text == '"' ? "\"\"" : "%c", *text);
    fputc('"', out);
}

static void put_number(FILE *out, double value)
{
    fputc(',', out);
    if (isfinite(value))
        fprintf(out, "%.9g", value);
}

static void put_side(FILE *out, const mixt_table_cell *c)
{
    const mixt_table_memory *m = &c->memory;
    const double numbers[] = {c->samples_s,
                              m->weights,
                              m->gradients,
                              m->moments,
                              m->activations,
                              m->workspace,
                              m->other,
                              m->total,
                              c->loss.mean,
                              c->loss.interval.low,
                              c->loss.interval.high,
                              c->accuracy.mean,
                              c->accuracy.interval.low,
                              c->accuracy.interval.high};
    fputc(',', out);
    put_quoted(out, c->precision);
    fprintf(out, ",%lld,%lld", (long long)c->runs, (long long)c->diverged);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        put_number(out, numbers[i]);
}

static void print_csv(FILE *out, const mixt_table *t)
{
    static const char *const names[] = {"precision",    "runs",         "diverged",    "samples_s", "weights",
                                        "gradients",    "moments",      "activations", "workspace", "other",
                                        "memory",       "loss",         "loss_low",    "loss_high", "accuracy",
                                        "accuracy_low", "accuracy_high"};
    fputs("model", out);
    for (size_t i = 0; i < 2 * sizeof names / sizeof names[0]; i++) {
        size_t each = sizeof names / sizeof names[0];
        fprintf(out, ",%s_%s", i < each ? "fp32" : "mixed", names[i % each]);
    }
    fputs(",speedup,saved\r\n", out);
    for (int64_t i = 0; i < t->row_count; i++) {
        const mixt_table_row *row = &t->rows[i].shown;
        put_quoted(out, row->model);
        put_side(out, &row->sides[MIXT_TABLE_FP32]);
        put_side(out, &row->sides[MIXT_TABLE_MIXED]);
        put_number(out, row->speedup);
        put_number(out, row->saved);
        fputs("\r\n", out);
    }
}

/* ---- from outside ---- */

static void print(FILE *out, const mixt_table *t, mixt_table_format format)
{
    grid g = {.table = t};
    g.count = find_columns(t, g.columns);
    if (format == MIXT_TABLE_CSV)
        print_csv(out, t);
    else
        (format == MIXT_TABLE_TEXT       ? print_text
         : format == MIXT_TABLE_MARKDOWN ? print_markdown
                                         : print_latex)(out, &g);
}

mixt_status mixt_table_print(mixt_table *t, mixt_table_format format, const char **text)
{
    mixt__c_locale locale;
    size_t bytes;
    MIXT_TRY(mixt__need(text));
    *text = NULL;
    MIXT_TRY(mixt__need_open(t, "table"));
    if ((unsigned)format > MIXT_TABLE_LATEX)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "format %d of a table: there is none", (int)format);
    MIXT_TRY(mixt__c_locale_enter(&locale));
    free(t->text);
    t->text = NULL;
    FILE *out = open_memstream(&t->text, &bytes);
    bool good = out;
    if (out) {
        print(out, t, format);
        good = !ferror(out);
        good = !fclose(out) && good;
    }
    mixt__c_locale_leave(&locale);
    *text = good ? t->text : NULL;
    return good ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory for a table");
}

mixt_status mixt_table_write(mixt_table *t, mixt_table_format format, const char *path, bool overwrite)
{
    const char *text;
    MIXT_TRY(mixt__need(path));
    MIXT_TRY(mixt_table_print(t, format, &text));
    return mixt__file_put(path, text, strlen(text), overwrite);
}
