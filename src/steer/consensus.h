/* What ranks that look for a cause together tell each other. Every rank makes the same calls in the same order; one
 * process goes through without a word.
 *
 * Sums over ranks have the same bits everywhere, so most of a diagnosis is the same on all of them by itself. What is
 * not (weights in a rank's own memory, values of its own passes, its own samples) goes through here.
 */
#ifndef MIXT_STEER_CONSENSUS_H
#define MIXT_STEER_CONSENSUS_H

#include "train/trainer.h"

/** One rank's failure is everyone's, so that nobody waits for one that has turned back. */
mixt_status mixt__consensus_agree(const mixt__trainer *trainer, mixt_status status);
/** Whether it is so on any rank. @param rank the first; stays what it is where it is so on none */
mixt_status mixt__consensus_any(const mixt__trainer *trainer, bool *so, int *rank);
/** Everyone's bytes, by rank, for mixt__free. @param all NULL on failure
 *  @param count set to the number of ranks; of one process its own alone */
mixt_status mixt__consensus_gather(const mixt__trainer *trainer, const void *mine, size_t bytes, void **all,
                                   int *count);
/** One rank's bytes to all. */
mixt_status mixt__consensus_take(const mixt__trainer *trainer, int rank, void *data, size_t bytes);

#endif
