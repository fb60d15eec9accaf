/* A checkpoint: a folder that is whole or not there, and that shows any damage.
 *
 *   state.safetensors  tensors, readable by every tool that reads such files
 *   FILE…              small files that belong to it, as they were given
 *   manifest.json      everything scalar; sizes and checksums of the files above, of the header and of each tensor; its
 *                      own checksum at the end. Written last.
 *
 * The folder is filled under another name beside its own, synced and renamed. What the scalars mean is the caller's
 * business: see train/checkpoint.h.
 */
#ifndef MIXT_STORE_CHECKPOINT_H
#define MIXT_STORE_CHECKPOINT_H

#include "store/safetensors.h"

#include <jansson.h>

/** A small file inside. */
typedef struct mixt__checkpoint_file {
    const char *name; // without '/'
    const void *data;
    size_t bytes;
} mixt__checkpoint_file;

typedef struct mixt__checkpoint_content {
    const mixt__file_tensor *tensors; // with their data in host memory
    int64_t count;
    const json_t *scalars; // an object; borrowed
    const mixt__checkpoint_file *files;
    int64_t file_count;
} mixt__checkpoint_content;

/** Writes `folder`, all or nothing. One that is there already is replaced if it is a checkpoint, whole or not, with
 * nothing else inside, or empty; anything else is refused. After a failure nothing of the new one is left and the old
 * one is as it was. */
mixt_status mixt__checkpoint_write(const char *folder, const mixt__checkpoint_content *content);

/** Makes `folder` the same checkpoint as `from`, sharing its files where the file system can. */
mixt_status mixt__checkpoint_share(const char *from, const char *folder);

/** One that was opened: every byte has been checked. */
typedef struct mixt__checkpoint {
    char *folder;
    json_t *scalars;
    mixt__safetensors *state;
} mixt__checkpoint;

/** MIXT_ERROR_FILE or MIXT_ERROR_FORMAT, naming file, tensor and place, when anything is missing or damaged. */
mixt_status mixt__checkpoint_open(const char *folder, mixt__checkpoint **checkpoint);
/** NULL is fine. */
void mixt__checkpoint_close(mixt__checkpoint *checkpoint);

/* ---- a folder of checkpoints: step-NNNNNNNN ---- */

enum { MIXT_CHECKPOINT_PATH = 1200 };

/** FOLDER/step-NNNNNNNN in `path`. Returns `path`. */
const char *mixt__checkpoint_path(const char *folder, int64_t step, char path[MIXT_CHECKPOINT_PATH]);
/** Steps of the checkpoints there, newest first, whole or not; *steps is freed with mixt__free. A folder that is not
 * there holds none. */
mixt_status mixt__checkpoints_list(const char *folder, int64_t **steps, int64_t *count);
/** Removes all but the newest `keep` and those at the steps of `wanted`, and what an interrupted save left behind. */
mixt_status mixt__checkpoints_prune(const char *folder, int64_t keep, const int64_t *wanted, int count);
/** Removes all of later steps than `step`. */
mixt_status mixt__checkpoints_drop_after(const char *folder, int64_t step);

/* ---- numbers in the scalars ---- */

/** Reads back to the same double; what JSON has no number for becomes "nan", "inf" or "-inf". */
json_t *mixt__json_double(double value);
/** Fails with the key's name when it is missing, of another kind, or (integers) outside [min, max]. */
mixt_status mixt__json_get_double(const json_t *object, const char *key, double *value);
mixt_status mixt__json_get_int(const json_t *object, const char *key, int64_t min, int64_t max, int64_t *value);

#endif
