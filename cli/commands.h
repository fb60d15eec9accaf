/* The records of all commands, one a file cmd_*.c. */
#ifndef MIXT_CLI_COMMANDS_H
#define MIXT_CLI_COMMANDS_H

#include "cli/cli.h"

#define CLI_COMMAND(record) extern const cli_command record;
#include "cli/commands.def"
#undef CLI_COMMAND

#endif
