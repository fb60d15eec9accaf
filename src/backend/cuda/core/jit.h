/* CUDA C compiled while the program runs, for the GPU that is there.
 *
 * Machine code is kept in a folder (MIXT_CACHE, else $XDG_CACHE_HOME/mixt, else ~/.cache/mixt) under a hash of source,
 * compiler and GPU; a damaged file is compiled again. Within a process the same source is compiled and loaded once for
 * all GPUs of a compute capability.
 */
#ifndef MIXT_BACKEND_CUDA_CORE_JIT_H
#define MIXT_BACKEND_CUDA_CORE_JIT_H

#include "backend/cuda/core/cuda.h"

enum { MIXT_JIT_MAX_KERNELS = 4 };

/** The kernels of these names (at most MIXT_JIT_MAX_KERNELS, extern "C" in the source) for a compute capability and
 *  cudaLaunchKernel; they stay loaded. False: *reason says why there are none, in words that stay valid. The source
 * must include nothing. */
bool mixt__jit_kernels(int sm, const char *source, const char *const *names, int count, const void **kernels,
                       const char **reason);

/** Machine code of a source for a compute capability (90: sm_90), from mixt__alloc; NULL: *reason says why, in words
 *  from mixt__alloc. Needs no GPU. */
void *mixt__jit_compile(const char *source, int sm, size_t *bytes, char **reason);

#endif
