/* What ranks would send each other, for mixt plan --ranks. */
#include "cli/plan_ranks.h"

#include "cli/support.h"
#include "cli/table.h"

#include <stdio.h>

/** One kind of what a rank sends. */
static void print_sent(const mixt_plan_info *info, double link, const char *what, int64_t bytes)
{
    char all[32], each[32], time[48] = "";
    if (link > 0)
        snprintf(time, sizeof time, "%12.3f", 1e3 * (double)bytes / link);
    printf("  %-12s%14s%14s%s\n", what, cli_format_bytes(all, (double)bytes),
           cli_format_bytes(each, (double)bytes / (double)(info->ranks - 1)), time);
}

void cli_plan_ranks_print(const mixt_plan_info *info, double link)
{
    char text[32];
    int64_t rest = info->rank_sent - info->rank_gradients - info->rank_weights;
    if (info->ranks < 2)
        return;
    cli_line(stdout, "", "one of %lld ranks: it sends %s (%lld bytes) per update; each writes its part of checkpoints",
             (long long)info->ranks, cli_format_bytes(text, (double)info->rank_sent), (long long)info->rank_sent);
    if (info->rank_whole) {
        char run[32];
        cli_line(stdout, "",
                 "before that %lld updates with all gradients: %s (%lld bytes) each; with the last one, which sends "
                 "the rest, %s (%lld bytes) in all",
                 (long long)info->rank_whole, cli_format_bytes(text, (double)info->rank_whole_sent),
                 (long long)info->rank_whole_sent, cli_format_bytes(run, (double)info->rank_run_sent),
                 (long long)info->rank_run_sent);
    }
    printf("  %-12s%14s%14s%s\n", "an update", "to all", "to each", link > 0 ? "          ms" : "");
    print_sent(info, link, "gradients", info->rank_gradients);
    print_sent(info, link, "weights", info->rank_weights);
    print_sent(info, link, "figures", rest);
}

mixt_status cli_plan_ranks_link(const cli_args *args, double *link)
{
    mixt_machine *machine;
    if (!cli_given(args, "machine"))
        return MIXT_OK;
    if (!cli_given(args, "ranks"))
        return mixt_fail(MIXT_ERROR_ARGUMENT, "--machine gives the time of communication: it needs --ranks");
    CLI_TRY(mixt_machine_open(cli_text(args, "machine"), &machine));
    const mixt_machine_info *info = mixt_machine_describe(machine);
    mixt_status status =
        info->link > 0
            ? MIXT_OK
            : mixt_fail(MIXT_ERROR_ARGUMENT, "the profile of %s has no speed of its links: add link", info->name);
    *link = status == MIXT_OK ? info->link : 0;
    mixt_machine_free(machine);
    return status;
}
