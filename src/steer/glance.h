/* A glance at one batch: how much of the gradient that FP32 has is left in the formats that train, layer by layer.
 *
 * Two shadows (train/shadow.h) run on a part of the coming batch, from the trainer's weights, with the same random
 * numbers: one in FP32, one as the trainer computes. Nothing of the trainer changes. Rounding alone makes the gradient
 * longer and shorter by chance, so what is left of it along FP32's own is 1 on average, however noisy it is; 0 where it
 * is flushed, or where what the layer reads or makes has lost what mattered.
 */
#ifndef MIXT_STEER_GLANCE_H
#define MIXT_STEER_GLANCE_H

#include "train/trainer.h"

enum { MIXT_GLANCE_LAYER = 128 };

/** What a layer's parameters have left. */
typedef struct mixt__glance_layer {
    char name[MIXT_GLANCE_LAYER];
    double kept; // of FP32's gradient, along it: by squares or by magnitudes, whichever is less; NaN: not finite
    bool counts; // to first order its updates can change the loss
} mixt__glance_layer;

typedef struct mixt__glance {
    const mixt__trainer *trainer; // borrowed
    int64_t samples;              // of the batch that are looked at
    void *input, *target;
    uint64_t key;
    float *gradients;  // of FP32
    double loss;       // of FP32
    bool broken;       // that of the newest policy is not finite, and this one is
    int64_t count;     // layers with parameters that are trained
    int32_t *layer_of; // by segment
    mixt__glance_layer *layers;
} mixt__glance;

/** Reads the batch and runs FP32 on it. @param offset from the coming pass: which batch */
mixt_status mixt__glance_open(mixt__glance *glance, const mixt__trainer *trainer, const mixt_data *data,
                              int64_t offset);
/** The same of the samples with the largest inputs among the first ones of the data: at most 16 million numbers are
 *  read. @param found false: inputs are not single numbers in FP32, so that none is larger than another */
mixt_status mixt__glance_open_extreme(mixt__glance *glance, const mixt__trainer *trainer, const mixt_data *data,
                                      bool *found);
/** Reads the first `samples` samples of a pass into `input` and `target`, which have room for them. */
mixt_status mixt__glance_read(const mixt__glance *glance, const mixt_data *data, int64_t pass);
void mixt__glance_close(mixt__glance *glance);
/** Runs a policy on it; what is left stands in `layers`. @param loss of it */
mixt_status mixt__glance_at(mixt__glance *glance, const mixt__policy *policy, float scale, double *loss);
/** The scale of the loss that the trainer's next update has; 1: it is not scaled. */
float mixt__glance_scale(const mixt__trainer *trainer);
/** Whether what a layer has left is so little that it counts as lost. */
bool mixt__glance_lost(const mixt__glance_layer *layer);
/** Whether that is so of any layer, or the loss is broken. */
bool mixt__glance_loses(const mixt__glance *glance);

#endif
