/* mixt bench: the speed of one training step of a fixed model. */
#include "cli/commands.h"

static int run(const cli_args *args)
{
    mixt__config *config;
    int status = cli_config(args, NULL, &config);
    mixt__config_free(config);
    return status;
}

const cli_command cli_bench = {
    .name = "bench",
    .summary = "time a training step of a well-known model",
    .description = "Times whole training steps (forward, loss, backward, clipping where the model has it, optimizer) "
                   "on random data "
                   "and prints the median step, items per second, FLOP/s and peak memory. Models and sizes are fixed "
                   "so that figures can "
                   "be compared between machines and with other systems.",
    .arguments = {{"MODEL", CLI_ARGUMENT_CHOICE, "gpt2|gpt|bert|resnet50|convnet|mlp|lstm",
                   .help = "gpt2 (124M), gpt (6 x 384, bytes), bert (base), resnet50, convnet (1-32-64, 28 x 28), mlp "
                           "(784-512-512-10), lstm (2 x 512, bytes)"}},
    .options =
        {
            {"precision", 'p', CLI_CHOICE, "P", "fp32|tf32|fp16|bf16", .required = true,
             .help = "format of matrix work"},
            {"batch", 'b', CLI_INT, "B", .fallback = "0", .max = 1 << 24,
             .help = "samples in a step; 0: the model's own"},
            {"seq", 't', CLI_INT, "T", .fallback = "0", .max = 1 << 20,
             .help = "tokens in a sequence; 0: the model's own"},
            {"steps", 'n', CLI_INT, "N", .fallback = "20", .min = 1, .max = 1000000, .help = "steps to time"},
            {"threads", .kind = CLI_INT, .metavar = "N", .fallback = "0", .max = 4096,
             .help = "CPU threads; 0: MIXT_THREADS, else all usable cores"},
            {"device", .kind = CLI_CHOICE, .metavar = "D", .choices = "auto|cpu|cuda", .fallback = "auto",
             .help = "where to run"},
            {"json", .kind = CLI_FLAG, .help = "print one JSON object instead of text"},
        },
    .examples =
        {
            {"mixt bench mlp --precision bf16", "the perceptron at its own batch size"},
            {"mixt bench gpt --precision fp32 --batch 8 --seq 256 --threads 2 --json", "for a script"},
        },
    .see_also = "info|plan",
    .run = run,
};
