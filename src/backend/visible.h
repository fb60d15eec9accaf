/* Which GPU a process uses where a machine has several and a launcher has started several processes. */
#ifndef MIXT_BACKEND_VISIBLE_H
#define MIXT_BACKEND_VISIBLE_H

#include "mixt/types.h"

/** The GPU of the process number `local` on its machine: they take turns.
 *  @param visible CUDA_VISIBLE_DEVICES, which may say which there are; NULL: it is not set
 *  @param count GPUs that the system shows
 *  @param name receives what CUDA_VISIBLE_DEVICES is to be
 *  @return false: there is one or none, nothing is to be chosen */
bool mixt__gpu_choose(const char *visible, int count, int local, char *name, size_t size);
/** Lets CUDA show only that one from now on: before the GPU's backend is loaded. */
void mixt__gpu_take(int local);

#endif
