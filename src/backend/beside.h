/* Copies of a device that run beside what it computes, and the stream on which it computes.
 *
 * Apart from backend.h because only those who share a step between processes need it.
 */
#ifndef MIXT_BACKEND_BESIDE_H
#define MIXT_BACKEND_BESIDE_H

#include "backend/backend.h"

typedef struct mixt__beside {
    void *stream; // on which everything is computed, for other libraries that issue work in between
    /** Between device memory and memory of alloc_host: begins behind what was issued so far, and behind the copies
     *  before it, and runs beside what is issued next. May be under capture into a recording. */
    mixt_status (*copy)(void *dst, const void *src, size_t bytes);
    /** What is issued next waits for those copies. */
    mixt_status (*join)(void);
    /** Whether all that was issued has run, these copies too; MIXT_END: not yet. */
    mixt_status (*query)(void);
} mixt__beside;

/** Of a backend; NULL: it has none. */
const mixt__beside *mixt__backend_beside(const mixt__backend *backend);

#endif
