/* mixt train: trains a model as a configuration says. */
#include "cli/commands.h"

static int run(const cli_args *args)
{
    mixt__config *config;
    int status = cli_config(args, cli_word(args, 0), &config);
    mixt__config_free(config);
    return status;
}

const cli_command cli_train = {
    .name = "train",
    .summary = "train a model as a configuration says",
    .description = "Reads CONFIG, applies the settings given after it, and trains. The run directory ('out') then "
                   "holds the resolved "
                   "configuration (config.yaml), one row of metrics a step (metrics.jsonl) and the final weights. A "
                   "run directory that "
                   "exists already is refused: nothing is overwritten.\n\n"
                   "Ctrl-C stops after the current step and leaves a usable run directory.",
    .arguments =
        {
            {"CONFIG", CLI_ARGUMENT_FILE, .help = "YAML file of the run; 'mixt help config' lists the keys"},
            {"key=value", CLI_ARGUMENT_SETTING, .help = "settings that win over the file, as in train.lr=0.01"},
        },
    .options =
        {
            {"quiet", 'q', CLI_FLAG, .help = "no progress line, no table: only errors"},
            {"json", .kind = CLI_FLAG, .help = "print the result as one JSON object on standard output"},
        },
    .examples =
        {
            {"mixt train configs/digits.yaml", "the conv net on digits that mixt draws itself"},
            {"mixt train configs/mnist.yaml data.path=mnist precision=fp16 out=runs/fp16",
             "another format, another folder"},
            {"mixt train configs/gpt.yaml train.steps=200 train.batch=4 --json", "a short run for a script"},
        },
    .see_also = "eval|plan|config",
    .run = run,
};
