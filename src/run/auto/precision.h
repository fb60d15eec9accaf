/* precision=auto: a policy for the machine, chosen once, before the run begins; from then on it is the run's own. */
#ifndef MIXT_RUN_PRECISION_H
#define MIXT_RUN_PRECISION_H

#include "mixt/advise.h"
#include "run/run.h"

/** What the configuration's `precision` stands for: a format's name where it is "auto", else itself.
 *  @param why receives the reason, for mixt_free; NULL where it is not "auto", or not asked for */
mixt_status mixt__auto_precision(const mixt_config *config, const char **precision, char **why);
/** Where the configuration says precision=auto: sets it to what is chosen for the device, or was chosen by the run
 * whose record is replayed, and turns auto.steer on unless it was set. */
mixt_status mixt__auto_precision_take(mixt_run *run);
/** Says what was chosen and why, where something was. */
void mixt__auto_precision_tell(mixt_run *run);
/** Writes it down in the new directory: policy.yaml, with the reason, and the first row of events.jsonl. */
mixt_status mixt__auto_precision_keep(mixt_run *run);

#endif
