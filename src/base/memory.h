/* How much memory this process could still take. */
#ifndef MIXT_BASE_MEMORY_H
#define MIXT_BASE_MEMORY_H

#include <stddef.h>

/** Bytes of the machine, or of the control group that the process lives in where that is less; 0 when not known. */
size_t mixt__memory_total(void);
/** Bytes that are free or can be freed at once (file caches); swap is not counted. 0 when not known. */
size_t mixt__memory_available(void);
/** Lets so many bytes count as taken by somebody else from now on, in tests; 0: none. */
void mixt__memory_withhold(size_t bytes);
size_t mixt__memory_withheld(void);

#endif
