/* mixt demo: the default model in FP32 and in mixed precision, side by side. */
#include "cli/commands.h"

#include "cli/table.h"
#include "cli/watch.h"

#include <mixt/plot.h>

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { SIDES = 2, CURVE_MAX = 4096, SMOOTHING = 20 };

/** One of the two runs. */
typedef struct side {
    const char *precision;
    bool second;
    cli_watch watch;
    mixt_run_result result;
    mixt_evaluation test;
    double x[CURVE_MAX], y[CURVE_MAX]; // training loss, averaged over SMOOTHING updates
    int64_t points;
    double sum; // of the losses since the last point
    int count;
} side;

/** What the demo decides itself is not taken from the command line only to be passed over. */
static mixt_status check_settings(const mixt_config *config)
{
    if (mixt_config_was_set(config, "precision"))
        return mixt_fail(MIXT_ERROR_CONFIG, "precision: the demo trains in FP32 and in the format of --precision "
                                            "(default bf16): use that option, or 'mixt train' for a single run");
    if (mixt_config_was_set(config, "out"))
        return mixt_fail(MIXT_ERROR_CONFIG, "out: the demo writes to runs/demo-<number>; only 'mixt train' takes out");
    return MIXT_OK;
}

/** The settings of both sides: the demo's own, then those of the command line. */
static mixt_status configure(mixt_config *config, const cli_args *args)
{
    const char *const settings[] = {"model=convnet",  "data.kind=digits",      "train.epochs=4", "train.batch=64",
                                    "train.lr=0.002", "train.schedule=cosine", "train.warmup=50"};
    mixt_status status = MIXT_OK;
    for (size_t i = 0; i < sizeof settings / sizeof settings[0] && status == MIXT_OK; i++)
        status = mixt_config_set(config, settings[i], "demo");
    for (int i = 0; i < args->setting_count && status == MIXT_OK; i++)
        status = mixt_config_set(config, args->settings[i], "command line");
    return status == MIXT_OK ? check_settings(config) : status;
}

/** The first free runs/demo-<number>; the first run that gets as far as its own directory makes it. */
static mixt_status choose_folder(char folder[256])
{
    for (int number = 1; number < 100000; number++) {
        snprintf(folder, 256, "runs/demo-%d", number);
        if (access(folder, F_OK))
            return MIXT_OK;
    }
    return mixt_fail(MIXT_ERROR_FILE, "no free number for a folder runs/demo-…: remove some");
}

/** Draws progress and collects the learning curve. */
static mixt_status observe(void *user, mixt_run *run, const mixt_event *event)
{
    side *s = user;
    bool repeated = s->second && !s->watch.started && event->kind == MIXT_EVENT_NOTE; // what the first has told
    if (event->kind == MIXT_EVENT_ROW && s->points < CURVE_MAX) {
        s->sum += event->row->loss;
        if (++s->count == SMOOTHING) {
            s->x[s->points] = (double)event->row->step;
            s->y[s->points++] = s->sum / s->count;
            s->sum = s->count = 0;
        }
    }
    return repeated ? MIXT_OK : cli_watch_observe(&s->watch, run, event);
}

static mixt_status run_side(const mixt_config *config, side *s, const char *folder)
{
    mixt_run *run;
    char precision[64], out[400];
    const char *settings[] = {precision, out, NULL};
    mixt_run_options options =
        MIXT_OPTIONS(mixt_run_options, .settings = settings, .observer = observe, .user = s, .signals = true);
    fprintf(stderr, "%s\n", s->precision);
    snprintf(precision, sizeof precision, "precision=%s", s->precision);
    snprintf(out, sizeof out, "out=%s/%s", folder, s->precision);
    mixt_status status = mixt_run_open_config(config, &options, &run);
    if (status == MIXT_OK)
        status = mixt_run_train(run, &s->result);
    if (status == MIXT_OK && !s->result.interrupted)
        status = mixt_run_evaluate(run, "test", &s->test);
    mixt_run_close(run);
    return status;
}

static void print_row(cli_table *t, const char *name, const char *format, double a, double b, const char *compared)
{
    cli_table_cell(t, "%s", name);
    char text[64];
    snprintf(text, sizeof text, format, a);
    cli_table_cell(t, "%s", text);
    snprintf(text, sizeof text, format, b);
    cli_table_cell(t, "%s", text);
    cli_table_cell(t, "%s", compared);
}

static void print_table(const side *a, const side *b)
{
    char text[64];
    cli_table t = {0};
    cli_table_column(&t, "", CLI_LEFT);
    cli_table_column(&t, a->precision, CLI_RIGHT);
    cli_table_column(&t, b->precision, CLI_RIGHT);
    cli_table_column(&t, "mixed against fp32", CLI_LEFT);
    snprintf(text, sizeof text, "%+.2f points", 100 * (b->test.accuracy - a->test.accuracy));
    print_row(&t, "test accuracy, %", "%.2f", 100 * a->test.accuracy, 100 * b->test.accuracy, text);
    print_row(&t, "test loss", "%.4g", a->test.loss, b->test.loss, "");
    snprintf(text, sizeof text, "%.2f x as fast", a->result.step_seconds / b->result.step_seconds);
    print_row(&t, "training time, s", "%.1f", a->result.step_seconds, b->result.step_seconds, text);
    print_row(&t, "samples/s", "%.0f", a->result.samples_s, b->result.samples_s, "");
    double mib = 1048576, planned[SIDES] = {(double)a->result.memory.total, (double)b->result.memory.total};
    snprintf(text, sizeof text, "%+.0f%%", 100 * (planned[1] / planned[0] - 1));
    print_row(&t, "memory planned, MiB", "%.2f", planned[0] / mib, planned[1] / mib, text);
    print_row(&t, "memory measured, MiB", "%.2f", (double)a->result.memory.allocated / mib,
              (double)b->result.memory.allocated / mib,
              a->result.memory.allocated == a->result.memory.total &&
                      b->result.memory.allocated == b->result.memory.total
                  ? "equal to the plan, to the byte"
                  : "differs from the plan");
    double activations[SIDES] = {(double)a->result.memory.activations, (double)b->result.memory.activations};
    snprintf(text, sizeof text, "%+.0f%%", 100 * (activations[1] / activations[0] - 1));
    print_row(&t, "of it activations, MiB", "%.2f", activations[0] / mib, activations[1] / mib, text);
    print_row(&t, "updates skipped", "%.0f", (double)a->result.skipped, (double)b->result.skipped, "");
    printf("\n");
    cli_table_print(&t, stdout, 0);
    cli_table_free(&t);
}

static mixt_status draw(const side *sides, const char *folder)
{
    char path[1200];
    mixt_curve curves[SIDES];
    for (int i = 0; i < SIDES; i++)
        curves[i] =
            (mixt_curve){.name = sides[i].precision, .x = sides[i].x, .y = sides[i].y, .count = sides[i].points};
    mixt_plot plot = {.title = "Training loss of the demo's convolutional net",
                      .x_label = "update",
                      .y_label = "loss",
                      .curves = curves};
    plot.curve_count = SIDES;
    plot.log_y = true;
    if (sides[0].points < 2)
        return MIXT_OK;
    snprintf(path, sizeof path, "%s/curves.svg", folder);
    mixt_status status = mixt_plot_write(&plot, path, false);
    if (status == MIXT_OK)
        printf("\nlearning curves: %s\n", path);
    return status;
}

/** Both runs, one after the other; a signal that stops one of them leaves the other out. */
static mixt_status run_sides(const cli_args *args, side *sides, char folder[256], int *signal_number)
{
    mixt_config *config;
    mixt_status status = mixt_config_new(&config);
    *signal_number = 0;
    if (status == MIXT_OK)
        status = configure(config, args);
    if (status == MIXT_OK)
        status = choose_folder(folder);
    for (int i = 0; i < SIDES && status == MIXT_OK && !*signal_number; i++) {
        status = run_side(config, &sides[i], folder);
        *signal_number = sides[i].result.interrupted ? sides[i].result.signal : 0;
    }
    mixt_config_free(config);
    return status;
}

static int run(const cli_args *args)
{
    static side sides[SIDES];
    char folder[256] = "";
    memset(sides, 0, sizeof sides);
    sides[0].precision = "fp32";
    sides[1].precision = cli_text(args, "precision");
    sides[1].second = true;
    int signal_number;
    if (run_sides(args, sides, folder, &signal_number) != MIXT_OK)
        return cli_failed();
    if (signal_number) {
        fprintf(
            stderr,
            "mixt: stopped by a signal before both runs were done: nothing to compare; %s holds the unfinished runs\n",
            folder);
        return CLI_SIGNAL + signal_number;
    }
    print_table(&sides[0], &sides[1]);
    return draw(sides, folder) == MIXT_OK ? CLI_OK : cli_failed();
}

const cli_command cli_demo = {
    .name = "demo",
    .summary = "train a small model in FP32 and in mixed precision",
    .description =
        "Trains a small convolutional net on digits that mixt draws itself, once in FP32 and once in mixed precision, "
        "from the same weights and in the same order of samples, and prints both side by side: accuracy, time, planned "
        "and measured memory. It needs no data and takes a minute or two. Both run directories and the learning curves "
        "(curves.svg) are kept in runs/demo-<number>.\n\n"
        "Ctrl-C stops it without a comparison. After a signal the exit status is 128 plus its number, as with "
        "'mixt train'.",
    .arguments = {{"key=value", CLI_ARGUMENT_SETTING, .help = "settings for both runs, as in train.epochs=1"}},
    .options = {{"precision", 'p', CLI_CHOICE, "P", "bf16|fp16|tf32", .fallback = "bf16",
                 .help = "number format of the second run"}},
    .examples = {{"mixt demo", "FP32 and BF16"},
                 {"mixt demo --precision fp16 train.epochs=2", "FP32 and FP16 with dynamic loss scaling"}},
    .see_also = "train|verify|plan",
    .run = run,
};
