/* Profiles inside the library: of batches that lie in the device's memory already. */
#ifndef MIXT_INSPECT_PROFILE_H
#define MIXT_INSPECT_PROFILE_H

#include "api/api.h"
#include "mixt/plan.h"
#include "train/resident.h"

/** mixt_profile_new on the first of these batches. */
mixt_status mixt__profile_run(const mixt__resident *batches, int64_t runs, mixt_profile **profile);

#endif
