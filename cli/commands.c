/* The command table. */
#include "cli/commands.h"

#include <string.h>

const cli_command *const cli_commands[] = {
#define CLI_COMMAND(record) &record,
#include "cli/commands.def"
#undef CLI_COMMAND
    NULL,
};

const cli_command *cli_command_find(const char *name)
{
    for (int i = 0; cli_commands[i]; i++)
        if (!strcmp(cli_commands[i]->name, name))
            return cli_commands[i];
    return NULL;
}
