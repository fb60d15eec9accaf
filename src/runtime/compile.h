/* From a graph as it was built to a plan that can run: the one way there. */
#ifndef MIXT_RUNTIME_COMPILE_H
#define MIXT_RUNTIME_COMPILE_H

#include "passes/passes.h"
#include "runtime/executable.h"

/** Runs all passes, chooses kernels and plans memory, taking none.
 *  @param source taken over and freed, also on failure
 *  @param executable NULL on failure */
mixt_status mixt__compile_take(mixt__graph *source, const mixt__compile_options *options, mixt__device *device,
                               mixt__executable **executable);

#endif
