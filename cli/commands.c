/* The command table. */
#include "cli/commands.h"

#include <string.h>

const cli_command *const cli_commands[] = {
    &cli_demo, &cli_train,   &cli_eval,   &cli_plan, &cli_bench,
    &cli_info, &cli_convert, &cli_export, &cli_help, &cli_completion_command,
    NULL,
};

const cli_command *cli_command_find(const char *name)
{
    for (int i = 0; cli_commands[i]; i++)
        if (!strcmp(cli_commands[i]->name, name))
            return cli_commands[i];
    return NULL;
}
