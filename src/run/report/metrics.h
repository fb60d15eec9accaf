/* metrics.jsonl: one row of JSON an update. */
#ifndef MIXT_RUN_METRICS_H
#define MIXT_RUN_METRICS_H

#include "mixt/run.h"

#include <jansson.h>

/** The observer that writes rows; `user` is a mixt__rows. */
mixt_observer mixt__metrics_observe;
/** Bytes by role as a row has them: "memory_by_role". */
json_t *mixt__metrics_roles(const mixt_memory *memory);

#endif
