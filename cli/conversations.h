/* What rows of conversations become: figures, and samples with their trained tokens marked. */
#ifndef MIXT_CLI_CONVERSATIONS_H
#define MIXT_CLI_CONVERSATIONS_H

#include "cli/cli.h"

/** The work of `mixt data DATA --model FOLDER`. */
mixt_status cli_conversations(const cli_args *args);

#endif
