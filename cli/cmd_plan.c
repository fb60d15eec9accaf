/* mixt plan: what a configuration would compute and how much memory it would take, without running it. */
#include "cli/commands.h"

static int run(const cli_args *args)
{
    mixt__config *config;
    int status = cli_config(args, cli_word(args, 0), &config);
    mixt__config_free(config);
    return status;
}

const cli_command cli_plan = {
    .name = "plan",
    .summary = "show memory, formats and kernels of a run before it starts",
    .description =
        "Compiles the training step of a configuration and prints its exact memory by role: parameters, gradients, "
        "moments, activations, workspace. What is planned is what will be allocated, to the byte.",
    .arguments =
        {
            {"CONFIG", CLI_ARGUMENT_FILE, .help = "YAML file of the run; 'mixt help config' lists the keys"},
            {"key=value", CLI_ARGUMENT_SETTING, .help = "settings that win over the file, as in train.batch=32"},
        },
    .options =
        {
            {"explain", 'e', CLI_FLAG, .help = "each op's kernel, and why the others were refused"},
            {"graph", 'g', CLI_FLAG, .help = "the typed graph, forward and backward"},
            {"json", .kind = CLI_FLAG, .help = "print one JSON object instead of text"},
        },
    .examples =
        {
            {"mixt plan configs/gpt.yaml precision=bf16", "memory of the step in bf16"},
            {"mixt plan configs/gpt.yaml --explain", "which kernels will run and why"},
            {"mixt plan configs/mnist.yaml --graph precision=fp16", "where the casts are"},
        },
    .see_also = "train|bench|config",
    .run = run,
};
