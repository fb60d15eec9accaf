/* mixt completion: a script that teaches a shell the commands, options and keys. */
#include "cli/commands.h"
#include "cli/help.h"

static int run(const cli_args *args)
{
    cli_completion(stdout, cli_word(args, 0));
    return CLI_OK;
}

const cli_command cli_completion_command = {
    .name = "completion",
    .summary = "print a completion script for a shell",
    .description =
        "The script completes commands, options, the values of options that have a fixed set, and the keys of "
        "the configuration.",
    .arguments = {{"SHELL", CLI_ARGUMENT_CHOICE, "bash|zsh|fish", .help = "bash, zsh or fish"}},
    .examples =
        {
            {"source <(mixt completion bash)", "for this bash; put it into ~/.bashrc to keep it"},
            {"mixt completion zsh > \"${fpath[1]}/_mixt\"", "for zsh, from its next start on"},
            {"mixt completion fish > ~/.config/fish/completions/mixt.fish", "for fish"},
        },
    .see_also = "help",
    .run = run,
};
