/* Whether ranks that make the same updates have the same weights: hashes, compared now and then (dist.check). */
#ifndef MIXT_TRAIN_RANK_HASH_H
#define MIXT_TRAIN_RANK_HASH_H

#include "train/trainer.h"

/** After an update: hashes the weights where that is due, to be compared in the next. */
mixt_status mixt__rank_hash_take(mixt__trainer *t);
/** Fails with the name of a rank whose weights are not those of most. @param hashes by rank */
mixt_status mixt__rank_hash_compare(const mixt__trainer *t, const int64_t *hashes);

#endif
