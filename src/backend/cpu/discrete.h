/* The CPU as if it had memory of its own: batches are staged, results copied back, nothing is read where it lies.
 *
 * For tests: what trains on a GPU beside its kernels, ranks that share updates above all, runs without one. The same
 * kernels, so the same bits as the CPU's. Nothing is recorded. Copies come as late as they may on a GPU, so that who
 * does not wait for one has other bits. Its memory can be touched only while one of its functions runs (guard.h): who
 * reads or sends it from the host ends with SIGSEGV, as with a GPU's. Its stream, for a library that computes in
 * between, is a mixt__guard.
 */
#ifndef MIXT_BACKEND_CPU_DISCRETE_H
#define MIXT_BACKEND_CPU_DISCRETE_H

#include "backend/beside.h"

/** Lives as long as the process. */
mixt__device *mixt__device_cpu_discrete(void);

#endif
