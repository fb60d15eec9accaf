/* Profiles inside the library: of batches that lie in the device's memory already. */
#ifndef MIXT_INSPECT_PROFILE_H
#define MIXT_INSPECT_PROFILE_H

#include "api/api.h"
#include "mixt/profile.h"

/** mixt_profile_new on a batch in memory that the trainer's device reads, inputs as they are fed; the trainer's memory
 *  is taken already. */
mixt_status mixt__profile_run(mixt__trainer *trainer, const void *input, const void *target, int64_t runs,
                              mixt_profile **profile);

#endif
