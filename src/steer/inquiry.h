/* What the parts of a diagnosis share while it is made. One file a question: were the bits the same (hardware.c), is
 * FP32 calm (diagnosis.c), which layer (blame.c), which batch (suspects.c), which learning rate (rates.c).
 */
#ifndef MIXT_STEER_INQUIRY_H
#define MIXT_STEER_INQUIRY_H

#include "steer/diagnosis.h"
#include "steer/replay.h"

typedef struct mixt__inquiry {
    mixt__snapshots *ring;
    mixt__trainer *trainer;
    mixt__replay replay;
    int64_t oldest;        // state
    int64_t last;          // the newest update when it began
    int64_t seen, begin;   // the update at which trouble was seen, and at which it began
    unsigned signs;        // between the two
    mixt__usual_row usual; // before
    double began, healthy; // the first loss of all; that at which training was healthy; 0 or NaN: not known
    mixt_diagnosis *d;
    mixt__diagnosis_words *words; // of d
} mixt__inquiry;

/** Lets a diagnosis point to these texts: after one was filled in, or came from another rank. */
void mixt__diagnosis_point(mixt_diagnosis *diagnosis, const mixt__diagnosis_words *words);

/** Computes all updates that are known once more and compares bits. Where they differ: since when, which parameter, and
 *  whether a further replay differs again. @param differs whether they do */
mixt_status mixt__inquire_hardware(mixt__inquiry *inquiry, bool *differs);

/** Names the layers in which the update at which it began makes numbers that are not finite or become 0, as the trainer
 *  is compiled now: the worst first, into diagnosis->layers. The trainer is behind that update afterwards. */
mixt_status mixt__inquire_layers(mixt__inquiry *inquiry);

/** Loss and gradient's norm of the update at which it began, in FP32 from the very weights that it had: what differs
 *  then is the format's doing. The trainer is before that update afterwards.
 *  @param norm NaN where an update has several passes */
mixt_status mixt__inquire_same_weights(mixt__inquiry *inquiry, double *loss, double *norm);

/** Tells a batch that is not like others from weights with which any batch goes wrong: diagnosis->kind is BATCH then,
 * or HARDWARE where it is contradicted. The trainer is before the update at which it began afterwards.
 *  @param confirms the replay was made with a lower learning rate: how high losses are counts for nothing */
mixt_status mixt__inquire_batch(mixt__inquiry *inquiry, bool confirms);

/** Looks for a sample of the update at which it began whose inputs are by far larger than those of others: the format
 * is not to blame for it. diagnosis->kind is BATCH then. The trainer stays where it is. */
mixt_status mixt__inquire_outlier(mixt__inquiry *inquiry, bool *found);

/** Whether the learning rate is too high for the state of update diagnosis->good, or for an older one: with it the
 *  losses of the updates since become worse than without learning at all, or a layer dies; with a lower one not. Sets
 *  diagnosis->lr and calm_lr, and `good` to that state. The trainer is somewhere behind it afterwards.
 *  @param found whether it is */
mixt_status mixt__inquire_rate(mixt__inquiry *inquiry, bool *found);

/** The layer that a parameter belongs to: its name without the last part. */
void mixt__layer_of(const char *parameter, char layer[128]);

#endif
