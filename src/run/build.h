/* What build of mixt this is: ranks of a run must have the same. */
#ifndef MIXT_RUN_BUILD_H
#define MIXT_RUN_BUILD_H

#include <stddef.h>

/** Its version, and a checksum of the code and constants that run: of the program, or of the library that it uses. */
void mixt__build_describe(char *text, size_t size);

#endif
