/* How libmixt_cuda.so is entered: the one symbol it exports.
 *
 * It carries its own copies of src/base and of what else it needs, so that it loads into any program that has mixt in
 * it, linked either way. One thing must be one in the process, the text of the last failure: the loader passes its
 * setter in.
 */
#ifndef MIXT_BACKEND_CUDA_OPEN_H
#define MIXT_BACKEND_CUDA_OPEN_H

#include "backend/backend.h"

/** Changes with the layout of anything that crosses: a library of another build is refused. */
#define MIXT_CUDA_ABI "mixt " MIXT_VERSION " cuda 11"

/** The backend that opens GPUs; on failure the text says what is missing.
 *  @param abi MIXT_CUDA_ABI of the loader
 *  @param error_set receives the text of every failure
 *  @param backend set on success; lives as long as the process
 */
typedef mixt_status mixt__cuda_open_fn(const char *abi, void (*error_set)(const char *text),
                                       const mixt__backend **backend);
mixt__cuda_open_fn mixt_cuda_open;

#endif
