/* The mixt command: finds the command, parses, runs, and makes sure that what was printed has arrived. */
#include "cli/help.h"
#include "cli/json.h"
#include "cli/support.h"
#include "cli/words.h"

#include <mixt/program.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/** What other programs call a command. */
static const char *const aliases[][2] = {
    {"evaluate", "eval"},     {"test", "eval"},         {"validate", "eval"},   {"score", "eval"},
    {"fit", "train"},         {"finetune", "train"},    {"fine-tune", "train"}, {"run", "train"},
    {"resume", "train"},      {"pretrain", "train"},    {"infer", "predict"},   {"inference", "predict"},
    {"classify", "predict"},  {"translate", "predict"}, {"sample", "generate"}, {"chat", "generate"},
    {"complete", "generate"}, {"benchmark", "bench"},   {"profile", "plan"},    {"summary", "plan"},
    {"memory", "plan"},       {"inspect", "debug"},     {"doctor", "info"},     {"devices", "info"},
    {"version", "--version"}, {"quantize", "convert"},  {"save", "export"},     {"tensorboard", "watch"},
    {"dashboard", "watch"},   {"autotune", "search"},   {"tune", "search"},     {"encode", "tokenize"},
    {"man", "help"},
};

static int unknown_command(const char *name)
{
    enum { OPTIONS = 2, WORDS = 64 };
    const char *words[WORDS] = {"--help", "--version"}, *guess = NULL;
    char hint[96];
    for (int i = 0; cli_commands[i] && OPTIONS + i < WORDS; i++)
        words[OPTIONS + i] = cli_commands[i]->name;
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0] && !guess; i++)
        guess = strcmp(aliases[i][0], name) ? NULL : aliases[i][1];
    if (!guess)
        guess = mixt_word_nearest(name, words, WORDS);
    return cli_usage(NULL, "unknown %s '%s'%s", *name == '-' ? "option" : "command", name,
                     cli_guess_hint(guess, hint, sizeof hint));
}

/** Values of the environment that the library passes over: a wrong one would change figures in silence. */
static int check_environment(const cli_command *command)
{
    return mixt_env_check() == MIXT_OK ? CLI_OK : cli_usage(command, "%s", mixt_error_text());
}

static int run_command(const cli_command *command, int count, char **words)
{
    const char **settings = calloc((size_t)count + 1, sizeof *settings);
    if (!settings) {
        fputs("mixt: no memory for the command line\n", stderr);
        return CLI_FAILED;
    }
    cli_args args;
    int status = cli_parse(&args, command, count, words, settings);
    if (status == CLI_OK && args.help)
        cli_help_command(stdout, command, false);
    else if (status == CLI_OK && (status = check_environment(command)) == CLI_OK)
        status = command->run(&args);
    free(settings);
    return status;
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        cli_help_overview(stderr);
        return CLI_USAGE;
    }
    if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
        printf("mixt %s\n", mixt_version());
        return CLI_OK;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
        cli_help_overview(stdout);
        return CLI_OK;
    }
    const cli_command *command = cli_command_find(argv[1]);
    return command ? run_command(command, argc - 2, argv + 2) : unknown_command(argv[1]);
}

/** Fills the places of standard streams that the caller closed: the next file opened would otherwise get the number of
 *  standard output, and what is printed would land in it. The wrong direction makes using such a stream an error. */
static void hold_standard_streams(void)
{
    for (int stream = 0; stream <= 2; stream++)
        if (fcntl(stream, F_GETFD) < 0 && errno == EBADF)
            open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY);
}

int main(int argc, char **argv)
{
    hold_standard_streams();
    signal(SIGXFSZ, SIG_IGN); // a file size limit is then an error of write, with a message
    cli_json_watch();
    int status = dispatch(argc, argv);
    bool wrong = status == CLI_FAILED || status == CLI_USAGE || status >= 128; // others are verdicts, without a reason
    if (fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "mixt: standard output cannot be written: %s\n", strerror(errno));
        return wrong ? status : CLI_FAILED;
    }
    if (cli_output_lost() && !wrong) {
        fputs("mixt: the output is incomplete: out of memory, or a text is not UTF-8, which JSON cannot hold\n",
              stderr);
        return CLI_FAILED;
    }
    return status;
}
