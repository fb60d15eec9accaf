/* Kernels that MIXT_CANDIDATE forces ("matmul=plain,attention=plain"), for tests and for comparing them. */
#ifndef MIXT_RUNTIME_CANDIDATES_H
#define MIXT_RUNTIME_CANDIDATES_H

#include "backend/backend.h"

/** The candidate that is forced for an op, copied to `name`; NULL: none. */
const char *mixt__candidate_forced(const char *op, char *name, size_t size);
/** Fails where an op or a kernel is named that the backend does not have: it would be passed over in silence. */
mixt_status mixt__candidates_check(mixt__device *device);

#endif
