/* mixt plot: curves of the figures that runs wrote while they trained. */
#include "cli/commands.h"

#include "cli/support.h"

#include <mixt/metrics.h>
#include <mixt/plot.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { METRICS_MAX = MIXT_CURVES_MAX, NAME_SIZE = 256 };

/** What the command works with. */
typedef struct plotter {
    const cli_args *args;
    mixt_metrics *runs[MIXT_CURVES_MAX];
    char list[256]; // --metric, cut into names
    const char *metrics[METRICS_MAX];
    int metric_count;
    mixt_curve curves[MIXT_CURVES_MAX];
    char names[MIXT_CURVES_MAX][NAME_SIZE];
    double *points[2 * MIXT_CURVES_MAX]; // x and y of each curve
    int curve_count;
} plotter;

static bool ends_in(const char *path, const char *extension)
{
    size_t length = strlen(path), tail = strlen(extension);
    return length > tail && !strcmp(path + length - tail, extension);
}

/** What is wrong on the command line is said before anything is read. */
static int check(plotter *p)
{
    const cli_args *args = p->args;
    const char *out = cli_text(args, "out");
    if (!ends_in(out, ".svg") && !ends_in(out, ".png"))
        return cli_usage(args->command, "--out %s: a chart ends in .svg or .png", out);
    if (snprintf(p->list, sizeof p->list, "%s", cli_text(args, "metric")) >= (int)sizeof p->list)
        return cli_usage(args->command, "--metric: the list is too long");
    char *rest = p->list, *name;
    while ((name = strsep(&rest, ",")) && p->metric_count < METRICS_MAX)
        if (*name)
            p->metrics[p->metric_count++] = name;
    int64_t curves = (int64_t)p->metric_count * args->setting_count;
    if (name || curves < 1 || curves > MIXT_CURVES_MAX)
        return cli_usage(args->command, "%d runs and %d metrics: a chart has 1 to %d curves", args->setting_count,
                         p->metric_count, MIXT_CURVES_MAX);
    return CLI_OK;
}

static mixt_status read_runs(plotter *p)
{
    for (int i = 0; i < p->args->setting_count; i++) {
        const char *run = p->args->settings[i];
        CLI_TRY(mixt_metrics_read(run, &p->runs[i]));
        mixt_metrics_info info = mixt_metrics_describe(p->runs[i]);
        if (info.left_out)
            fprintf(stderr, "mixt plot: %s: %lld row%s of its metrics left out; %s\n", run, (long long)info.left_out,
                    info.left_out > 1 ? "s" : "", info.problem);
    }
    return MIXT_OK;
}

/** The last part of a path, slashes at its end passed over. */
static const char *last_part(const char *path, int *length)
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t from = end;
    while (from > 0 && path[from - 1] != '/')
        from--;
    *length = (int)(end - from);
    return path + from;
}

/** Whether each run has a last part of its own: then that is its name, else all that was typed. */
static bool last_parts_differ(const plotter *p)
{
    for (int i = 0; i < p->args->setting_count; i++)
        for (int j = 0; j < i; j++) {
            int a, b;
            const char *one = last_part(p->args->settings[i], &a), *other = last_part(p->args->settings[j], &b);
            if (a == b && !strncmp(one, other, (size_t)a))
                return false;
        }
    return true;
}

static void name_curve(plotter *p, int run, const char *metric)
{
    int length;
    const char *name = p->args->settings[run];
    if (last_parts_differ(p))
        name = last_part(name, &length);
    else
        length = (int)strlen(name);
    char *text = p->names[p->curve_count];
    if (p->metric_count == 1)
        snprintf(text, NAME_SIZE, "%.*s", length, name);
    else if (p->args->setting_count == 1)
        snprintf(text, NAME_SIZE, "%s", metric);
    else
        snprintf(text, NAME_SIZE, "%.*s %s", length, name, metric);
}

/** "step, epoch, loss, …". */
static const char *columns_of(const mixt_metrics *m, char *text, size_t size)
{
    const char *name;
    size_t used = 0;
    for (int64_t i = 0; (name = mixt_metrics_name(m, i)) && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", name);
    return text;
}

static mixt_status column_of(const plotter *p, int run, const char *name, const double **column)
{
    char text[600];
    *column = mixt_metrics_column(p->runs[run], name);
    return *column ? MIXT_OK
                   : mixt_fail(MIXT_ERROR_DATA, "%s has no metric %s: expected one of %s", p->args->settings[run], name,
                               columns_of(p->runs[run], text, sizeof text));
}

/** One curve: the rows that have a number for it, then smoothed. */
static mixt_status add_curve(plotter *p, int run, const char *metric)
{
    const double *x, *y;
    int64_t rows = mixt_metrics_describe(p->runs[run]).rows, count = 0;
    CLI_TRY(column_of(p, run, cli_text(p->args, "x"), &x));
    CLI_TRY(column_of(p, run, metric, &y));
    double *px = malloc(2 * (size_t)rows * sizeof *px), *py = malloc((size_t)rows * sizeof *py);
    p->points[2 * p->curve_count] = px;
    p->points[2 * p->curve_count + 1] = py;
    if (!px || !py)
        return mixt_fail(MIXT_ERROR_MEMORY, "no memory for %lld rows", (long long)rows);
    for (int64_t i = 0; i < rows; i++)
        if (isfinite(x[i]) && isfinite(y[i])) {
            px[count] = x[i];
            px[rows + count++] = y[i];
        }
    mixt_curve_smooth(px + rows, count, cli_int(p->args, "smooth"), py);
    name_curve(p, run, metric);
    p->curves[p->curve_count] = (mixt_curve){.name = p->names[p->curve_count], .x = px, .y = py, .count = count};
    p->curve_count++;
    return MIXT_OK;
}

static mixt_status draw(plotter *p)
{
    const cli_args *args = p->args;
    const char *out = cli_text(args, "out"), *x = cli_text(args, "x");
    CLI_TRY(cli_output_check(args, out));
    CLI_TRY(read_runs(p));
    for (int run = 0; run < args->setting_count; run++)
        for (int m = 0; m < p->metric_count; m++)
            CLI_TRY(add_curve(p, run, p->metrics[m]));
    mixt_plot plot = {.title = cli_text(args, "title"), .curves = p->curves, .curve_count = p->curve_count};
    plot.x_label = !strcmp(x, "time") ? "seconds" : x;
    plot.y_label = p->metric_count == 1 ? p->metrics[0] : NULL;
    plot.log_y = cli_flag(args, "log");
    return mixt_plot_write(&plot, out, cli_flag(args, "overwrite"));
}

static int run(const cli_args *args)
{
    plotter p = {.args = args};
    int result = check(&p);
    if (result == CLI_OK && draw(&p) != MIXT_OK)
        result = cli_failed();
    for (int i = 0; i < MIXT_CURVES_MAX; i++) {
        mixt_metrics_free(p.runs[i]);
        free(p.points[2 * i]);
        free(p.points[2 * i + 1]);
    }
    return result;
}

const cli_command cli_plot = {
    .name = "plot",
    .summary = "draw the learning curves of runs",
    .description =
        "Draws metrics over the updates, one curve per run and metric, at most 10 in one chart, as SVG or PNG. Runs "
        "that are still training can be drawn too.\n\n"
        "Metrics are the names in a row of metrics.jsonl: loss, accuracy, val_loss, val_accuracy, lr, scale, "
        "grad_norm, skipped, samples_s, memory, time, energy. Rows without the metric are skipped.",
    .arguments = {{"RUN", CLI_ARGUMENT_FILES, .help = "run directories, or metrics.jsonl files"}},
    .options =
        {
            {"metric", 'm', CLI_TEXT, "M", .fallback = "loss", .help = "metrics, separated by commas"},
            {"out", 'o', CLI_TEXT, "FILE", .required = true, .help = "chart to write, .svg or .png"},
            {"x", 'x', CLI_CHOICE, "X", "step|epoch|time", "step", .help = "x axis; time is in seconds"},
            {"log", 'l', CLI_FLAG, .help = "logarithmic y axis"},
            {"smooth", 's', CLI_INT, "N", .fallback = "1", .min = 1, .max = 10001,
             .help = "moving average over N rows"},
            {"title", 't', CLI_TEXT, "TEXT", .fallback = "", .help = "title of the chart"},
            {"overwrite", .kind = CLI_FLAG, .help = "replace FILE if it exists"},
        },
    .examples =
        {
            {"mixt plot runs/fp32 runs/bf16 --out curves.svg --log --smooth 20", "two runs in one chart"},
            {"mixt plot runs/bf16 --metric loss,val_loss --out fit.png", "does it overfit?"},
            {"mixt plot runs/* --metric samples_s --x time --out speed.svg", "how fast each run was"},
        },
    .see_also = "train|eval|verify",
    .run = run,
};
