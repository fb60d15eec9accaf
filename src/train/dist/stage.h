/* Where gradients are made that do not stay: each group of parameters (train/dist/owners.h) has memory from the first
 * node of the backward pass that writes one of its gradients until they are summed; then others have it.
 *
 * The plan is made before anything runs. A group's memory counts as taken until the group that is summed after it is
 * complete, so that its sum has that long to go on beside the pass; who takes it then waits for the sum.
 */
#ifndef MIXT_TRAIN_STAGE_H
#define MIXT_TRAIN_STAGE_H

#include "train/dist/owners.h"

typedef struct mixt__stage {
    const mixt__graph *graph; // that `first` and `ready` are of
    int64_t *first, *ready;   // by group: the first node that writes it, the last that writes or reads it; -1: none
    int64_t *at;              // by group, in elements
    int64_t *needs;           // by group: how many of `order` must be summed before it is written
    int64_t *order, *takes;   // groups as they are complete, and as they are begun
    int64_t count;            // of those
    bool *written;            // by segment: it has a gradient
    int64_t total;            // elements
} mixt__stage;

mixt_status mixt__stage_make(mixt__stage *window, const mixt__graph *graph, const mixt__params *params,
                             const mixt__owners *owners);
/** Finds `first` and `ready` in another graph of the same step. */
void mixt__stage_mark(mixt__stage *window, const mixt__graph *graph, const mixt__params *params,
                      const mixt__owners *owners);
void mixt__stage_free(mixt__stage *window);

#endif
