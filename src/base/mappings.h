/* Mapped files that somebody cuts meanwhile. Reading behind a file's new end raises SIGBUS, which ends the process.
 * Here zeros are put in that place, and the mapping is marked, so that the reader can say what happened. Faults
 * elsewhere go to whoever handled them before.
 */
#ifndef MIXT_BASE_MAPPINGS_H
#define MIXT_BASE_MAPPINGS_H

#include <stdbool.h>
#include <stddef.h>

struct mixt__mapping;

/** Watches mapped memory. NULL: too many are watched; then such a fault ends the process. */
struct mixt__mapping *mixt__mapping_watch(const void *data, size_t bytes);
/** Before the memory is unmapped. @param mapping may be NULL */
void mixt__mapping_leave(struct mixt__mapping *mapping);
/** Whether zeros were put in place of some of it. @param mapping may be NULL */
bool mixt__mapping_is_cut(const struct mixt__mapping *mapping);

#endif
