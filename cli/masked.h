/* Models that fill gaps: they neither write on nor judge samples. */
#ifndef MIXT_CLI_MASKED_H
#define MIXT_CLI_MASKED_H

#include <mixt/config.h>

/** Fails where the run's model sees all tokens, with the commands that are for it. */
mixt_status cli_refuse_masked(const mixt_config *config, const char *run);

#endif
