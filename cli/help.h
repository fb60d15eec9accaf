/* Text made from the tables: help pages, man pages, completion scripts. */
#ifndef MIXT_CLI_HELP_H
#define MIXT_CLI_HELP_H

#include "cli/cli.h"

/** Names that `mixt help` takes beside the commands. */
#define CLI_TOPICS "config|env|gpu"

#define CLI_TAGLINE "train neural networks in mixed precision"

/** "mixt train [CONFIG] [key=value ...] [options]", or with `all` each option. */
const char *cli_synopsis(const cli_command *command, bool all, char *text, size_t size);
/** "-j, --json" or "--dtype D". */
const char *cli_option_title(const cli_option *option, char *text, size_t size);
/** The help of an option with its choices and default; `all`: and what there is more to say. */
const char *cli_option_text(const cli_option *option, bool all, char *text, size_t size);
const char *cli_argument_text(const cli_argument *argument, bool all, char *text, size_t size);

/** Bytes of the first paragraph of a text, however long. @param next set to where the one behind it begins, or to the
 *  text's end */
size_t cli_paragraph(const char *text, const char **next);

void cli_help_overview(FILE *stream);
/** A screen of it; `all`: everything. */
void cli_help_command(FILE *stream, const cli_command *command, bool all);
/** The sections of the configuration; `all`: every key. */
void cli_help_config(FILE *stream, bool all);
/** A key by its name or by what another tool calls it, a section, or "policy". False where `word` is none of them: then
 *  nothing is printed. */
bool cli_help_key(FILE *stream, const char *word);
/** The environment variables. */
void cli_help_env(FILE *stream);
/** What a GPU needs and how one is chosen. */
void cli_help_gpu(FILE *stream);
/* Parts of such texts. */
void cli_help_heading(FILE *stream, const char *text);
/** Title, then text from column 26, on its own line when the title is long. */
void cli_help_definition(FILE *stream, const char *title, const char *text);
/** Separated by empty lines. */
void cli_help_paragraphs(FILE *stream, const char *text);
/** The same as plain paragraphs. */
extern const char *const cli_gpu_text;
/** What a policy file holds, and one as an example. Returns `text`. */
enum { CLI_POLICY_TEXT = 2048 };
const char *cli_policy_text(char text[CLI_POLICY_TEXT]);
extern const char *const cli_policy_example;

/** The page of a command in roff; NULL: mixt(1). */
void cli_man_command(FILE *stream, const cli_command *command);
/** mixt-config(5). */
void cli_man_config(FILE *stream);

/** Completion script for "bash", "zsh" or "fish". */
void cli_completion(FILE *stream, const char *shell);

#endif
