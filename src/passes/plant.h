/* Faults planted in a graph, for tests: a layer whose product a low format cannot hold, or that is dead.
 *
 * A value is multiplied with a power of two, rounded to the format that its layer computes in, and divided by it again:
 * FP32 gives the same bits as without, FP16 an overflow or zeros. Nothing is planted unless somebody asks.
 */
#ifndef MIXT_PASSES_PLANT_H
#define MIXT_PASSES_PLANT_H

#include "graph/graph.h"

typedef enum mixt__plant_kind {
    MIXT_PLANT_DEAD,      // the layer's product is 0 in every format, and so are its gradients
    MIXT_PLANT_OVERFLOW,  // its product is too large for FP16
    MIXT_PLANT_UNDERFLOW, // its product is too small for FP16
    MIXT_PLANT_GRADIENT,  // the gradient that reaches it is too large for FP16 at any loss scale
} mixt__plant_kind;

typedef struct mixt__plant {
    mixt__plant_kind kind;
    const char *layer; // borrowed; of several products below that name the last one is meant
} mixt__plant;

enum { MIXT_PLANTS_MAX = 16 };
typedef struct mixt__plants {
    mixt__plant items[MIXT_PLANTS_MAX];
    int count;
} mixt__plants;

/** Whether a dotted layer path is `layer` or below it. */
bool mixt__plant_covers(const char *layer, const char *path);
/** Plants what concerns this stage of the graph.
 *  @param differentiated after autodiff; before it only dead layers are made */
mixt_status mixt__pass_plant(mixt__graph *graph, const mixt__plants *plants, bool differentiated);

#endif
