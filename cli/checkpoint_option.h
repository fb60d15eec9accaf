/* The option --checkpoint of the commands that work with a run's weights. */
#ifndef MIXT_CLI_CHECKPOINT_OPTION_H
#define MIXT_CLI_CHECKPOINT_OPTION_H

/** For the table of a command's options. */
#define CLI_CHECKPOINT_OPTION                                                                                          \
    {                                                                                                                  \
        "checkpoint", 'c', CLI_CHOICE_OR_COUNT, "C", "final|best|last",                                                \
            .fallback = "final", .help = "whose weights, or the number of a step",                                     \
            .more = "final is model.safetensors; best and last are checkpoints"                                        \
    }

#endif
