/* mixt table: FP32 beside mixed precision, for a paper or a README. */
#include "cli/commands.h"

#include "cli/json.h"
#include "cli/support.h"

#include <mixt/compare.h>

#include <math.h>
#include <string.h>

static const char *const formats[] = {
    [MIXT_TABLE_TEXT] = "text",
    [MIXT_TABLE_MARKDOWN] = "markdown",
    [MIXT_TABLE_CSV] = "csv",
    [MIXT_TABLE_LATEX] = "latex",
};

/* ---- JSON ---- */

/** [low, high]; null where there is none. */
static json_t *interval_of(const mixt_table_mean *m)
{
    if (isnan(m->interval.low) || isnan(m->interval.high))
        return json_null();
    json_t *pair = json_array();
    cli_json_add(pair, cli_json_real(m->interval.low));
    cli_json_add(pair, cli_json_real(m->interval.high));
    return pair;
}

static json_t *memory_of(const mixt_table_memory *m)
{
    const struct {
        const char *name;
        double bytes;
    } roles[] = {{"weights", m->weights},     {"gradients", m->gradients},
                 {"moments", m->moments},     {"activations", m->activations},
                 {"workspace", m->workspace}, {"other", m->other},
                 {"total", m->total}};
    json_t *o = json_object();
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++)
        cli_json_set(o, roles[i].name, isnan(roles[i].bytes) ? json_null() : json_integer((json_int_t)roles[i].bytes));
    return o;
}

static json_t *side_of(const mixt_table_cell *c)
{
    if (!c->runs)
        return json_null();
    json_t *o = json_object();
    cli_json_set(o, "precision", cli_json_string(c->precision));
    cli_json_set(o, "runs", json_integer(c->runs));
    cli_json_set(o, "diverged", json_integer(c->diverged));
    cli_json_set(o, "samples_s", cli_json_real(c->samples_s));
    cli_json_set(o, "loss", cli_json_real(c->loss.mean));
    cli_json_set(o, "loss_interval", interval_of(&c->loss));
    cli_json_set(o, "accuracy", cli_json_real(c->accuracy.mean));
    cli_json_set(o, "accuracy_interval", interval_of(&c->accuracy));
    cli_json_set(o, "memory", memory_of(&c->memory));
    return o;
}

static void print_json(const mixt_table *t)
{
    const mixt_table_row *row;
    const char *note;
    json_t *all = json_object(), *rows = json_array(), *notes = json_array();
    for (int64_t i = 0; (row = mixt_table_row_at(t, i)); i++) {
        json_t *o = json_object();
        cli_json_set(o, "model", cli_json_string(row->model));
        cli_json_set(o, "fp32", side_of(&row->sides[MIXT_TABLE_FP32]));
        cli_json_set(o, "mixed", side_of(&row->sides[MIXT_TABLE_MIXED]));
        cli_json_set(o, "speedup", cli_json_real(row->speedup));
        cli_json_set(o, "saved", cli_json_real(row->saved));
        cli_json_add(rows, o);
    }
    for (int64_t i = 0; (note = mixt_table_note(t, i)); i++)
        cli_json_add(notes, cli_json_string(note));
    cli_json_set(all, "rows", rows);
    cli_json_set(all, "notes", notes);
    cli_json_print(all, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9) | JSON_PRESERVE_ORDER);
}

/* ---- the command ---- */

/** What is wrong on the command line is said before anything is read. */
static int check(const cli_args *args)
{
    if (cli_flag(args, "json") && (cli_given(args, "format") || cli_given(args, "out")))
        return cli_usage(args->command, "--json has its own format: leave out --format and --out");
    if (cli_given(args, "overwrite") && !cli_given(args, "out"))
        return cli_usage(args->command, "--overwrite is for --out");
    for (int i = 0; cli_flag(args, "json") && i < args->setting_count; i++)
        if (cli_json_name(args->settings[i]) != MIXT_OK)
            return cli_failed();
    return CLI_OK;
}

static mixt_table_format format_of(const cli_args *args)
{
    int chosen = 0;
    for (int i = 0; i < (int)(sizeof formats / sizeof formats[0]); i++)
        if (!strcmp(formats[i], cli_text(args, "format")))
            chosen = i;
    return (mixt_table_format)chosen;
}

static mixt_status make(const cli_args *args, mixt_table **t)
{
    const char *text, *note;
    if (cli_given(args, "out"))
        CLI_TRY(cli_output_check(args, cli_text(args, "out")));
    CLI_TRY(mixt_table_read(args->settings, args->setting_count, t));
    if (cli_flag(args, "json")) {
        print_json(*t);
        return MIXT_OK;
    }
    for (int64_t i = 0; (note = mixt_table_note(*t, i)); i++)
        fprintf(stderr, "mixt table: %s\n", note);
    if (cli_given(args, "out"))
        return mixt_table_write(*t, format_of(args), cli_text(args, "out"), cli_flag(args, "overwrite"));
    CLI_TRY(mixt_table_print(*t, format_of(args), &text));
    fputs(text, stdout);
    return MIXT_OK;
}

static int run(const cli_args *args)
{
    mixt_table *t = NULL;
    int result = check(args);
    if (result == CLI_OK && make(args, &t) != MIXT_OK)
        result = cli_failed();
    mixt_table_free(t);
    return result;
}

const cli_command cli_table_command = {
    .name = "table",
    .summary = "print FP32 and mixed precision as a table for a paper",
    .description =
        "Finds the runs that differ only in precision and seed and prints a row for each pair of FP32 and mixed "
        "precision: samples per second, speed-up, memory of the step by role, and accuracy or loss, as mean ± half of "
        "the 95% interval over seeds.\n\n"
        "SOURCE is a run directory, a file written by 'mixt verify --out', or a folder runs/compare-NAME. A file of "
        "verify and a folder of compare are one row. A run without a partner has a row with one side, and standard "
        "error says why: often a key in which the two differ. A source that cannot be read is skipped with a warning. "
        "NAME=SOURCE sets the name of the model in the table.\n\n"
        "The memory columns are weights, gradients, moments, activations, workspace and the total. A missing figure is "
        "'–' (empty in CSV, null in JSON): runs of older versions have no memory by role. Columns with an arrow show "
        "FP32, then mixed precision. Intervals are Student's t.",
    .arguments = {{"SOURCE", CLI_ARGUMENT_FILES,
                   .help = "runs, files of verify --out, folders of compare; NAME=SOURCE"}},
    .options =
        {
            {"format", 'f', CLI_CHOICE, "FORMAT", "text|markdown|csv|latex", "text", .help = "format of the table",
             .more = "csv has plain numbers: bytes, samples per second, shares; latex is a tabular without packages"},
            {"out", 'o', CLI_TEXT, "FILE", .help = "write to a file instead of standard output"},
            {"overwrite", .kind = CLI_FLAG, .help = "replace FILE if it exists"},
            {"json", .kind = CLI_FLAG, .help = "print one JSON object: rows, and why runs have no partner"},
        },
    .examples =
        {
            {"mixt table runs/fp32 runs/bf16", "two runs of one configuration"},
            {"mixt table runs/* --format markdown", "all pairs, for a README"},
            {"mixt table BERT-Large=bert.json GPT-2=runs/compare-gpt2 --format latex --out speed.tex", "for a paper"},
        },
    .see_also = "verify|compare|plot",
    .run = run,
};
