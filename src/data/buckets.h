/* Lengths in buckets: batches of samples that are about as long as each other, padded to few lengths.
 *
 * A set whose samples have lengths is cut into buckets when it is opened: the last one is as long as the set says, each
 * of the others shorter in every length than the next. A sample belongs to the first that it fits into. An update's
 * samples are of one bucket. What does not fill an update moves up into the next bucket, so that all samples are seen
 * in every epoch but for those that would not fill an update without buckets either.
 *
 * Which samples stand in which update is a function of (set, samples of an update, epoch), as without buckets; it is
 * kept in tables for two epochs, taken when the set is opened.
 */
#ifndef MIXT_DATA_BUCKETS_H
#define MIXT_DATA_BUCKETS_H

#include "data/data.h"

enum { MIXT_BUCKETS_MAX = 8, MIXT_BUCKET_AXES = 2 }; // lengths that differ from each other, as source and target do

typedef struct mixt__data_bucket {
    mixt_data_info info;              // the set's own but for shorter arrays
    int64_t places[MIXT_BUCKET_AXES]; // how long
    int64_t samples;                  // that belong to it
} mixt__data_bucket;

typedef struct mixt__data_buckets mixt__data_buckets;

/** Cuts an open set into at most options.buckets; leaves it as it is where that saves nothing. */
mixt_status mixt__data_buckets_make(mixt_data *data);
void mixt__data_buckets_free(mixt__data_buckets *buckets);

/** Buckets of a set; 0: batches are all as long as the set says. */
int mixt__data_bucket_count(const mixt_data *data);
/** One of those, the shortest first. */
const mixt__data_bucket *mixt__data_bucket_at(const mixt_data *data, int bucket);
/** What is different from sample to sample: the array that stands for a length, "source"; NULL: there are fewer. */
const char *mixt__data_bucket_axis(const mixt_data *data, int axis);
/** Elements that an epoch's samples are padded to without buckets, with them, and that they have themselves. */
void mixt__data_bucket_elements(const mixt_data *data, int64_t *without, int64_t *with, int64_t *filled);
/** Updates of `samples` samples that are of a bucket, in every epoch. */
int64_t mixt__data_bucket_updates(const mixt_data *data, int bucket, int64_t samples);

/** Batches of an epoch. Of a set with buckets updates end with the epoch. */
int64_t mixt__data_epoch_batches(const mixt_data *data, int64_t batch, int64_t group);
/** The bucket that a batch is of; 0 where there are none. */
int mixt__data_bucket_of(const mixt_data *data, const mixt__data_which *which);
/** For batches.c: the sample at a place, of a set with buckets. */
int64_t mixt__data_bucket_sample(const mixt_data *data, const mixt__data_which *which, int64_t place);

#endif
