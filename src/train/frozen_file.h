/* The file of frozen parameters: safetensors, each in the format in which it is kept, with its scales if it has any
 * (store/pairs.h). A run writes it once, beside its checkpoints, and again when their values change; each checkpoint
 * has it under a second name.
 */
#ifndef MIXT_TRAIN_FROZEN_FILE_H
#define MIXT_TRAIN_FROZEN_FILE_H

#include "runtime/params.h"
#include "store/checkpoint.h"

typedef struct mixt__frozen_file {
    char path[MIXT_CHECKPOINT_PATH + 32];
    int64_t version; // of the values that it holds
    size_t bytes;
    uint64_t sum;
    bool elsewhere; // the run can read them where it began: they are in no file of its own
} mixt__frozen_file;

/** Writes them to a path, all or nothing. There are some. */
mixt_status mixt__frozen_file_write(const mixt__params *params, const char *path, mixt__frozen_file *file);
/** Makes `files` name FOLDER/frozen.safetensors, which is written where it is not what it should be; adds nothing where
 *  no parameter is frozen. @param file of the save before; all zeros: none */
mixt_status mixt__frozen_file_add(const mixt__params *params, const char *folder, mixt__frozen_file *file,
                                  mixt__checkpoint_file *files, int64_t *count);

/** Gives frozen parameters the values that were written, where that file is what it was. */
mixt_status mixt__frozen_file_restore(mixt__params *params, mixt__frozen_file *file);

/** A frozen parameter in a checkpoint. */
typedef struct mixt__frozen_tensor {
    const mixt__safetensors *file; // that has it
    const mixt__file_tensor *tensor;
    int64_t count;                // tensors that it takes: 2 where it has scales
    const mixt__file_tensor *nf4; // the scales of one in NF4; NULL: it is none
} mixt__frozen_tensor;

/** Finds a frozen parameter in a checkpoint: in that file, or, in one of a version that had none, in the state. */
mixt_status mixt__frozen_file_find(const mixt__checkpoint *checkpoint, const mixt__param *param,
                                   mixt__frozen_tensor *found);
/** Gives a frozen parameter the values that were found. */
mixt_status mixt__frozen_file_put(mixt__params *params, int32_t index, const mixt__frozen_tensor *found);

#endif
