/* The records of all commands, one a file cmd_*.c. */
#ifndef MIXT_CLI_COMMANDS_H
#define MIXT_CLI_COMMANDS_H

#include "cli/cli.h"

extern const cli_command cli_demo, cli_train, cli_eval, cli_plan, cli_bench, cli_info, cli_convert, cli_export,
    cli_help, cli_completion_command;

#endif
