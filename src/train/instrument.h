/* A step that is instrumented: the training step compiled once more with statistics behind its values
 * (passes/instrument.h).
 *
 * It runs in place of the plain one when asked for, over the same parameters and in the same memory, with the same
 * kernels: the training has the same bits with and without. Its statistics stay until the next step runs.
 */
#ifndef MIXT_TRAIN_WATCH_H
#define MIXT_TRAIN_WATCH_H

#include "passes/instrument.h"
#include "train/trainer.h"

/** Compiles the instrumented step beside the plain one, in place of one that was there. The trainer must be compiled;
 * its memory grows by what the statistics take. A change of policy drops it. */
mixt_status mixt__trainer_instrument(mixt__trainer *trainer, const mixt__instrument *instrument);
/** Drops the instrumented step. Memory that was taken with it stays until the step's own is given back. */
void mixt__trainer_drop_instrumented(mixt__trainer *trainer);
/** The next step is an instrumented one; fails where there is none. */
mixt_status mixt__trainer_instrument_next(mixt__trainer *trainer);

/** The graph of the instrumented step; NULL: there is none. */
const mixt__graph *mixt__trainer_instrumented_graph(const mixt__trainer *trainer);

/** Statistics of one value. Texts belong to the graph. */
typedef struct mixt__instrumented_value {
    const char *layer, *op, *name; // op: that made it
    bool backward;                 // made in the backward pass
    bool gradient;                 // a parameter's gradient, whose name `name` is
    int32_t value;                 // its number in the instrumented graph
    const mixt__node *maker;       // of that graph
    mixt_dtype dtype;
    double numbers[MIXT_STATS_NUMBERS];
    int64_t counts[MIXT_STATS_COUNTS];
} mixt__instrumented_value;

/** Values that the instrumented step looks at. */
int64_t mixt__trainer_instrumented_count(const mixt__trainer *trainer);
/** Those of the last step, which must have been an instrumented one, in the order in which they are made; waits for it.
 * With several passes an update, those of the last pass; who is set with mixt__trainer_set_passed can read those of
 * each.
 */
mixt_status mixt__trainer_instrumented_read(const mixt__trainer *trainer, int64_t index,
                                            mixt__instrumented_value *value);

/** All but the statistics of a value. @param node set to the one that makes those */
mixt_status mixt__trainer_instrumented_describe(const mixt__trainer *trainer, int64_t index, const mixt__node **node,
                                                mixt__instrumented_value *value);

/* Layers: an instrumented step of the values that stand for them (mixt__instrument.layers). Its memory is planned with
 * the plain step's, before it is compiled: statistics lie beside the arena, in which all else lies as it does without.
 * They come to the host by themselves, with the step's result and as late: nobody waits for them. */

/** Whether steps will be instrumented so. Before the trainer is compiled, or before it is again. */
void mixt__trainer_want_layers(mixt__trainer *trainer, bool wanted);
bool mixt__trainer_layers_wanted(const mixt__trainer *trainer);
/** Values that stand for them; 0: none are planned for. */
int64_t mixt__trainer_layers_count(const mixt__trainer *trainer);
/** Whether the instrumented step is such a one. */
bool mixt__trainer_layers_ready(const mixt__trainer *trainer);
/** Bytes of host memory where the statistics wait. */
size_t mixt__trainer_layer_slots_bytes(const mixt__trainer *trainer);
/** Whether the step, the newest or the one before, was instrumented so. */
bool mixt__trainer_was_instrumented(const mixt__trainer *trainer, int64_t step);
/** Value number `index` of such a step, whose result must have been taken in.
 *  @param counts set to where its counts lie until the slot's next instrumented step */
mixt_status mixt__trainer_instrumented_result(const mixt__trainer *trainer, int64_t step, int64_t index,
                                              mixt__instrumented_value *value, const int64_t **counts);
/** Puts the statistics of such a step of all ranks together, those of each rank's last pass, on every rank; each of
 * them calls it after the step's result was taken in. @param instrumented whether the step was instrumented on all of
 * them */
mixt_status mixt__trainer_join_instrumented(mixt__trainer *trainer, int64_t step, bool *instrumented);
/** The statistics of its parameters' gradients, by segment, before they were unscaled. NULL: it was not instrumented.
 */
const mixt__segment_stats *mixt__trainer_instrumented_gradients(const mixt__trainer *trainer, int64_t step);

/* For the trainer itself. */

/** After the plain step was compiled: counts what an instrumented one will look at, and makes room in the workspace. */
mixt_status mixt__trainer_plan_layers(mixt__trainer *trainer);
/** Bytes of the device's memory for statistics. */
size_t mixt__trainer_layer_bytes(const mixt__trainer *trainer);
/** Takes them, and gives them back. */
mixt_status mixt__trainer_take_layers(mixt__trainer *trainer);
void mixt__trainer_release_layers(mixt__trainer *trainer);
/** The same with those of the host. */
mixt_status mixt__trainer_take_layer_slots(mixt__trainer *trainer);
void mixt__trainer_release_layer_slots(mixt__trainer *trainer);
/** After the plain step was given its memory: the instrumented one runs in it too. */
void mixt__trainer_attach_instrumented(mixt__trainer *trainer);
/** Before a step: whose statistics its slot will hold. */
void mixt__trainer_mark_instrumented(mixt__trainer *trainer);
/** After the passes of a part have run, of a process that makes several: what as many ranks put together. */
mixt_status mixt__trainer_add_instrumented(mixt__trainer *trainer, int64_t part);
/** At the end of an instrumented step, in order with its kernels: brings its statistics to the host. */
mixt_status mixt__trainer_keep_instrumented(mixt__trainer *trainer);

#endif
