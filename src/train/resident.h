/* Batches that lie ready in the device's memory, as the step reads them: for who times steps alone.
 */
#ifndef MIXT_TRAIN_RESIDENT_H
#define MIXT_TRAIN_RESIDENT_H

#include "train/trainer.h"

/** Those of some updates, in the order of the data. All zero: none. */
typedef struct mixt__resident {
    mixt__trainer *trainer;
    int64_t count, passes; // updates; passes of each
    void *(*at)[2];        // (count) inputs and targets of an update
} mixt__resident;

/** Takes the memory of the step, then that of `updates` updates' batches, and fills it; of buckets the longest. The
 *  trainer must be compiled. Nothing is left behind on failure. */
mixt_status mixt__resident_open(mixt__resident *r, mixt__trainer *trainer, const mixt_data *data, int64_t updates);
/** The same with the first pass of an update alone: for who runs passes, not updates. */
mixt_status mixt__resident_open_pass(mixt__resident *r, mixt__trainer *trainer, const mixt_data *data);
void mixt__resident_close(mixt__resident *r);

/** An update on the batches in turn: `index` may go past their count. @param result NULL: nobody waits for it */
mixt_status mixt__resident_step(const mixt__resident *r, int64_t index, mixt_step *result);

#endif
