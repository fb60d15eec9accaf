/* A run with adapters as a model without: W + scale · B A in the place of each layer's weight. */
#ifndef MIXT_RUN_MERGE_H
#define MIXT_RUN_MERGE_H

#include "mixt/run.h"
#include "run/open/experiment.h"
#include "store/weights.h"

typedef struct mixt__merge {
    const char *folder, *weights; // borrowed
    mixt_run *run;                // with its adapters
    mixt__params *params;         // its own
    float scale;
    mixt__file_tensor *tensors; // (count) what a file of the merged model has
    int64_t count;
    double difference, largest; // of logits with adapters and merged, and of the logits themselves; NAN: not compared
} mixt__merge;

/** Opens a run with its weights. */
mixt_status mixt__merge_open(mixt__merge *m, const char *folder, const char *weights);
/** Merged values of a tensor: mixt__export_values. */
mixt_status mixt__merge_values(void *merge, int64_t index, float *values);
/** Computes logits of the same input with adapters and merged, rounded to a format, both in the run's precision. */
mixt_status mixt__merge_compare(mixt__merge *m, mixt_dtype dtype);
void mixt__merge_close(mixt__merge *m);

#endif
