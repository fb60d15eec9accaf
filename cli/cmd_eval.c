/* mixt eval: loss and accuracy of a trained run. */
#include "cli/commands.h"

#include "base/status.h"

/** The configuration that a run directory holds. */
static int load_run(const cli_args *args, mixt__config **config)
{
    char path[4096];
    *config = NULL;
    if (snprintf(path, sizeof path, "%s/config.yaml", cli_word(args, 0)) >= (int)sizeof path) {
        mixt__fail(MIXT_ERROR_FILE, "%s: the path is too long", cli_word(args, 0));
        return cli_failed();
    }
    return cli_config(args, path, config);
}

static int run(const cli_args *args)
{
    mixt__config *config;
    int status = load_run(args, &config);
    mixt__config_free(config);
    return status;
}

const cli_command cli_eval = {
    .name = "eval",
    .summary = "measure loss and accuracy of a trained run",
    .description =
        "Loads the weights and the configuration of a run directory and evaluates them on one split of its data: "
        "loss, accuracy and error rate.",
    .arguments = {{"RUN", CLI_ARGUMENT_FOLDER, .help = "run directory written by 'mixt train'"}},
    .options =
        {
            {"split", 's', CLI_CHOICE, "S", "train|val|test", "val", .help = "part of the data to evaluate on"},
            {"json", .kind = CLI_FLAG, .help = "print one JSON object instead of text"},
        },
    .examples =
        {
            {"mixt eval runs/fp16", "on the validation split"},
            {"mixt eval runs/fp16 --split test --json", "for a script"},
        },
    .see_also = "train",
    .run = run,
};
