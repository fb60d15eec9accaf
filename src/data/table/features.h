/* What is known of users, or of items, beside their ratings: a row of numbers each.
 *
 * Rows come from a file (features_read.c). Behind that may stand what somebody is called, where that is a number, how
 * often he comes up in the training part, and the time of the rating. A rating that is trained on does not count itself
 * there: the count would tell that it exists, which it does not of a rating that is to be predicted.
 */
#ifndef MIXT_DATA_FEATURES_H
#define MIXT_DATA_FEATURES_H

#include "data/names.h"

#include "data/data.h"

/** Of one side. Begins as zeros; its memory is the data set's. */
typedef struct mixt__features {
    const char *side;   // "user", "item"
    float *values;      // (ids, width) of the file; NULL: there is none
    float *number;      // (ids) of names, the next feature; NULL: names say nothing
    int32_t *count;     // (ids) ratings in the training part
    int64_t ids, width; // of the file
    bool counted;       // the count is a feature
    double mean, scale; // of its logarithm
    bool timed;         // the time of a rating is a feature, the last
} mixt__features;

/** Fills f->values from a file: a line for each id, what it is called first, then numbers, categories separated by |,
 * or a title with the year at its end. Ids that the file does not name have zeros; others that it names are passed
 * over.
 *  @param f `side`, `ids` and `count` are there: numbers get mean 0 and deviation 1 over the training part's ratings */
mixt_status mixt__features_read(mixt_data *data, const char *path, const mixt__names *names, mixt__features *f);
/** Makes what ids are called a feature: the logarithm of the number, with mean 0 and deviation 1 over the training
 *  part's ratings. Names that are no number from 0 on have 0, which is a warning; that none is one is an error. */
mixt_status mixt__features_use_names(mixt_data *data, const char *const *names, mixt__features *f);
/** Makes f->count a feature: its logarithm, with mean 0 and deviation 1 over the training part's ratings. */
void mixt__features_use_count(mixt__features *f);

/** Numbers of an id; 0: nothing is known of this side. */
int64_t mixt__features_width(const mixt__features *f);
/** Writes them. @param own they go with a rating that is trained on @param when the time, as it is to be written */
void mixt__features_write(const mixt__features *f, int64_t id, bool own, float when, float *to);

/** What makes numbers comparable: (x - mean) × scale, no further than 3 from 0. */
double mixt__features_scaled(double x, double mean, double scale);
/** The factor that brings a variance to 1; 0: there is none. */
double mixt__features_scale(double variance);

#endif
