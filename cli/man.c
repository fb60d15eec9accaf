/* Man pages in roff, from the same records as --help. */
#include "cli/help.h"

#include <mixt/program.h>

#include <ctype.h>
#include <string.h>

/** The first bytes of a text, with roff's own characters escaped. Never ends the line. */
static void roff_part(FILE *stream, const char *text, size_t bytes)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", stream);
    for (const char *end = text + bytes; text < end; text++) {
        if (*text == '\\')
            fputs("\\e", stream);
        else if (*text == '-')
            fputs("\\-", stream);
        else if (*text == '~')
            fputs("\\(ti", stream);
        else if (*text == '\'')
            fputs("\\(aq", stream);
        else
            fputc(*text == '\n' ? ' ' : *text, stream);
    }
}

static void roff(FILE *stream, const char *text)
{
    roff_part(stream, text, strlen(text));
}

static void header(FILE *stream, const char *name, int section, const char *summary)
{
    fputs(".TH \"", stream);
    for (const char *at = name; *at; at++)
        fputc(toupper((unsigned char)*at), stream);
    fprintf(stream, "\" \"%d\" \"\" \"mixt %s\" \"mixt\"\n.SH NAME\n", section, mixt_version());
    roff(stream, name);
    fputs(" \\- ", stream);
    roff(stream, summary);
    fputc('\n', stream);
}

/** A tagged paragraph. */
static void definition(FILE *stream, const char *title, const char *text)
{
    fputs(".TP\n.B ", stream);
    roff(stream, title);
    fputc('\n', stream);
    roff(stream, text);
    fputc('\n', stream);
}

static void paragraphs(FILE *stream, const char *text)
{
    for (const char *next; *text; text = next) {
        fputs(".PP\n", stream);
        roff_part(stream, text, cli_paragraph(text, &next));
        fputc('\n', stream);
    }
}

static void exit_status(FILE *stream)
{
    fputs(".SH \"EXIT STATUS\"\n", stream);
    definition(stream, "0", "done");
    definition(stream, "1", "failed while running; the message on standard error says why");
    definition(stream, "2", "used wrongly: unknown command or option, missing argument, bad key=value");
}

static void overview(FILE *stream)
{
    header(stream, "mixt", 1, CLI_TAGLINE);
    fputs(".SH SYNOPSIS\n.B mixt\nCOMMAND [arguments] [options]\n.SH DESCRIPTION\n", stream);
    paragraphs(stream,
               "mixt trains neural networks in several number formats at once: matrix work in 16 bits, sums, losses "
               "and master weights in 32. Each command has a page of its own.");
    fputs(".SH COMMANDS\n", stream);
    char page[64];
    for (int i = 0; cli_commands[i]; i++) {
        snprintf(page, sizeof page, "mixt-%s(1)", cli_commands[i]->name);
        definition(stream, page, cli_commands[i]->summary);
    }
    fputs(".SH OPTIONS\n", stream);
    definition(stream, "-h, --help", "print an overview");
    definition(stream, "--version", "print the version");
    fputs(".SH GPU\n", stream);
    paragraphs(stream, cli_gpu_text);
    fputs(".SH ENVIRONMENT\n", stream);
    for (int i = 0; i < mixt_env_count(); i++)
        definition(stream, mixt_env_at(i)->name, mixt_env_at(i)->help);
    definition(stream, "NO_COLOR", "when set, no colours on a terminal");
    exit_status(stream);
    fputs(".SH \"SEE ALSO\"\n.BR mixt\\-config (5)\n", stream);
}

static void see_also(FILE *stream, const cli_command *command)
{
    fputs(".SH \"SEE ALSO\"\n.BR mixt (1)", stream);
    for (const char *at = command->see_also ? command->see_also : ""; *at;) {
        int span = (int)strcspn(at, "|");
        char name[32];
        snprintf(name, sizeof name, "%.*s", span, at);
        bool config = !strcmp(name, "config");
        if (config || cli_command_find(name))
            fprintf(stream, ",\n.BR mixt\\-%s (%d)", name, config ? 5 : 1);
        at += span + (at[span] == '|');
    }
    fputc('\n', stream);
}

void cli_man_command(FILE *stream, const cli_command *command)
{
    if (!command) {
        overview(stream);
        return;
    }
    char text[1024], title[96];
    snprintf(title, sizeof title, "mixt-%s", command->name);
    header(stream, title, 1, command->summary);
    fputs(".SH SYNOPSIS\n.B ", stream);
    roff(stream, cli_synopsis(command, true, text, sizeof text));
    fputs("\n.SH DESCRIPTION\n", stream);
    paragraphs(stream, command->description);
    if (command->arguments[0].name)
        fputs(".SH ARGUMENTS\n", stream);
    for (int i = 0; i < CLI_ARGUMENTS_MAX && command->arguments[i].name; i++)
        definition(stream, command->arguments[i].name,
                   cli_argument_text(&command->arguments[i], true, text, sizeof text));
    fputs(".SH OPTIONS\n", stream);
    for (int i = 0; i < CLI_OPTIONS_MAX && command->options[i].name; i++)
        definition(stream, cli_option_title(&command->options[i], title, sizeof title),
                   cli_option_text(&command->options[i], true, text, sizeof text));
    definition(stream, "-h, --help", "print this help");
    fputs(".SH EXAMPLES\n", stream);
    for (int i = 0; i < CLI_EXAMPLES_MAX && command->examples[i].line; i++)
        definition(stream, command->examples[i].line, command->examples[i].text);
    exit_status(stream);
    see_also(stream, command);
}

void cli_man_config(FILE *stream)
{
    header(stream, "mixt-config", 5, "configuration of a training run");
    fputs(".SH DESCRIPTION\n", stream);
    paragraphs(stream,
               "A configuration is a YAML file of nested maps, at most 1 MiB, one document, without anchors, aliases "
               "and tags. The same keys can be given on the command line as key=value, and those win. Unknown keys "
               "are errors.\n\nEvery key has a default, so a file holds only what differs.");
    fputs(".SH KEYS\n", stream);
    char text[768], policy[CLI_POLICY_TEXT];
    const mixt_config_record *record;
    for (int64_t key = 0; (record = mixt_config_key(key)); key++) {
        char *expects = NULL;
        if (record->test)
            continue;
        if (mixt_config_expects(record, &expects) != MIXT_OK)
            return;
        snprintf(text, sizeof text, "%s. Takes %s; default %s.", record->help, expects,
                 *record->fallback ? record->fallback : "empty");
        mixt_free(expects);
        definition(stream, record->name, text);
    }
    fputs(".SH EXAMPLE\n.nf\nmodel: convnet\nprecision: bf16\ntrain:\n  epochs: 3\n  lr: 0.002\n  schedule: "
          "cosine\n.fi\n",
          stream);
    fputs(".SH \"POLICY FILES\"\n", stream);
    paragraphs(stream, cli_policy_text(policy));
    fprintf(stream, ".PP\n.nf\n%s.fi\n", cli_policy_example);
    fputs(".SH \"SEE ALSO\"\n.BR mixt (1)\n", stream);
}
