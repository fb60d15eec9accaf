/* Memory pressure: others take memory while a run trains, or the limit of its control group falls.
 *
 * The budget is what the run could hold: train.memory, or less where less is left of the device or the host. Where that
 * has shrunk since the run began, two tiers give memory back: from 70% of the budget on activations wait for the
 * backward pass in a lower format, from 90% on some are computed again and batches are passed in parts. What is decided
 * depends on what else runs on the machine, so it is recorded: a resumed run and a replay do the same at the same
 * update. Only with auto.steer.
 *
 * Of several ranks, one that finds a tier reached asks all to look together; the one that is worst off counts, and all
 * plan for it: they come to the same decision.
 */
#ifndef MIXT_RUN_PRESSURE_H
#define MIXT_RUN_PRESSURE_H

#include "config/config.h"
#include "mixt/run.h"

#include <stddef.h>

/** How one rank stands, or one process. */
typedef struct mixt__pressure_view {
    int64_t wish;        // as below
    int64_t tier;        // that its budget asks for
    uint64_t budget;     // bytes that it could hold
    uint64_t held, step; // that it holds; of these its step, with its batches
    uint64_t most;       // the largest budget so far
} mixt__pressure_view;

typedef struct mixt__pressure {
    mixt__pressure_view view; // that is planned for
    bool wish;                // of one rank of several: all are to look, for it has found a tier reached often enough
    size_t most;              // the largest budget so far: pressure is where there is less
    size_t fitted;            // the budget that the newest plan was made for; 0: none was
    size_t squeezed;          // for tests: the budget is this; 0: as it is
    int tier, found;          // the highest that was reached; looks in a row that found a higher one
    int plans;                // that were made for the second tier
    double looked;            // when
} mixt__pressure;

/** Looks at the budget, once a second at most, and asks for the decisions of a tier that it finds reached, or, as one
 * of several ranks, wishes that all look. After an update whose result is there. */
mixt_status mixt__pressure_look(mixt_run *run);
/** Of several ranks, after one has asked: what all of them do about it. */
mixt_status mixt__pressure_consensus(mixt_run *run);
/** Bytes that the run could hold now; 0: not known. */
size_t mixt__pressure_budget(const mixt_run *run);
/** Goes on with the memory settings of `next`, which becomes the run's configuration: train.activations, train.split,
 *  train.recompute. Between two updates whose results were read; as it was on failure. */
mixt_status mixt__run_adopt_memory(mixt_run *run, mixt_config *next);

#endif
