/* Beginning with weights of another run or program. */
#ifndef MIXT_API_WEIGHTS_H
#define MIXT_API_WEIGHTS_H

#include "api/api.h"
#include "store/weights.h"

/** Loads the weights of a compiled trainer that has made no step; what the file leaves out is drawn. Everything is
 *  checked before the first weight changes.
 *  @param request wanted and count are filled in here; facts, if any, too, but for heads and architecture
 *  @param load false: the file is only held against the model; no memory is taken, no weight changes
 *  @param weights what was taken and what was not; the caller closes it */
mixt_status mixt__trainer_init(mixt_trainer *trainer, const mixt__weights_request *request, bool load,
                               mixt__weights **weights);

#endif
