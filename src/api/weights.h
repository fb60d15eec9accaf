/* Beginning with weights of another run or program. */
#ifndef MIXT_API_WEIGHTS_H
#define MIXT_API_WEIGHTS_H

#include "api/api.h"
#include "store/weights.h"

/** Called when a file has been found to fit, before the first parameter changes. */
typedef mixt_status mixt__before_load(void *user);
/** Loads parameters from a file of mixt or of another program.
 *  @param before NULL: the file is only held against them
 *  @param weights what was taken and what was not; the caller closes it */
mixt_status mixt__params_init(mixt__params *params, const mixt__weights_request *request, mixt__before_load *before,
                              void *user, mixt__weights **weights);

/** The generator behind a handle, owned by the context.
 *  @param request how the weights are read where another program may have written them; NULL: options->weights is a
 *    file of mixt */
mixt_status mixt__generator_make(mixt_context *context, const mixt__model *model, const mixt_generator_options *options,
                                 const mixt__weights_request *request, mixt_generator **generator);

/** Loads the weights of a compiled trainer that has made no step; what the file leaves out is drawn. Everything is
 *  checked before the first weight changes.
 *  @param request wanted and count are filled in here; facts, if any, too, but for heads and architecture
 *  @param load false: the file is only held against the model; no memory is taken, no weight changes
 *  @param weights what was taken and what was not; the caller closes it */
mixt_status mixt__trainer_init(mixt_trainer *trainer, const mixt__weights_request *request, bool load,
                               mixt__weights **weights);

#endif
