/* mixt eval: how good a trained run is. */
#include "cli/commands.h"

#include "cli/checkpoint_option.h"
#include "cli/json.h"
#include "cli/report.h"
#include "cli/support.h"
#include "cli/term.h"
#include "cli/tokenize_progress.h"
#include "cli/watch.h"
#include "mixt/run.h"

#include <jansson.h>
#include <math.h>

/** What was found. */
typedef struct findings {
    mixt_evaluation loss;
    const mixt_data_info *data;
    mixt_report *report; // NULL: none was made
} findings;

static mixt_status print_json(const cli_args *args, const findings *found)
{
    const mixt_evaluation *e = &found->loss;
    json_t *o = json_pack("{s:s, s:s, s:I}", "run", cli_word(args, 0), "split", cli_text(args, "split"), "count",
                          (json_int_t)e->count);
    if (!o)
        return mixt_fail(MIXT_ERROR_ARGUMENT, "the run's name is not UTF-8: --json cannot give it back");
    json_object_set_new(o, "loss", cli_json_real(e->loss));
    json_object_set_new(o, "accuracy", cli_json_real(e->accuracy));
    json_object_set_new(o, "error_rate", cli_json_real(1 - e->accuracy));
    if (found->data->target == MIXT_TARGET_TOKENS)
        json_object_set_new(o, "perplexity", cli_json_real(exp(e->loss)));
    if (found->report)
        cli_report_json(mixt_report_describe(found->report), found->data, o);
    json_dumpf(o, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(o);
    return MIXT_OK;
}

static void print_text(const cli_args *args, const findings *found)
{
    const mixt_evaluation *e = &found->loss;
    const mixt_report_info *report = mixt_report_describe(found->report);
    char text[128];
    printf("%s on %s: loss %s", cli_word(args, 0), cli_text(args, "split"), cli_format_loss(text, e->loss));
    if (!isnan(e->accuracy))
        printf(", accuracy %.2f%%, error rate %.2f%%", 100 * e->accuracy, 100 - 100 * e->accuracy);
    if (found->data->target == MIXT_TARGET_TOKENS)
        printf(", perplexity %.2f", exp(e->loss));
    printf("%s over %lld targets\n", cli_report_values(report, text), (long long)e->count);
    if (found->report)
        cli_report_print(report, found->data);
}

/** A loss that is no number is shown, and is a failure: scripts compare figures. */
static mixt_status print(const cli_args *args, const findings *found)
{
    mixt_status status = MIXT_OK;
    if (cli_flag(args, "json"))
        status = print_json(args, found);
    else
        print_text(args, found);
    if (status != MIXT_OK)
        return status;
    return isfinite(found->loss.loss) ? MIXT_OK
                                      : mixt_fail(MIXT_ERROR_DATA,
                                                  "%s: the loss is not finite: its weights are damaged or "
                                                  "diverged",
                                                  cli_word(args, 0));
}

/** It costs a second pass over the data: where there are many classes, only when someone will see it. */
static bool wants_report(const cli_args *args, const findings *found)
{
    bool asked = cli_flag(args, "json") || cli_flag(args, "classes");
    return isfinite(found->loss.loss) && found->data->target != MIXT_TARGET_TOKENS &&
           (asked || found->data->classes <= CLI_REPORT_CLASSES);
}

static mixt_status evaluate(const cli_args *args, mixt_run *run)
{
    findings found = {0};
    mixt_data *data;
    CLI_TRY(mixt_run_evaluate(run, cli_text(args, "split"), &found.loss));
    CLI_TRY(mixt_run_data(run, cli_text(args, "split"), &data));
    found.data = mixt_data_describe(data);
    if (wants_report(args, &found))
        CLI_TRY(mixt_report_of(mixt_run_trainer(run), data, &found.report));
    mixt_status status = print(args, &found);
    mixt_report_free(found.report);
    return status;
}

static int run(const cli_args *args)
{
    mixt_run *run;
    char device[64];
    const char *settings[] = {device, NULL};
    mixt_run_options options = {.progress = cli_tokenize_progress, .observer = cli_warn};
    snprintf(device, sizeof device, "device=%s", cli_text(args, "device"));
    if (cli_given(args, "device"))
        options.settings = settings;
    mixt_status status = mixt_run_load_with(cli_word(args, 0), cli_text(args, "checkpoint"), &options, &run);
    if (status == MIXT_OK)
        status = evaluate(args, run);
    mixt_run_close(run);
    return status == MIXT_OK ? CLI_OK : cli_failed();
}

const cli_command cli_eval = {
    .name = "eval",
    .summary = "measure loss and accuracy of a trained run",
    .description =
        "Loads the weights and the configuration of a run directory and evaluates them on one split of its data: "
        "loss, accuracy and error rate; for language models perplexity, the exponential of the loss; for values MAE, "
        "RMSE and R2. Up to 20 classes there follow precision, recall and F1 of each, and which class was taken for "
        "which; --classes shows them for more, with the most frequent mistakes instead of the whole matrix. "
        "Samples are normalised as in training; a line warns where they are not those that the run was trained on.",
    .arguments = {{"RUN", CLI_ARGUMENT_FOLDER, .help = "run directory written by 'mixt train'"}},
    .options =
        {
            {"split", 's', CLI_CHOICE, "S", "train|val|test", "val", .help = "part of the data to evaluate on"},
            CLI_CHECKPOINT_OPTION,
            {"device", .kind = CLI_CHOICE, .metavar = "D", .choices = "auto|cpu|cuda",
             .help = "evaluate on this device, whatever the run was trained on"},
            {"classes", 'c', CLI_FLAG, .help = "figures of each class, however many there are"},
            {"json", .kind = CLI_FLAG,
             .help = "print one JSON object, with all figures and the matrix, instead of text"},
        },
    .examples =
        {
            {"mixt eval runs/fp16", "on the validation split"},
            {"mixt eval runs/fp16 --split test --json", "for a script"},
        },
    .see_also = "train|predict|generate",
    .run = run,
};
