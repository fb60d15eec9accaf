/* A model: a function that builds layers, the loss on top of them, and both made into a graph.
 *
 * Below those who train and those who only run it forward; knows nothing of devices and formats.
 */
#ifndef MIXT_MODEL_MODEL_H
#define MIXT_MODEL_MODEL_H

#include "graph/graph.h"

typedef struct mixt__model {
    mixt_model_fn fn;
    void *user;
    mixt_loss loss;
    float label_smoothing;
    int64_t classes; // cross-entropy: outputs that count, the rest is padding; 0: all
} mixt__model;

/** What a batch looks like: shapes with the batch dimension in front. */
typedef struct mixt__batch_spec {
    mixt_dtype input_dtype, target_dtype;
    mixt__shape input, target;
} mixt__batch_spec;

/** Builds the FP32 graph; `training` decides dropout and batch statistics. */
mixt_status mixt__model_build(const mixt__model *model, const mixt__batch_spec *spec, bool training,
                              mixt__graph **graph);
/** The same in evaluation mode without target and loss; graph->logits is kept, in FP32.
 *  @param cache_rows keys and values of so many tokens are kept from run to run, and graph->positions says where the
 *  input's tokens stand; 0: each run is for itself */
mixt_status mixt__model_build_outputs(const mixt__model *model, mixt_dtype dtype, const mixt__shape *input,
                                      int64_t cache_rows, mixt__graph **graph);

#endif
