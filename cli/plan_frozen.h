/* What mixt plan says of frozen parameters. */
#ifndef CLI_PLAN_FROZEN_H
#define CLI_PLAN_FROZEN_H

#include <mixt/train.h>

#include <jansson.h>

/** A table, a row a format that some are kept in; nothing where none are frozen. */
void cli_plan_frozen_print(const mixt_trainer *trainer);
json_t *cli_plan_frozen_json(const mixt_trainer *trainer);

#endif
