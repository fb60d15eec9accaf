/* CPU threads: one fixed team (OpenMP), static partition, so that the same count gives the same bits. */
#ifndef MIXT_BASE_THREADS_H
#define MIXT_BASE_THREADS_H

#include <stdint.h>

/** Threads that parallel regions use: the argument of the last mixt__threads_set, else MIXT_THREADS, else all cores. */
int mixt__threads_count(void);
/** 0 goes back to the default. */
void mixt__threads_set(int count);

/** Work on [begin, end) by thread `thread` of the team. */
typedef void mixt__range_fn(void *argument, int64_t begin, int64_t end, int thread);

/** Splits [0, count) into one contiguous range a thread, each a multiple of `grain` but the last; runs inline when
 *  there is only one range. `thread` is below mixt__threads_count(). */
void mixt__parallel(int64_t count, int64_t grain, mixt__range_fn *fn, void *argument);

/** Seconds on a clock that never goes back. */
double mixt__time_now(void);

#endif
