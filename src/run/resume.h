/* Going on with a run: the newest checkpoint that is whole, the configuration it was made with and what may change in
 * it, the directory and its metrics brought back to that update.
 */
#ifndef MIXT_RUN_RESUME_H
#define MIXT_RUN_RESUME_H

#include "run/run.h"

/** Finds the checkpoint (damaged ones are named in notes) and makes run->config: the run's, with the caller's settings.
 * What may not change is refused with old and new values. To be called before the experiment is opened. */
mixt_status mixt__resume_open(mixt_run *run, const char *folder, const mixt_run_options *options);
/** Finds the checkpoint alone: the newest that is whole. Of several ranks to be, each looks at its share of the bytes.
 */
mixt_status mixt__resume_find(mixt_run *run, const mixt_run_options *options);
/** Once ranks have met: the newest checkpoint that all found whole is everyone's. Where another rank has found damage,
 *  opens the run again from there. */
mixt_status mixt__resume_agree(mixt_run *run, const mixt_run_options *options);
/** Puts the trainer into the checkpoint's state. */
mixt_status mixt__resume_restore(mixt_run *run);
/** The same from another checkpoint of the run, but for the order of samples. */
mixt_status mixt__resume_restore_from(mixt_run *run, const mixt__checkpoint *checkpoint);
/** Opens the directory to go on in, which is the first change on disk. */
mixt_status mixt__resume_directory(mixt_run *run);

// resume_data.c

/** Where other data is allowed, lets it be made like the run's own. To be called before the experiment is opened. */
mixt_status mixt__resume_data_allow(mixt_run *run);
/** Refuses other data, or tells of it: `before` and `now` say how many samples there are, and their checksum. */
mixt_status mixt__resume_data_check(mixt_run *run, const char *before, const char *now);
/** The same of a run that has no checkpoint yet and begins anew. */
mixt_status mixt__resume_data_begun(mixt_run *run);

void mixt__resume_close(mixt__resume *resume);

#endif
