/* Copies of a device that run beside what it computes, and the stream on which it computes.
 *
 * Apart from backend.h because only those who share a step between processes need it.
 */
#ifndef MIXT_BACKEND_BESIDE_H
#define MIXT_BACKEND_BESIDE_H

#include "backend/backend.h"

typedef struct mixt__beside {
    /** On which everything is computed, for other libraries that issue work in between. */
    void *(*stream)(mixt__device *device);
    /** Between device memory and memory of alloc_host: begins behind what was issued so far, and behind the copies
     *  before it, and runs beside what is issued next. May be under capture into a recording. */
    mixt_status (*copy)(mixt__device *device, void *dst, const void *src, size_t bytes);
    /** What is issued next waits for those copies. */
    mixt_status (*join)(mixt__device *device);
    /** Whether all that was issued has run, these copies too; MIXT_END: not yet. */
    mixt_status (*query)(mixt__device *device);
} mixt__beside;

#endif
