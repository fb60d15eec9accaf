/* Memory pressure: others take memory while a run trains, or the limit of its control group falls.
 *
 * The budget is what the run could hold: train.memory, or less where less is left of the device or the host. Where that
 * has shrunk since the run began, two tiers give memory back: from 70% of the budget on activations wait for the
 * backward pass in a lower format, from 90% on some are computed again and batches are passed in parts. What is decided
 * depends on what else runs on the machine, so it is recorded: a resumed run and a replay do the same at the same
 * update. Only with auto.steer.
 */
#ifndef MIXT_RUN_PRESSURE_H
#define MIXT_RUN_PRESSURE_H

#include "config/config.h"
#include "mixt/run.h"

#include <stddef.h>

typedef struct mixt__pressure {
    size_t most;     // the largest budget so far: pressure is where there is less
    size_t fitted;   // the budget that the newest plan was made for; 0: none was
    size_t squeezed; // for tests (faults): the budget is this; 0: as it is
    int tier, found; // the highest that was reached; looks in a row that found a higher one
    int plans;       // that were made for the second tier
    double looked;   // when
} mixt__pressure;

/** Looks at the budget, once a second at most, and asks for the decisions of a tier that it finds reached. After an
 *  update whose result is there. */
mixt_status mixt__pressure_look(mixt_run *run);
/** Bytes that the run could hold now; 0: not known. */
size_t mixt__pressure_budget(const mixt_run *run);
/** Goes on with the memory settings of `next`, which becomes the run's configuration: train.activations, train.split,
 *  train.recompute. Between two updates whose results were read; as it was on failure. */
mixt_status mixt__run_adopt_memory(mixt_run *run, mixt_config *next);

#endif
