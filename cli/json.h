/* What commands that print JSON share. */
#ifndef MIXT_CLI_JSON_H
#define MIXT_CLI_JSON_H

#include <mixt/types.h>

#include <jansson.h>

/** From now on JSON that is incomplete for want of memory is known as lost output. */
void cli_json_watch(void);
/** A number for JSON, which has no NaN and no infinity: null for those. */
json_t *cli_json_real(double value);
/** Fails where a name is not UTF-8, which JSON cannot hold: to be asked before the work, not after it. */
mixt_status cli_json_name(const char *name);

#endif
