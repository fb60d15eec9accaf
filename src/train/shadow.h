/* A shadow: a trainer's model compiled under another policy, that computes with the trainer's weights and changes
 * nothing of the trainer.
 *
 * It reads the trainer's FP32 masters where they lie and has working copies, running statistics, gradients and
 * activations of its own. A run makes loss and gradients of one batch; nothing is applied. Two shadows that run on the
 * same batch with the same key differ by their policies alone.
 */
#ifndef MIXT_TRAIN_SHADOW_H
#define MIXT_TRAIN_SHADOW_H

#include "train/trainer.h"

typedef struct mixt__shadow {
    const mixt__trainer *trainer; // borrowed, with its weights; it must not be recompiled while the shadow lives
    mixt__executable *executable;
    mixt__params *params;
    mixt__batch_spec spec; // of the batches that it runs on
    char *batch;           // device memory of one batch; NULL: the host's is read
    void *rounded;         // host memory: inputs in the format that the graph reads; NULL: it is the data's
    uint64_t *key;         // device memory
    float *seed;           // device memory
} mixt__shadow;

typedef struct mixt__shadow_options {
    const mixt__policy *policy;   // borrowed during the call
    int64_t batch;                // samples of a run; 0: as many as a pass of the trainer has
    const mixt__batch_spec *spec; // of a batch, borrowed; NULL: the trainer's longest
    bool no_fusion;               // compile without fusion
    bool like_step; // inputs rounded on the way, and recomputation, as in the trainer's own step: up to fusion the
                    // graph is the same then, value by value
    const mixt__instrument *instrument; // values to look at: see passes/instrument.h; NULL: none
    mixt__twins *twins;                 // of an FP32 policy: see passes/twins.h; NULL: none
    bool keep_logits;                   // so that mixt__shadow_logits can read them; keeps the loss a node of its own
} mixt__shadow_options;

/** Compiles it and takes its memory. The trainer must have its weights already.
 *  @param shadow NULL on failure */
mixt_status mixt__shadow_new(const mixt__trainer *trainer, const mixt__shadow_options *options, mixt__shadow **shadow);
/** The graph that a shadow with these options would have, but for recomputation; takes no memory of the device. */
mixt_status mixt__shadow_graph(const mixt__trainer *trainer, const mixt__shadow_options *options, mixt__graph **graph);
/** NULL is allowed. */
void mixt__shadow_free(mixt__shadow *shadow);
/** After the trainer's weights changed: rounds them into the working copies again. */
mixt_status mixt__shadow_refresh(mixt__shadow *shadow);

/** What it runs on. */
typedef struct mixt__shadow_batch {
    const void *input, *target; // host memory, in the formats of the data
    uint64_t key;               // of the random numbers: equal keys draw equal ones
    float scale;                // of the loss: gradients come out multiplied with it
} mixt__shadow_batch;

/** Forward and backward pass from the trainer's weights and running statistics as they are now.
 *  @param loss the mean over the batch's targets that count, not scaled */
mixt_status mixt__shadow_run(mixt__shadow *shadow, const mixt__shadow_batch *batch, double *loss);

/** What a run begins with, alone: running statistics as the trainer has them, the batch where the device reads it. For
 *  who then runs node by node (mixt__executable_run_node).
 *  @param run valid until the next batch is begun or the shadow freed */
mixt_status mixt__shadow_begin(mixt__shadow *shadow, const mixt__shadow_batch *batch, mixt__run *run);

/** Outputs of the model in one run. */
int64_t mixt__shadow_logit_count(const mixt__shadow *shadow);
/** The outputs of the last run of a shadow that keeps them. @param values room for all of them, in host memory */
mixt_status mixt__shadow_logits(const mixt__shadow *shadow, float *values);
/** The gradients of the last run, scaled as they were made: numbers [first, first + count) of the flat arena, whose
 *  segments are those of params->segments. @param values room for them in host memory */
mixt_status mixt__shadow_gradients(const mixt__shadow *shadow, int64_t first, int64_t count, float *values);

#endif
