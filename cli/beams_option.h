/* The option of commands that find texts by following several at once. */
#ifndef MIXT_CLI_BEAMS_OPTION_H
#define MIXT_CLI_BEAMS_OPTION_H

#include "cli/cli.h"

enum { CLI_BEAMS_MAX = 1000 };

#define CLI_BEAMS_OPTION                                                                                               \
    {                                                                                                                  \
        "beams", 'b', CLI_INT, "N", .fallback = "0", .min = 0, .max = CLI_BEAMS_MAX,                                   \
                                    .help = "texts: hypotheses of beam search; 0: the model's default; 1: greedy",     \
                                    .more = "The default is 1 for recordings and 5 for translations"                   \
    }

/** What was asked for, or else what the kind of model does. */
static inline int64_t cli_beams(const cli_args *args, int64_t own)
{
    return cli_int(args, "beams") ? cli_int(args, "beams") : own;
}

#endif
