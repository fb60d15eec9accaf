/* mixt demo: the default model in FP32 and in mixed precision, side by side. */
#include "cli/commands.h"

#include "cli/interchange.h"
#include "cli/plot.h"
#include "cli/table.h"
#include "cli/train_loop.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

enum { SIDES = 2, CURVE_MAX = 4096, SMOOTHING = 20 };

/** One of the two runs. */
typedef struct side {
    const char *precision;
    cli_train_result result;
    mixt_evaluation test;
    cli_run_dir dir;
    double x[CURVE_MAX], y[CURVE_MAX]; // smoothed training loss
    int64_t points;
} side;

/** What the demo decides itself is not taken from the command line only to be passed over. */
static mixt_status check_settings(const mixt_config *config)
{
    if (mixt__config_was_set(config, MIXT_KEY_PRECISION))
        return mixt__fail(MIXT_ERROR_CONFIG,
                          "precision: the demo trains in FP32 and in the format of its option --precision (default "
                          "bf16): use that, or 'mixt train' for one run in a precision of its own");
    if (mixt__config_was_set(config, MIXT_KEY_OUT))
        return mixt__fail(MIXT_ERROR_CONFIG,
                          "out: the demo keeps its two runs in a directory of its own, runs/demo-<number>; "
                          "'mixt train' takes out");
    return MIXT_OK;
}

static mixt_status configure(mixt_config *config, const cli_args *args, const side *s)
{
    char precision[64];
    const char *const settings[] = {"model=convnet",  "data.kind=digits",      "train.epochs=4", "train.batch=64",
                                    "train.lr=0.002", "train.schedule=cosine", "train.warmup=50"};
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        MIXT_TRY(mixt_config_set(config, settings[i], "demo"));
    for (int i = 0; i < args->setting_count; i++)
        MIXT_TRY(mixt_config_set(config, args->settings[i], "command line"));
    MIXT_TRY(check_settings(config));
    snprintf(precision, sizeof precision, "precision=%s", s->precision);
    MIXT_TRY(mixt_config_set(config, precision, "demo"));
    return mixt_config_check(config);
}

/** The side's run directory in the demo's folder, which the first side makes once all is known to work. */
static mixt_status make_run_dir(mixt_config *config, const cli_experiment *e, side *s, char folder[256])
{
    char out[400];
    if (!folder[0])
        MIXT_TRY(cli_demo_folder(folder, 256));
    snprintf(out, sizeof out, "out=%s/%s", folder, s->precision);
    MIXT_TRY(mixt_config_set(config, out, "demo"));
    return cli_run_dir_create(&s->dir, config, mixt_data_describe(e->train)->kind);
}

/** The run's training loss, averaged over SMOOTHING updates, from its own metrics file. */
static mixt_status read_curve(side *s)
{
    char path[1200], line[2048];
    FILE *f = fopen(cli_run_dir_file(&s->dir, "metrics.jsonl", path), "r");
    double sum = 0;
    int n = 0;
    if (!f)
        return mixt__fail(MIXT_ERROR_FILE, "cannot read %s", path);
    while (fgets(line, sizeof line, f) && s->points < CURVE_MAX) {
        json_t *row = json_loads(line, 0, NULL);
        sum += json_number_value(json_object_get(row, "loss"));
        if (++n == SMOOTHING) {
            s->x[s->points] = json_number_value(json_object_get(row, "step"));
            s->y[s->points++] = sum / n;
            sum = 0;
            n = 0;
        }
        json_decref(row);
    }
    fclose(f);
    return MIXT_OK;
}

static mixt_status run_side(const cli_args *args, side *s, char folder[256])
{
    mixt_config *config;
    cli_experiment e = {0};
    mixt_data *test;
    MIXT_TRY(mixt_config_new(&config));
    fprintf(stderr, "%s\n", s->precision);
    mixt_status status = configure(config, args, s);
    if (status == MIXT_OK)
        status = cli_experiment_open(&e, config);
    if (status == MIXT_OK)
        status = cli_init(&e, folder[0]); // the second run begins with what the first has told
    if (status == MIXT_OK)
        status = make_run_dir(config, &e, s, folder);
    if (status == MIXT_OK)
        status = cli_train_loop(&e, &s->dir, false, NULL, &s->result);
    if (status == MIXT_OK)
        status = cli_experiment_data(&e, "test", &test);
    if (status == MIXT_OK)
        status = mixt_trainer_evaluate(e.trainer, test, &s->test);
    cli_run_dir_close(&s->dir);
    cli_experiment_close(&e);
    mixt_config_free(config);
    return status == MIXT_OK ? read_curve(s) : status;
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
    print_row(&t, "test loss", "%.4f", a->test.loss, b->test.loss, "");
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
    cli_curve curves[SIDES];
    for (int i = 0; i < SIDES; i++)
        curves[i] = (cli_curve){.name = sides[i].precision, .x = sides[i].x, .y = sides[i].y, .count = sides[i].points};
    cli_plot plot = {.title = "Training loss of the demo's conv net on drawn digits",
                     .x_label = "update",
                     .y_label = "loss",
                     .curves = curves};
    plot.curve_count = SIDES;
    plot.log_y = true;
    if (sides[0].points < 2)
        return MIXT_OK;
    snprintf(path, sizeof path, "%s/curves.svg", folder);
    MIXT_TRY(cli_plot_write(&plot, path, false));
    printf("\nlearning curves: %s\n", path);
    return MIXT_OK;
}

static int run(const cli_args *args)
{
    static side sides[SIDES];
    char folder[256] = "";
    memset(sides, 0, sizeof sides);
    sides[0].precision = "fp32";
    sides[1].precision = cli_text(args, "precision");
    for (int i = 0; i < SIDES; i++) {
        if (run_side(args, &sides[i], folder) != MIXT_OK)
            return cli_failed();
        if (sides[i].result.interrupted) {
            (void)mixt__fail(MIXT_ERROR_STATE,
                             "stopped by a signal before both runs were done: nothing to compare; %s holds what was "
                             "trained",
                             folder);
            return cli_failed();
        }
    }
    print_table(&sides[0], &sides[1]);
    return draw(sides, folder) == MIXT_OK ? CLI_OK : cli_failed();
}

const cli_command cli_demo = {
    .name = "demo",
    .summary = "train the default model in FP32 and in mixed precision",
    .description =
        "Trains a small convolutional net on digits that mixt draws itself, once in strict FP32 and once in "
        "mixed precision, from the same weights and the same order of samples, and prints both side by side: "
        "accuracy, time, planned and measured memory. Both run directories and a drawing of the learning curves "
        "(curves.svg) stay in runs/demo-<number>. Needs no data and takes a minute or two. Ctrl-C stops without a "
        "comparison, with status 1.",
    .arguments = {{"key=value", CLI_ARGUMENT_SETTING, .help = "settings for both runs, as in train.epochs=1"}},
    .options = {{"precision", 'p', CLI_CHOICE, "P", "bf16|fp16|tf32", .fallback = "bf16",
                 .help = "format of the second run"}},
    .examples = {{"mixt demo", "BF16 against FP32"},
                 {"mixt demo --precision fp16 train.epochs=2", "FP16 with dynamic loss scaling"}},
    .see_also = "train|verify|plan",
    .run = run,
};
