/* What holds a step back, from the time of each of its ops: measured, or modelled for a machine that is not here. */
#ifndef MIXT_CHOOSE_REMEDIES_H
#define MIXT_CHOOSE_REMEDIES_H

#include "choose/advice.h"

/** What is known about a step. */
typedef struct mixt__step_facts {
    const mixt__trainer *trainer; // compiled
    const double *node_seconds;   // of one pass, by node
    double update_seconds;        // of the passes that end the step
    double wait;                  // share of an update's time in which it waits for batches; 0: none, or not known
    double larger_batch;          // share of a sample's time that twice the batch would save; 0: none, or not known
    bool measured;
} mixt__step_facts;

/** Adds remedies to the advice, largest expected gain first; what takes less than a fiftieth of the step is left out.
 */
void mixt__remedies(mixt_advice *advice, const mixt__step_facts *facts);

#endif
