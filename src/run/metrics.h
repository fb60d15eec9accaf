/* metrics.jsonl: one row of JSON an update. */
#ifndef MIXT_RUN_METRICS_H
#define MIXT_RUN_METRICS_H

#include "mixt/run.h"

/** The observer that writes rows; `user` is a mixt__rows. */
mixt_observer mixt__metrics_observe;

#endif
