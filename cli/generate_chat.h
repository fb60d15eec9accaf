/* mixt generate --system: an answer by the template of the model. */
#ifndef MIXT_CLI_GENERATE_CHAT_H
#define MIXT_CLI_GENERATE_CHAT_H

#include "cli/cli.h"

#include <mixt/train.h>

/** Asks with the options of generate, as often as --count says.
 *  @param stop set by a signal: the answer ends */
mixt_status cli_generate_chat(const cli_args *args, mixt_context *context, volatile const int *stop);

#endif
