/* Moments that are not FP32: whether they are possible, and those in codes of blocks from a checkpoint: of the same
 * format as they are, of another one by way of FP32. */
#ifndef MIXT_TRAIN_MOMENTS_FILE_H
#define MIXT_TRAIN_MOMENTS_FILE_H

#include "store/checkpoint.h"
#include "train/trainer.h"

/** Fails where the device or the ranks have no form for moments of the format that is asked for. */
mixt_status mixt__moments_check(const mixt__trainer *trainer);
/** Whether the trainer or the checkpoint has any moment in codes. */
bool mixt__moments_in_codes(const mixt__trainer *trainer, const mixt__checkpoint *checkpoint);
/** Finds the moments of all parameters; with `load` puts them in place. @param used counts tensors of the checkpoint */
mixt_status mixt__moments_restore(mixt__trainer *trainer, const mixt__checkpoint *checkpoint, bool load, int64_t *used);

#endif
