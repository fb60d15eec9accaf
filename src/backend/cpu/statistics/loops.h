/* The inner loop of statistics, by instruction-set level. All levels are compiled from one source (loops.c) with the
 * same lanes, so that they give the same bits.
 */
#ifndef MIXT_BACKEND_CPU_STATISTICS_LOOPS_H
#define MIXT_BACKEND_CPU_STATISTICS_LOOPS_H

#include "ops/attrs.h"

#include <stdint.h>

enum { MIXT_STATS_LANES = 8 };

/** What is known of a chunk of at most 2^16 numbers: number i of the tensor is in lane i % MIXT_STATS_LANES. */
typedef struct mixt__stats_sums {
    double sum[MIXT_STATS_LANES], squares[MIXT_STATS_LANES]; // over what is finite, as are …
    float low[MIXT_STATS_LANES], high[MIXT_STATS_LANES];     // … the least and the greatest
    int32_t zeros[MIXT_STATS_LANES], nan[MIXT_STATS_LANES], inf[MIXT_STATS_LANES];
    uint16_t exponents[MIXT_STATS_LANES][MIXT_STATS_BINS]; // apart by lane: equal ones do not wait for each other
} mixt__stats_sums;

/** Takes in `groups` times MIXT_STATS_LANES numbers, the first of them in lane 0. */
typedef void mixt__stats_loop(mixt__stats_sums *sums, const float *x, int64_t groups);

extern mixt__stats_loop mixt__stats_loop_scalar, mixt__stats_loop_avx2, mixt__stats_loop_avx512;

/** The one for this processor. */
mixt__stats_loop *mixt__stats_loop_get(void);

#endif
