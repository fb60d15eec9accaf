/* mixt eval: loss and accuracy of a trained run. */
#include "cli/commands.h"

#include "base/status.h"
#include "cli/experiment.h"
#include "cli/run_dir.h"
#include "cli/weights.h"

#include <jansson.h>
#include <math.h>

static mixt_status print_json(const cli_args *args, const mixt_evaluation *found, bool tokens)
{
    json_t *o = json_pack("{s:s, s:s, s:I}", "run", cli_word(args, 0), "split", cli_text(args, "split"), "count",
                          (json_int_t)found->count);
    if (!o)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "the run's name is not UTF-8: --json cannot give it back");
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
    if (cli_flag(args, "json"))
        MIXT_TRY(print_json(args, found, tokens));
    else
        print_text(args, found, tokens);
    return isfinite(found->loss) ? MIXT_OK
                                 : mixt__fail(MIXT_ERROR_DATA,
                                              "%s: the loss is not finite: its weights are damaged or "
                                              "diverged",
                                              cli_word(args, 0));
}

static mixt_status evaluate(const cli_args *args, const mixt_config *config)
{
    cli_experiment e;
    mixt_data *data;
    mixt_evaluation found;
    char path[CLI_WEIGHTS_PATH];
    MIXT_TRY(cli_weights_path(cli_word(args, 0), cli_text(args, "checkpoint"), path));
    mixt_status status = cli_experiment_open(&e, config);
    if (status == MIXT_OK)
        status = cli_experiment_data(&e, cli_text(args, "split"), &data);
    if (status == MIXT_OK)
        status = mixt_trainer_load(e.trainer, path);
    if (status == MIXT_OK)
        status = mixt_trainer_evaluate(e.trainer, data, &found);
    if (status == MIXT_OK)
        status = print(args, &found, mixt_data_describe(data)->target == MIXT_TARGET_TOKENS);
    cli_experiment_close(&e);
    return status;
}

static int run(const cli_args *args)
{
    mixt_config *config;
    mixt_status status = cli_run_dir_config(cli_word(args, 0), &config);
    if (status == MIXT_OK)
        status = cli_config_device(args, config);
    if (status == MIXT_OK)
        status = evaluate(args, config);
    mixt_config_free(config);
    return status == MIXT_OK ? CLI_OK : cli_failed();
}

const cli_command cli_eval = {
    .name = "eval",
    .summary = "measure loss and accuracy of a trained run",
    .description =
        "Loads the weights and the configuration of a run directory and evaluates them on one split of its data: "
        "loss, accuracy and error rate; for language models perplexity, the exponential of the loss.",
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
