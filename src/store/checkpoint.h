/* A checkpoint: a folder that is whole or not there, and that shows any damage.
 *
 *   state.safetensors  tensors, readable by every tool that reads such files
 *   frozen.safetensors parameters that training leaves as they are, where there are any: one file under a name in each
 *                      checkpoint, where the file system has hard links
 *   FILE…              small files that belong to it, as they were given
 *   manifest.json      everything scalar; sizes and checksums of the files above, of the header and of each tensor, or
 *                      of its parts where several processes wrote it; its own checksum at the end. Written last.
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
    const char *from; // the path of a file that becomes this one under a second name; NULL: `data` is written
    uint64_t sum;     // its checksum
} mixt__checkpoint_file;

#define MIXT_CHECKPOINT_FROZEN "frozen.safetensors"

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

/* ---- one that several processes write ---- */

/** Some of a tensor: what one process has of it. */
typedef struct mixt__checkpoint_piece {
    int64_t tensor;       // its index
    int64_t begin, bytes; // of its data; at least one byte
    const void *data;
    bool summed; // as of a tensor (store/tensor.h)
    uint64_t words;
} mixt__checkpoint_piece;

/** One that was written. */
typedef struct mixt__checkpoint_sum {
    int64_t tensor, begin, bytes;
    uint64_t sum;
} mixt__checkpoint_sum;

enum { MIXT_CHECKPOINT_PATH = 1200 };

/** A folder that is being filled: plain bytes, which mean the same to all processes that see its file system. */
typedef struct mixt__checkpoint_draft {
    char target[MIXT_CHECKPOINT_PATH];         // what it will be called, without slashes at the end
    char parent[MIXT_CHECKPOINT_PATH];         // the folder around it
    char temporary[MIXT_CHECKPOINT_PATH + 64]; // what it is called so far
    int64_t data, bytes;                       // of the state file: where tensors begin; its length
    uint64_t header;                           // checksum of what stands before them
} mixt__checkpoint_draft;

/** One process begins: makes the folder and in it the state file with its header. Of the content, tensors' names and
 *  shapes are read, wide elements first, and files' names. Refuses as mixt__checkpoint_write does. */
mixt_status mixt__checkpoint_begin(const char *folder, const mixt__checkpoint_content *content,
                                   mixt__checkpoint_draft *draft);
/** Every process writes what it has, brings it to disk and reads it again: MIXT_ERROR_DATA, naming the tensor, where
 *  that is not what it was to be. Any number at once, in any order.
 *  @param pieces in the order of tensors @param sums (count) receives what was written */
mixt_status mixt__checkpoint_add(const mixt__checkpoint_draft *draft, const mixt__checkpoint_content *content,
                                 const mixt__checkpoint_piece *pieces, int64_t count, mixt__checkpoint_sum *sums);
/** One process writes the content's files. @param records an object that receives what the manifest says of them */
mixt_status mixt__checkpoint_add_files(const mixt__checkpoint_draft *draft, const mixt__checkpoint_content *content,
                                       json_t *records);
/** One process ends, after all others have written: the manifest, and the folder gets its name. After a failure, as
 *  where the sums are not of all tensors, nothing is left. @param sums of all processes; are sorted */
mixt_status mixt__checkpoint_finish(const mixt__checkpoint_draft *draft, const mixt__checkpoint_content *content,
                                    json_t *files, mixt__checkpoint_sum *sums, int64_t count);
/** In place of finish: removes it. */
void mixt__checkpoint_discard(const mixt__checkpoint_draft *draft);

/** Fails, naming the weight, where one is not finite: a checkpoint of them would push good ones out.
 *  @param pieces NULL: all that the content has, else these */
mixt_status mixt__checkpoint_finite(const mixt__checkpoint_content *content, const mixt__checkpoint_piece *pieces,
                                    int64_t count);

/** Makes `folder` the same checkpoint as `from`, sharing its files where the file system can. */
mixt_status mixt__checkpoint_share(const char *from, const char *folder);

/** One that was opened: every byte has been checked. */
typedef struct mixt__checkpoint {
    char *folder;
    json_t *scalars;
    json_t *sums; // of the tensors
    mixt__safetensors *state;
    mixt__safetensors *frozen; // NULL: it has no such file
} mixt__checkpoint;

/** MIXT_ERROR_FORMAT, naming file, tensor and place, when anything is missing or damaged. Any other failure,
 * MIXT_ERROR_FILE or MIXT_ERROR_MEMORY, says nothing about the checkpoint: it cannot be read now. */
mixt_status mixt__checkpoint_open(const char *folder, mixt__checkpoint **checkpoint);
/** The same, of the tensors' bytes a share alone is read: for ranks that look at one each and tell the others.
 *  @param which of so many shares, from 0 */
mixt_status mixt__checkpoint_open_share(const char *folder, int which, int shares, mixt__checkpoint **checkpoint);
/** All of the tensors' bytes, after that. */
mixt_status mixt__checkpoint_check(const mixt__checkpoint *checkpoint);
/** NULL is fine. */
void mixt__checkpoint_close(mixt__checkpoint *checkpoint);

/* ---- a folder of checkpoints: step-NNNNNNNN ---- */

/** FOLDER/step-NNNNNNNN in `path`. Returns `path`. */
const char *mixt__checkpoint_path(const char *folder, int64_t step, char path[MIXT_CHECKPOINT_PATH]);
/** Steps of the checkpoints there, newest first, whole or not; *steps is freed with mixt__free. A folder that is not
 * there holds none. */
mixt_status mixt__checkpoints_list(const char *folder, int64_t **steps, int64_t *count);
/** Nothing is removed through a link, nor what is no regular file of a checkpoint.
 *  Removes all but the newest `keep` and those at the steps of `wanted`, and what an interrupted save left behind. */
mixt_status mixt__checkpoints_prune(const char *folder, int64_t keep, const int64_t *wanted, int count);
/** Fails where the folder is a link, or no folder: nothing may be removed there. One that is not there is fine. */
mixt_status mixt__checkpoints_own(const char *folder);
/** Removes all of later steps than `step`. */
mixt_status mixt__checkpoints_drop_after(const char *folder, int64_t step);

/* ---- numbers in the scalars ---- */

/** Reads back to the same double; what JSON has no number for becomes "nan", "inf" or "-inf". */
json_t *mixt__json_double(double value);
/** Fails with the key's name when it is missing, of another kind, or (integers) outside [min, max]. */
mixt_status mixt__json_get_double(const json_t *object, const char *key, double *value);
mixt_status mixt__json_get_int(const json_t *object, const char *key, int64_t min, int64_t max, int64_t *value);

#endif
