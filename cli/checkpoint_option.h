/* The option --checkpoint of the commands that work with a run's weights. */
#ifndef MIXT_CLI_CHECKPOINT_OPTION_H
#define MIXT_CLI_CHECKPOINT_OPTION_H

/** For the table of a command's options. */
#define CLI_CHECKPOINT_OPTION                                                                                          \
    {                                                                                                                  \
        "checkpoint", 'c', CLI_CHOICE_OR_COUNT, "C", "final|best|last",                                                \
            .fallback = "final",                                                                                       \
            .help = "whose weights: of model.safetensors, of the best or last checkpoint, or the step of one"          \
    }

#endif
