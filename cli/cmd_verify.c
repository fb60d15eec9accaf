/* mixt verify: is a precision safe for a configuration, and is it worth it here? */
#include "cli/commands.h"

#include "cli/amounts.h"
#include "cli/json.h"
#include "cli/judgement.h"
#include "cli/progress.h"
#include "cli/support.h"
#include "cli/table.h"
#include "cli/tokenize_progress.h"

#include <mixt/plot.h>
#include <mixt/verify.h>

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS = 80 };

/* ---- the plot ---- */

/** A side's learning curve: mean over the seeds, and the lowest and highest of them. */
typedef struct band {
    double x[POINTS], y[POINTS], low[POINTS], high[POINTS];
    int64_t count;
} band;

/** Mean loss of updates [begin, end) of a run; NaN where it has none. */
static double window_mean(const mixt_verify_run *r, int64_t begin, int64_t end)
{
    double sum = 0;
    end = end < r->steps ? end : r->steps;
    for (int64_t i = begin; i < end; i++)
        sum += r->losses[i];
    return begin < end ? sum / (double)(end - begin) : (double)NAN;
}

static void make_band(const mixt_verification *v, int64_t seeds, mixt_verify_side side, band *b)
{
    int64_t steps = mixt_verification_run(v, 0, side)->steps, window = steps / POINTS + 1;
    b->count = steps / window; // whole windows only: the last would be noisier than the others
    for (int64_t p = 0; p < b->count; p++) {
        b->x[p] = (double)((p + 1) * window);
        b->y[p] = 0;
        b->low[p] = INFINITY;
        b->high[p] = -INFINITY;
        for (int64_t i = 0; i < seeds; i++) {
            double mean = window_mean(mixt_verification_run(v, i, side), p * window, (p + 1) * window);
            b->y[p] += mean / (double)seeds;
            b->low[p] = fmin(b->low[p], mean);
            b->high[p] = fmax(b->high[p], mean);
        }
    }
}

static mixt_status draw(const cli_args *args, const mixt_verification *v)
{
    static band bands[MIXT_VERIFY_SIDES];
    mixt_curve curves[MIXT_VERIFY_SIDES];
    char title[200];
    mixt_verification_info info = mixt_verification_describe(v);
    const char *slash = strrchr(info.precision, '/');
    const char *const names[MIXT_VERIFY_SIDES] = {"fp32", slash ? slash + 1 : info.precision};
    for (int side = 0; side < MIXT_VERIFY_SIDES; side++) {
        make_band(v, info.seeds, (mixt_verify_side)side, &bands[side]);
        const band *b = &bands[side];
        curves[side] =
            (mixt_curve){.name = names[side], .x = b->x, .y = b->y, .low = b->low, .high = b->high, .count = b->count};
    }
    snprintf(title, sizeof title, "Training loss of %.60s, %lld seed%s: mean and range", info.model,
             (long long)info.seeds, info.seeds == 1 ? "" : "s");
    mixt_plot plot = {.title = title, .x_label = "update", .y_label = "loss", .curves = curves};
    plot.curve_count = MIXT_VERIFY_SIDES;
    plot.log_y = true;
    return mixt_plot_write(&plot, cli_text(args, "plot"), cli_flag(args, "overwrite"));
}

/* ---- the checklist ---- */

static const struct {
    const char *name, *sign;
} rules[] = {[MIXT_VERIFY_ABOVE] = {"above", ">"},
             [MIXT_VERIFY_BELOW] = {"below", "<"},
             [MIXT_VERIFY_AT_MOST] = {"at most", "<="}};

static void print_json(const mixt_verify_line *l)
{
    json_t *o = json_object();
    cli_json_set(o, "name", cli_json_string(l->name));
    cli_json_set(o, "value", l->measured ? cli_json_real(l->value) : json_null());
    cli_json_set(o, "threshold", cli_json_real(l->threshold));
    cli_json_set(o, "pass", l->measured ? json_boolean(l->pass) : json_null());
    cli_json_set(o, "must_be", cli_json_string(rules[l->rule].name));
    if (!isnan(l->low)) {
        cli_json_set(o, "low", cli_json_real(l->low));
        cli_json_set(o, "high", cli_json_real(l->high));
    }
    cli_json_set(o, "note", cli_json_string(l->note));
    cli_json_print(o, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9) | JSON_PRESERVE_ORDER);
}

/** @param gate a line that fails decides the exit status */
static void print_table(const mixt_verification *v, bool gate)
{
    cli_table t = {0};
    const mixt_verify_line *l;
    cli_table_column(&t, "checklist", CLI_LEFT);
    cli_table_column(&t, "value", CLI_RIGHT);
    cli_table_column(&t, "wanted", CLI_RIGHT);
    cli_table_column(&t, "", CLI_LEFT);
    cli_table_column(&t, "", CLI_LEFT);
    for (int i = 0; (l = mixt_verification_line(v, i)); i++) {
        cli_table_cell(&t, "%s", l->what);
        if (l->measured)
            cli_table_cell(&t, "%.3g%s", l->value, l->unit);
        else
            cli_table_cell(&t, "-");
        cli_table_cell(&t, "%s %g%s", rules[l->rule].sign, l->threshold, l->unit);
        cli_table_cell_styled(&t,
                              !l->measured ? CLI_DIM
                              : l->pass    ? CLI_GREEN
                              : gate       ? CLI_RED
                                           : CLI_YELLOW,
                              !l->measured ? "-"
                              : l->pass    ? "pass"
                                           : "fail");
        cli_table_cell(&t, "%s", l->note);
    }
    cli_table_print(&t, stdout, 0);
    cli_table_free(&t);
}

/* ---- what it takes to get there ---- */

static void print_figure_json(const mixt_verify_figure *f)
{
    json_t *o = json_object();
    cli_json_set(o, "name", cli_json_string(f->name));
    cli_json_set(o, "fp32", cli_json_real(f->fp32));
    cli_json_set(o, "mixed", cli_json_real(f->mixed));
    cli_json_set(o, "ratio", cli_json_real(f->ratio));
    cli_json_set(o, "low", cli_json_real(f->low));
    cli_json_set(o, "high", cli_json_real(f->high));
    cli_json_print(o, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9) | JSON_PRESERVE_ORDER);
}

static void figure_cell(cli_table *t, const mixt_verify_figure *f, double value)
{
    if (isnan(value))
        cli_table_cell(t, "-");
    else
        cli_table_cell(t, "%.4g%s%s", value, *f->unit ? " " : "", f->unit);
}

static void print_figures(const cli_args *args, const mixt_verification *v)
{
    cli_table t = {0};
    const mixt_verify_figure *f;
    const char *slash = strrchr(mixt_verification_describe(v).precision, '/');
    if (cli_given(args, "target"))
        printf("target: %s of training %s\n", strchr(cli_text(args, "target"), '%') ? "accuracy" : "loss",
               cli_text(args, "target"));
    else
        printf("target: for each seed the higher of the two final losses\n");
    cli_table_column(&t, "", CLI_LEFT);
    cli_table_column(&t, "fp32", CLI_RIGHT);
    cli_table_column(&t, slash ? slash + 1 : mixt_verification_describe(v).precision, CLI_RIGHT);
    cli_table_column(&t, "ratio", CLI_LEFT);
    for (int i = 0; (f = mixt_verification_figure(v, i)); i++) {
        if (!strcmp(f->name, "cost") && !cli_given(args, "cost"))
            continue;
        cli_table_cell(&t, "%s", f->what);
        figure_cell(&t, f, f->fp32);
        figure_cell(&t, f, f->mixed);
        if (isnan(f->ratio) || !strcmp(f->name, "reached"))
            cli_table_cell(&t, "%s", "");
        else if (isnan(f->low))
            cli_table_cell(&t, "%.3f", f->ratio);
        else
            cli_table_cell(&t, "%.3f (%.3f to %.3f)", f->ratio, f->low, f->high);
    }
    cli_table_print(&t, stdout, 0);
    cli_table_free(&t);
}

/* ---- the verdicts ---- */

static void print_judgement_json(const mixt_judgement *j)
{
    json_t *o = cli_json_pack("{s:o}", "judgement", cli_judgement_json(j));
    cli_json_print(o, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9) | JSON_PRESERVE_ORDER);
}

/** "safe; worth it here: 1.62x as fast, 48% less memory". What is not decided is not claimed. */
static void print_summary(const mixt_verification *v)
{
    mixt_verification_info info = mixt_verification_describe(v);
    const mixt_judgement *faster = mixt_verification_judgement(v, MIXT_CLAIM_FASTER);
    const mixt_judgement *smaller = mixt_verification_judgement(v, MIXT_CLAIM_SMALLER);
    static const char *const safe[] = {"not shown to be safe", "safe", "not safe"};
    static const char *const worth[] = {"not shown to be worth it here", "worth it here", "not worth it here"};
    printf("%s against fp32: %s; %s: ", info.precision, safe[info.safe], worth[info.worth_it]);
    if (faster->verdict == MIXT_VERDICT_UNDECIDED)
        printf("speed undecided, ");
    else
        printf("%.2fx as fast, ", faster->value);
    printf("%.0f%% %s memory\n", 100 * fabs(smaller->value), smaller->value < 0 ? "more" : "less");
}

static void report(const cli_args *args, const mixt_verification *v)
{
    const mixt_verify_figure *f;
    bool asked = cli_given(args, "target") || cli_given(args, "cost"), json = cli_flag(args, "json");
    const mixt_verify_line *l;
    if (!json) {
        print_table(v, cli_flag(args, "require"));
        print_figures(args, v);
    }
    for (mixt_claim c = 0; c < MIXT_CLAIM_COUNT; c++)
        if (mixt_verification_judgement(v, c))
            (json ? print_judgement_json : cli_judgement_print)(mixt_verification_judgement(v, c));
    if (!json) {
        print_summary(v);
        return;
    }
    for (int i = 0; (l = mixt_verification_line(v, i)); i++)
        print_json(l);
    for (int i = 0; asked && (f = mixt_verification_figure(v, i)); i++)
        print_figure_json(f);
}

/* ---- progress ---- */

static volatile sig_atomic_t stop_requested;

static void request_stop(int signal_number)
{
    (void)signal_number;
    stop_requested = 1;
}

typedef struct watch {
    bool quiet;
    cli_progress progress;
    cli_progress_info shown;
} watch;

static bool hear(void *user, const mixt_progress *p)
{
    watch *w = user;
    if (p->kind == MIXT_PROGRESS_DATA)
        (void)cli_tokenize_progress(NULL, p);
    else if (p->kind == MIXT_PROGRESS_STEP)
        cli_progress_show(&w->progress, &w->shown, p);
    else if (p->kind == MIXT_PROGRESS_PART)
        cli_progress_note(&w->progress, "%s", p->text);
    else if (!w->quiet)
        fprintf(stderr, "%s\n", p->text);
    return !stop_requested;
}

/** "0.35": a loss; "95%": an accuracy. */
static bool read_target(const char *text, mixt_verify_options *o)
{
    char *end;
    double value = strtod(text, &end);
    bool percent = *end == '%' && !end[1];
    if (end == text || (*end && !percent) || !isfinite(value) || value == 0 || (percent && (value < 0 || value > 100)))
        return false;
    *(percent ? &o->target_accuracy : &o->target_loss) = percent ? value / 100 : value;
    return true;
}

static int check_options(const cli_args *args)
{
    mixt_verify_options o = MIXT_OPTIONS(mixt_verify_options);
    double price;
    if (cli_given(args, "target") && !read_target(cli_text(args, "target"), &o))
        return cli_usage(args->command, "--target '%s': expected a loss, as in 0.35, or an accuracy, as in 95%%",
                         cli_text(args, "target"));
    if (cli_given(args, "cost") && !cli_read_price(cli_text(args, "cost"), &price))
        return cli_usage(args->command, "--cost '%s': expected the price of an hour, as in 2.50/h",
                         cli_text(args, "cost"));
    return CLI_OK;
}

/** Trains and measures; SIGINT and SIGTERM end it after the update under way, a second one kills. */
static mixt_status measure(const cli_args *args, const mixt_config *config, mixt_verification **v)
{
    struct sigaction action = {.sa_handler = request_stop, .sa_flags = (int)SA_RESETHAND}, old_int, old_term;
    watch w = {.quiet = cli_flag(args, "quiet"), .shown = {.part = "run", .items_s = NAN, .scale = NAN}};
    mixt_verify_options options =
        MIXT_OPTIONS(mixt_verify_options, .seeds = cli_int(args, "seeds"), .progress = hear, .user = &w);
    options.steps = cli_given(args, "steps") ? cli_int(args, "steps") : 0;
    if (cli_given(args, "target"))
        (void)read_target(cli_text(args, "target"), &options); // checked before
    if (cli_given(args, "cost"))
        (void)cli_read_price(cli_text(args, "cost"), &options.price);
    sigaction(SIGINT, &action, &old_int);
    sigaction(SIGTERM, &action, &old_term);
    cli_progress_start(&w.progress, stderr, w.quiet, 0);
    mixt_status status = mixt_verify_with(config, &options, v);
    if (w.shown.step)
        cli_progress_finish(&w.progress, &w.shown);
    sigaction(SIGINT, &old_int, NULL);
    sigaction(SIGTERM, &old_term, NULL);
    if (status != MIXT_OK && stop_requested)
        return mixt_fail(MIXT_ERROR_STATE, "stopped by a signal before all runs were done: no verdict");
    return status;
}

/* ---- the command ---- */

/** Asked before hours of training rather than after them. */
static mixt_status check_file(const cli_args *args, const char *option)
{
    const char *path = cli_text(args, option);
    if (!cli_given(args, option))
        return MIXT_OK;
    if (cli_same_file(path, cli_word(args, 0)))
        return mixt_fail(MIXT_ERROR_FILE, "%s: is the configuration itself: choose another file for --%s", path,
                         option);
    CLI_TRY(cli_output_check(args, path));
    return mixt_plot_check(path, cli_flag(args, "overwrite"));
}

static mixt_status check_files(const cli_args *args)
{
    CLI_TRY(check_file(args, "plot"));
    CLI_TRY(check_file(args, "out"));
    if (cli_given(args, "plot") && cli_given(args, "out") && !strcmp(cli_text(args, "plot"), cli_text(args, "out")))
        return mixt_fail(MIXT_ERROR_FILE, "%s: --plot and --out name the same file", cli_text(args, "out"));
    return MIXT_OK;
}

/** Each run has a seed of its own, from the configuration's on. */
static int check_seeds(const cli_args *args, const mixt_config *config)
{
    int64_t seed = mixt_config_int(config, "seed"), seeds = cli_int(args, "seeds");
    if (seed <= INT64_MAX - (seeds - 1))
        return CLI_OK;
    return cli_usage(args->command, "seed: %lld is too large for %lld seeds (--seeds): at most %lld", (long long)seed,
                     (long long)seeds, (long long)(INT64_MAX - (seeds - 1)));
}

/** @param verdict the exit status that it stands for */
static mixt_status verify(const cli_args *args, const mixt_config *config, int *verdict)
{
    mixt_verification *v = NULL;
    CLI_TRY(check_files(args));
    mixt_status status = measure(args, config, &v);
    if (status == MIXT_OK) {
        report(args, v);
        mixt_verification_info info = mixt_verification_describe(v);
        *verdict = cli_judgement_status(info.safe);
        if (cli_flag(args, "require") && !info.checklist)
            *verdict = CLI_NOT_SAFE;
    }
    if (status == MIXT_OK && cli_given(args, "out"))
        status = mixt_verification_write(v, cli_text(args, "out"), cli_flag(args, "overwrite"));
    if (status == MIXT_OK && cli_given(args, "plot"))
        status = draw(args, v);
    mixt_verification_free(v);
    return status;
}

static int run(const cli_args *args)
{
    mixt_config *config;
    int status = check_options(args), verdict = CLI_OK;
    if (status == CLI_OK)
        status = cli_refuse_out(args, "verify keeps no runs: leave it out; --out FILE.json keeps their figures");
    if (status != CLI_OK)
        return status;
    status = cli_config(args, cli_word(args, 0), &config);
    if (status == CLI_OK)
        status = check_seeds(args, config);
    if (status == CLI_OK && verify(args, config, &verdict) != MIXT_OK)
        status = cli_failed();
    mixt_config_free(config);
    return status == CLI_OK ? verdict : status;
}

const cli_command cli_verify_command = {
    .name = "verify",
    .summary = "test whether a precision is safe and worth it",
    .description =
        "Trains CONFIG in FP32 and in its own precision, several times with different seeds, and answers two "
        "questions. Safe: the loss is shown not to be worse by verify.lost (0.5%), and no NaN or Inf appears. Worth "
        "it: it is faster, smaller or, with --cost, cheaper than FP32. Exit status: 0 safe, 3 not safe, 4 "
        "undecided.\n\n"
        "Both precisions start from the same weights (random, or those of init) and see the same batches, for each "
        "seed. Of classifiers the accuracy is compared instead of the loss where it varies less. Safe also requires "
        "that outputs are as close to FP32's as rounding the weights explains, and that NaN and Inf appear only where "
        "loss scaling handles them.\n\n"
        "The acceptance checklist is printed above the verdicts. Its thresholds are verify.speedup, verify.memory, "
        "verify.lost, verify.tensor_cores and verify.output; it decides the exit status only with --require. Below "
        "it: the time, memory and cost until a target is reached. Without --target that is, for each seed, the higher "
        "of the two final losses, so that both precisions reach it.\n\n"
        "Exit status: 0 safe; 3 not safe, or with --require a line of the checklist failed; 4 more seeds are needed to "
        "decide; 1 a run failed; 2 the command line is wrong. Nothing is written except --plot and --out. Ctrl-C stops "
        "without a verdict.",
    .arguments =
        {
            {"CONFIG", CLI_ARGUMENT_FILE, .help = "YAML file of the run"},
            {"key=value", CLI_ARGUMENT_SETTING, .help = "settings that win over the file, as in verify.speedup=1.5"},
        },
    .options =
        {
            {"seeds", 'n', CLI_INT, "N", .fallback = "6", .min = 1, .max = MIXT_VERIFY_SEEDS_MAX,
             .help = "runs of each precision; fewer than 6 decide nothing",
             .more = "Seeds count up from the configuration's"},
            {"steps", .kind = CLI_INT, .metavar = "N", .min = 1, .max = 1e12,
             .help = "updates of each run; default: the configuration's"},
            {"target", .kind = CLI_TEXT, .metavar = "T",
             .help = "time until this training loss (0.35) or accuracy (95%)"},
            {"cost", .kind = CLI_TEXT, .metavar = "PRICE", .help = "price of an hour of this machine, as in 2.50/h"},
            {"plot", .kind = CLI_TEXT, .metavar = "FILE.svg", .help = "draw both learning curves, seeds as bands"},
            {"out", 'o', CLI_TEXT, "FILE.json", .help = "write the figures of every run, for 'mixt table'"},
            {"require", .kind = CLI_FLAG, .help = "exit status 3 where a line of the checklist fails"},
            {"overwrite", .kind = CLI_FLAG, .help = "replace the files of --plot and --out"},
            {"json", .kind = CLI_FLAG, .help = "print a JSON object per verdict and line of the checklist"},
            {"quiet", 'q', CLI_FLAG, .help = "no progress line"},
        },
    .examples =
        {
            {"mixt verify configs/digits.yaml --plot curves.svg", "BF16 against FP32 over 6 seeds"},
            {"mixt verify configs/digits.yaml --target 90% --cost 2.50/h",
             "time, memory and cost until 90% training accuracy"},
            {"mixt verify configs/gpt.yaml data.path=FILE precision=fp16 --seeds 6 --steps 500 --json", "for a script"},
        },
    .see_also = "compare|table|train|plan|bench",
    .run = run,
};
