/* What compressed sums over ranks (dist/compress.h) keep from update to update, in the trainer and in its checkpoints.
 *
 * A checkpoint has one tensor a rank, "feedback/0" and so on, and PowerSGD's "factors". On another number of ranks each
 * takes the sum of those whose number leaves its own as a remainder: nothing that was not sent yet is lost.
 */
#ifndef MIXT_TRAIN_FEEDBACK_H
#define MIXT_TRAIN_FEEDBACK_H

#include "train/checkpoint.h"

/** What a sum of this trainer's gradients would take: all but its memory. False: they are not compressed. */
bool mixt__feedback_plan(const mixt__trainer *t, mixt__compressor *c);
/** After the compressor's blocks were taken, where they were not there before. */
void mixt__feedback_begin(mixt__trainer *t);
/** After the passes of a part, and after all parts: see mixt__compress_part and mixt__compress_sum.
 *  @param grad where the host has the gradients */
mixt_status mixt__feedback_part(mixt__trainer *t, int64_t part, float *grad);
mixt_status mixt__feedback_sum(mixt__trainer *t, float *grad);

/** Elements of a snapshot's copies; 0: there are none. */
int64_t mixt__feedback_elements(const mixt__trainer *t, mixt__snapshot_kind kind);
/** What this rank writes of them. @param copies of its own or its part, which both begin with its row, then factors
 *  @param first the tensor of rank 0's @param pieces NULL: they are only counted. @return how many */
int64_t mixt__feedback_pieces(const mixt__trainer *t, const float *copies, int64_t first,
                              mixt__checkpoint_piece *pieces);
/** Tensors of a snapshot. */
int64_t mixt__feedback_tensors(const mixt__trainer *t);
/** Takes the memory of a snapshot's copies. */
mixt_status mixt__feedback_open(mixt__snapshot *s);
/** Adds them to the snapshot's tensors. @param names room for them: see mixt__feedback_name_bytes */
void mixt__feedback_list(mixt__snapshot *s, char *names);
size_t mixt__feedback_name_bytes(const mixt__trainer *t);
/** Copies what this process has; of a group's, those of the others were collected. */
void mixt__feedback_take(mixt__snapshot *s, const mixt__trainer *t);
/** PowerSGD's factors, which all ranks have, from a snapshot of this rank's own state. */
void mixt__feedback_fill(mixt__snapshot *s, const mixt__snapshot *own);
void mixt__feedback_put_back(const mixt__snapshot *s, mixt__trainer *t);

/** Whether a checkpoint's tensor is one of these. */
bool mixt__feedback_is(const char *name);
/** Puts a checkpoint's into the trainer, which has memory; fails where they are of another model.
 *  @param load clear: only looks */
mixt_status mixt__feedback_restore(mixt__trainer *t, const mixt__checkpoint *checkpoint, bool load);

#endif
