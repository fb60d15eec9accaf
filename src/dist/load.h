/* Loading a transport: see dist/transport.h. */
#ifndef MIXT_DIST_LOAD_H
#define MIXT_DIST_LOAD_H

#include "dist/transport.h"

/** Loads libmixt_<name>.so and opens it, which can only be done once in a process.
 *  @param rank what the launcher says; @param size too */
mixt_status mixt__transport_load(const char *name, int rank, int size, double timeout, mixt__transport **transport);
/** The id that rank 0 gives to the others. @param id (MIXT_DEVICE_ID_SIZE) */
mixt_status mixt__device_id(const char *name, char *id);
/** Loads the same library for sums in a device's memory. */
mixt_status mixt__device_sums_load(const char *name, const mixt__sums_place *place, mixt__device_sums **sums);

#endif
