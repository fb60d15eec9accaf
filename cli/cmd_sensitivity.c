/* mixt sensitivity: which layers tolerate which format. */
#include "cli/commands.h"

#include "cli/json.h"
#include "cli/judgement.h"
#include "cli/progress.h"
#include "cli/support.h"
#include "cli/table.h"
#include "cli/tokenize_progress.h"
#include "cli/watch.h"

#include <mixt/plot.h>
#include <mixt/sensitivity.h>

#include <math.h>
#include <signal.h>
#include <string.h>

enum { WORST_SHOWN = 10 };

/* ---- output ---- */

/** What a layer takes, by its name. */
static const char *take_of(const mixt_sensitivity *s, const char *name)
{
    const mixt_sensitivity_layer *layer;
    for (int64_t l = 0; (layer = mixt_sensitivity_layer_at(s, l)); l++)
        if (!strcmp(layer->name, name))
            return layer->recommend;
    return "";
}

static void print_json(const mixt_sensitivity *s, const mixt_sensitivity_row *r)
{
    json_t *o = json_object();
    cli_json_set(o, "layer", cli_json_string(r->layer));
    cli_json_set(o, "format", cli_json_string(mixt_dtype_name(r->format)));
    cli_json_set(o, "mode", cli_json_string(mixt_sensitivity_mode_name(r->mode)));
    cli_json_set(o, "loss_change", cli_json_real(r->loss_change));
    cli_json_set(o, "snr_db", cli_json_real(r->snr_db));
    cli_json_set(o, "grad_cosine", cli_json_real(r->grad_cosine));
    cli_json_set(o, "grad_norm_error", cli_json_real(r->grad_norm_error));
    cli_json_set(o, "update_error", cli_json_real(r->update_error));
    cli_json_set(o, "overflow", cli_json_real(r->overflow));
    cli_json_set(o, "underflow", cli_json_real(r->underflow));
    cli_json_set(o, "accuracy_score", cli_json_real(r->accuracy_score));
    cli_json_set(o, "stability_score", cli_json_real(r->stability_score));
    cli_json_set(o, "score", cli_json_real(r->score));
    cli_json_set(o, "spread", cli_json_real(r->spread));
    cli_json_set(o, "recommend", cli_json_string(r->recommend));
    cli_json_set(o, "take", cli_json_string(take_of(s, r->layer)));
    cli_json_set(o, "measured", json_boolean(r->measured));
    cli_json_set(o, "judgement", cli_judgement_json(&r->safe));
    cli_json_print(o, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9) | JSON_PRESERVE_ORDER);
}

static cli_style style_of(double score)
{
    return score >= 0.9 ? CLI_GREEN : score >= 0.5 ? CLI_YELLOW : CLI_RED;
}

/** A score as a number and, where there is room, a bar of five: a heat map also where there are no colours. */
static void heat(cli_table *t, const mixt_sensitivity_row *row, bool bar)
{
    static const char *const bars[] = {".....", "#....", "##...", "###..", "####.", "#####"};
    char text[32];
    if (!row) {
        cli_table_cell(t, "-");
        return;
    }
    int filled = (int)(5 * row->score + 0.5);
    snprintf(text, sizeof text, "%s%s%.3f%s",
             bar ? bars[filled < 0   ? 0
                        : filled > 5 ? 5
                                     : filled]
                 : "",
             bar ? " " : "", row->score, row->measured ? "" : "~");
    cli_table_cell_styled(t, style_of(row->score), text);
}

/** The formats that a layer bears, and the layer that it is best decided with. */
static void print_take(cli_table *t, const mixt_sensitivity_layer *layer)
{
    bool shared = layer->group && strcmp(layer->group, layer->name) != 0;
    cli_table_cell(t, "%s%s%s", layer->recommend, shared ? "  with " : "", shared ? layer->group : "");
}

static void print_map(const mixt_sensitivity *s, const mixt_sensitivity_info *info)
{
    cli_table t = {0};
    char heads[8][32];
    int columns = info->format_count * MIXT_SENSITIVITY_MODES;
    bool bars = !cli_is_terminal(stdout) || columns * 14 + 30 <= cli_columns(stdout);
    cli_table_column(&t, "layer", CLI_LEFT);
    for (int i = 0; i < columns; i++) {
        snprintf(heads[i], sizeof heads[i], "%s%s", i < info->format_count ? "" : "kept ",
                 mixt_dtype_name(info->formats[i % info->format_count]));
        cli_table_column(&t, heads[i], CLI_LEFT);
    }
    cli_table_column(&t, "take", CLI_LEFT);
    for (int64_t l = 0; l < mixt_sensitivity_layers(s); l++) {
        const mixt_sensitivity_layer *layer = mixt_sensitivity_layer_at(s, l);
        cli_table_cell(&t, "%s", layer->name);
        for (int i = 0; i < columns; i++)
            heat(&t,
                 mixt_sensitivity_find(s, layer->name, info->formats[i % info->format_count],
                                       (mixt_sensitivity_mode)(i / info->format_count)),
                 bars);
        print_take(&t, layer);
    }
    cli_table_print(&t, stdout, 0);
    cli_table_free(&t);
}

static void print_worst(const mixt_sensitivity *s)
{
    cli_table t = {0};
    static const char *const heads[] = {"worst",  "format", "loss",  "dB",    "cosine",
                                        "update", "over",   "under", "score", "+-"};
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        cli_table_column(&t, heads[i], i < 2 ? CLI_LEFT : CLI_RIGHT);
    for (int64_t i = 0; i < WORST_SHOWN; i++) {
        const mixt_sensitivity_row *r = mixt_sensitivity_row_at(s, i);
        if (!r || r->mode != MIXT_SENSITIVITY_LOWERED)
            break;
        cli_table_cell(&t, "%s", r->layer);
        cli_table_cell(&t, "%s", mixt_dtype_name(r->format));
        cli_table_cell(&t, "%+.2e", r->loss_change);
        cli_table_cell(&t, "%.0f", r->snr_db);
        cli_table_cell(&t, "%.4f", r->grad_cosine);
        cli_table_cell(&t, "%.0f%%", 100 * r->update_error);
        cli_table_cell(&t, "%.2g%%", 100 * r->overflow);
        cli_table_cell(&t, "%.2g%%", 100 * r->underflow);
        cli_table_cell(&t, "%.3f", r->score);
        cli_table_cell(&t, "%.3f", r->spread);
    }
    printf("\n");
    cli_table_print(&t, stdout, 0);
    cli_table_free(&t);
}

/** The layers that need a rule in a policy of this format. */
static void print_advice(const mixt_sensitivity *s, mixt_dtype format)
{
    char names[1024] = "";
    int64_t count = 0, shown = 0;
    for (int64_t l = 0; l < mixt_sensitivity_layers(s); l++) {
        const char *name = mixt_sensitivity_layer_at(s, l)->name;
        const mixt_sensitivity_row *row = mixt_sensitivity_find(s, name, format, MIXT_SENSITIVITY_LOWERED);
        if (!row || !strcmp(row->recommend, mixt_dtype_name(format)))
            continue;
        size_t used = strlen(names);
        count++;
        if (used + strlen(name) + 16 < sizeof names) {
            snprintf(names + used, sizeof names - used, "%s%s (%s)", used ? ", " : "", name, row->recommend);
            shown++;
        }
    }
    if (!count)
        cli_line(stdout, "advice   ", "%s: every layer tolerates it", mixt_dtype_name(format));
    else
        cli_line(stdout, "advice   ", "%s: rules for %s%s", mixt_dtype_name(format), names,
                 shown < count ? ", ..." : "");
}

static void print_all_low(const mixt_sensitivity_info *info, int f)
{
    char *text = NULL;
    if (mixt_judgement_text(&info->all_low[f], &text) == MIXT_OK)
        cli_line(stdout, "all low  ", "every layer in %s: score %.3f; %s", mixt_dtype_name(info->formats[f]),
                 info->all_low_score[f], text);
    mixt_free(text);
}

static void print_text(const mixt_sensitivity *s)
{
    mixt_sensitivity_info info = mixt_sensitivity_describe(s);
    char loss[32];
    print_map(s, &info);
    print_worst(s);
    printf("\n");
    for (int f = 0; f < info.format_count; f++)
        print_all_low(&info, f);
    for (int f = 0; f < info.format_count; f++)
        print_advice(s, info.formats[f]);
    cli_line(stdout, "measured ",
             "%lld batch%s of %lld at %lld point%s of training, each at the cost of %.1f steps; FP32 loss %s, loss "
             "scale %g. Scores: 1 as FP32, 0 destroyed; ~ estimated: their order within a format says little. 'mixt "
             "search' measures by training",
             (long long)info.trials, info.trials == 1 ? "" : "es", (long long)info.batch, (long long)info.points,
             info.points == 1 ? "" : "s", info.steps, cli_format_loss(loss, info.loss), info.loss_scale);
}

/* ---- progress ---- */

static volatile sig_atomic_t stop_requested;

static void request_stop(int signal_number)
{
    (void)signal_number;
    stop_requested = 1;
}

typedef struct progress {
    cli_progress line;
    cli_progress_info shown;
} progress;

static bool hear(void *user, const mixt_progress *told)
{
    progress *p = user;
    cli_progress_show(&p->line, &p->shown, told);
    return !stop_requested;
}

/** SIGINT and SIGTERM end it after the pass under way, a second one kills. */
static mixt_status measure(const cli_args *args, mixt_run *run, const char *folder, mixt_sensitivity **s)
{
    struct sigaction action = {.sa_handler = request_stop, .sa_flags = (int)SA_RESETHAND}, old_int, old_term;
    progress p = {.shown = {.part = "point", .loss = NAN, .accuracy = NAN, .items_s = NAN, .scale = NAN}};
    mixt_sensitivity_options options =
        MIXT_OPTIONS(mixt_sensitivity_options, .formats = cli_given(args, "formats") ? cli_text(args, "formats") : NULL,
                     .trials = cli_int(args, "trials"), .confirm = cli_int(args, "confirm"),
                     .replay_all = cli_flag(args, "replay"), .folder = folder, .progress = hear, .user = &p);
    sigaction(SIGINT, &action, &old_int);
    sigaction(SIGTERM, &action, &old_term);
    cli_progress_start(&p.line, stderr, cli_flag(args, "quiet") || cli_flag(args, "json"), 0);
    mixt_status status = mixt_sensitivity_new_with(run, &options, s);
    if (p.shown.step)
        cli_progress_finish(&p.line, &p.shown);
    sigaction(SIGINT, &old_int, NULL);
    sigaction(SIGTERM, &old_term, NULL);
    return status;
}

/* ---- the command ---- */

static mixt_status analyse(const cli_args *args, const mixt_config *config)
{
    mixt_run_options options = MIXT_OPTIONS(mixt_run_options, .observer = cli_warn, .progress = cli_tokenize_progress);
    mixt_run *run = NULL;
    mixt_sensitivity *s = NULL;
    CLI_TRY(mixt_run_open_config(config, &options, &run));
    mixt_status status = measure(args, run, cli_is_folder(cli_word(args, 0)) ? cli_word(args, 0) : NULL, &s);
    for (int64_t i = 0; status == MIXT_OK && cli_flag(args, "json") && i < mixt_sensitivity_rows(s); i++)
        print_json(s, mixt_sensitivity_row_at(s, i));
    if (status == MIXT_OK && !cli_flag(args, "json"))
        print_text(s);
    if (status == MIXT_OK && cli_given(args, "out"))
        status = mixt_sensitivity_draw(s, cli_text(args, "out"), cli_flag(args, "overwrite"));
    mixt_sensitivity_free(s);
    mixt_run_close(run);
    return status;
}

static mixt_status check_out(const cli_args *args)
{
    const char *path = cli_text(args, "out");
    if (!cli_given(args, "out"))
        return MIXT_OK;
    if (cli_same_file(path, cli_word(args, 0)))
        return mixt_fail(MIXT_ERROR_FILE, "%s: is the configuration itself: choose another file for --out", path);
    CLI_TRY(cli_output_check(args, path));
    return mixt_plot_check(path, cli_flag(args, "overwrite"));
}

static int run(const cli_args *args)
{
    mixt_config *config;
    int status = cli_config_or_run(args, &config);
    if (status == CLI_OK && (check_out(args) != MIXT_OK || analyse(args, config) != MIXT_OK))
        status = cli_failed();
    mixt_config_free(config);
    return status;
}

const cli_command cli_sensitivity_command = {
    .name = "sensitivity",
    .summary = "find the layers that do not tolerate a lower precision",
    .description =
        "Lowers one layer at a time to each format and compares the model with FP32, and the other way round keeps one "
        "layer in FP32 while all others are lowered. Prints a heat map of scores (1: as FP32, 0: destroyed), the worst "
        "cells, and the format that each layer should use.\n\n"
        "All variants use the same batches and weights. For a run directory its checkpoints are measured too. A score "
        "of 0.5 means that the loss changes by 0.5%, or gradients by half. Cells marked ~ are estimated in one pass "
        "beside FP32, and the worst of them are confirmed by running the model. FP16 is measured with the loss scale "
        "that training would use. Nothing is written except --out.",
    .arguments =
        {
            {"CONFIG|RUN", CLI_ARGUMENT_FILE, .help = "YAML file of a run, or a run directory"},
            {"key=value", CLI_ARGUMENT_SETTING, .help = "settings that win over the file, as in train.batch=16"},
        },
    .options =
        {
            {"formats", 'f', CLI_TEXT, "LIST", .help = "of fp16, bf16, tf32, fp8, separated by commas",
             .more = "Default: those that the device has, without fp8"},
            {"trials", 'n', CLI_INT, "N", .fallback = "5", .min = 1, .max = 1000,
             .help = "batches at each point of training"},
            {"confirm", .kind = CLI_INT, .metavar = "N", .fallback = "8", .min = -1, .max = 100000,
             .help = "cells to confirm, the worst first", .more = "0 or -1: none"},
            {"replay", .kind = CLI_FLAG, .help = "run the model for every cell: slow, no estimates"},
            {"out", 'o', CLI_TEXT, "FILE", .help = "draw the heat map (.svg or .png)"},
            {"overwrite", .kind = CLI_FLAG, .help = "replace FILE if it exists"},
            {"json", .kind = CLI_FLAG, .help = "print one JSON object per cell, the worst first"},
            {"quiet", 'q', CLI_FLAG, .help = "no progress line"},
        },
    .examples =
        {
            {"mixt sensitivity configs/digits.yaml --out layers.svg", "every layer, before training"},
            {"mixt sensitivity runs/digits --formats fp16 --json", "at each checkpoint of a run, for a script"},
        },
    .see_also = "plan|verify|train",
    .run = run,
};
