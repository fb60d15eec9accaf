/* mixt adopt: the road from FP32 to a proved policy, stage by stage. */
#include "cli/commands.h"

#include "cli/amounts.h"
#include "cli/json.h"
#include "cli/judgement.h"
#include "cli/names.h"
#include "cli/progress.h"
#include "cli/stop.h"
#include "cli/table.h"
#include "cli/tokenize_progress.h"

#include <mixt/adopt.h>
#include <mixt/compare.h>

#include <math.h>
#include <string.h>

enum { NAME_LONGEST = 80 };

/** What the exit status says, by mixt_adopt_outcome. */
static const int statuses[] = {CLI_OK, CLI_OK, 3, 4};

/* ---- what the options say ---- */

static int read_options(const cli_args *args, mixt_adopt_options *o)
{
    if (!cli_read_share(cli_text(args, "margin"), &o->margin))
        return cli_usage(args->command, "--margin '%s': expected a share above 0 and at most 1, as in 0.5%% or 0.005",
                         cli_text(args, "margin"));
    if (!cli_read_duration(cli_text(args, "budget"), &o->budget))
        return cli_usage(args->command, "--budget '%s': expected a time above 0, as in 90s, 10m or 2h",
                         cli_text(args, "budget"));
    if (cli_given(args, "name") && !cli_name_good(cli_text(args, "name"), NAME_LONGEST))
        return cli_usage(args->command, "--name '%s': expected 1 to %d letters, digits, '.', '_' and '-'",
                         cli_text(args, "name"), NAME_LONGEST);
    bool going = cli_given(args, "to") || cli_given(args, "from") || args->setting_count;
    if ((cli_flag(args, "undo") || cli_flag(args, "history")) && going)
        return cli_usage(args->command, "--%s trains nothing: leave out --to, --from and settings",
                         cli_flag(args, "undo") ? "undo" : "history");
    if (cli_flag(args, "undo") && cli_flag(args, "history"))
        return cli_usage(args->command, "give either --undo or --history");
    o->to = cli_given(args, "to") ? cli_text(args, "to") : NULL;
    o->from = cli_given(args, "from") ? cli_text(args, "from") : NULL;
    if (o->from && o->to && mixt_adopt_stage_find(o->from) > mixt_adopt_stage_find(o->to))
        return cli_usage(args->command, "--from %s --to %s: the second stage comes before the first", o->from, o->to);
    o->goal = strcmp(cli_text(args, "for"), "time") ? MIXT_SEARCH_MEMORY : MIXT_SEARCH_TIME;
    o->pairs = cli_given(args, "seeds") ? cli_int(args, "seeds") : 0;
    o->search_steps = cli_given(args, "steps") ? cli_int(args, "steps") : 0;
    return CLI_OK;
}

/* ---- progress ---- */

typedef struct watch {
    cli_progress progress;
    cli_progress_info shown;
} watch;

static bool hear(void *user, const mixt_progress *p)
{
    watch *w = user;
    if (p->kind == MIXT_PROGRESS_STEP) {
        if (w->shown.epoch != p->part || p->done < w->shown.step || p->total != w->shown.steps)
            cli_progress_begin_part(&w->progress, p->done);
        cli_progress_show(&w->progress, &w->shown, p);
    } else if (p->kind == MIXT_PROGRESS_DATA) {
        (void)cli_tokenize_progress(NULL, p);
    } else if (p->kind == MIXT_PROGRESS_WARNING) {
        cli_progress_warn(&w->progress, "%s", p->text);
    } else {
        cli_progress_note(&w->progress, "%s", p->text);
    }
    return !cli_stopped_by();
}

/* ---- what is printed ---- */

static json_t *figures_json(const mixt_adoption *a)
{
    mixt_adopt_figure f;
    json_t *list = json_array();
    for (int64_t i = 0; mixt_adoption_figure(a, i, &f); i++)
        cli_json_add(list,
                     cli_json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:b, s:s}", "stage", mixt_adopt_stage_name(f.stage),
                                   "name", f.name, "loss", cli_json_real(f.loss), "accuracy", cli_json_real(f.accuracy),
                                   "step_seconds", cli_json_real(f.step_seconds), "memory", cli_json_real(f.memory),
                                   "good", f.good, "note", f.note));
    return list;
}

static json_t *history_json(const mixt_adoption *a)
{
    mixt_adopt_entry e;
    json_t *list = json_array();
    for (int64_t i = 0; mixt_adoption_entry(a, i, &e); i++)
        cli_json_add(list, e.undo ? cli_json_pack("{s:s, s:s}", "undo", mixt_adopt_stage_name(e.stage), "time", e.time)
                                  : cli_json_pack("{s:s, s:s, s:I, s:s, s:s, s:s, s:s, s:s, s:s}", "stage",
                                                  mixt_adopt_stage_name(e.stage), "time", e.time, "version",
                                                  (json_int_t)e.version, "precision", e.precision, "decision",
                                                  e.decision, "reason", e.reason, "evidence", e.evidence, "config",
                                                  e.config, "policy", e.policy));
    return list;
}

static json_t *judgements_json(const mixt_adoption *a)
{
    mixt_judgement j;
    json_t *list = json_array();
    for (mixt_claim claim = MIXT_CLAIM_SAFE; claim < MIXT_CLAIM_COUNT; claim++)
        if (mixt_adoption_judgement(a, claim, &j))
            cli_json_add(list, cli_judgement_json(&j));
    return list;
}

static void print_json(const mixt_adoption *a)
{
    mixt_adoption_info i = mixt_adoption_describe(a);
    json_t *o = json_object();
    cli_json_set(o, "outcome", cli_json_string(mixt_adopt_outcome_name(i.outcome)));
    cli_json_set(o, "done", json_integer(i.done));
    cli_json_set(o, "next",
                 i.done < MIXT_ADOPT_STAGES ? cli_json_string(mixt_adopt_stage_name((mixt_adopt_stage)i.done))
                                            : json_null());
    cli_json_set(o, "precision", cli_json_string(i.precision));
    cli_json_set(o, "config", cli_json_string(i.config));
    cli_json_set(o, "policy", cli_json_string(i.policy));
    cli_json_set(o, "folder", cli_json_string(i.folder));
    cli_json_set(o, "best", cli_json_string(i.best));
    cli_json_set(o, "judgements", judgements_json(a));
    cli_json_set(o, "figures", figures_json(a));
    cli_json_set(o, "history", history_json(a));
    cli_json_print(o, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9) | JSON_PRESERVE_ORDER);
}

static void number_cell(cli_table *t, const char *format, double value)
{
    char text[40];
    if (isnan(value))
        snprintf(text, sizeof text, "-");
    else if (*format == 'b')
        cli_format_bytes(text, value);
    else
        snprintf(text, sizeof text, *format == 'm' ? "%.2f ms" : "%.5g", *format == 'm' ? 1e3 * value : value);
    cli_table_cell(t, "%s", text);
}

static void print_figures(const mixt_adoption *a)
{
    mixt_adopt_figure f;
    cli_table t = {0};
    cli_table_column(&t, "stage", CLI_LEFT);
    cli_table_column(&t, "what", CLI_LEFT);
    cli_table_column(&t, "loss", CLI_RIGHT);
    cli_table_column(&t, "accuracy", CLI_RIGHT);
    cli_table_column(&t, "an update", CLI_RIGHT);
    cli_table_column(&t, "memory", CLI_RIGHT);
    for (int64_t i = 0; mixt_adoption_figure(a, i, &f); i++) {
        cli_table_cell(&t, "%s", mixt_adopt_stage_name(f.stage));
        cli_table_cell(&t, "%s", f.name);
        number_cell(&t, "loss", f.loss);
        number_cell(&t, "accuracy", f.accuracy);
        number_cell(&t, "ms", f.step_seconds);
        number_cell(&t, "bytes", f.memory);
    }
    cli_table_print(&t, stdout, 0);
    cli_table_free(&t);
}

static void print_history(const mixt_adoption *a)
{
    mixt_adopt_entry e;
    for (int64_t i = 0; mixt_adoption_entry(a, i, &e); i++) {
        if (e.undo) {
            printf("%s  %s undone\n", e.time, mixt_adopt_stage_name(e.stage));
            continue;
        }
        printf("%s  version %lld, %s, %s: %s\n", e.time, (long long)e.version, mixt_adopt_stage_name(e.stage),
               e.precision, e.decision);
        cli_line(stdout, "  because ", "%s", e.reason);
        cli_line(stdout, "  evidence ", "%s", e.evidence);
        cli_line(stdout, "  kept as ", "%s, %s", e.config, e.policy);
    }
}

/** Where it stands, what to use, how to go back. */
static void print_state(const cli_args *args, const mixt_adoption *a)
{
    mixt_adoption_info i = mixt_adoption_describe(a);
    mixt_adopt_entry e, last = {.decision = "", .reason = ""};
    for (int64_t k = 0; mixt_adoption_entry(a, k, &e); k++)
        if (!e.undo && i.done && (int64_t)e.stage == i.done - 1)
            last = e;
    mixt_judgement j;
    bool judged = i.outcome != MIXT_ADOPT_UNDER_WAY && mixt_adoption_judgement(a, MIXT_CLAIM_SAFE, &j);
    if (i.done) // of the last stage the judgements are the reason
        cli_line(stdout, "", "%s: %s%s%s", mixt_adopt_stage_name(last.stage), last.decision, judged ? "" : ": ",
                 judged ? "" : last.reason);
    for (mixt_claim claim = MIXT_CLAIM_SAFE; claim < MIXT_CLAIM_COUNT; claim++)
        if (mixt_adoption_judgement(a, claim, &j))
            cli_judgement_print(&j);
    printf("%s: %lld of %d stages done, see %s/report.html\n", mixt_adopt_outcome_name(i.outcome), (long long)i.done,
           (int)MIXT_ADOPT_STAGES, i.folder);
    if (i.done)
        printf("use: %s/adopted.yaml (%s)\n", i.folder, i.precision);
    if (*i.best)
        printf("undecided: %s (%s), not shown to lose\n", i.best, i.best_precision);
    if (i.done)
        printf("to undo: mixt adopt %s%s%s --undo\n", cli_word(args, 0), cli_given(args, "name") ? " --name " : "",
               cli_given(args, "name") ? cli_text(args, "name") : "");
}

static int report(const cli_args *args, const mixt_adoption *a)
{
    mixt_adoption_info i = mixt_adoption_describe(a);
    if (cli_flag(args, "json")) {
        print_json(a);
    } else if (cli_flag(args, "history")) {
        print_history(a);
    } else {
        print_figures(a);
        print_state(args, a);
    }
    if (i.stopped)
        fprintf(stderr, "mixt: stopped by a signal in stage %s; the same command continues\n",
                mixt_adopt_stage_name((mixt_adopt_stage)i.done));
    if (i.stopped && cli_stopped_by())
        return CLI_SIGNAL + cli_stopped_by();
    return cli_flag(args, "undo") || cli_flag(args, "history") ? CLI_OK : statuses[i.outcome];
}

/* ---- the command ---- */

static mixt_status go(const cli_args *args, const mixt_config *config, mixt_adopt_options *o, mixt_adoption **a)
{
    bool quiet = cli_flag(args, "quiet") || cli_flag(args, "json");
    watch w = {.shown = {.part = "stage", .epochs = MIXT_ADOPT_STAGES, .items_s = NAN, .scale = NAN}};
    o->progress = hear;
    o->user = &w;
    cli_progress_start(&w.progress, stderr, quiet, 0);
    cli_stop_catch();
    mixt_status status = mixt_adopt_with(config, o, a);
    cli_stop_release();
    if (w.shown.step)
        cli_progress_finish(&w.progress, &w.shown);
    return status;
}

static int run(const cli_args *args)
{
    mixt_adopt_options options = MIXT_OPTIONS(mixt_adopt_options);
    mixt_config *config = NULL;
    mixt_adoption *a = NULL;
    char name[100] = "";
    int status = read_options(args, &options);
    if (status == CLI_OK)
        status = cli_refuse_out(args, "adopt writes to runs/adopt-NAME: choose the name with --name");
    if (status != CLI_OK)
        return status;
    cli_name_add_stem(name, sizeof name, cli_word(args, 0));
    options.name = cli_given(args, "name") ? cli_text(args, "name") : name;
    status = cli_config(args, cli_word(args, 0), &config);
    if (status == CLI_OK) {
        mixt_status made = cli_flag(args, "history") ? mixt_adopt_open(options.name, &a)
                           : cli_flag(args, "undo")  ? mixt_adopt_undo(options.name, &a)
                                                     : go(args, config, &options, &a);
        status = made == MIXT_OK ? report(args, a) : cli_failed();
    }
    mixt_adoption_free(a);
    mixt_config_free(config);
    return status;
}

const cli_command cli_adopt = {
    .name = "adopt",
    .summary = "find and test a mixed precision in five stages",
    .description =
        "Finds and tests a mixed precision for CONFIG in five stages: baseline (FP32), formats (try each), mixed "
        "(train "
        "with the fastest), tuned (a format for each layer), validated (paired runs: is it safe and worth it?). The "
        "result is runs/adopt-NAME/adopted.yaml. After Ctrl-C the same command continues.\n\n"
        "baseline trains in FP32. formats trains each lower format of this machine for a quarter of the updates. mixed "
        "trains with the fastest of them, or the smallest with --for memory. tuned searches a format for each layer "
        "('mixt search'). validated compares whole runs in pairs ('mixt compare', or the pairs of the search where "
        "they "
        "were as long). Each stage prints figures, a decision and its reason.\n\n"
        "The policy is adopted where it is shown to be safe and worth it. Any measurable gain is worth it, unless "
        "verify.speedup or verify.memory ask for more. FP32 stays where either is shown not to hold. Otherwise the "
        "result is undecided: the best policy is named with the number of pairs that would decide.\n\n"
        "runs/adopt-NAME holds adopted.yaml, the configuration to use; its policy with the evidence; report.html and "
        "report.md; earlier versions of both in versions; and history.jsonl. --undo drops the newest stage, --from "
        "repeats a stage and those after it; versions and history are kept.\n\n"
        "Exit status: 0 adopted, or the stages asked for are done; 3 FP32 stays; 4 undecided; 1 failed; 2 the command "
        "line is wrong; 130 after Ctrl-C, 143 after SIGTERM.",
    .arguments =
        {
            {"CONFIG", CLI_ARGUMENT_FILE, .help = "YAML file of the run; its precision is ignored"},
            {"key=value", CLI_ARGUMENT_SETTING, .help = "settings that win over the file, as in train.steps=500"},
        },
    .options =
        {
            {"to", .kind = CLI_CHOICE, .metavar = "STAGE", .choices = "baseline|formats|mixed|tuned|validated",
             .help = "stop after this stage"},
            {"from", .kind = CLI_CHOICE, .metavar = "STAGE", .choices = "baseline|formats|mixed|tuned|validated",
             .help = "repeat this stage and those after it"},
            {"undo", .kind = CLI_FLAG, .help = "drop the newest stage"},
            {"history", .kind = CLI_FLAG, .help = "print the decisions so far, with reasons and evidence"},
            {"name", .kind = CLI_TEXT, .metavar = "NAME", .help = "name of the folder; default: the file's name"},
            {"margin", 'm', CLI_TEXT, "SHARE", .fallback = "0.5%", .help = "tolerated increase of the loss over FP32"},
            {"seeds", 'n', CLI_INT, "N", .min = MIXT_STATS_PAIRS_MIN, .max = MIXT_COMPARE_PAIRS_MAX,
             .help = "pairs of the validation; default: as its pilot says",
             .more = "At most 64 where the pilot decides"},
            {"for", .kind = CLI_CHOICE, .metavar = "GOAL", .choices = "time|memory", .fallback = "time",
             .help = "make this small"},
            {"budget", .kind = CLI_TEXT, .metavar = "TIME", .fallback = "10m", .help = "time for the search"},
            {"steps", .kind = CLI_INT, .metavar = "N", .min = 1, .max = 1000000,
             .help = "updates of a trial of the search", .more = "Default: what the budget has time for"},
            {"json", .kind = CLI_FLAG, .help = "print state, figures and history as one JSON object"},
            {"quiet", 'q', CLI_FLAG, .help = "no progress line"},
        },
    .examples =
        {
            {"mixt adopt configs/digits.yaml --to mixed", "the first three stages: FP32, each format, the best one"},
            {"mixt adopt configs/digits.yaml", "continue: tune and validate"},
            {"mixt adopt configs/digits.yaml --history", "what was decided so far, and why"},
        },
    .see_also = "search|compare|verify|train",
    .run = run,
};
