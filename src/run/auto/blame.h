/* Which layer made the first number that is not finite: found by making the update once more, looked into. */
#ifndef MIXT_RUN_BLAME_H
#define MIXT_RUN_BLAME_H

#include "run/run.h"

/** Goes back to the good state, makes the updates up to `step` again and looks into that one; the trainer is left
 *  there, to be put back by the caller. What cannot be found leaves the finding as it is. */
void mixt__blame(mixt_run *run, int64_t step, mixt_finding *finding);

#endif
