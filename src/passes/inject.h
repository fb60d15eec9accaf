/* Faults injected in a graph, for tests: a layer whose product a low format cannot hold, or that is dead.
 *
 * A value is multiplied with a power of two, rounded to the format that its layer computes in, and divided by it again:
 * FP32 gives the same bits as without, FP16 an overflow or zeros. Nothing is injected unless somebody asks.
 */
#ifndef MIXT_PASSES_INJECT_H
#define MIXT_PASSES_INJECT_H

#include "graph/graph.h"

typedef enum mixt__injection_kind {
    MIXT_INJECT_DEAD,      // the layer's product is 0 in every format, and so are its gradients
    MIXT_INJECT_OVERFLOW,  // its product is too large for FP16
    MIXT_INJECT_UNDERFLOW, // its product is too small for FP16
    MIXT_INJECT_GRADIENT,  // the gradient that reaches it is too large for FP16 at any loss scale
} mixt__injection_kind;

typedef struct mixt__injection {
    mixt__injection_kind kind;
    const char *layer; // borrowed; of several products below that name the last one is meant
} mixt__injection;

enum { MIXT_INJECTIONS_MAX = 16 };
typedef struct mixt__injections {
    mixt__injection items[MIXT_INJECTIONS_MAX];
    int count;
} mixt__injections;

/** Whether a dotted layer path is `layer` or below it. */
bool mixt__injection_covers(const char *layer, const char *path);
/** Injects what concerns this stage of the graph.
 *  @param differentiated after autodiff; before it only dead layers are made */
mixt_status mixt__pass_inject(mixt__graph *graph, const mixt__injections *injections, bool differentiated);

#endif
