/* Which layers are to blame when a format cannot hold a step: for those who raise them. */
#ifndef MIXT_INSPECT_BLAME_H
#define MIXT_INSPECT_BLAME_H

#include "mixt/debug.h"

typedef struct mixt__blame {
    char layer[128]; // as policies name it
    const char *why; // "overflow", "underflow", "error"
    double score;    // mixt_debug_layer's blame
    bool backward;   // it is the backward pass that loses more
} mixt__blame;

/** Looks at the trainer's next step, which it does not make, and names the layers where that step's trouble with
 * formats begins, the worst first: numbers that are not finite where FP32's are, large shares that became 0, errors
 * that jump. Nothing of the trainer or the data changes. To look at an earlier step, restore its state first.
 *  @param list room for `capacity` layers
 *  @param count how many were found: 0 when FP32 would do no better */
mixt_status mixt__debug_blame(mixt_trainer *trainer, mixt_data *data, mixt__blame *list, int capacity, int *count);

#endif
