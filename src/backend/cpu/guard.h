/* Memory that the host cannot touch while nothing computes on it: as a GPU's, in tests without one.
 *
 * Blocks are shut (PROT_NONE) but while `open` was called more often than `shut`: a host that reads or sends one by
 * mistake ends with SIGSEGV, "invalid permissions". AddressSanitizer knows where blocks end and which were given back.
 * Not found is a thread that touches one while another computes.
 */
#ifndef MIXT_BACKEND_CPU_GUARD_H
#define MIXT_BACKEND_CPU_GUARD_H

#include "mixt/types.h"

/** For those who compute on the blocks: each `open` has its `shut`; calls may be nested, and come from any thread. */
typedef struct mixt__guard {
    void (*open)(void);
    void (*shut)(void);
} mixt__guard;

extern const mixt__guard mixt__cpu_guard;

/** A block, 64-byte aligned; NULL when there is no memory. */
void *mixt__guard_take(size_t bytes);
/** @param block NULL: nothing happens */
void mixt__guard_give_back(void *block);
/** Whether it points into a block. */
bool mixt__guard_holds(const void *at);
/** Bytes of all blocks. */
size_t mixt__guard_bytes(void);

#endif
