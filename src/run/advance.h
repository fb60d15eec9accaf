/* Updates made again, to look at one of a run's past: mixt_run_advance. */
#ifndef MIXT_RUN_ADVANCE_H
#define MIXT_RUN_ADVANCE_H

#include "run/run.h"

/** Says, as a NOTE, where decisions were taken between the checkpoint that the run was opened at and update number
 *  `before`. */
mixt_status mixt__advance_warn(mixt_run *run, int64_t before);

/** Makes updates up to number `step`, and leaves the trainer ready for the one behind it. */
mixt_status mixt__advance_to(mixt_run *run, int64_t step);

#endif
