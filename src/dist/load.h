/* Loading a transport: see dist/transport.h. */
#ifndef MIXT_DIST_LOAD_H
#define MIXT_DIST_LOAD_H

#include "dist/transport.h"

/** Loads libmixt_<name>.so and opens it, which can only be done once in a process. */
mixt_status mixt__transport_load(const char *name, const mixt__transport **transport);

#endif
