/* Samples of a user's own, without labels: pictures and arrays, in the shape and the units that a set was read in. */
#ifndef MIXT_DATA_INPUTS_H
#define MIXT_DATA_INPUTS_H

#include "data/augment.h"
#include "data/data.h"
#include "data/picture.h"

typedef struct mixt__inputs {
    const mixt_data *like;
    mixt__table table; // of one row for a picture; `path` is borrowed
    mixt__augment augment;
    bool crops; // rows are images of another size than samples
    float *scale, *shift;
} mixt__inputs;

/** Opens a picture (PPM, PGM, JPEG), an array (.npy: one sample or several) or IDX images. They are cropped, resized
 *  and normalised as evaluation does with `like`, which must stay open; a picture of a set that never resizes has its
 *  largest middle part resized. FP32 arrays count as scaled to [0, 1] already, bytes are scaled. */
mixt_status mixt__inputs_open(const char *path, const mixt_data *like, mixt__inputs *inputs);
/** Samples there are. */
int64_t mixt__inputs_count(const mixt__inputs *inputs);
/** Writes sample `index`, in range. */
mixt_status mixt__inputs_get(const mixt__inputs *inputs, int64_t index, float *sample);
void mixt__inputs_close(mixt__inputs *inputs);

#endif
