/* How long an op should take on a device, from what it computes and moves: a prediction to compare plans by, made
 * without running anything. */
#ifndef MIXT_RUNTIME_ROOFLINE_H
#define MIXT_RUNTIME_ROOFLINE_H

#include "backend/backend.h"

/** What a device does in a second. */
typedef struct mixt__roofline {
    double flops[MIXT_DTYPE_COUNT]; // products of operands of this format
    double plain;                   // anything else
    double bytes;
    double begin; // seconds until an op has begun
    double units; // that share a product's tiles; 0: tiles of any size
} mixt__roofline;

mixt__roofline mixt__roofline_of(mixt__device *device);
/** Of one run of a node; 0 for a view. */
double mixt__roofline_seconds(const mixt__roofline *roofline, const mixt__graph *graph, const mixt__node *node);

#endif
