/* A model: a function that builds layers, the loss on top of them, and both made into a graph.
 *
 * Below those who train and those who only run it forward; knows nothing of devices and formats.
 */
#ifndef MIXT_MODEL_MODEL_H
#define MIXT_MODEL_MODEL_H

#include "graph/graph.h"
#include "model/lora.h"

/** A model that another one learns from, as a part of that one's training step: see model/teacher.c. */
typedef struct mixt__teacher {
    mixt_model_fn fn;
    void *user;
    int64_t classes; // outputs that count; 0: all
    float weight;    // the teacher's share of the loss
    float temperature;
} mixt__teacher;

/** The values that a parameter begins with, where a file has them. @param given false: it is drawn */
typedef mixt_status mixt__begin(const void *user, const mixt__param *param, float *values, bool *given);

typedef struct mixt__model {
    mixt_model_fn fn;
    void *user;
    mixt_loss loss;
    float label_smoothing;
    int64_t classes;                 // cross-entropy: outputs that count, the rest is padding; 0: all
    float target_mean, target_scale; // mean squared error: what is learned is (target - mean) / scale, and outputs are
                                     // brought back; scale 0: targets as they are
    bool compares;                   // the loss holds samples of a pass against each other
    const mixt__teacher *teacher;    // of a classifier; borrowed; NULL: none
    mixt__lora lora;                 // adapters; its texts are borrowed
    mixt__begin *begin;              // the values that parameters begin with; NULL: all are drawn
    const void *begin_user;
} mixt__model;

/** What a batch looks like: shapes with the batch dimension in front. Its inputs lie in one block, its targets in
 *  another (base/block.h), in the order in which they are named here. */
typedef struct mixt__batch_spec {
    mixt_dtype input_dtype, target_dtype; // of the first input and the first target, as are the shapes
    mixt__shape input, target;
    char input_name[MIXT_ARRAY_NAME], target_name[MIXT_ARRAY_NAME]; // "": "input" and "target"
    mixt__array more[MIXT_ARRAYS_MAX - 2];                          // further ones; their values are not used
    int more_count;
} mixt__batch_spec;

/** Array `index` of a batch, inputs first; false past the last. */
bool mixt__spec_array(const mixt__batch_spec *spec, int index, mixt__array *array);
/** Bytes of the block of inputs or of targets. */
size_t mixt__spec_input_bytes(const mixt__batch_spec *spec);
size_t mixt__spec_target_bytes(const mixt__batch_spec *spec);
/** The same arrays for another number of samples. */
void mixt__spec_resize(mixt__batch_spec *spec, int64_t batch);
bool mixt__spec_equal(const mixt__batch_spec *a, const mixt__batch_spec *b);
/** The same batch with its inputs in the formats in which a compiled graph reads them. */
mixt__batch_spec mixt__spec_fed(const mixt__batch_spec *spec, const mixt__graph *graph);
/** Whether inputs must be rounded on the way from one to the other. */
bool mixt__spec_rounds(const mixt__batch_spec *given, const mixt__batch_spec *fed);
/** Rounds a block of inputs: `to` has room for those of `fed`. */
void mixt__spec_round(const mixt__batch_spec *given, const mixt__batch_spec *fed, const void *from, void *to);

/** What stands before the names of a teacher's layers and parameters. */
#define MIXT_TEACHER_SCOPE "teacher"

/** Puts a model's teacher into a graph that has the model's own layers, before them, and the loss with both on top.
 *  @param logits what the model returned */
mixt_status mixt__teacher_build(struct mixt_builder *b, const mixt__model *model, mixt_value logits);

/** Builds the FP32 graph; `training` decides dropout and batch statistics, and whether a teacher is in it. */
mixt_status mixt__model_build(const mixt__model *model, const mixt__batch_spec *spec, bool training,
                              mixt__graph **graph);
/** The same in evaluation mode without a loss; graph->logits is kept, in FP32. The spec needs no target.
 *  @param cache_rows keys and values of so many tokens are kept from run to run, and graph->positions says where the
 *  input's tokens stand; 0: each run is for itself */
mixt_status mixt__model_build_outputs(const mixt__model *model, const mixt__batch_spec *spec, int64_t cache_rows,
                                      mixt__graph **graph);

#endif
