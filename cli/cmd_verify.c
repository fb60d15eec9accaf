/* mixt verify: whether mixed precision is worth it and safe for a configuration, measured. */
#include "cli/commands.h"
#include "cli/json.h"

#include "run/directory.h"
#include "cli/table.h"
#include "cli/verify.h"
#include "store/file.h"

#include <mixt/plot.h>

#include <math.h>
#include <string.h>

enum { POINTS = 80 };

/* ---- the plot ---- */

/** A side's learning curve: mean over the seeds, and the lowest and highest of them. */
typedef struct band {
    double x[POINTS], y[POINTS], low[POINTS], high[POINTS];
    int64_t count;
} band;

/** Mean loss of updates [begin, end) of a run; NaN where it has none. */
static double window_mean(const cli_verify_run *r, int64_t begin, int64_t end)
{
    double sum = 0;
    end = end < r->steps ? end : r->steps;
    for (int64_t i = begin; i < end; i++)
        sum += r->losses[i];
    return begin < end ? sum / (double)(end - begin) : (double)NAN;
}

static void make_band(const cli_verify *v, int side, band *b)
{
    int64_t steps = v->runs[0][side].steps, window = steps / POINTS + 1;
    b->count = steps / window; // whole windows only: the last would be noisier than the others
    for (int64_t p = 0; p < b->count; p++) {
        b->x[p] = (double)((p + 1) * window);
        b->y[p] = 0;
        b->low[p] = INFINITY;
        b->high[p] = -INFINITY;
        for (int64_t i = 0; i < v->seeds; i++) {
            double mean = window_mean(&v->runs[i][side], p * window, (p + 1) * window);
            b->y[p] += mean / (double)v->seeds;
            b->low[p] = fmin(b->low[p], mean);
            b->high[p] = fmax(b->high[p], mean);
        }
    }
}

static mixt_status draw(const cli_args *args, const cli_verify *v, const mixt_config *config)
{
    static band bands[CLI_VERIFY_SIDES];
    mixt_curve curves[CLI_VERIFY_SIDES];
    char title[200];
    const char *slash = strrchr(v->policy, '/');
    const char *const names[CLI_VERIFY_SIDES] = {"fp32", slash ? slash + 1 : v->policy};
    for (int side = 0; side < CLI_VERIFY_SIDES; side++) {
        make_band(v, side, &bands[side]);
        const band *b = &bands[side];
        curves[side] =
            (mixt_curve){.name = names[side], .x = b->x, .y = b->y, .low = b->low, .high = b->high, .count = b->count};
    }
    snprintf(title, sizeof title, "Training loss of %.60s, %lld seed%s: mean and range",
             mixt__config_string(config, MIXT_KEY_MODEL), (long long)v->seeds, v->seeds == 1 ? "" : "s");
    mixt_plot plot = {.title = title, .x_label = "update", .y_label = "loss", .curves = curves};
    plot.curve_count = CLI_VERIFY_SIDES;
    plot.log_y = true;
    return mixt_plot_write(&plot, cli_text(args, "plot"), cli_flag(args, "overwrite"));
}

/* ---- the checklist ---- */

static const struct {
    const char *name, *sign;
} rules[] = {
    [CLI_VERIFY_ABOVE] = {"above", ">"}, [CLI_VERIFY_BELOW] = {"below", "<"}, [CLI_VERIFY_AT_MOST] = {"at most", "<="}};

static void print_json(const cli_verify_line *l)
{
    json_t *o = json_object();
    json_object_set_new(o, "name", json_string(l->name));
    json_object_set_new(o, "value", l->measured ? cli_json_real(l->value) : json_null());
    json_object_set_new(o, "threshold", json_real(l->threshold));
    json_object_set_new(o, "pass", l->measured ? json_boolean(l->pass) : json_null());
    json_object_set_new(o, "must_be", json_string(rules[l->rule].name));
    if (!isnan(l->low)) {
        json_object_set_new(o, "low", cli_json_real(l->low));
        json_object_set_new(o, "high", cli_json_real(l->high));
    }
    json_object_set_new(o, "note", json_string(l->note));
    json_dumpf(o, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9) | JSON_PRESERVE_ORDER);
    putchar('\n');
    json_decref(o);
}

static void print_table(const cli_verify_line *lines)
{
    cli_table t = {0};
    cli_table_column(&t, "check", CLI_LEFT);
    cli_table_column(&t, "value", CLI_RIGHT);
    cli_table_column(&t, "wanted", CLI_RIGHT);
    cli_table_column(&t, "", CLI_LEFT);
    cli_table_column(&t, "", CLI_LEFT);
    for (int i = 0; i < CLI_VERIFY_LINES; i++) {
        const cli_verify_line *l = &lines[i];
        cli_table_cell(&t, "%s", l->what);
        if (l->measured)
            cli_table_cell(&t, "%.3g%s", l->value, l->unit);
        else
            cli_table_cell(&t, "-");
        cli_table_cell(&t, "%s %g%s", rules[l->rule].sign, l->threshold, l->unit);
        cli_table_cell_styled(&t,
                              !l->measured ? CLI_DIM
                              : l->pass    ? CLI_GREEN
                                           : CLI_RED,
                              !l->measured ? "-"
                              : l->pass    ? "pass"
                                           : "FAIL");
        cli_table_cell(&t, "%s", l->note);
    }
    cli_table_print(&t, stdout, 0);
    cli_table_free(&t);
}

/** Prints the lines; true when none failed. */
static bool report(const cli_args *args, const cli_verify *v, const mixt_config *config)
{
    cli_verify_line lines[CLI_VERIFY_LINES];
    int failed = 0;
    cli_verify_judge(v, config, lines);
    for (int i = 0; i < CLI_VERIFY_LINES; i++)
        failed += lines[i].measured && !lines[i].pass;
    if (!cli_flag(args, "json")) {
        print_table(lines);
        printf("%s against fp32: %s\n", v->policy, failed ? "not accepted" : "accepted");
        return !failed;
    }
    for (int i = 0; i < CLI_VERIFY_LINES; i++)
        print_json(&lines[i]);
    return !failed;
}

/* ---- the command ---- */

/** Asked before hours of training rather than after them. */
static mixt_status check_plot(const cli_args *args)
{
    const char *path = cli_text(args, "plot");
    if (!cli_given(args, "plot"))
        return MIXT_OK;
    if (mixt__same_file(path, cli_word(args, 0)))
        return mixt__fail(MIXT_ERROR_FILE, "%s: is the configuration itself: choose another file for --plot", path);
    MIXT_TRY(cli_output_check(args, path));
    return mixt_plot_check(path, cli_flag(args, "overwrite"));
}

static mixt_status prepare(const cli_args *args, mixt_config *config)
{
    char setting[64];
    mixt_policy *policy;
    const char *precision = mixt__config_string(config, MIXT_KEY_PRECISION);
    if (!strcmp(precision, "fp32"))
        return mixt__fail(MIXT_ERROR_CONFIG, "precision is fp32: verify compares another one with it, as in "
                                             "precision=bf16");
    MIXT_TRY(mixt_policy_open(precision, &policy)); // before a whole run in FP32 is spent
    mixt_policy_free(policy);
    MIXT_TRY(check_plot(args));
    if (!cli_given(args, "steps"))
        return MIXT_OK;
    snprintf(setting, sizeof setting, "train.steps=%lld", (long long)cli_int(args, "steps"));
    MIXT_TRY(mixt_config_set(config, setting, "--steps"));
    return mixt_config_set(config, "train.epochs=0", "--steps");
}

/** Each run has a seed of its own, from the configuration's on. */
static int check_seeds(const cli_args *args, const mixt_config *config)
{
    int64_t seed = mixt__config_int(config, MIXT_KEY_SEED), seeds = cli_int(args, "seeds");
    if (seed <= INT64_MAX - (seeds - 1))
        return CLI_OK;
    return cli_usage(args->command, "seed: %lld leaves no room for the %lld seeds of --seeds: %lld at most",
                     (long long)seed, (long long)seeds, (long long)(INT64_MAX - (seeds - 1)));
}

static mixt_status verify(const cli_args *args, mixt_config *config, bool *good)
{
    static cli_verify v;
    memset(&v, 0, sizeof v);
    v.seeds = cli_int(args, "seeds");
    mixt_status status = prepare(args, config);
    if (status == MIXT_OK)
        status = cli_verify_measure(&v, config, cli_flag(args, "quiet"));
    if (status == MIXT_OK && v.interrupted)
        status = mixt__fail(MIXT_ERROR_STATE, "stopped by a signal before all runs were done: no verdict");
    if (status == MIXT_OK)
        *good = report(args, &v, config);
    if (status == MIXT_OK && cli_given(args, "plot"))
        status = draw(args, &v, config);
    cli_verify_free(&v);
    return status;
}

static int run(const cli_args *args)
{
    mixt_config *config;
    bool good = false;
    int status = cli_config(args, cli_word(args, 0), &config);
    if (status == CLI_OK)
        status = check_seeds(args, config);
    if (status == CLI_OK && verify(args, config, &good) != MIXT_OK)
        status = cli_failed();
    mixt_config_free(config);
    return status == CLI_OK && !good ? CLI_FAILED : status;
}

const cli_command cli_verify_command = {
    .name = "verify",
    .summary = "measure whether a precision is safe and worth it",
    .description =
        "Trains CONFIG in strict FP32 and in its own precision, from the same weights (drawn, or of init) on the same "
        "batches, once for "
        "each seed, and prints the acceptance checklist: speed-up, memory saved, accuracy or loss lost with its "
        "interval over the seeds, Tensor Core use (on a GPU), NaN and Inf, and the mean difference of outputs. The "
        "thresholds are keys: verify.speedup, verify.memory, verify.lost, verify.tensor_cores, verify.output.\n\n"
        "The exit status is 0 when every line that could be measured passes, 1 when one fails or a run does, 2 when "
        "the command line is wrong. Nothing is written but the plot. Ctrl-C stops without a verdict.",
    .arguments =
        {
            {"CONFIG", CLI_ARGUMENT_FILE, .help = "YAML file of the run; 'mixt help config' lists the keys"},
            {"key=value", CLI_ARGUMENT_SETTING, .help = "settings that win over the file, as in verify.speedup=1.5"},
        },
    .options =
        {
            {"seeds", 'n', CLI_INT, "N", .fallback = "3", .min = 1, .max = CLI_VERIFY_SEEDS_MAX,
             .help = "runs of each precision, with seeds from the configuration's on"},
            {"steps", .kind = CLI_INT, .metavar = "N", .min = 1, .max = 1e12,
             .help = "updates of each run; default: as the configuration says"},
            {"plot", .kind = CLI_TEXT, .metavar = "FILE.svg", .help = "draw both learning curves, seeds as bands"},
            {"overwrite", .kind = CLI_FLAG, .help = "replace the plot's file if it exists"},
            {"json", .kind = CLI_FLAG, .help = "print one JSON object a line of the checklist"},
            {"quiet", 'q', CLI_FLAG, .help = "no progress line"},
        },
    .examples =
        {
            {"mixt verify configs/digits.yaml --plot curves.svg", "BF16 against FP32 over 3 seeds"},
            {"mixt verify configs/gpt.yaml data.path=FILE precision=fp16 --seeds 5 --steps 500 --json", "for a script"},
        },
    .see_also = "train|plan|bench",
    .run = run,
};
