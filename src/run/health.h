/* Whether training can go on. */
#ifndef MIXT_RUN_HEALTH_H
#define MIXT_RUN_HEALTH_H

#include "run/course.h"
#include "run/run.h"

/** Fails when it cannot: a loss that is not finite although the update counted, or updates skipped one after another
 *  for another reason than a loss scale that is still falling.
 *  @param stuck such updates in a row so far; brought up to date */
mixt_status mixt__health_check(const mixt_run *run, const mixt_step *step, int64_t *stuck);
/** A run that ends as it began has failed, however finite its losses; one that ends worse than it began is said to have
 *  diverged, by an alert and in the result. What either has written stays. */
mixt_status mixt__health_check_end(mixt_run *run, const mixt__course *course);

#endif
