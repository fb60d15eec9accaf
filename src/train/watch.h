/* A step that is watched: the training step compiled once more with statistics behind its values (passes/watch.h).
 *
 * It runs in place of the plain one when asked for, over the same parameters and in the same memory, with the same
 * kernels: the training has the same bits with and without. Its statistics stay until the next step runs.
 */
#ifndef MIXT_TRAIN_WATCH_H
#define MIXT_TRAIN_WATCH_H

#include "passes/watch.h"
#include "train/trainer.h"

/** Compiles the watched step beside the plain one, in place of one that was there. The trainer must be compiled; its
 *  memory grows by what the statistics take. A change of policy drops it. */
mixt_status mixt__trainer_watch(mixt__trainer *trainer, const mixt__watch *watch);
/** Drops the watched step. */
void mixt__trainer_unwatch(mixt__trainer *trainer);
/** The next step is a watched one; fails where there is none. */
mixt_status mixt__trainer_watch_next(mixt__trainer *trainer);

/** Statistics of one value. Texts belong to the graph. */
typedef struct mixt__watched_value {
    const char *layer, *op, *name; // op: that made it
    bool backward;                 // made in the backward pass
    bool gradient;                 // a parameter's gradient, whose name `name` is
    int32_t value;                 // its number in the watched graph
    const mixt__node *maker;       // of that graph
    mixt_dtype dtype;
    double numbers[MIXT_STATS_NUMBERS];
    int64_t counts[MIXT_STATS_COUNTS];
} mixt__watched_value;

/** Values that the watched step looks at. */
int64_t mixt__trainer_watched_count(const mixt__trainer *trainer);
/** Those of the last step, which must have been a watched one, in the order in which they are made; waits for it. With
 *  several passes an update, those of the last pass. */
mixt_status mixt__trainer_watched_read(const mixt__trainer *trainer, int64_t index, mixt__watched_value *value);

/** After the plain step was given its memory: the watched one runs in it too. For the trainer itself. */
void mixt__trainer_attach_watched(mixt__trainer *trainer);

#endif
