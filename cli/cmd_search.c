/* mixt search: the cheapest policy that loses no more than a tolerance. */
#include "cli/commands.h"

#include "cli/amounts.h"
#include "cli/json.h"
#include "cli/judgement.h"
#include "cli/stop.h"
#include "cli/support.h"
#include "cli/table.h"
#include "cli/term.h"
#include "cli/tokenize_progress.h"

#include <mixt/compare.h>
#include <mixt/search.h>

#include <math.h>
#include <string.h>

/* ---- what the options say ---- */

static int read_options(const cli_args *args, mixt_search_options *o)
{
    if (!cli_read_share(cli_text(args, "lose"), &o->lose))
        return cli_usage(args->command,
                         "--lose '%s': expected a share of the loss above 0 and at most 1, as in 0.1%% or 0.001",
                         cli_text(args, "lose"));
    if (!cli_read_duration(cli_text(args, "budget"), &o->budget))
        return cli_usage(args->command, "--budget '%s': expected a time above 0, as in 90s, 10m or 2h",
                         cli_text(args, "budget"));
    o->goal = strcmp(cli_text(args, "for"), "time") ? MIXT_SEARCH_MEMORY : MIXT_SEARCH_TIME;
    o->write = cli_text(args, "out");
    o->formats = cli_given(args, "formats") ? cli_text(args, "formats") : NULL;
    o->steps = cli_given(args, "steps") ? cli_int(args, "steps") : 0;
    o->trials = cli_int(args, "trials");
    o->pairs = cli_given(args, "pairs") ? cli_int(args, "pairs") : 0;
    o->fresh = cli_flag(args, "fresh");
    if (!*o->write)
        return cli_usage(args->command, "--out needs the name of a file for the policy");
    if (cli_same_file(o->write, cli_word(args, 0)))
        return cli_usage(args->command, "--out %s: is the configuration itself: choose another file", o->write);
    return CLI_OK;
}

/* ---- progress ---- */

typedef struct watch {
    bool quiet, live, line_open;
    double shown;
} watch;

static void end_line(watch *w)
{
    if (w->line_open)
        fputs("\r\033[K", stderr);
    w->line_open = false;
}

/** One line: time, what is being done, how many were tried, the best so far. */
static void show_line(watch *w, const mixt_progress *p)
{
    char seconds[32], budget[32];
    double now = cli_time_now();
    if (now - w->shown < (w->live ? 0.1 : 10))
        return;
    w->shown = now;
    fprintf(stderr, "%s%s of %s  %s  %lld tried  %s%s", w->live ? "\r" : "", cli_format_duration(seconds, p->seconds),
            cli_format_duration(budget, p->budget), p->task, (long long)p->done, p->text, w->live ? "\033[K" : "\n");
    fflush(stderr);
    w->line_open = w->live;
}

static bool hear(void *user, const mixt_progress *p)
{
    watch *w = user;
    if (p->kind == MIXT_PROGRESS_DATA) {
        (void)cli_tokenize_progress(NULL, p);
    } else if (p->kind == MIXT_PROGRESS_STEP && !w->quiet) {
        show_line(w, p);
    } else if (!w->quiet) {
        end_line(w);
        fprintf(stderr, "%s\n", p->text);
    }
    return !cli_stopped_by();
}

/* ---- the result ---- */

static void print_json(const mixt_search_result *r)
{
    mixt_search_info i = mixt_search_describe(r);
    const mixt_search_point *p;
    json_t *front = json_array(), *o = json_object();
    for (int64_t k = 0; (p = mixt_search_front(r, k)); k++) {
        json_t *point =
            cli_json_pack("{s:s, s:o, s:I, s:o, s:b}", "policy", p->policy, "ms", cli_json_real(p->ms), "memory",
                          (json_int_t)p->memory, "judgement", cli_judgement_json(&p->safe), "chosen", p->chosen);
        cli_json_add(front, point);
    }
    cli_json_set(o, "policy", cli_json_string(i.policy));
    cli_json_set(o, "ms", cli_json_real(i.ms));
    cli_json_set(o, "memory", json_integer((json_int_t)i.memory));
    cli_json_set(o, "line", cli_json_string(i.line));
    cli_json_set(o, "judgements", cli_json_pack("[o, o]", cli_judgement_json(&i.safe), cli_judgement_json(&i.worth)));
    cli_json_set(
        o, "refused",
        *i.refused ? cli_json_pack("{s:s, s:o}", "policy", i.refused, "judgement", cli_judgement_json(&i.refused_safe))
                   : json_null());
    cli_json_set(o, "complete", json_boolean(i.complete));
    cli_json_set(o, "fp32_ms", cli_json_real(i.fp32_ms));
    cli_json_set(o, "fp32_memory", json_integer((json_int_t)i.fp32_memory));
    cli_json_set(o, "steps", json_integer(i.steps));
    cli_json_set(o, "fresh_steps", json_integer(i.fresh_steps));
    cli_json_set(o, "trials", json_integer(i.trials));
    cli_json_set(o, "tried", json_integer(i.tried));
    cli_json_set(o, "finalists", json_integer(i.finalists));
    cli_json_set(o, "front", front);
    cli_json_print(o, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9) | JSON_PRESERVE_ORDER);
}

static void print_front(const mixt_search_result *r)
{
    cli_table t = {0};
    const mixt_search_point *p;
    cli_table_column(&t, "", CLI_LEFT);
    cli_table_column(&t, "ms", CLI_RIGHT);
    cli_table_column(&t, "memory", CLI_RIGHT);
    cli_table_column(&t, "loss", CLI_RIGHT);
    cli_table_column(&t, "safe", CLI_LEFT);
    cli_table_column(&t, "policy", CLI_LEFT);
    for (int64_t k = 0; (p = mixt_search_front(r, k)); k++) {
        char bytes[32];
        cli_table_cell_styled(&t, p->chosen ? CLI_GREEN : CLI_PLAIN, p->chosen ? "chosen" : "");
        if (isnan(p->ms))
            cli_table_cell(&t, "-");
        else
            cli_table_cell(&t, "%.2f", p->ms);
        cli_table_cell(&t, "%s", cli_format_bytes(bytes, (double)p->memory));
        if (isfinite(p->safe.value))
            cli_table_cell(&t, "%+.3f%%", 100 * p->safe.value);
        else
            cli_table_cell(&t, "-");
        cli_table_cell(&t, "%s", mixt_verdict_name(p->safe.verdict));
        cli_table_cell(&t, "%s", p->policy);
    }
    cli_table_print(&t, stdout, 0);
    cli_table_free(&t);
}

static void print_result(const mixt_search_result *r)
{
    mixt_search_info i = mixt_search_describe(r);
    char memory[32], fp32[32];
    print_front(r);
    printf("%s: %s of %s in fp32", i.policy, cli_format_bytes(memory, (double)i.memory),
           cli_format_bytes(fp32, (double)i.fp32_memory));
    if (!isnan(i.ms) && !isnan(i.fp32_ms))
        printf(", %.2f of %.2f ms per step", i.ms, i.fp32_ms);
    printf("\n");
    if (i.lower) {
        cli_line(stdout, "found    ", "%s%s", i.line,
                 i.safe.verdict == MIXT_VERDICT_YES ? "" : ", the best one not shown to lose");
        cli_judgement_print(&i.safe);
        cli_judgement_print(&i.worth);
    } else {
        cli_line(stdout, "found    ", "fp32: %s",
                 !i.complete  ? "the time ended before anything cheaper was found"
                 : *i.refused ? "everything cheaper was shown to lose"
                              : "nothing tried is cheaper");
    }
    if (*i.refused) {
        cli_line(stdout, "refused  ", "%s", i.refused);
        cli_judgement_print(&i.refused_safe);
    }
    int64_t pairs = i.safe.pairs + i.safe.needs;
    if (i.lower && i.safe.verdict == MIXT_VERDICT_UNDECIDED && i.safe.needs > 0 && pairs <= MIXT_SEARCH_PAIRS_MAX)
        cli_line(stdout, "to decide ", "the same command with --pairs %lld, or more of --budget", (long long)pairs);
    else if (i.lower && i.safe.verdict == MIXT_VERDICT_UNDECIDED)
        cli_line(stdout, "to decide ",
                 "pairs of whole runs, as mixt compare and mixt adopt make them, or a larger --lose");
    printf("%s: everything that was tried, and the Pareto front (front.svg)\n", i.folder);
}

static int report(const cli_args *args, const mixt_search_result *r)
{
    mixt_search_info i = mixt_search_describe(r);
    if (cli_flag(args, "json"))
        print_json(r);
    else if (!cli_flag(args, "quiet"))
        print_result(r);
    if (!i.complete)
        fprintf(stderr, "mixt: stopped %s, %s holds the best so far%s; the same command continues\n",
                i.stopped ? "by a signal" : "at the end of the budget", i.policy,
                i.safe.verdict == MIXT_VERDICT_YES ? "" : ", not yet tested on new pairs");
    return i.stopped ? CLI_SIGNAL + cli_stopped_by() : CLI_OK;
}

/** Searches; SIGINT and SIGTERM end it after the update under way, a second one kills. */
static mixt_status search(const cli_args *args, const mixt_config *config, mixt_search_options *o,
                          mixt_search_result **r)
{
    watch w = {.quiet = cli_flag(args, "quiet") || cli_flag(args, "json"), .shown = -INFINITY};
    w.live = cli_is_terminal(stderr);
    o->progress = hear;
    o->user = &w;
    cli_stop_catch();
    mixt_status status = mixt_search_with(config, o, r);
    cli_stop_release();
    end_line(&w);
    return status;
}

static int run(const cli_args *args)
{
    mixt_config *config;
    mixt_search_options options = MIXT_OPTIONS(mixt_search_options);
    mixt_search_result *result = NULL;
    int status = read_options(args, &options);
    if (status == CLI_OK)
        status = cli_refuse_out(args, "search keeps no runs: leave it out; --out FILE is the policy to write");
    if (status != CLI_OK)
        return status;
    if (cli_flag(args, "json") && cli_json_name(options.write) != MIXT_OK)
        return cli_failed();
    options.folder = cli_is_folder(cli_word(args, 0)) ? cli_word(args, 0) : NULL;
    status = cli_config_or_run(args, &config);
    if (status == CLI_OK)
        status = search(args, config, &options, &result) == MIXT_OK ? report(args, result) : cli_failed();
    mixt_search_free(result);
    mixt_config_free(config);
    return status;
}

const cli_command cli_search = {
    .name = "search",
    .summary = "find the fastest or smallest precision for each layer",
    .description =
        "Searches a format for each layer of CONFIG so that a training step takes the least time or memory and the "
        "validation loss changes by at most --lose. FILE then holds a policy to train with (precision=FILE). After "
        "Ctrl-C the same command continues.\n\n"
        "Time is measured on whole steps, casts and update included; memory is planned, which is exact. A policy and "
        "FP32 train the same updates from the same weights and are compared on validation samples: a pair. First all "
        "layers are lowered; where pairs show that this loses more than --lose, layers are ranked by sensitivity and "
        "as "
        "few as possible are raised again. Layers that share a cast or a fusion are one group. The result is tested on "
        "new pairs, with other seeds and with validation samples that the search has not used: safe, not safe or "
        "undecided, with the interval of the change and the number of pairs that would decide. If it is not safe the "
        "search continues without it. FP32 is the result only where all others are shown to lose, or nothing is "
        "cheaper.\n\n"
        "FILE holds FP32 at first and then the best policy so far, with its measurements as evidence. The folder "
        "FILE.search holds every policy tried (candidates.jsonl) and the Pareto front (front.json, front.svg). Ctrl-C, "
        "SIGTERM, the end of the budget or a kill lose nothing. A search with another configuration or other options "
        "is refused there, with the difference, unless --fresh starts again. The precision of CONFIG is ignored.\n\n"
        "Exit status: 0 when the search or its budget ended, 1 when it failed, 2 when the command line is wrong, 130 "
        "after Ctrl-C, 143 after SIGTERM.",
    .arguments =
        {
            {"CONFIG|RUN", CLI_ARGUMENT_FILE, .help = "YAML file of a run, or a run directory",
             .more = "The trials of a run start from its newest checkpoint that leaves 8 updates"},
            {"key=value", CLI_ARGUMENT_SETTING, .help = "settings that win over the file, as in train.batch=16"},
        },
    .options =
        {
            {"lose", .kind = CLI_TEXT, .metavar = "SHARE", .fallback = "0.5%",
             .help = "tolerated change of the validation loss"},
            {"for", .kind = CLI_CHOICE, .metavar = "GOAL", .choices = "time|memory", .fallback = "time",
             .help = "make this small"},
            {"out", 'o', CLI_TEXT, "FILE", .required = true, .help = "policy file to write"},
            {"budget", .kind = CLI_TEXT, .metavar = "TIME", .fallback = "10m",
             .help = "time for this call, as in 90s or 2h"},
            {"formats", .kind = CLI_TEXT, .metavar = "LIST", .help = "formats to try, as in bf16,fp16",
             .more = "bf16/fp8_e4m3 keeps activations in FP8 until the backward pass. Default: all that are cheaper "
                     "than fp32"},
            {"steps", .kind = CLI_INT, .metavar = "N", .min = 1, .max = 1e9,
             .help = "updates of a trial; default: 8 to 200, by the budget"},
            {"trials", .kind = CLI_INT, .metavar = "N", .fallback = "3", .min = 2, .max = MIXT_SEARCH_TRIALS_MAX,
             .help = "trials of each policy", .more = "Up to 4 times as many where they do not decide yet"},
            {"pairs", .kind = CLI_INT, .metavar = "N", .min = MIXT_STATS_PAIRS_MIN, .max = MIXT_SEARCH_PAIRS_MAX,
             .help = "pairs of the final test; default: as many as decide"},
            {"fresh", .kind = CLI_FLAG, .help = "forget an earlier search and replace FILE"},
            {"json", .kind = CLI_FLAG, .help = "print the result as one JSON object"},
            {"quiet", 'q', CLI_FLAG, .help = "no progress line, no table"},
        },
    .examples =
        {
            {"mixt search configs/digits.yaml --lose 0.5% --for memory --budget 2m --out policy.yaml",
             "the smallest step that loses at most half a percent"},
            {"mixt train configs/digits.yaml precision=policy.yaml", "train with the result"},
        },
    .see_also = "train|sensitivity|advise|verify",
    .run = run,
};
