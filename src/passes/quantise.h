/* Which products may be in FP8. The pass itself is in passes.h. */
#ifndef MIXT_PASSES_QUANTISE_H
#define MIXT_PASSES_QUANTISE_H

#include "graph/op.h"

/** Why matrix work of the graph as it was built stays in the carrier of FP8, in words; NULL: it may be in FP8.
 *  @param named a rule of the policy names it */
const char *mixt__quantise_refuses(const mixt__graph *source, const mixt__node *node, bool named);

#endif
