/* A model function made into a graph: input, the model's layers, the loss. */
#ifndef MIXT_TRAIN_MODEL_H
#define MIXT_TRAIN_MODEL_H

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
/** The same in evaluation mode without target and loss; graph->logits is kept, in FP32. */
mixt_status mixt__model_build_outputs(const mixt__model *model, const mixt__batch_spec *spec, mixt__graph **graph);

#endif
