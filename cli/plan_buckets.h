/* What batches are padded to, for mixt plan. */
#ifndef MIXT_CLI_PLAN_BUCKETS_H
#define MIXT_CLI_PLAN_BUCKETS_H

#include <jansson.h>

#include <mixt/run.h>

/** A table of lengths, samples and memory; nothing of a run that pads to one length. */
void cli_plan_buckets_print(const mixt_run *run);
/** The same; null. */
json_t *cli_plan_buckets_json(const mixt_run *run);

#endif
