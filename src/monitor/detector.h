/* What is usual: the median of the newest values and how far they lie from it, as a robust standard deviation (1.4826 ×
 * the median of the distances). Up to half of the values may be outliers before it believes them.
 */
#ifndef MIXT_WATCH_DETECTOR_H
#define MIXT_WATCH_DETECTOR_H

#include "mixt/types.h"

enum { MIXT_DETECTOR_MAX = 1024 };

typedef struct mixt__detector {
    int64_t window; // values that are remembered, at most MIXT_DETECTOR_MAX
    int64_t seen;   // in all
    double ring[MIXT_DETECTOR_MAX], sorted[MIXT_DETECTOR_MAX];
} mixt__detector;

void mixt__detector_start(mixt__detector *detector, int64_t window);
/** Values that it remembers now. */
int64_t mixt__detector_count(const mixt__detector *detector);
/** Takes in a finite value; the oldest goes. */
void mixt__detector_take(mixt__detector *detector, double value);
/** Both 0 before the first value. */
void mixt__detector_usual(const mixt__detector *detector, double *median, double *deviation);
/** A value that it remembers: 0 is the oldest. */
double mixt__detector_at(const mixt__detector *detector, int64_t index);

#endif
