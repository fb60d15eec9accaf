/* What each rank has of its own where ranks compress (train/dist/local.h), in checkpoints: what it has not sent yet,
 * and its moments.
 *
 * A checkpoint's masters are the weights that all ranks have in common. Beside them it has, of each rank, "feedback/0",
 * "feedback-moment1/0", "feedback-moment2/0" and so on, and PowerSGD's "factors". As many ranks take up what was each
 * one's own. Any other number, or ranks that do not compress, begin with the mean of all ranks' weights and moments.
 */
#ifndef MIXT_TRAIN_FEEDBACK_H
#define MIXT_TRAIN_FEEDBACK_H

#include "train/checkpoint.h"
#include "train/dist/ranks.h"

/** Elements of a snapshot's copies; 0: there are none. */
int64_t mixt__feedback_elements(const mixt__trainer *t, mixt__snapshot_kind kind);
/** What this rank writes of them. @param of the copies, of this rank's part or all that it has
 *  @param first the tensor of rank 0's @param pieces NULL: they are only counted. @return how many */
int64_t mixt__feedback_pieces(const mixt__trainer *t, const mixt__snapshot *of, int64_t first,
                              mixt__checkpoint_piece *pieces);
/** Tensors of a snapshot. */
int64_t mixt__feedback_tensors(const mixt__trainer *t);
/** Takes the memory of a snapshot's copies. */
mixt_status mixt__feedback_open(mixt__snapshot *s);
/** Adds them to the snapshot's tensors. @param names room for them: see mixt__feedback_name_bytes */
void mixt__feedback_list(mixt__snapshot *s, char *names);
size_t mixt__feedback_name_bytes(const mixt__trainer *t);
/** Copies what this process has; of a group's, those of the others were collected. In order with the kernels. */
mixt_status mixt__feedback_take(mixt__snapshot *s, const mixt__trainer *t);
/** PowerSGD's factors, which all ranks have, from a snapshot of this rank's own state. */
void mixt__feedback_fill(mixt__snapshot *s, const mixt__snapshot *own);
void mixt__feedback_put_back(const mixt__snapshot *s, mixt__trainer *t);
/** What ranks have each of their own to rank 0: see mixt__ranks_collect. */
mixt_status mixt__feedback_collect(mixt__trainer *t, const mixt__ranks_own *own, float *to);

/** Whether a checkpoint's tensor is one of these. */
bool mixt__feedback_is(const char *name);
/** Puts a checkpoint's into the trainer, which has memory; fails where they are of another model.
 *  @param load clear: only looks */
mixt_status mixt__feedback_restore(mixt__trainer *t, const mixt__checkpoint *checkpoint, bool load);
/** What this trainer takes of a parameter's tensor. @param which arena @param offset of the parameter there
 *  @param values receives them, for mixt__free; NULL: they are the tensor's */
mixt_status mixt__feedback_values(const mixt__trainer *t, const mixt__checkpoint *checkpoint, int which, int64_t offset,
                                  const mixt__file_tensor *tensor, float **values);

#endif
