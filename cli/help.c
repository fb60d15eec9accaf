/* Help pages on the terminal. */
#include "cli/help.h"

#include "cli/term.h"
#include "cli/words.h"

#include <limits.h>
#include <mixt/program.h>

#include <string.h>

enum { HELP_COLUMNS = 100 };

static int help_width(FILE *stream)
{
    int columns = cli_columns(stream);
    return columns < HELP_COLUMNS ? columns : HELP_COLUMNS;
}

void cli_help_heading(FILE *stream, const char *text)
{
    fprintf(stream, "\n%s%s%s\n", cli_style_on(stream, CLI_BOLD), text, cli_style_off(stream));
}

const char *cli_synopsis(const cli_command *command, bool all, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "mixt %s", command->name);
    for (int i = 0; i < CLI_ARGUMENTS_MAX && command->arguments[i].name && used < size; i++) {
        const cli_argument *a = &command->arguments[i];
        bool setting = a->kind == CLI_ARGUMENT_SETTING, optional = a->optional || setting;
        bool several = setting || a->kind == CLI_ARGUMENT_FILES;
        used += (size_t)snprintf(text + used, size - used, " %s%s%s%s", optional ? "[" : "", a->name,
                                 several ? " ..." : "", optional ? "]" : "");
    }
    for (int i = 0; i < CLI_OPTIONS_MAX && command->options[i].name && used < size; i++) {
        const cli_option *o = &command->options[i];
        if (all || o->required)
            used += (size_t)snprintf(text + used, size - used, " %s--%s%s%s%s", o->required ? "" : "[", o->name,
                                     o->metavar ? " " : "", o->metavar ? o->metavar : "", o->required ? "" : "]");
    }
    if (!all && command->options[0].name && used < size)
        snprintf(text + used, size - used, " [options]");
    return text;
}

const char *cli_option_title(const cli_option *option, char *text, size_t size)
{
    char letter[8] = "";
    if (option->letter)
        snprintf(letter, sizeof letter, "-%c, ", option->letter);
    snprintf(text, size, "%s--%s%s%s", letter, option->name, option->metavar ? " " : "",
             option->metavar ? option->metavar : "");
    return text;
}

const char *cli_option_text(const cli_option *option, bool all, char *text, size_t size)
{
    char list[256];
    size_t used = (size_t)snprintf(text, size, "%s", option->help);
    if (option->choices && used < size)
        used += (size_t)snprintf(text + used, size - used, ": %s", cli_choice_list(option->choices, list, sizeof list));
    if (option->required && used < size)
        used += (size_t)snprintf(text + used, size - used, " (required)");
    if (option->fallback && *option->fallback && used < size)
        used += (size_t)snprintf(text + used, size - used, " (default: %s)", option->fallback);
    if (all && option->more && used < size)
        snprintf(text + used, size - used, ". %s", option->more);
    return text;
}

const char *cli_argument_text(const cli_argument *argument, bool all, char *text, size_t size)
{
    bool more = all && argument->more;
    snprintf(text, size, "%s%s%s", argument->help, more ? ". " : "", more ? argument->more : "");
    return text;
}

/** Whether --all shows something that --help does not. */
static bool has_more(const cli_command *command)
{
    const char *more;
    cli_paragraph(command->description, &more);
    bool has = *more != 0;
    for (int i = 0; i < CLI_OPTIONS_MAX && command->options[i].name; i++)
        has |= command->options[i].more != NULL;
    for (int i = 0; i < CLI_ARGUMENTS_MAX && command->arguments[i].name; i++)
        has |= command->arguments[i].more != NULL;
    return has;
}

void cli_help_definition(FILE *stream, const char *title, const char *text)
{
    enum { TEXT_COLUMN = 26 };
    fprintf(stream, "  %s%s%s", cli_style_on(stream, CLI_CYAN), title, cli_style_off(stream));
    int width = 2 + cli_text_width(title);
    if (width + 2 > TEXT_COLUMN)
        fprintf(stream, "\n%*s", TEXT_COLUMN, "");
    else
        fprintf(stream, "%*s", TEXT_COLUMN - width, "");
    cli_wrap(stream, text, TEXT_COLUMN, TEXT_COLUMN, help_width(stream));
}

size_t cli_paragraph(const char *text, const char **next)
{
    const char *end = strstr(text, "\n\n");
    size_t bytes = end ? (size_t)(end - text) : strlen(text);
    *next = end ? end + 2 : text + bytes;
    return bytes;
}

void cli_help_paragraphs(FILE *stream, const char *text)
{
    for (const char *next; *text; text = next) {
        cli_wrap_part(stream, text, cli_paragraph(text, &next), help_width(stream));
        if (*next)
            fputc('\n', stream);
    }
}

void cli_help_overview(FILE *stream)
{
    fprintf(stream, "mixt: %s\n", CLI_TAGLINE);
    cli_help_heading(stream, "Usage");
    fputs("  mixt COMMAND [arguments] [options]\n  mixt COMMAND --help\n  mixt --version\n", stream);
    cli_help_heading(stream, "Commands");
    for (int i = 0; cli_commands[i]; i++)
        cli_help_definition(stream, cli_commands[i]->name, cli_commands[i]->summary);
    cli_help_heading(stream, "More");
    cli_help_definition(stream, "mixt help COMMAND", "examples and options of a command");
    cli_help_definition(stream, "mixt help config", "the sections of a configuration");
    cli_help_definition(stream, "mixt help config KEY", "one key of it, as train.lr");
    cli_help_definition(stream, "mixt help env", "environment variables");
    cli_help_definition(stream, "mixt help gpu", "what a GPU needs and how one is chosen");
    fputs("\nExit status: 0 done, 1 failed while running, 2 used wrongly.\n", stream);
}

/** An example's command; where it is wider than the terminal, in lines that a shell takes as one. */
static void example(FILE *stream, const char *line)
{
    int column = 0, width = cli_is_terminal(stream) ? cli_columns(stream) : INT_MAX;
    fprintf(stream, "  %s", cli_style_on(stream, CLI_CYAN));
    for (const char *word = line; *word;) {
        int length = (int)strcspn(word, " ");
        if (column && 2 + column + 1 + length + 2 > width) {
            fputs(" \\\n      ", stream);
            column = 4;
        } else if (column) {
            fputc(' ', stream);
            column++;
        }
        fprintf(stream, "%.*s", length, word);
        column += length;
        word += length + (word[length] == ' ');
    }
    fprintf(stream, "%s\n      ", cli_style_off(stream));
}

static void examples(FILE *stream, const cli_command *command, bool all)
{
    enum { SHOWN = 5 };
    cli_help_heading(stream, "Examples");
    for (int i = 0; i < (all ? CLI_EXAMPLES_MAX : SHOWN) && command->examples[i].line; i++) {
        example(stream, command->examples[i].line);
        cli_wrap(stream, command->examples[i].text, 6, 6, help_width(stream));
    }
}

static void lists(FILE *stream, const cli_command *command, bool all)
{
    char text[1024], title[96];
    if (command->arguments[0].name)
        cli_help_heading(stream, "Arguments");
    for (int i = 0; i < CLI_ARGUMENTS_MAX && command->arguments[i].name; i++)
        cli_help_definition(stream, command->arguments[i].name,
                            cli_argument_text(&command->arguments[i], all, text, sizeof text));
    cli_help_heading(stream, "Options");
    for (int i = 0; i < CLI_OPTIONS_MAX && command->options[i].name; i++)
        cli_help_definition(stream, cli_option_title(&command->options[i], title, sizeof title),
                            cli_option_text(&command->options[i], all, text, sizeof text));
    cli_help_definition(stream, "-h, --help", "this text");
}

void cli_help_command(FILE *stream, const cli_command *command, bool all)
{
    char text[640];
    const char *more;
    fprintf(stream, "mixt %s: %s\n", command->name, command->summary);
    examples(stream, command, all);
    cli_help_heading(stream, "Usage");
    fputs("  ", stream);
    cli_wrap(stream, cli_synopsis(command, all, text, sizeof text), 2, 7, help_width(stream));
    fputc('\n', stream);
    size_t bytes = cli_paragraph(command->description, &more);
    if (all)
        cli_help_paragraphs(stream, command->description);
    else
        cli_wrap_part(stream, command->description, bytes, help_width(stream));
    lists(stream, command, all);
    if (!all && has_more(command))
        fprintf(stream, "\n'mixt help %s --all' says more.\n", command->name);
}

void cli_help_env(FILE *stream)
{
    cli_help_paragraphs(stream, "Environment variables that mixt reads. Colours are off where NO_COLOR is set.");
    fputc('\n', stream);
    for (int i = 0; i < mixt_env_count(); i++)
        cli_help_definition(stream, mixt_env_at(i)->name, mixt_env_at(i)->help);
}

const char *const cli_gpu_text =
    "With device auto (the default) mixt trains on a GPU when one is usable, else on the CPU; 'mixt info' says which, "
    "and why. With device cuda a run ends with a message that names what is missing; with device cpu nobody looks. The "
    "device is a key of the configuration (device=cuda) and an option of bench, plan, eval, predict and generate; "
    "MIXT_DEVICE says what auto means. CUDA_VISIBLE_DEVICES chooses among several GPUs.\n\n"
    "A GPU is usable when it has compute capability 7.5 or later (7.0 where mixt was built with CUDA 12), NVIDIA's "
    "driver is installed, and libmixt_cuda.so finds the libraries that it was built with: cuBLASLt, cuDNN 9 and NVRTC, "
    "in the folders of the build or of LD_LIBRARY_PATH. The library is loaded from where MIXT_CUDA_LIBRARY says, else "
    "from beside the command, from lib beside bin, or from where the system's loader looks.\n\n"
    "FP16 products run on Tensor Cores from compute capability 7.0, BF16 and TF32 from 8.0. TF32 is used only where "
    "the policy says so.\n\n"
    "Compiled kernels and timed choices of algorithms are kept in a folder (MIXT_CACHE, else $XDG_CACHE_HOME/mixt or "
    "~/.cache/mixt), so that a later run starts at once and computes the same bits. A training step is recorded at its "
    "second run and replayed as a whole from then on; MIXT_REPLAY=0 issues its kernels one by one, with the same bits, "
    "for debuggers and profilers.";

void cli_help_gpu(FILE *stream)
{
    cli_help_paragraphs(stream, cli_gpu_text);
}
