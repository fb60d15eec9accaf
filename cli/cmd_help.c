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

static int run(const cli_args *args)
{
    const char *topic = cli_word(args, 0);
    bool man = cli_flag(args, "man");
    if (cli_given(args, "man-folder"))
        return write_pages(cli_text(args, "man-folder"));
    const cli_command *command = topic ? cli_command_find(topic) : NULL;
    bool env = topic && !strcmp(topic, "env"), gpu = topic && !strcmp(topic, "gpu");
    if (topic && !strcmp(topic, "config"))
        (man ? cli_man_config : cli_help_config)(stdout);
    else if (man && (env || gpu))
        cli_man_command(stdout, NULL); // mixt(1) has a section of each
    else if (env)
        cli_help_env(stdout);
    else if (gpu)
        cli_help_gpu(stdout);
    else if (topic && !command)
        return unknown_topic(args, topic);
    else if (man)
        cli_man_command(stdout, command);
    else if (command)
        cli_help_command(stdout, command);
    else
        cli_help_overview(stdout);
    return CLI_OK;
}

const cli_command cli_help = {
    .name = "help",
    .summary = "explain a command, the configuration keys, the environment or the GPU",
    .description =
        "Without an argument: an overview. Everything printed here, the man pages and shell completion come from "
        "the tables that the parser itself uses.",
    .arguments = {{"TOPIC", CLI_ARGUMENT_COMMAND, CLI_TOPICS, .optional = true,
                   .help =
                       "a command, 'config' (keys of a configuration file), 'env' (environment variables) or 'gpu'"}},
    .options =
        {
            {"man", .kind = CLI_FLAG, .help = "write the man page (roff) to standard output instead"},
            {"man-folder", .kind = CLI_TEXT, .metavar = "FOLDER", .help = "write all man pages into a folder"},
        },
    .examples =
        {
            {"mixt help config", "every key with its type, range and default"},
            {"mixt help --man info | man -l -", "the man page without installing it"},
        },
    .see_also = "completion|config",
    .run = run,
};
