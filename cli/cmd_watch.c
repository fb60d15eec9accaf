/* mixt watch: the page of runs, live. */
#include "cli/commands.h"

#include "cli/support.h"

#include <mixt/page.h>

#include <signal.h>

static int run(const cli_args *args)
{
    mixt_page_server *server;
    sigset_t ends;
    int got;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    sigprocmask(SIG_BLOCK, &ends, NULL); // before the server's threads are made: this one alone waits for them
    if (mixt_page_serve(args->settings, args->setting_count, (int)cli_int(args, "port"), &server) != MIXT_OK)
        return cli_failed();
    printf("%s\n", mixt_page_address(server));
    fflush(stdout);
    fprintf(stderr, "open this address in a browser on this machine; Ctrl-C stops it\n");
    while (sigwait(&ends, &got))
        ;
    mixt_page_stop(server);
    return CLI_OK;
}

const cli_command cli_watch_command = {
    .name = "watch",
    .summary = "show runs in a browser while they train",
    .description =
        "Serves the page of 'mixt report' to a browser on this machine and keeps it up to date, for some "
        "runs or all runs in a folder, also those that start later. Only the files of runs are read: training is not "
        "slowed "
        "down.\n\n"
        "The printed address holds a token, without which nothing is served. Other machines cannot connect; to look "
        "from elsewhere, forward the port over SSH: ssh -L 8080:127.0.0.1:8080 host.",
    .arguments = {{"RUN", CLI_ARGUMENT_FILES, .help = "run directories, or folders with runs"}},
    .options = {{"port", 'p', CLI_INT, "N", .fallback = "0", .min = 0, .max = 65535,
                 .help = "port to listen on; 0: any free one"}},
    .examples =
        {
            {"mixt watch runs", "all runs of this folder"},
            {"mixt watch runs/fp32 runs/bf16", "two runs, drawn over each other"},
            {"mixt watch runs/bf16 --port 8080", "one run, on a port of your choice"},
        },
    .see_also = "report|train|plot",
    .run = run,
};
