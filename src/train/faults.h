/* Faults that tests let happen to a trainer: where, when and how the real thing would.
 *
 * A list "kind@step:layer, …". Three kinds of time:
 *   what belongs to the data (nan_data, label) lies in the batch and comes again whenever that batch is read;
 *   what belongs to the computation (lr, dead_layer, overflow, underflow, scale_collapse) is there from its update on,
 *   in a replay too, for it is a function of the update's number;
 *   what happens to the machine (flip_weight, flip_memory, flip_activation, memory) happens once, whatever is restored
 * later; with
 *   ":always" a flip comes again each time, in another place, as of a machine that is broken.
 *
 * A trainer is asked to go wrong at one place, train/step.c: before an update, when it begins, and in its passes. What
 * is injected in the graph reaches the compiler with its other options (train/trainer.c), and a checkpoint keeps what
 * has happened. A trainer without faults has none of this: one pointer that is NULL, which all functions here look at.
 */
#ifndef MIXT_TRAIN_FAULTS_H
#define MIXT_TRAIN_FAULTS_H

#include "passes/inject.h"
#include "train/trainer.h"

#include <jansson.h>

#define MIXT_FAULT_LIST(X)                                                                                             \
    X(NAN_DATA, "nan_data", NEVER)              /* a sample with NaN in its inputs */                                  \
    X(LABEL, "label", NEVER)                    /* labels of a batch that belong to other classes */                   \
    X(LR, "lr", NEVER)                          /* a learning rate that explodes */                                    \
    X(DEAD_LAYER, "dead_layer", MUST)           /* a layer that gives nothing but 0 */                                 \
    X(OVERFLOW, "overflow", MUST)               /* a layer whose outputs FP16 cannot hold */                           \
    X(UNDERFLOW, "underflow", MUST)             /* a layer whose outputs become 0 in FP16 */                           \
    X(SCALE_COLLAPSE, "scale_collapse", MAY)    /* gradients that overflow at any loss scale */                        \
    X(MEMORY, "memory", NEVER)                  /* somebody else takes the memory */                                   \
    X(FLIP_WEIGHT, "flip_weight", MUST)         /* a bit of a weight that is written wrong */                          \
    X(FLIP_MEMORY, "flip_memory", MUST)         /* the same bit, that flips where it lies */                           \
    X(FLIP_ACTIVATION, "flip_activation", MUST) /* a bit of an activation that flips */

typedef enum mixt__fault_kind {
#define MIXT_FAULT_ENUM(name, text, layer) MIXT_FAULT_##name,
    MIXT_FAULT_LIST(MIXT_FAULT_ENUM)
#undef MIXT_FAULT_ENUM
        MIXT_FAULT_COUNT
} mixt__fault_kind;

enum { MIXT_FAULTS_MAX = 16, MIXT_FAULT_LAYER = 96 };

typedef struct mixt__fault {
    mixt__fault_kind kind;
    int64_t step; // the update, from 1
    char layer[MIXT_FAULT_LAYER];
    bool always;   // a flip that comes again
    bool same;     // of a weight: the same one whenever it is asked for
    bool stuck;    // of a weight: the bit is set from then on, in whatever update
    int64_t times; // it has happened
} mixt__fault;

typedef struct mixt__faults {
    mixt__fault items[MIXT_FAULTS_MAX];
    int count;
    mixt__injections injections; // that the step is compiled with
    const mixt_data *spoilt;     // the set that has the data's faults
} mixt__faults;

/** "nan_data", …; NULL past the last one. */
const char *mixt__fault_name(mixt__fault_kind kind);
/** Reads a list; failures name the word that is wrong. @param text NULL or "": none */
mixt_status mixt__faults_parse(const char *text, mixt__faults *faults);
/** The last update that a fault of a list is meant for; 0: none. */
int64_t mixt__faults_last(const char *text);

/** Gives a compiled trainer the faults of its settings, once; checks their layers. */
mixt_status mixt__faults_open(mixt__trainer *trainer);
void mixt__faults_close(mixt__trainer *trainer);

/** What is injected in the graph of the coming update; NULL: nothing. */
const mixt__injections *mixt__faults_injections(const mixt__trainer *trainer);

/** Before update attempts + 1: recompiles where what is injected changes. @param data NULL: the caller brings batches
 */
mixt_status mixt__faults_prepare(mixt__trainer *trainer, const mixt_data *data);
/** When update `attempts` begins: flips bits of weights, takes memory away, lets the learning rate explode, and the
 *  loss scale of the update that inject_overflow names. */
mixt_status mixt__faults_begin(mixt__trainer *trainer);
/** mixt__executable_run, but for a bit of an activation that flips on the way. */
mixt_status mixt__faults_run(mixt__trainer *trainer, mixt__executable *step, const mixt__run *run);

/** What a checkpoint keeps, in its figures of the trainer: how often each has happened. */
void mixt__faults_pack(const mixt__trainer *trainer, json_t *figures);
void mixt__faults_unpack(mixt__trainer *trainer, const json_t *figures);

#endif
