/* Which updates get a row of metrics of their own when the user has not said it: all at first, then ever fewer, but
 * never without those whose loss stands out.
 *
 * A function of the update's number and of losses alone, never of time: a run that was resumed has the same rows.
 */
#ifndef MIXT_RUN_THINNING_H
#define MIXT_RUN_THINNING_H

#include "mixt/types.h"

/** What is usual of the loss, over about the last hundred updates. Zero-initialised: nothing is known yet. */
typedef struct mixt__usual {
    double mean, variance;
    int64_t seen;
} mixt__usual;

/** Whether a loss stands out: not finite, or more than six standard deviations (and 1%) above the mean. Takes it into
 *  what is usual. */
bool mixt__usual_spike(mixt__usual *usual, double loss);

/** Updates between two rows around this one: 1 up to 10000, 10 up to 100000, and so on. */
int64_t mixt__row_interval(int64_t step);

#endif
