/* Printing reports. */
#include "cli/report.h"

#include "cli/json.h"
#include "cli/table.h"

#include <math.h>
#include <string.h>

enum { MISTAKES = 10, NAME_SIZE = 96 };

static const char *name_of(const mixt_data_info *data, int64_t label)
{
    return data->class_names && label < data->classes ? data->class_names[label] : NULL;
}

/** "3 cat", or "3". */
static const char *class_text(const mixt_data_info *data, int64_t label, char text[NAME_SIZE])
{
    const char *name = name_of(data, label);
    snprintf(text, NAME_SIZE, "%lld%s%s", (long long)label, name ? " " : "", name ? name : "");
    return text;
}

/* ---- text ---- */

static void add_share(cli_table *t, double share)
{
    if (isnan(share))
        cli_table_cell(t, "-");
    else
        cli_table_cell(t, "%.2f%%", 100 * share);
}

static void print_classes(const mixt_report_info *r, const mixt_data_info *data)
{
    char text[NAME_SIZE];
    cli_table t = {0};
    cli_table_column(&t, "class", CLI_LEFT);
    cli_table_column(&t, "samples", CLI_RIGHT);
    cli_table_column(&t, "precision", CLI_RIGHT);
    cli_table_column(&t, "recall", CLI_RIGHT);
    cli_table_column(&t, "F1", CLI_RIGHT);
    for (int64_t i = 0; i <= r->classes; i++) {
        const mixt_class_figures *f = &r->figures[i < r->classes ? i : 0];
        bool mean = i == r->classes;
        if (!mean && !f->count && !f->guessed)
            continue;
        cli_table_cell(&t, "%s", mean ? "mean" : class_text(data, i, text));
        cli_table_cell(&t, "%lld", (long long)(mean ? r->samples : f->count));
        add_share(&t, mean ? r->precision : f->precision);
        add_share(&t, mean ? r->recall : f->recall);
        add_share(&t, mean ? r->f1 : f->f1);
    }
    putchar('\n');
    cli_table_print(&t, stdout, 0);
    cli_table_free(&t);
}

/** Whether the matrix can be shown: one column a class, as wide as its largest number. */
static bool matrix_fits(const mixt_report_info *r, const mixt_data_info *data)
{
    char text[NAME_SIZE];
    int width = 0, names = 0;
    if (r->classes > CLI_REPORT_CLASSES || !r->confusion)
        return false;
    for (int64_t column = 0; column < r->classes; column++) {
        int widest = 2, name = cli_text_width(class_text(data, column, text));
        for (int64_t row = 0; row < r->classes; row++) {
            int digits = snprintf(NULL, 0, "%lld", (long long)r->confusion[row * r->classes + column]);
            widest = digits > widest ? digits : widest;
        }
        width += widest + 2;
        names = name > names ? name : names;
    }
    return !cli_is_terminal(stdout) || width + names < cli_columns(stdout);
}

static void print_matrix(const mixt_report_info *r, const mixt_data_info *data)
{
    char text[NAME_SIZE], heads[CLI_REPORT_CLASSES][8];
    cli_table t = {0};
    cli_table_column(&t, "", CLI_LEFT);
    for (int64_t i = 0; i < r->classes; i++) {
        snprintf(heads[i], sizeof heads[i], "%d", (int)i);
        cli_table_column(&t, heads[i], CLI_RIGHT);
    }
    for (int64_t row = 0; row < r->classes; row++) {
        cli_table_cell(&t, "%s", class_text(data, row, text));
        for (int64_t column = 0; column < r->classes; column++) {
            long long count = r->confusion[row * r->classes + column];
            if (count)
                cli_table_cell(&t, "%lld", count);
            else
                cli_table_cell(&t, ".");
        }
    }
    printf("\nConfusion matrix (rows: true, columns: predicted)\n");
    cli_table_print(&t, stdout, 0);
    cli_table_free(&t);
}

/** The largest mistake below `limit`, or as large and further on than `after`; -1: none. */
static int64_t next_mistake(const mixt_report_info *r, int64_t limit, int64_t after)
{
    int64_t best = -1;
    for (int64_t i = 0; i < r->classes * r->classes; i++) {
        int64_t count = r->confusion[i];
        bool left = count > 0 && (count < limit || (count == limit && i > after));
        if (left && i / r->classes != i % r->classes && (best < 0 || count > r->confusion[best]))
            best = i;
    }
    return best;
}

static void print_mistakes(const mixt_report_info *r, const mixt_data_info *data)
{
    char text[NAME_SIZE];
    cli_table t = {0};
    cli_table_column(&t, "class", CLI_LEFT);
    cli_table_column(&t, "taken for", CLI_LEFT);
    cli_table_column(&t, "samples", CLI_RIGHT);
    int64_t limit = INT64_MAX, at = -1;
    for (int i = 0; i < MISTAKES && (at = next_mistake(r, limit, at)) >= 0; i++) {
        limit = r->confusion[at];
        cli_table_cell(&t, "%s", class_text(data, at / r->classes, text));
        cli_table_cell(&t, "%s", class_text(data, at % r->classes, text));
        cli_table_cell(&t, "%lld", (long long)limit);
    }
    if (t.count) {
        printf("\nthe most frequent mistakes\n");
        cli_table_print(&t, stdout, 0);
    }
    cli_table_free(&t);
}

void cli_report_print(const mixt_report_info *report, const mixt_data_info *data)
{
    if (!report->classes)
        return;
    print_classes(report, data);
    if (matrix_fits(report, data))
        print_matrix(report, data);
    else if (report->confusion)
        print_mistakes(report, data);
}

const char *cli_report_values(const mixt_report_info *report, char text[128])
{
    text[0] = 0;
    if (report->classes == 2 && report->samples)
        snprintf(text, 128, ", F1 %.2f%% (of class 1), %.2f%% (mean)", 100 * report->figures[1].f1, 100 * report->f1);
    if (report->classes || !report->samples)
        return text;
    int used = snprintf(text, 128, ", MAE %.4g, RMSE %.4g", report->mae, report->rmse);
    if (!isnan(report->r2))
        snprintf(text + used, 128 - (size_t)used, ", R2 %.4f", report->r2);
    return text;
}

/* ---- JSON ---- */

static json_t *json_class(const mixt_report_info *r, const mixt_data_info *data, int64_t label)
{
    const mixt_class_figures *f = &r->figures[label];
    const char *name = name_of(data, label);
    json_t *o = cli_json_pack("{s:I, s:I, s:I, s:I}", "class", (json_int_t)label, "samples", (json_int_t)f->count,
                              "guessed", (json_int_t)f->guessed, "right", (json_int_t)f->right);
    if (name)
        cli_json_set(o, "name", cli_json_string(name));
    cli_json_set(o, "precision", cli_json_real(f->precision));
    cli_json_set(o, "recall", cli_json_real(f->recall));
    cli_json_set(o, "f1", cli_json_real(f->f1));
    return o;
}

static json_t *json_matrix(const mixt_report_info *r)
{
    json_t *rows = json_array();
    for (int64_t i = 0; i < r->classes; i++) {
        json_t *row = json_array();
        for (int64_t j = 0; j < r->classes; j++)
            cli_json_add(row, json_integer(r->confusion[i * r->classes + j]));
        cli_json_add(rows, row);
    }
    return rows;
}

void cli_report_json(const mixt_report_info *report, const mixt_data_info *data, json_t *object)
{
    if (!report->classes) {
        cli_json_set(object, "mae", cli_json_real(report->mae));
        cli_json_set(object, "rmse", cli_json_real(report->rmse));
        cli_json_set(object, "r2", cli_json_real(report->r2));
        return;
    }
    cli_json_set(object, "precision", cli_json_real(report->precision));
    cli_json_set(object, "recall", cli_json_real(report->recall));
    cli_json_set(object, "f1", cli_json_real(report->f1));
    if (report->classes == 2)
        cli_json_set(object, "f1_binary", cli_json_real(report->figures[1].f1));
    json_t *classes = json_array();
    for (int64_t i = 0; i < report->classes; i++)
        cli_json_add(classes, json_class(report, data, i));
    cli_json_set(object, "classes", classes);
    if (report->confusion)
        cli_json_set(object, "confusion", json_matrix(report));
}
