/* Moments in codes of blocks (num/blocks.h), as a part of a table of parameters. */
#ifndef MIXT_RUNTIME_CODES_H
#define MIXT_RUNTIME_CODES_H

#include "runtime/params.h"

/** Decides which segments have moments in codes, where p->moment_format asks for that, and where they lie; where none
 *  has, moments are FP32. */
mixt_status mixt__codes_lay_out(mixt__params *p, const mixt__graph *graph);
/** The slices of each space, from those of the flat arenas. */
mixt_status mixt__codes_share_out(mixt__params *p);
void mixt__codes_free(mixt__params *p);

/** All of a parameter. @param scales one a block */
void mixt__codes_open(float *values, const void *codes, const float *scales, mixt_dtype format, int64_t count);
/** The same to codes, to the nearest. */
void mixt__codes_close(void *codes, float *scales, const float *values, mixt_dtype format, int64_t count);

#endif
