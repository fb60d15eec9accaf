/* Libraries that mixt loads at run time: backends and transports of its own, so that one mixt serves machines with and
 * without a GPU, with and without MPI.
 */
#ifndef MIXT_BASE_LIBRARY_H
#define MIXT_BASE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/** Looks, in order: at `given`; in the folder of the program or library that holds this code (a build folder, or bin/
 *  with ../lib beside it); then wherever the system's loader looks.
 *  @param name of the file, as in "libmixt_cuda.so"
 *  @param given its path; "": not known
 *  @param global what it links is for other libraries to see: MPI's own parts look for it
 *  @param problem receives why it could not be loaded
 *  @return NULL: it could not */
void *mixt__library_open(const char *name, const char *given, bool global, char *problem, size_t size);

#endif
