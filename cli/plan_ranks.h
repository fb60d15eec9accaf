/* What ranks would send each other, for mixt plan --ranks. */
#ifndef MIXT_CLI_PLAN_RANKS_H
#define MIXT_CLI_PLAN_RANKS_H

#include "cli/cli.h"
#include "mixt/advise.h"
#include "mixt/plan.h"

/** What links carry on the machine that --machine names, in bytes a second; as it was without. */
mixt_status cli_plan_ranks_link(const cli_args *args, double *link);
/** A table of what one rank sends in an update; nothing of one that is alone. @param link 0: not known */
void cli_plan_ranks_print(const mixt_plan_info *info, double link);

#endif
