/* mixt data: conversations as a model sees them, before they are trained on. */
#include "cli/commands.h"

#include "cli/support.h"

#include <mixt/chat.h>

#include <stdio.h>

static mixt_status render(const cli_args *args)
{
    mixt_chat_template *chat;
    mixt_chat_render_options options = {MIXT_DEFAULTS_mixt_chat_render_options};
    char *text = NULL;
    int64_t size = 0;
    options.generation_prompt = cli_flag(args, "generation-prompt");
    options.bos = cli_text(args, "bos");
    options.eos = cli_text(args, "eos");
    CLI_TRY(mixt_chat_template_read(cli_text(args, "render"), &chat));
    mixt_status status = mixt_chat_render_file(chat, args->words[0], &options, &text, &size);
    if (status == MIXT_OK)
        fwrite(text, 1, (size_t)size, stdout);
    mixt_free(text);
    mixt_chat_template_free(chat);
    return status;
}

static int run(const cli_args *args)
{
    if (!cli_given(args, "render"))
        return cli_usage(args->command, "name a template by --render TEMPLATE");
    return render(args) == MIXT_OK ? CLI_OK : cli_failed();
}

const cli_command cli_data_command = {
    .name = "data",
    .summary = "look at conversations as a model sees them",
    .description =
        "--render prints the text that a chat template makes of messages, and nothing else; where the template "
        "refuses them, its own message is the failure. MIXT_NOW fixes the time that templates see.",
    .arguments = {{"DATA", CLI_ARGUMENT_FILE, .help = "with --render: JSON with messages"}},
    .options =
        {
            {"render", 'r', CLI_TEXT, "TEMPLATE",
             .help = "print what this chat template makes of the messages in DATA"},
            {"generation-prompt", 'g', CLI_FLAG, .help = "with --render: end with what the answer begins with"},
            {"bos", .kind = CLI_TEXT, .metavar = "TEXT", .help = "with --render: the template's bos_token"},
            {"eos", .kind = CLI_TEXT, .metavar = "TEXT", .help = "with --render: the template's eos_token"},
        },
    .examples =
        {
            {"mixt data --render chat_template.jinja messages.json --generation-prompt", "what a model is asked"},
        },
    .see_also = "train|tokenize",
    .run = run,
};
