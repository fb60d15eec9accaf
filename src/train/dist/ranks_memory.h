/* What an update of several ranks takes and sends: see train/dist/ranks.h, which says it in bytes. */
#ifndef MIXT_TRAIN_RANKS_MEMORY_H
#define MIXT_TRAIN_RANKS_MEMORY_H

#include "train/integrity.h"
#include "train/trainer.h"

/** What a rank tells the others after its passes; its figures and shares of statistics follow. */
typedef struct mixt__rank_record {
    int64_t update;
    int64_t targets; // that count
    int64_t hashed;  // the newest update after which weights were hashed, …
    int64_t hash;    // … and what they were
    int32_t signal;
    uint32_t asked;
    mixt__integrity_word damage; // that this rank has found in its memory
} mixt__rank_record;

/** Bytes of a record with all that follows it; those of all ranks lie one behind the other.
 *  @param moved statistics that passes move */
size_t mixt__ranks_record_bytes(const mixt__trainer *t, int64_t moved);
/** The gradients where the host can add them, or where the device has. */
float *mixt__ranks_gradients(const mixt__trainer *t);

#endif
