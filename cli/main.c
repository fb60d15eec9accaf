/* The mixt command: finds the command, parses, runs, and makes sure that what was printed has arrived. */
#include "cli/help.h"

#include "base/env.h"
#include "base/isa.h"
#include "base/log.h"
#include "base/words.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static int unknown_command(const char *name)
{
    mixt__nearest nearest = {.wanted = name};
    for (int i = 0; cli_commands[i]; i++)
        mixt__nearest_offer(&nearest, cli_commands[i]->name);
    mixt__nearest_offer(&nearest, "--help");
    mixt__nearest_offer(&nearest, "--version");
    const char *guess = mixt__nearest_get(&nearest);
    return cli_usage(NULL, "unknown %s '%s'%s%s%s", *name == '-' ? "option" : "command", name,
                     guess ? " (did you mean " : "", guess ? guess : "", guess ? "?)" : "");
}

static int check_log(const cli_command *command)
{
    for (const char *text = mixt__env_get(MIXT_ENV_LOG); *text;) {
        char word[64], hint[96], list[128];
        size_t length = strcspn(text, ",");
        snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word), text);
        if (mixt__choice_find(mixt__log_choices, word) < 0)
            return cli_usage(command, "MIXT_LOG: no category '%s'%s: it takes %s, separated by commas", word,
                             mixt__choice_hint(mixt__log_choices, word, hint, sizeof hint),
                             mixt__choice_list(mixt__log_choices, list, sizeof list));
        text += length + (text[length] == ',');
    }
    return CLI_OK;
}

/** Values of the environment that the library passes over: a wrong one would change figures in silence. */
static int check_environment(const cli_command *command)
{
    const char *threads = mixt__env_get(MIXT_ENV_THREADS), *isa = mixt__env_get(MIXT_ENV_ISA);
    const char *device = mixt__env_get(MIXT_ENV_DEVICE), *devices = "auto|cpu|cuda";
    char *end, hint[96];
    long count = strtol(threads, &end, 10);
    if (*threads && (end == threads || *end || count < 0 || count > 1024))
        return cli_usage(command, "MIXT_THREADS: expected an integer from 0 to 1024, found '%s'", threads);
    if (*device && mixt__choice_find(devices, device) < 0)
        return cli_usage(command, "MIXT_DEVICE: expected auto, cpu or cuda, found '%s'%s", device,
                         mixt__choice_hint(devices, device, hint, sizeof hint));
    if (check_log(command) != CLI_OK)
        return CLI_USAGE;
    mixt__nearest nearest = {.wanted = isa};
    for (int i = 0; i < MIXT_ISA_COUNT; i++) {
        if (!*isa || !strcmp(isa, mixt__isa_name((mixt__isa)i)))
            return CLI_OK;
        mixt__nearest_offer(&nearest, mixt__isa_name((mixt__isa)i));
    }
    const char *guess = mixt__nearest_get(&nearest);
    return cli_usage(command, "MIXT_ISA: no instruction set '%s'%s%s%s: 'mixt help env' lists them", isa,
                     guess ? " (did you mean " : "", guess ? guess : "", guess ? "?)" : "");
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
        cli_help_command(stdout, command);
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
        printf("mixt %s\n", MIXT_VERSION);
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
    int status = dispatch(argc, argv);
    if (fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "mixt: standard output cannot be written: %s\n", strerror(errno));
        return status == CLI_OK ? CLI_FAILED : status;
    }
    return status;
}
