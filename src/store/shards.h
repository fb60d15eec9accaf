/* Weights in several safetensors files with an index, as Hugging Face writes large ones. */
#ifndef MIXT_STORE_SHARDS_H
#define MIXT_STORE_SHARDS_H

#include "store/safetensors.h"

/** Whether a path is that of an index: it ends in ".index.json". */
bool mixt__shards_is_index(const char *path);
/** All tensors of an index as if they were in one file. */
mixt_status mixt__shards_open(const char *path, mixt__safetensors **file);

#endif
