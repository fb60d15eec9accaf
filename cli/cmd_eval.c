/* mixt eval: loss and accuracy of a trained run. */
#include "cli/commands.h"

#include "cli/checkpoint_option.h"
#include "cli/json.h"
#include "cli/tokenize_progress.h"
#include "cli/watch.h"
#include "mixt/run.h"

#include <jansson.h>
#include <math.h>

static mixt_status print_json(const cli_args *args, const mixt_evaluation *found, bool tokens)
{
    json_t *o = json_pack("{s:s, s:s, s:I}", "run", cli_word(args, 0), "split", cli_text(args, "split"), "count",
                          (json_int_t)found->count);
    if (!o)
        return mixt_fail(MIXT_ERROR_ARGUMENT, "the run's name is not UTF-8: --json cannot give it back");
    json_object_set_new(o, "loss", cli_json_real(found->loss));
    json_object_set_new(o, "accuracy", cli_json_real(found->accuracy));
    json_object_set_new(o, "error_rate", cli_json_real(1 - found->accuracy));
    if (tokens)
        json_object_set_new(o, "perplexity", cli_json_real(exp(found->loss)));
    json_dumpf(o, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(o);
    return MIXT_OK;
}

static void print_text(const cli_args *args, const mixt_evaluation *found, bool tokens)
{
    const char *split = cli_text(args, "split");
    bool classes = !isnan(found->accuracy);
    printf("%s on %s: loss %.4f", cli_word(args, 0), split, found->loss);
    if (classes)
        printf(", accuracy %.2f%%, error rate %.2f%%", 100 * found->accuracy, 100 - 100 * found->accuracy);
    if (tokens)
        printf(", perplexity %.2f", exp(found->loss));
    printf(" over %lld targets\n", (long long)found->count);
}

/** A loss that is no number is shown, and is a failure: scripts compare figures. */
static mixt_status print(const cli_args *args, const mixt_evaluation *found, bool tokens)
{
    mixt_status status = MIXT_OK;
    if (cli_flag(args, "json"))
        status = print_json(args, found, tokens);
    else
        print_text(args, found, tokens);
    if (status != MIXT_OK)
        return status;
    return isfinite(found->loss) ? MIXT_OK
                                 : mixt_fail(MIXT_ERROR_DATA,
                                             "%s: the loss is not finite: its weights are damaged or "
                                             "diverged",
                                             cli_word(args, 0));
}

static mixt_status evaluate(const cli_args *args, mixt_run *run)
{
    mixt_evaluation found;
    mixt_data *data;
    mixt_status status = mixt_run_evaluate(run, cli_text(args, "split"), &found);
    if (status == MIXT_OK)
        status = mixt_run_data(run, cli_text(args, "split"), &data);
    if (status != MIXT_OK)
        return status;
    return print(args, &found, mixt_data_describe(data)->target == MIXT_TARGET_TOKENS);
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
        "loss, accuracy and error rate; for language models perplexity, the exponential of the loss. "
        "Samples are normalised as in training; a line warns where they are not those that the run was trained on.",
    .arguments = {{"RUN", CLI_ARGUMENT_FOLDER, .help = "run directory written by 'mixt train'"}},
    .options =
        {
            {"split", 's', CLI_CHOICE, "S", "train|val|test", "val", .help = "part of the data to evaluate on"},
            CLI_CHECKPOINT_OPTION,
            {"device", .kind = CLI_CHOICE, .metavar = "D", .choices = "auto|cpu|cuda",
             .help = "evaluate on this device, whatever the run was trained on"},
            {"json", .kind = CLI_FLAG, .help = "print one JSON object instead of text"},
        },
    .examples =
        {
            {"mixt eval runs/fp16", "on the validation split"},
            {"mixt eval runs/fp16 --split test --json", "for a script"},
        },
    .see_also = "train|predict|generate",
    .run = run,
};
