/* A profile for people and for scripts. */
#ifndef MIXT_CLI_PROFILE_H
#define MIXT_CLI_PROFILE_H

#include <mixt/plan.h>

#include <jansson.h>

/** Tables: each op, then each kind of work. */
void cli_profile_print(const mixt_profile *profile);
json_t *cli_profile_json(const mixt_profile *profile);

#endif
