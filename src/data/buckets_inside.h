/* What buckets.c, which chooses buckets, and bucket_order.c, which fills updates from them, share. */
#ifndef MIXT_DATA_BUCKETS_INSIDE_H
#define MIXT_DATA_BUCKETS_INSIDE_H

#include "data/buckets.h"

#include <pthread.h>

enum { MIXT_EPOCHS_KEPT = 2 }; // threads that make batches ahead stand in two at most

/** The samples of an epoch's updates, bucket by bucket. */
typedef struct mixt__epoch_table {
    int64_t update;  // samples of one; 0: nothing is in it
    uint64_t key;    // of the epoch's order
    int32_t *sample; // (samples)
} mixt__epoch_table;

struct mixt__data_buckets {
    mixt__data_bucket bucket[MIXT_BUCKETS_MAX + 1]; // one more: the set's own lengths, where no sample is as long
    int count, axes;
    int array[MIXT_BUCKET_AXES];    // that stands for a length
    int axis[MIXT_DATA_ARRAYS_MAX]; // of each array; -1: it has none
    int64_t without, with, filled;  // elements of an epoch
    uint8_t *of;                    // (samples) the bucket of each
    pthread_mutex_t lock;           // of what follows
    mixt__epoch_table epochs[MIXT_EPOCHS_KEPT];
    int next;      // the table that is filled next
    int32_t *left; // (samples) places in the order that fill no update of their own bucket
};

/** Room for all tables: `of` is filled by then. */
mixt_status mixt__data_epochs_take(mixt_data *data);
void mixt__data_epochs_free(mixt__data_buckets *buckets);

#endif
