/* mixt compare: two strategies as an experiment, with a verdict that holds. */
#include "cli/commands.h"

#include "cli/amounts.h"
#include "cli/json.h"
#include "cli/judgement.h"
#include "cli/names.h"
#include "cli/progress.h"
#include "cli/stop.h"
#include "cli/support.h"
#include "cli/table.h"
#include "cli/tokenize_progress.h"

#include <mixt/compare.h>

#include <math.h>
#include <string.h>

/** What the exit status says, by mixt_stats_verdict. */
static const int statuses[] = {
    [MIXT_STATS_UNDECIDED] = 4, [MIXT_STATS_NON_INFERIOR] = CLI_OK, [MIXT_STATS_INFERIOR] = 3};

/* ---- what the options say ---- */

static int read_options(const cli_args *args, mixt_compare_options *o)
{
    if (!cli_read_share(cli_text(args, "margin"), &o->margin))
        return cli_usage(args->command, "--margin '%s': expected a share above 0 and at most 1, as in 0.5%% or 0.005",
                         cli_text(args, "margin"));
    if (cli_given(args, "budget") && !cli_read_duration(cli_text(args, "budget"), &o->budget))
        return cli_usage(args->command, "--budget '%s': expected a time above 0, as in 90s, 10m or 2h",
                         cli_text(args, "budget"));
    if (cli_given(args, "cost") && !cli_read_price(cli_text(args, "cost"), &o->price))
        return cli_usage(args->command, "--cost '%s': expected the price of an hour, as in 2.50/h",
                         cli_text(args, "cost"));
    if (cli_given(args, "name") && !cli_name_good(cli_text(args, "name"), 100))
        return cli_usage(args->command, "--name '%s': expected 1 to 100 letters, digits, '.', '_' and '-'",
                         cli_text(args, "name"));
    if (cli_given(args, "failures") && !cli_read_share(cli_text(args, "failures"), &o->failures))
        return cli_usage(args->command, "--failures '%s': expected a share of runs above 0, as in 10%% or 0.1",
                         cli_text(args, "failures"));
    o->pairs = cli_given(args, "seeds") ? cli_int(args, "seeds") : 0;
    o->metric = cli_text(args, "metric");
    return CLI_OK;
}

static void default_name(const cli_args *args, char *name, size_t size)
{
    name[0] = '\0';
    cli_name_add_stem(name, size, cli_word(args, 0));
    strncat(name, "-", size - strlen(name) - 1);
    cli_name_add_stem(name, size, cli_word(args, 1));
}

/* ---- progress ---- */

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
    else if (p->kind == MIXT_PROGRESS_WARNING)
        cli_progress_warn(&w->progress, "%s", p->text);
    else
        cli_progress_note(&w->progress, "%s", p->text);
    return !cli_stopped_by();
}

/* ---- JSON ---- */

static double figure(const mixt_comparison *c, const char *name, int side)
{
    const mixt_compare_figure *f = mixt_comparison_find(c, name);
    return side == MIXT_COMPARE_A ? f->a : f->b;
}

static json_t *interval_json(double low, double high)
{
    return cli_json_pack("[o, o]", cli_json_real(low), cli_json_real(high));
}

static json_t *side_json(const cli_args *args, const mixt_comparison *c, int side, double price)
{
    const mixt_compare_figure *f;
    mixt_comparison_info info = mixt_comparison_describe(c);
    json_t *o = json_object();
    cli_json_set(o, "config", cli_json_string(cli_word(args, side)));
    cli_json_set(o, "final", cli_json_real(figure(c, info.metric, side)));
    cli_json_set(o, "diverged", json_integer(info.diverged[side]));
    for (int64_t i = 0; (f = mixt_comparison_figure(c, i)); i++)
        cli_json_set(o, f->name, cli_json_real(side == MIXT_COMPARE_A ? f->a : f->b));
    cli_json_set(o, "cost", cli_json_real(price > 0 ? figure(c, "seconds", side) / 3600 * price : (double)NAN));
    return o;
}

static void set_ratio(json_t *o, const mixt_comparison *c, const char *key, const char *name)
{
    const mixt_compare_figure *f = mixt_comparison_find(c, name);
    char interval[64];
    snprintf(interval, sizeof interval, "%s_interval", key);
    cli_json_set(o, key, cli_json_real(f->ratio));
    cli_json_set(o, interval, interval_json(f->low, f->high));
}

static json_t *changes_json(const mixt_comparison *c)
{
    const mixt_compare_change *change;
    json_t *list = json_array();
    for (int64_t i = 0; (change = mixt_comparison_change(c, i)); i++)
        cli_json_add(list, cli_json_pack("{s:s, s:s, s:s, s:b}", "key", change->key, "a", change->a, "b", change->b,
                                         "policy", change->policy));
    return list;
}

static json_t *judgements_json(const mixt_comparison *c)
{
    json_t *list = json_array();
    for (mixt_claim claim = MIXT_CLAIM_SAFE; claim < MIXT_CLAIM_COUNT; claim++)
        if (mixt_comparison_judgement(c, claim))
            cli_json_add(list, cli_judgement_json(mixt_comparison_judgement(c, claim)));
    return list;
}

static void print_json(const cli_args *args, const mixt_comparison *c, double price)
{
    mixt_comparison_info i = mixt_comparison_describe(c);
    const mixt_stats_judgement *j = &i.judgement;
    json_t *o = json_object();
    cli_json_set(o, "verdict", cli_json_string(mixt_compare_verdict_name(i.verdict)));
    cli_json_set(o, "reason", cli_json_string(i.reason));
    cli_json_set(o, "advice", cli_json_string(i.advice));
    cli_json_set(o, "metric", cli_json_string(i.metric));
    cli_json_set(o, "difference", cli_json_real(j->summary.mean));
    cli_json_set(o, "interval", interval_json(j->interval.low, j->interval.high));
    cli_json_set(o, "confidence", cli_json_real(j->confidence));
    cli_json_set(o, "margin", cli_json_real(i.margin));
    cli_json_set(o, "relative", json_boolean(!i.absolute));
    cli_json_set(o, "pairs", json_integer(i.pairs));
    cli_json_set(o, "pairs_needed", i.needed ? json_integer(i.needed) : json_null());
    cli_json_set(o, "pairs_wanted", i.wanted ? json_integer(i.wanted) : json_null());
    cli_json_set(o, "more_pairs", json_integer(i.verdict == MIXT_STATS_UNDECIDED ? j->more : 0));
    cli_json_set(o, "looks", json_integer(i.looks));
    cli_json_set(o, "p", cli_json_real(j->p));
    cli_json_set(o, "p_permutation", cli_json_real(i.p_flip));
    cli_json_set(o, "p_inferior", cli_json_real(j->p_inferior));
    cli_json_set(o, "p_any", cli_json_real(j->p_any));
    cli_json_set(o, "effect", cli_json_real(j->effect));
    cli_json_set(o, "student", interval_json(j->student.low, j->student.high));
    cli_json_set(o, "unseen", cli_json_real(j->unseen));
    set_ratio(o, c, "time_to_equal_loss", "equal_seconds");
    set_ratio(o, c, "speed", "samples_s");
    set_ratio(o, c, "memory", "memory");
    cli_json_set(o, "a", side_json(args, c, MIXT_COMPARE_A, price));
    cli_json_set(o, "b", side_json(args, c, MIXT_COMPARE_B, price));
    cli_json_set(o, "judgements", judgements_json(c));
    cli_json_set(o, "changes", changes_json(c));
    json_t *differences = json_array();
    for (int64_t pair = 0; pair < i.pairs; pair++)
        cli_json_add(differences, cli_json_real(mixt_comparison_worse(c, pair)));
    cli_json_set(o, "differences", differences);
    cli_json_set(o, "folder", cli_json_string(i.folder));
    cli_json_print(o, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9) | JSON_PRESERVE_ORDER);
}

/* ---- for people ---- */

static void value_cell(cli_table *t, const mixt_compare_figure *f, double value)
{
    char text[32];
    if (isnan(value))
        snprintf(text, sizeof text, "-");
    else if (!strcmp(f->unit, "bytes"))
        cli_format_bytes(text, value);
    else if (!strcmp(f->unit, "s"))
        cli_format_duration(text, value);
    else
        snprintf(text, sizeof text, fabs(value) < 1e5 ? "%.5g%s%s" : "%.0f%s%s", value, *f->unit ? " " : "", f->unit);
    cli_table_cell(t, "%s", text);
}

static void print_figures(const mixt_comparison *c, double price)
{
    const mixt_compare_figure *f;
    cli_table t = {0};
    cli_table_column(&t, "", CLI_LEFT);
    cli_table_column(&t, "A", CLI_RIGHT);
    cli_table_column(&t, "B", CLI_RIGHT);
    cli_table_column(&t, "B / A", CLI_LEFT);
    for (int64_t i = 0; (f = mixt_comparison_figure(c, i)); i++) {
        if (isnan(f->a) && isnan(f->b))
            continue;
        cli_table_cell(&t, "%s", f->what);
        value_cell(&t, f, f->a);
        value_cell(&t, f, f->b);
        if (isnan(f->ratio))
            cli_table_cell(&t, "%s", "");
        else if (isnan(f->low))
            cli_table_cell(&t, "%.3f", f->ratio);
        else
            cli_table_cell(&t, "%.3f (%.3f to %.3f)", f->ratio, f->low, f->high);
    }
    if (price > 0) {
        cli_table_cell(&t, "cost of the run");
        cli_table_cell(&t, "%.3g", figure(c, "seconds", MIXT_COMPARE_A) / 3600 * price);
        cli_table_cell(&t, "%.3g", figure(c, "seconds", MIXT_COMPARE_B) / 3600 * price);
        cli_table_cell(&t, "%s", "");
    }
    cli_table_print(&t, stdout, 0);
    cli_table_free(&t);
}

/** The headline: what B's strategy is worth where both end at the same loss. */
static void print_headline(const mixt_comparison *c)
{
    const mixt_compare_figure *f = mixt_comparison_find(c, "equal_seconds");
    if (isnan(f->ratio))
        return;
    char interval[64] = "";
    if (!isnan(f->low))
        snprintf(interval, sizeof interval, " (%.1f to %.1f%%)", 100 * f->low, 100 * f->high);
    cli_line(stdout, "", "B comes to equal loss in %.1f%% of A's time%s", 100 * f->ratio, interval);
}

/** Where the two differ in more than what is to be compared. */
static void print_changes(const mixt_comparison *c)
{
    const mixt_compare_change *change;
    for (int64_t i = 0; (change = mixt_comparison_change(c, i)); i++)
        if (!change->policy)
            cli_line(stdout, "", "A and B differ in more than the policy: %s is %s in A and %s in B", change->key,
                     change->a, change->b);
}

static void print_text(const mixt_comparison *c, double price)
{
    static const cli_style styles[] = {
        [MIXT_STATS_UNDECIDED] = CLI_YELLOW, [MIXT_STATS_NON_INFERIOR] = CLI_GREEN, [MIXT_STATS_INFERIOR] = CLI_RED};
    mixt_comparison_info i = mixt_comparison_describe(c);
    const mixt_stats_judgement *j = &i.judgement;
    char look[32];
    if (i.used)
        print_figures(c, price);
    print_headline(c);
    print_changes(c);
    snprintf(look, sizeof look, i.pilot ? "the pilot" : "look %lld", (long long)i.looks);
    if (i.used > 1)
        cli_line(stdout, "", "%lld pairs, %s: p %.3g, %.3g by permutation; effect size %.2f; %s", (long long)i.used,
                 i.metric, j->p, i.p_flip, j->effect, look);
    for (mixt_claim claim = MIXT_CLAIM_SAFE; claim < MIXT_CLAIM_COUNT; claim++)
        if (mixt_comparison_judgement(c, claim))
            cli_judgement_print(mixt_comparison_judgement(c, claim));
    if (*i.folder)
        cli_line(stdout, "", "%s: every run, curves.svg, report.html", i.folder);
    printf("%s%s%s: ", cli_style_on(stdout, styles[i.verdict]), mixt_compare_verdict_name(i.verdict),
           cli_style_off(stdout));
    cli_line(stdout, "", "%s", i.reason);
    cli_line(stdout, "advice: ", "%s", i.advice);
}

static int report(const cli_args *args, const mixt_comparison *c, double price)
{
    mixt_comparison_info i = mixt_comparison_describe(c);
    if (cli_flag(args, "json"))
        print_json(args, c, price);
    else
        print_text(c, price);
    if (i.stopped)
        fprintf(stderr, "mixt: stopped %s after %lld pairs; the same command continues\n",
                cli_stopped_by() ? "by a signal" : "at the end of the budget", (long long)i.pairs);
    return i.stopped && cli_stopped_by() ? CLI_SIGNAL + cli_stopped_by() : statuses[i.verdict];
}

/* ---- the command ---- */

static int compare_configs(const cli_args *args, mixt_compare_options *o)
{
    mixt_config *configs[MIXT_COMPARE_SIDES] = {NULL, NULL};
    mixt_comparison *c = NULL;
    char name[100];
    watch w = {.quiet = cli_flag(args, "quiet") || cli_flag(args, "json"),
               .shown = {.part = "pair", .items_s = NAN, .scale = NAN}};
    default_name(args, name, sizeof name);
    o->name = cli_given(args, "name") ? cli_text(args, "name") : name;
    o->progress = hear;
    o->user = &w;
    int status = cli_refuse_out(args, "compare writes to runs/compare-NAME: choose the name with --name");
    if (status == CLI_OK)
        status = cli_config(args, cli_word(args, 0), &configs[0]);
    if (status == CLI_OK)
        status = cli_config(args, cli_word(args, 1), &configs[1]);
    if (status == CLI_OK) {
        cli_progress_start(&w.progress, stderr, w.quiet, 0);
        cli_stop_catch();
        mixt_status made = mixt_compare_with(configs[0], configs[1], o, &c);
        cli_stop_release();
        if (w.shown.step)
            cli_progress_finish(&w.progress, &w.shown);
        status = made == MIXT_OK ? report(args, c, o->price) : cli_failed();
    }
    mixt_comparison_free(c);
    mixt_config_free(configs[0]);
    mixt_config_free(configs[1]);
    return status;
}

static int compare_runs(const cli_args *args, const mixt_compare_options *o)
{
    mixt_comparison *c = NULL;
    if (cli_given(args, "seeds") || cli_given(args, "name") || cli_given(args, "budget") ||
        cli_given(args, "failures") || args->setting_count)
        return cli_usage(
            args->command,
            "two finished runs are only read: leave out --seeds, --name, --budget, --failures and settings");
    int status = mixt_compare_runs(cli_word(args, 0), cli_word(args, 1), o, &c) == MIXT_OK ? report(args, c, o->price)
                                                                                           : cli_failed();
    mixt_comparison_free(c);
    return status;
}

static int run(const cli_args *args)
{
    mixt_compare_options options = MIXT_OPTIONS(mixt_compare_options);
    bool folders[] = {cli_is_folder(cli_word(args, 0)), cli_is_folder(cli_word(args, 1))};
    int status = read_options(args, &options);
    if (status != CLI_OK)
        return status;
    if (folders[0] != folders[1])
        return cli_usage(args->command, "%s is a folder and %s is not: give two configurations or two runs",
                         cli_word(args, folders[0] ? 0 : 1), cli_word(args, folders[0] ? 1 : 0));
    for (int side = 0; cli_flag(args, "json") && side < 2; side++)
        if (cli_json_name(cli_word(args, side)) != MIXT_OK)
            return cli_failed();
    return folders[0] ? compare_runs(args, &options) : compare_configs(args, &options);
}

const cli_command cli_compare = {
    .name = "compare",
    .summary = "test by experiment whether B is as good as A",
    .description =
        "Trains A and B, two configurations of the same model on the same data, in pairs with the same seed, and gives "
        "a verdict: B is non-inferior (not worse than A by the margin), inferior (worse by more), or undecided. All "
        "runs are kept in runs/compare-NAME; after Ctrl-C the same command continues.\n\n"
        "Both runs of a pair have the same initial weights and order of data, and runs of A and B alternate, so that "
        "whatever slows the machine down affects both.\n\n"
        "A pilot of 6 pairs shows how much pairs differ by chance; from that follows how many pairs are needed to "
        "decide in 9 of 10 experiments. That number is printed, and there is no verdict before it is reached. More "
        "pairs may be asked for afterwards: each verdict counts as a look, and over all looks together a B that is "
        "worse by exactly the margin is called non-inferior in at most 5% of experiments, also where differences are "
        "skewed. n pairs cannot rule out failures rarer than 1 - 0.05^(1/n) of runs (6 pairs: 39%): the verdict says "
        "so, and --failures asks for a lower rate. There is no verdict from too few pairs, from pairs that diverged "
        "(unless B diverges more often than chance explains), or from runs whose loss did not move.\n\n"
        "The metric is measured at the last validation. The margin is a share of A's loss in the same pair, or points "
        "of accuracy. The main figure is the time to equal loss: until each run is as good as the worse of the two at "
        "the end. runs/compare-NAME also holds curves.svg and report.html. Ctrl-C, the end of the budget or a kill "
        "lose nothing; a larger --seeds adds pairs.\n\n"
        "Two run directories are shown side by side, without a verdict: one run of each does not allow one.\n\n"
        "Exit status: 0 non-inferior, 3 inferior, 4 undecided, 1 failed, 2 the command line is wrong, 130 after "
        "Ctrl-C, 143 after SIGTERM.",
    .arguments =
        {
            {"A", CLI_ARGUMENT_FILE, .help = "trusted configuration, or a finished run"},
            {"B", CLI_ARGUMENT_FILE, .help = "configuration in question, or a finished run"},
            {"key=value", CLI_ARGUMENT_SETTING, .help = "settings for both, as in train.steps=500"},
        },
    .options =
        {
            {"seeds", 'n', CLI_INT, "N", .min = MIXT_STATS_PAIRS_MIN, .max = MIXT_COMPARE_PAIRS_MAX,
             .help = "pairs; default: as many as the pilot says, up to 64", .more = "Seeds count up from A's"},
            {"margin", 'm', CLI_TEXT, "SHARE", .fallback = "0.5%",
             .help = "tolerated loss of quality: share of A's loss, or points of accuracy"},
            {"failures", .kind = CLI_TEXT, .metavar = "SHARE",
             .help = "enough pairs to show that fewer runs fail: 29 for 10%"},
            {"metric", .kind = CLI_CHOICE, .metavar = "METRIC", .choices = "loss|accuracy|train_loss|best_loss",
             .fallback = "loss", .help = "what is compared",
             .more = "loss and accuracy are those of the last validation, best_loss that of the best one, train_loss "
                     "the mean over the last tenth of the updates"},
            {"budget", .kind = CLI_TEXT, .metavar = "TIME", .help = "time for this call, as in 90s, 10m or 2h"},
            {"name", .kind = CLI_TEXT, .metavar = "NAME", .help = "name of the experiment; default: from the files"},
            {"cost", .kind = CLI_TEXT, .metavar = "PRICE", .help = "price of an hour of this machine, as in 2.50/h"},
            {"json", .kind = CLI_FLAG, .help = "print the result as one JSON object"},
            {"quiet", 'q', CLI_FLAG, .help = "no progress line"},
        },
    .examples =
        {
            {"mixt compare fp32.yaml bf16.yaml --margin 1%", "is BF16 within 1% of FP32's loss?"},
            {"mixt compare fp32.yaml bf16.yaml --margin 1% --seeds 20", "the same experiment with more pairs"},
            {"mixt compare runs/a runs/b", "two finished runs, side by side"},
        },
    .see_also = "verify|train|plot|report",
    .run = run,
};
