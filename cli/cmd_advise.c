/* mixt advise: which precision, batch and memory plan a configuration should take, and what holds its step back. */
#include "cli/commands.h"

#include "cli/amounts.h"
#include "cli/json.h"
#include "cli/judgement.h"
#include "cli/support.h"
#include "cli/table.h"
#include "cli/tokenize_progress.h"

#include <mixt/advise.h>
#include <mixt/run.h>

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* ---- what the options mean ---- */

/** "0.5%" or "0.005": a share of the loss. */
static int read_lose(const cli_args *args, double *lose)
{
    const char *text = cli_text(args, "lose");
    char *end;
    if (!cli_given(args, "lose"))
        return CLI_OK;
    double value = strtod(text, &end);
    bool percent = !strcmp(end, "%");
    value = percent ? value / 100 : value;
    if (end == text || (*end && !percent) || !(value >= 0 && value <= 1))
        return cli_usage(args->command, "--lose '%s': expected a share of the loss, as in 0.5%% or 0.005", text);
    *lose = value;
    return CLI_OK;
}

static int read_price(const cli_args *args, double *price)
{
    if (cli_given(args, "cost") && !cli_read_price(cli_text(args, "cost"), price))
        return cli_usage(args->command, "--cost '%s': expected the price of an hour, as in 2.50/h",
                         cli_text(args, "cost"));
    return CLI_OK;
}

/* ---- JSON ---- */

static json_t *choice_json(const mixt_advice_choice *c)
{
    return cli_json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:s, s:b, s:s, s:o, s:b, s:s, s:s}", "precision", c->precision,
                         "policy", c->policy, "batch", (json_int_t)c->batch, "accumulate", (json_int_t)c->accumulate,
                         "split", (json_int_t)c->split, "largest_batch", (json_int_t)c->largest_batch, "largest_reason",
                         c->largest_reason, "recompute", c->recompute, "loss_scale", c->loss_scale, "clip",
                         c->clip > 0 ? cli_json_real(c->clip) : json_null(), "fits", c->found, "decided_by", c->decided,
                         "why", c->why);
}

static json_t *candidate_json(const mixt_advice_candidate *c)
{
    return cli_json_pack("{s:s, s:o, s:o, s:s, s:s, s:s, s:o, s:o, s:o, s:o}", "name", c->name, "memory",
                         c->memory ? json_integer((json_int_t)c->memory) : json_null(), "ms",
                         cli_json_real(1e3 * c->seconds), "source", c->source, "verdict", c->verdict, "why", c->why,
                         "run_seconds", cli_json_real(c->run_seconds), "cost", cli_json_real(c->cost), "lost",
                         cli_json_real(c->lost), "judgement", cli_judgement_json(&c->safe));
}

/** The command that measures what is only predicted; "" where FP32 is advised. */
static const char *proof_of(const cli_args *args, const mixt_advice_choice *c, char text[600])
{
    const char *policy = cli_given(args, "out") ? cli_text(args, "out") : c->precision;
    text[0] = '\0';
    if (strcmp(c->precision, "fp32"))
        snprintf(text, 600, "mixt verify %.250s precision=%.250s", cli_word(args, 0), policy);
    return text;
}

static int print_json(const cli_args *args, const mixt_advice *advice)
{
    char proof[600];
    const mixt_advice_choice *c = mixt_advice_choose(advice);
    const mixt_advice_candidate *candidate;
    const mixt_remedy *r;
    json_t *candidates = json_array(), *remedies = json_array();
    for (int i = 0; (candidate = mixt_advice_candidate_at(advice, i)); i++)
        cli_json_add(candidates, candidate_json(candidate));
    for (int i = 0; (r = mixt_advice_remedy(advice, i)); i++)
        cli_json_add(remedies, cli_json_pack("{s:s, s:s, s:f, s:f, s:s}", "what", r->what, "where", r->where, "share",
                                             r->share, "gain", r->gain, "text", r->text));
    json_t *all = cli_json_pack("{s:s, s:s, s:b, s:I, s:o, s:o, s:o}", "machine", c->machine, "title", c->title,
                                "assumed", c->assumed, "memory_limit", (json_int_t)c->limit, "choice", choice_json(c),
                                "candidates", candidates, "remedies", remedies);
    if (all)
        cli_json_set(all, "looked_at", cli_json_string(c->looked_at));
    if (all) {
        cli_json_set(all, "judgements",
                     cli_json_pack("[o, o, o]", cli_judgement_json(&c->safe), cli_judgement_json(&c->faster),
                                   cli_judgement_json(&c->smaller)));
        cli_json_set(all, "proof", cli_json_string(proof_of(args, c, proof)));
        cli_json_set(all, "price", cli_json_real(c->price));
        cli_json_set(all, "price_source", cli_json_string(c->price_source));
    }
    if (!all) {
        fputs("mixt advise: no memory for the report, or a name that is not UTF-8\n", stderr);
        return CLI_FAILED;
    }
    cli_json_print(all, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9) | JSON_PRESERVE_ORDER);
    return CLI_OK;
}

/* ---- text ---- */

static const char *milliseconds(char text[32], double seconds)
{
    double ms = 1e3 * seconds;
    snprintf(text, 32, isnan(ms) ? "-" : ms < 1 ? "%.3f" : ms < 10 ? "%.2f" : ms < 1000 ? "%.1f" : "%.0f", ms);
    return text;
}

static void print_candidates(const mixt_advice *advice, bool priced)
{
    const mixt_advice_candidate *c;
    cli_table t = {0};
    char text[32];
    cli_table_column(&t, "precision", CLI_LEFT);
    cli_table_column(&t, "memory", CLI_RIGHT);
    cli_table_column(&t, "ms", CLI_RIGHT);
    cli_table_column(&t, "whole run", CLI_RIGHT);
    if (priced)
        cli_table_column(&t, "cost", CLI_RIGHT);
    cli_table_column(&t, "verdict", CLI_LEFT);
    cli_table_column(&t, "", CLI_LEFT);
    for (int i = 0; (c = mixt_advice_candidate_at(advice, i)); i++) {
        bool chosen = !strcmp(c->verdict, "chosen");
        cli_table_cell(&t, "%s", c->name);
        cli_table_cell(&t, "%s", c->memory ? cli_format_bytes(text, (double)c->memory) : "-");
        cli_table_cell(&t, "%s", milliseconds(text, c->seconds));
        cli_table_cell(&t, "%s", isnan(c->run_seconds) ? "-" : cli_format_duration(text, c->run_seconds));
        if (priced)
            cli_table_cell(&t, isnan(c->cost) ? "-" : c->cost < 0.005 ? "<0.01" : "%.2f", c->cost);
        cli_table_cell_styled(&t, chosen ? CLI_GREEN : CLI_PLAIN, c->verdict);
        cli_table_cell(&t, "%s", chosen ? "" : c->why);
    }
    cli_table_print(&t, stdout, 0);
    cli_table_free(&t);
}

static void print_remedies(const mixt_advice *advice)
{
    const mixt_remedy *r;
    cli_table t = {0};
    char head[64];
    snprintf(head, sizeof head, "holds %.20s back", mixt_advice_choose(advice)->looked_at);
    cli_table_column(&t, "share", CLI_RIGHT);
    cli_table_column(&t, "gain", CLI_RIGHT);
    cli_table_column(&t, head, CLI_LEFT);
    cli_table_column(&t, "", CLI_LEFT);
    for (int i = 0; (r = mixt_advice_remedy(advice, i)); i++) {
        cli_table_cell(&t, "%.0f%%", 100 * r->share);
        cli_table_cell(&t, r->gain > 0 ? "%.0f%%" : "-", 100 * r->gain);
        cli_table_cell(&t, "%s", r->what);
        cli_table_cell(&t, "%s%s%s", r->text, *r->where ? ": " : "", r->where);
    }
    if (t.count) {
        putchar('\n');
        cli_table_print(&t, stdout, 0);
    }
    cli_table_free(&t);
}

static bool has_source(const mixt_advice *advice, const char *source)
{
    const mixt_advice_candidate *c;
    for (int i = 0; (c = mixt_advice_candidate_at(advice, i)); i++)
        if (!strcmp(c->source, source))
            return true;
    return false;
}

/** What of the answer is a prediction, and what would prove it. */
static void print_judgements(const cli_args *args, const mixt_advice_choice *c)
{
    char proof[600];
    if (!c->found || !*proof_of(args, c, proof))
        return;
    cli_judgement_print(&c->safe);
    cli_judgement_print(&c->faster);
    cli_judgement_print(&c->smaller);
    cli_line(stdout, "to verify  ", "%s", proof);
}

static void print_text(const cli_args *args, const mixt_advice *advice)
{
    const mixt_advice_choice *c = mixt_advice_choose(advice);
    const mixt_advice_candidate *first = mixt_advice_candidate_at(advice, 0);
    char bytes[32], clip[32] = "no clipping";
    cli_line(stdout, "machine    ", "%s%s%s, %s for the run", c->title, c->assumed ? ", assumed: " : "",
             c->assumed ? c->machine : "", cli_format_bytes(bytes, (double)c->limit));
    if (c->clip > 0)
        snprintf(clip, sizeof clip, "clipping at %g", c->clip);
    cli_line(stdout, "precision  ", "%s%s: %s", c->precision, c->found ? "" : ", which does not fit", c->why);
    cli_line(stdout, "with       ", "%s, %s; batch %lld, %lld pass%s per update%s",
             strcmp(c->loss_scale, "none") ? "dynamic loss scaling" : "no loss scaling", clip, (long long)c->batch,
             (long long)c->accumulate, c->accumulate == 1 ? "" : "es", c->recompute ? ", recomputation" : "");
    if (c->found && (c->split > 1 || c->recompute))
        cli_line(stdout, "           ", "%sto make it fit: set train.memory=%zuM",
                 c->split > 1 ? "batches split, " : "", c->limit >> 20);
    if (c->largest_batch)
        cli_line(stdout, "           ", "the largest batch that fits is %lld%s%s", (long long)c->largest_batch,
                 *c->largest_reason ? ": " : "", c->largest_reason);
    cli_line(stdout, "decided by ", "%s", c->decided);
    print_judgements(args, c);
    putchar('\n');
    print_candidates(advice, !isnan(first->cost));
    bool modelled = has_source(advice, "modelled"), measured = has_source(advice, "measured");
    putchar('\n');
    cli_line(stdout, "", "ms per update are %s; memory is planned%s.",
             measured && modelled ? "measured here, or computed where no trial was made"
             : measured           ? "measured here"
                                  : "computed from the machine's profile and the op counts",
             c->assumed ? ", without the scratch of vendor libraries" : ", to the byte");
    if (!isnan(first->cost))
        cli_line(stdout, "", "cost of the whole run at %.2f per hour: %s.", c->price,
                 *c->price_source ? c->price_source : "in the currency of --cost");
    print_remedies(advice);
}

/* ---- trials ---- */

static volatile sig_atomic_t stop_requested;

static void request_stop(int signal)
{
    (void)signal;
    stop_requested = 1;
}

/** One line that stays where it is, on a terminal. */
static bool hear(void *user, const mixt_progress *p)
{
    static double shown;
    bool quiet = *(bool *)user;
    if (p->kind == MIXT_PROGRESS_DATA)
        return cli_tokenize_progress(NULL, p) && !stop_requested;
    if (!quiet && cli_is_terminal(stderr) && (p->seconds < shown || p->seconds - shown > 0.2)) {
        shown = p->seconds;
        fprintf(stderr, "\r%s %.40s: %.0f s of at most %.0f\033[K", p->task, p->what, p->seconds, p->budget);
        fflush(stderr);
    }
    return !stop_requested;
}

static void end_line(bool quiet)
{
    if (!quiet && cli_is_terminal(stderr))
        fputs("\r\033[K", stderr);
}

/** SIGINT and SIGTERM end it after the trial under way, a second one kills. */
static mixt_status ask(const cli_args *args, const mixt_config *config, mixt_advise_options *options,
                       mixt_advice **advice)
{
    struct sigaction action = {.sa_handler = request_stop, .sa_flags = (int)SA_RESETHAND}, old_int, old_term;
    bool quiet = cli_flag(args, "quiet");
    options->progress = hear;
    options->user = &quiet;
    sigaction(SIGINT, &action, &old_int);
    sigaction(SIGTERM, &action, &old_term);
    mixt_status status = mixt_advise_with(config, options, advice);
    end_line(quiet);
    sigaction(SIGINT, &old_int, NULL);
    sigaction(SIGTERM, &old_term, NULL);
    return status;
}

/* ---- the command ---- */

/** "24G": read as the key train.memory is. */
static int read_memory(const cli_args *args, mixt_config *config, size_t *bytes)
{
    char setting[128];
    const char *text = cli_text(args, "memory");
    if (!cli_given(args, "memory"))
        return CLI_OK;
    snprintf(setting, sizeof setting, "train.memory=%s", text);
    if (mixt_config_set(config, setting, "--memory") == MIXT_OK)
        *bytes = (size_t)mixt_config_int(config, "train.memory");
    return *bytes ? CLI_OK : cli_usage(args->command, "--memory '%s': expected bytes, as in 24G or 512M", text);
}

static int check_write(const cli_args *args)
{
    const char *path = cli_text(args, "out");
    if (!cli_given(args, "out"))
        return CLI_OK;
    if (cli_same_file(path, cli_word(args, 0))) {
        (void)mixt_fail(MIXT_ERROR_FILE, "%s: is the configuration itself: choose another file for --out", path);
        return cli_failed();
    }
    if (cli_is_folder(path))
        (void)mixt_fail(MIXT_ERROR_FILE, "%s: is a folder: name a file for --out", path);
    else if (cli_output_check(args, path) == MIXT_OK)
        return CLI_OK;
    return cli_failed();
}

static int advise(const cli_args *args, const mixt_config *config, mixt_advise_options *options)
{
    mixt_advice *advice;
    if (ask(args, config, options, &advice) != MIXT_OK)
        return cli_failed();
    int status = CLI_OK;
    if (cli_flag(args, "json"))
        status = print_json(args, advice);
    else
        print_text(args, advice);
    bool found = mixt_advice_choose(advice)->found;
    if (status == CLI_OK && found && cli_given(args, "out")) {
        bool good = mixt_advice_write(advice, cli_text(args, "out"), cli_flag(args, "overwrite")) == MIXT_OK;
        status = good ? CLI_OK : cli_failed();
    }
    mixt_advice_free(advice);
    return status == CLI_OK && !found ? CLI_FAILED : status;
}

static int run(const cli_args *args)
{
    mixt_config *config;
    mixt_advise_options options = MIXT_OPTIONS(mixt_advise_options);
    options.machine = cli_given(args, "machine") ? cli_text(args, "machine") : NULL;
    options.trial = fmax(cli_number(args, "trial"), 0);
    int status = read_lose(args, &options.lose);
    if (status == CLI_OK)
        status = read_price(args, &options.price);
    if (status == CLI_OK)
        status = check_write(args);
    if (status != CLI_OK)
        return status;
    status = cli_config_or_run(args, &config);
    if (status == CLI_OK)
        status = read_memory(args, config, &options.memory);
    options.run = cli_is_folder(cli_word(args, 0)) ? cli_word(args, 0) : NULL;
    if (status == CLI_OK)
        status = advise(args, config, &options);
    mixt_config_free(config);
    return status;
}

const cli_command cli_advise = {
    .name = "advise",
    .summary = "recommend a precision for this machine or another one",
    .description =
        "Recommends number format, loss scaling, clipping and batch size for a model on this machine. A table shows "
        "each candidate with its memory, the time per update and of the whole run, and why it was not chosen. Below "
        "it: the bottlenecks of the step, and what removing them would gain.\n\n"
        "Times are measured in a trial of at most 30 seconds: all candidates in turn, from the same weights on the "
        "same batches. For a run directory the bottlenecks are those of the run's own precision, and its metrics show "
        "whether it waited for data.\n\n"
        "--machine NAME takes a profile that comes with mixt (a100, a100-80, cpu-amx, cpu-avx2, cpu-avx512, "
        "cpu-avx512bf16, h100, h200, rtx4090, t4, v100), NAME.yaml in the folder MIXT_PROFILES, or the path of a "
        "profile. Times are then computed from the profile and the FLOPs and bytes of each op.\n\n"
        "Exit status: 1 when nothing fits into the memory.",
    .arguments =
        {
            {"CONFIG|RUN", CLI_ARGUMENT_FILE, .help = "YAML file of a run, or a run directory"},
            {"key=value", CLI_ARGUMENT_SETTING, .help = "settings that win over the file, as in train.batch=64"},
        },
    .options =
        {
            {"machine", 'm', CLI_TEXT, "NAME", .help = "another machine, as in h100 or t4; default: this one"},
            {"memory", .kind = CLI_TEXT, .metavar = "SIZE",
             .help = "memory that the run may use, as in 24G; default: what is free"},
            {"lose", .kind = CLI_TEXT, .metavar = "SHARE",
             .help = "tolerated increase of the loss over FP32; default 0.5%"},
            {"cost", .kind = CLI_TEXT, .metavar = "PRICE",
             .help = "price of an hour, as in 2.50/h; default: the profile's"},
            {"out", 'o', CLI_TEXT, "FILE", .help = "write the policy with its evidence, for precision=FILE"},
            {"overwrite", .kind = CLI_FLAG, .help = "replace FILE if it exists"},
            {"trial", .kind = CLI_NUMBER, .metavar = "SECONDS", .fallback = "30", .min = 0, .max = 30,
             .help = "time to measure; 0: compute times"},
            {"json", .kind = CLI_FLAG, .help = "print one JSON object"},
            {"quiet", 'q', CLI_FLAG, .help = "no progress line"},
        },
    .examples =
        {
            {"mixt advise configs/digits.yaml", "for this machine"},
            {"mixt advise configs/gpt.yaml data.path=FILE --machine v100 --memory 12G",
             "for a machine that you do not have"},
            {"mixt advise runs/digits", "why is this run not faster?"},
            {"mixt advise configs/digits.yaml --out policy.yaml && mixt train configs/digits.yaml "
             "precision=policy.yaml",
             "train with the recommendation"},
        },
    .see_also = "plan|verify|info",
    .run = run,
};
