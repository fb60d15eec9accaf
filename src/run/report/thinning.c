/* Rows that are ever fewer, and losses that stand out. */
#include "run/report/thinning.h"

#include <math.h>

enum { EACH_UP_TO = 10000, MEMORY = 100, DEVIATIONS = 6 };

bool mixt__usual_spike(mixt__usual *usual, double loss)
{
    if (!isfinite(loss))
        return true;
    double above = loss - usual->mean, limit = DEVIATIONS * sqrt(usual->variance);
    bool spike = usual->seen >= MEMORY && above > limit && above > 0.01 * fabs(usual->mean);
    usual->seen++;
    double rate = usual->seen < MEMORY ? 1.0 / (double)usual->seen : 1.0 / MEMORY;
    usual->mean += rate * above;
    usual->variance = (1 - rate) * (usual->variance + rate * above * above);
    return spike;
}

int64_t mixt__row_interval(int64_t step)
{
    int64_t interval = 1;
    for (int64_t left = (step - 1) / EACH_UP_TO; left > 0; left /= 10)
        interval *= 10;
    return interval;
}
