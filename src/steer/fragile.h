/* Which layers lose it? Each lowered alone, everything else in FP32, on one batch. */
#ifndef MIXT_STEER_FRAGILE_H
#define MIXT_STEER_FRAGILE_H

#include "steer/glance.h"

enum { MIXT_FRAGILE_LAYERS = 8 };

typedef struct mixt__fragile {
    char layers[MIXT_FRAGILE_LAYERS][MIXT_GLANCE_LAYER]; // in the order of the model
    int count;                                           // 0: no few of them explain it
} mixt__fragile;

/** Layers of the trainer's policy that lose gradients where they alone are lowered, and without which nothing is lost.
 *  @param glance open; what its layers have left is overwritten */
mixt_status mixt__fragile_find(mixt__glance *glance, mixt__fragile *fragile);

#endif
