/* mixt help: overview, commands, configuration keys, environment; and the man pages. */
#include "cli/commands.h"
#include "cli/help.h"
#include "cli/words.h"

#include <mixt/program.h>

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static int unknown_topic(const cli_args *args, const char *topic)
{
    enum { TOPICS = 3, WORDS = 64 };
    const char *words[WORDS] = {"config", "env", "gpu"};
    char hint[96];
    for (int i = 0; cli_commands[i] && TOPICS + i < WORDS; i++)
        words[TOPICS + i] = cli_commands[i]->name;
    return cli_usage(args->command, "no help on '%s'%s", topic,
                     cli_guess_hint(mixt_word_nearest(topic, words, WORDS), hint, sizeof hint));
}

/** Writes one page into a folder; `command` NULL for mixt(1), `config` for mixt-config(5). */
static int write_page(const char *folder, const cli_command *command, bool config)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/mixt%s%s.%d", folder, command || config ? "-" : "",
             config    ? "config"
             : command ? command->name
                       : "",
             config ? 5 : 1);
    FILE *file = fopen(path, "w");
    if (!file) {
        fprintf(stderr, "mixt help: %s: cannot be created: %s\n", path, strerror(errno));
        return CLI_FAILED;
    }
    if (config)
        cli_man_config(file);
    else
        cli_man_command(file, command);
    bool failed = ferror(file) != 0;
    if (fclose(file) || failed) {
        fprintf(stderr, "mixt help: %s: cannot be written: %s\n", path, strerror(errno));
        return CLI_FAILED;
    }
    return CLI_OK;
}

static int write_pages(const char *folder)
{
    if (mkdir(folder, 0777) && errno != EEXIST) {
        fprintf(stderr, "mixt help: %s: cannot be created: %s\n", folder, strerror(errno));
        return CLI_FAILED;
    }
    int status = write_page(folder, NULL, false);
    for (int i = 0; cli_commands[i] && status == CLI_OK; i++)
        status = write_page(folder, cli_commands[i], false);
    return status == CLI_OK ? write_page(folder, NULL, true) : status;
}

/** A key, a section or the policy files; without a word the overview. */
static int explain_config(const cli_args *args, const char *word)
{
    bool all = cli_flag(args, "all");
    if (!word) {
        cli_help_config(stdout, all);
        return CLI_OK;
    }
    if (cli_help_key(stdout, word))
        return CLI_OK;
    return cli_usage(args->command, "there is no key '%s': 'mixt help config' shows the sections", word);
}

static int print_man(const char *topic, const cli_command *command)
{
    if (topic && !strcmp(topic, "config"))
        cli_man_config(stdout);
    else
        cli_man_command(stdout, command); // NULL: mixt(1), which has the sections env and gpu
    return CLI_OK;
}

static int run(const cli_args *args)
{
    const char *topic = cli_word(args, 0), *word = cli_word(args, 1);
    if (cli_given(args, "man-folder"))
        return write_pages(cli_text(args, "man-folder"));
    const cli_command *command = topic ? cli_command_find(topic) : NULL;
    bool env = topic && !strcmp(topic, "env"), gpu = topic && !strcmp(topic, "gpu");
    bool config = topic && !strcmp(topic, "config");
    if (word && !config)
        return cli_usage(args->command, "unexpected argument '%s': only 'mixt help config' takes a key", word);
    if (topic && !command && !env && !gpu && !config)
        return cli_help_key(stdout, topic) ? CLI_OK : unknown_topic(args, topic);
    if (cli_flag(args, "man"))
        return print_man(topic, command);
    if (config)
        return explain_config(args, word);
    if (env)
        cli_help_env(stdout);
    else if (gpu)
        cli_help_gpu(stdout);
    else if (command)
        cli_help_command(stdout, command, cli_flag(args, "all"));
    else
        cli_help_overview(stdout);
    return CLI_OK;
}

const cli_command cli_help = {
    .name = "help",
    .summary = "explain a command, a key, the environment or the GPU",
    .description =
        "Without an argument: an overview. 'mixt COMMAND --help' is the same as 'mixt help COMMAND'.\n\n"
        "Everything printed here, the man pages and shell completion come from the tables that the parser itself uses.",
    .arguments = {{"TOPIC", CLI_ARGUMENT_COMMAND, CLI_TOPICS, .optional = true,
                   .help = "a command, 'config' (the configuration), 'env' (environment variables) or 'gpu'"},
                  {"KEY", CLI_ARGUMENT_KEY, .optional = true,
                   .help = "after config: a key as train.lr, a section as data, or 'policy' (policy files)"}},
    .options =
        {
            {"all", 'a', CLI_FLAG, .help = "everything, not one screen"},
            {"man", .kind = CLI_FLAG, .help = "print the man page (roff) instead"},
            {"man-folder", .kind = CLI_TEXT, .metavar = "FOLDER", .help = "write all man pages into a folder"},
        },
    .examples =
        {
            {"mixt help train", "examples and options of a command"},
            {"mixt help train --all", "everything about it"},
            {"mixt help config train.lr", "one key: meaning, range, default, example"},
            {"mixt help config data", "the keys of a section"},
            {"mixt help --man info | man -l -", "the man page without installing it"},
        },
    .see_also = "completion|config",
    .run = run,
};
