/* Help pages on the terminal. */
#include "cli/help.h"

#include "cli/term.h"
#include "cli/words.h"

#include <limits.h>
#include <mixt/policy.h>
#include <mixt/program.h>

#include <string.h>

enum { HELP_COLUMNS = 100 };

static int help_width(FILE *stream)
{
    int columns = cli_columns(stream);
    return columns < HELP_COLUMNS ? columns : HELP_COLUMNS;
}

static void heading(FILE *stream, const char *text)
{
    fprintf(stream, "\n%s%s%s\n", cli_style_on(stream, CLI_BOLD), text, cli_style_off(stream));
}

const char *cli_synopsis(const cli_command *command, char *text, size_t size)
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
        used += (size_t)snprintf(text + used, size - used, " %s--%s%s%s%s", o->required ? "" : "[", o->name,
                                 o->metavar ? " " : "", o->metavar ? o->metavar : "", o->required ? "" : "]");
    }
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

const char *cli_option_text(const cli_option *option, char *text, size_t size)
{
    char list[256];
    size_t used = (size_t)snprintf(text, size, "%s", option->help);
    if (option->choices && used < size)
        used += (size_t)snprintf(text + used, size - used, ": %s", cli_choice_list(option->choices, list, sizeof list));
    if (option->required && used < size)
        used += (size_t)snprintf(text + used, size - used, " (required)");
    if (option->fallback && *option->fallback && used < size)
        snprintf(text + used, size - used, " (default: %s)", option->fallback);
    return text;
}

/** A definition: title, then text from column 26, on its own line when the title is long. */
static void definition(FILE *stream, const char *title, const char *text)
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

static void paragraphs(FILE *stream, const char *text)
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
    heading(stream, "Usage");
    fputs("  mixt COMMAND [arguments] [options]\n  mixt COMMAND --help\n", stream);
    heading(stream, "Commands");
    for (int i = 0; cli_commands[i]; i++)
        definition(stream, cli_commands[i]->name, cli_commands[i]->summary);
    heading(stream, "Options");
    definition(stream, "-h, --help", "this text");
    definition(stream, "--version", "the version of mixt");
    heading(stream, "More");
    definition(stream, "mixt help COMMAND", "what a command does, its options, examples");
    definition(stream, "mixt help config", "every key of a configuration file");
    definition(stream, "mixt help env", "environment variables");
    definition(stream, "mixt help gpu", "what a GPU needs and how one is chosen");
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

void cli_help_command(FILE *stream, const cli_command *command)
{
    char text[640], title[96];
    fprintf(stream, "mixt %s: %s\n", command->name, command->summary);
    heading(stream, "Usage");
    fputs("  ", stream);
    cli_wrap(stream, cli_synopsis(command, text, sizeof text), 2, 7, help_width(stream));
    fputc('\n', stream);
    paragraphs(stream, command->description);
    if (command->arguments[0].name)
        heading(stream, "Arguments");
    for (int i = 0; i < CLI_ARGUMENTS_MAX && command->arguments[i].name; i++)
        definition(stream, command->arguments[i].name, command->arguments[i].help);
    heading(stream, "Options");
    for (int i = 0; i < CLI_OPTIONS_MAX && command->options[i].name; i++)
        definition(stream, cli_option_title(&command->options[i], title, sizeof title),
                   cli_option_text(&command->options[i], text, sizeof text));
    definition(stream, "-h, --help", "this text");
    heading(stream, "Examples");
    for (int i = 0; i < CLI_EXAMPLES_MAX && command->examples[i].line; i++) {
        example(stream, command->examples[i].line);
        cli_wrap(stream, command->examples[i].text, 6, 6, help_width(stream));
    }
}

static const char policy_text[] =
    "Where precision names a file, it is YAML with a format for all (default) and rules for some: layer and op are "
    "globs over the names that 'mixt plan CONFIG --graph' prints, left out they match everything, and the last rule "
    "that matches decides. A rule that matches nothing is an error. Formats are fp32, tf32, fp16 and bf16; precision "
    "sets both those of the layer's ops and those of their gradients, forward and backward set them apart (both must "
    "be there; a default has them as a map, {forward: bf16, backward: fp32}).\n\n"
    "keep (fp16, bf16 or fp8_e4m3), in a rule or for all, is the format in which what the layer saves for its gradient "
    "lies in memory between the two passes: the forward pass does not change by a bit, the gradient reads rounded "
    "values, and memory falls. fp32: as it is. Only what lowers the memory of the step is kept so.\n\n"
    "The loss scaling and clipping that go with the formats may stand in the file too: %s. They mean what the keys of "
    "train.* do, and those win where they are set. version (1), made_by (a text) and evidence (any map) are kept and "
    "shown. Only default must be there.";

const char *cli_policy_text(char text[CLI_POLICY_TEXT])
{
    char names[256] = "";
    const char *name;
    for (int64_t i = 0; (name = mixt_policy_setting(i)); i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s",
                 !i                           ? ""
                 : mixt_policy_setting(i + 1) ? ", "
                                              : " and ",
                 name);
    snprintf(text, CLI_POLICY_TEXT, policy_text, names);
    return text;
}

const char *const cli_policy_example = "  version: 1\n"
                                       "  default: bf16\n"
                                       "  clip: 1\n"
                                       "  keep: fp8_e4m3\n"
                                       "  rules:\n"
                                       "    - layer: \"h.*.attn*\"\n"
                                       "      precision: fp32\n"
                                       "    - op: layer_norm\n"
                                       "      forward: bf16\n"
                                       "      backward: fp32\n";

void cli_help_config(FILE *stream)
{
    paragraphs(stream,
               "A configuration is a YAML file of nested maps; the same keys can be given on the command line as "
               "key=value, and those win. 'train: {lr: 0.1}' in the file is train.lr=0.1 on the command line. "
               "Every key has a default, so a file holds only what differs.");
    char section[32] = "-", text[768], policy[CLI_POLICY_TEXT];
    const mixt_config_record *record;
    for (int64_t key = 0; (record = mixt_config_key(key)); key++) {
        int width = strchr(record->name, '.') ? (int)strcspn(record->name, ".") : 0;
        if (strncmp(section, record->name, (size_t)width) || (int)strlen(section) != width) {
            char title[48];
            snprintf(section, sizeof section, "%.*s", width, record->name);
            snprintf(title, sizeof title, width ? "%s.*" : "%sThe run", section);
            heading(stream, title);
        }
        const char *fallback = *record->fallback ? record->fallback : record->type == MIXT_CONFIG_INTS ? "[]" : "empty";
        char *expects = NULL;
        if (mixt_config_expects(record, &expects) != MIXT_OK)
            return;
        snprintf(text, sizeof text, "%s. Takes %s; default %s.", record->help, expects, fallback);
        mixt_free(expects);
        definition(stream, record->name, text);
    }
    heading(stream, "Policy files");
    paragraphs(stream, cli_policy_text(policy));
    fprintf(stream, "\n%s", cli_policy_example);
}

void cli_help_env(FILE *stream)
{
    paragraphs(stream, "Environment variables that mixt reads. Colours are off where NO_COLOR is set.");
    fputc('\n', stream);
    for (int i = 0; i < mixt_env_count(); i++)
        definition(stream, mixt_env_at(i)->name, mixt_env_at(i)->help);
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
    paragraphs(stream, cli_gpu_text);
}
