/* safetensors files: an 8-byte little-endian header length, a JSON header, then the tensors end to end.
 *
 * Reading is strict: a file is taken only when every tensor's format, shape, size and place agree with each other and
 * with the length of the file. Messages name the file, the tensor and the offset.
 */
#ifndef MIXT_STORE_SAFETENSORS_H
#define MIXT_STORE_SAFETENSORS_H

#include "store/tensor.h"

enum { MIXT_SAFETENSORS_HEADER_MOST = 100 * 1000 * 1000 }; // bytes of a header: the limit that other readers use

typedef struct mixt__text_pair {
    const char *key, *value;
} mixt__text_pair;

/** The free-form map of a file. */
typedef struct mixt__metadata {
    const mixt__text_pair *pairs;
    int64_t count;
} mixt__metadata;

/** The key of a file's metadata, and its value, that says that what is frozen of a model is not in it. */
#define MIXT_HOLDS "holds"
#define MIXT_HOLDS_TRAINED "trained"

/** An open file. Tensors are in the order of their data, which stays mapped until the file is closed. */
typedef struct mixt__safetensors {
    const mixt__file_tensor *tensors;
    int64_t count;
    mixt__metadata metadata;
    struct mixt__safetensors_storage *storage;
} mixt__safetensors;

mixt_status mixt__safetensors_open(const char *path, mixt__safetensors **file);

/** What the tensors of a checkpoint's state are called that are a model's weights and running statistics. */
#define MIXT_STATE_MASTER "master/"
#define MIXT_STATE_STATISTICS "state/"
/** Tensors of several open files, at least one, as if they were in one; on success those are closed with it. */
mixt_status mixt__safetensors_join(mixt__safetensors *const *parts, int64_t count, const mixt__file_tensor *tensors,
                                   int64_t tensor_count, mixt__safetensors **file);
/** The same for weights, which may lie in several files with an index (shards.h): of a checkpoint's state it shows
 * those two alone, under the names that model.safetensors has for them. */
mixt_status mixt__safetensors_open_weights(const char *path, mixt__safetensors **file);
/** NULL when there is none of that name. */
const mixt__file_tensor *mixt__safetensors_find(const mixt__safetensors *file, const char *name);
/** NULL for no metadata of that key. */
const char *mixt__safetensors_metadata(const mixt__safetensors *file, const char *key);
/** After its tensors were read: fails where a file of it was cut meanwhile. NULL is fine. */
mixt_status mixt__safetensors_check(const mixt__safetensors *file);
/** Memory that lives as long as the file is open; NULL: there is none. */
void *mixt__safetensors_room(mixt__safetensors *file, size_t bytes);
/** NULL is fine. */
void mixt__safetensors_close(mixt__safetensors *file);

/** Gives the data of tensor `index` when the writer reaches it; valid until the next call. */
typedef mixt_status mixt__tensor_fetch_fn(void *argument, int64_t index, const void **data);

/**
 * Writes tensors (name, dtype, rank, dims; `bytes` is not read) with data from `fetch`, all or nothing. Wide elements
 * come first, so that each tensor is aligned to its elements; otherwise in the given order.
 * @param metadata NULL for none.
 */
mixt_status mixt__safetensors_write_from(const char *path, const mixt__file_tensor *tensors, int64_t count,
                                         const mixt__metadata *metadata, bool overwrite, mixt__tensor_fetch_fn *fetch,
                                         void *argument);

/** The same with the tensors' own data, replacing an existing file. */
mixt_status mixt__safetensors_write(const char *path, const mixt__file_tensor *tensors, int64_t count,
                                    const mixt__metadata *metadata);

/** What such a file begins with, its data follows: for who writes that elsewhere. @param path for messages
 *  @param text for mixt__free */
mixt_status mixt__safetensors_header(const char *path, const mixt__file_tensor *tensors, int64_t count, char **text,
                                     size_t *bytes);

/** The file format's name of a dtype ("BF16"; TF32 is stored as "F32"), and back; NULL and NONE where there is none. */
const char *mixt__safetensors_dtype_name(mixt_dtype dtype);
mixt_dtype mixt__safetensors_dtype_parse(const char *name);

#endif
