/* mixt data: conversations as a model sees them, before they are trained on. */
#include "cli/commands.h"

#include "cli/conversations.h"
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
    if (cli_given(args, "render"))
        return render(args) == MIXT_OK ? CLI_OK : cli_failed();
    if (!cli_given(args, "model"))
        return cli_usage(args->command, "name a model's folder by --model FOLDER, or a template by --render TEMPLATE");
    return cli_conversations(args) == MIXT_OK ? CLI_OK : cli_failed();
}

const cli_command cli_data_command = {
    .name = "data",
    .summary = "show conversations as a model sees them",
    .description =
        "Reads conversations or instructions as training would, with the tokenizer and the chat template of a model's "
        "folder, and prints how many tokens there are, how many of them are trained, how long rows are and how many "
        "are truncated. --show prints samples, with the trained part coloured.\n\nDATA is JSON lines or one JSON "
        "array; the form of the rows is detected. Where the output is not a terminal, the trained part is between [[ "
        "and ]].\n\n--render prints the text that a chat template makes of messages, and nothing else; where the "
        "template refuses them, its own message is the error. MIXT_NOW fixes the time that templates see.",
    .arguments = {{"DATA", CLI_ARGUMENT_FILE, .help = "conversations; with --render: JSON with messages"}},
    .options =
        {
            {"model", 'm', CLI_TEXT, "FOLDER", .help = "folder of the tokenizer and the chat template"},
            {"template", 't', CLI_TEXT, "FILE", .help = "chat template to use instead of the folder's"},
            {"loss-on", 'l', CLI_CHOICE, "WHICH", .choices = "assistant|all|last|preference", .fallback = "assistant",
             .help = "which tokens are trained, as data.loss_on"},
            {"seq", 's', CLI_INT, "N", .min = 1, .max = 1048576, .fallback = "2048",
             .help = "longest row, as data.seq; longer ones are truncated"},
            {"show", 'n', CLI_INT, "N", .min = 0, .max = 1e9, .fallback = "0", .help = "print the first N samples"},
            {"json", 'j', CLI_FLAG, .help = "print one JSON object"},
            {"render", 'r', CLI_TEXT, "TEMPLATE", .help = "print DATA as this chat template renders it"},
            {"generation-prompt", 'g', CLI_FLAG, .help = "with --render: add the start of the answer"},
            {"bos", .kind = CLI_TEXT, .metavar = "TEXT", .help = "with --render: the template's bos_token"},
            {"eos", .kind = CLI_TEXT, .metavar = "TEXT", .help = "with --render: the template's eos_token"},
        },
    .examples =
        {
            {"mixt data chats.jsonl --model Qwen3-0.6B --show 3", "which tokens of the first three are trained"},
            {"mixt data --render chat_template.jinja messages.json --generation-prompt",
             "the prompt that a model gets"},
        },
    .see_also = "train|tokenize",
    .run = run,
};
