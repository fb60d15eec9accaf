/* Looking at an experiment more than once without being wrong more often.
 *
 * The sum of differences after n pairs has independent increments. Its density among those experiments that are still
 * open is carried from look to look on a grid (Armitage, McPherson and Rowe); a look's limit is where as much of it is
 * cut off as that look may spend (Lan and DeMets). Limits hold for normal sums; at their level a t test is made.
 */
#include "mixt/compare.h"

#include "base/status.h"

#include <math.h>

/** An odd number of points, for Simpson's rule; sums are followed this many deviations down. */
enum { POINTS = 301, DEVIATIONS = 9 };

double mixt_stats_spent(mixt_stats_spending spending, double alpha, int64_t look, double fraction)
{
    if (!(alpha > 0 && alpha < 1))
        return NAN;
    if (spending == MIXT_STATS_SPEND_HALVES)
        return look < 1 ? 0 : alpha * (1 - pow(0.5, (double)look));
    if (!(fraction > 0))
        return 0;
    fraction = fmin(fraction, 1);
    if (spending == MIXT_STATS_SPEND_POCOCK)
        return alpha * log1p((M_E - 1) * fraction);
    return 2 * mixt_stats_normal_below(mixt_stats_normal_at(alpha / 2) / sqrt(fraction));
}

/** Experiments that are still open after a look: the density of their sums. */
typedef struct open_sums {
    double low, step; // of the grid
    double density[POINTS];
    double pairs;
} open_sums;

static double simpson(int i)
{
    return i == 0 || i == POINTS - 1 ? 1.0 / 3 : i % 2 ? 4.0 / 3 : 2.0 / 3;
}

/** The probability that an open experiment's sum comes out above a limit at the next look. */
static double crosses(const open_sums *before, double pairs, double limit)
{
    double sum = 0, spread = sqrt(pairs - before->pairs);
    for (int i = 0; i < POINTS; i++) {
        double at = before->low + i * before->step;
        sum += simpson(i) * before->density[i] * mixt_stats_normal_below((at - limit) / spread);
    }
    return sum * before->step;
}

/** The limit with which a look spends this much. */
static double limit_for(const open_sums *before, double pairs, double spend)
{
    double low = -DEVIATIONS * sqrt(pairs), high = -low;
    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;
        bool too_much =
            (before ? crosses(before, pairs, middle) : mixt_stats_normal_below(-middle / sqrt(pairs))) > spend;
        *(too_much ? &low : &high) = middle;
    }
    return (low + high) / 2;
}

static double normal_density(double x, double deviation)
{
    return exp(-x * x / (2 * deviation * deviation)) / (deviation * sqrt(2 * M_PI));
}

/** What stays open below the limit. */
static void carry(const open_sums *before, double pairs, double limit, open_sums *after)
{
    after->pairs = pairs;
    after->low = -DEVIATIONS * sqrt(pairs);
    after->step = (limit - after->low) / (POINTS - 1);
    for (int j = 0; j < POINTS; j++) {
        double at = after->low + j * after->step, sum = 0;
        for (int i = 0; before && i < POINTS; i++)
            sum += simpson(i) * before->density[i] *
                   normal_density(at - before->low - i * before->step, sqrt(pairs - before->pairs));
        after->density[j] = before ? sum * before->step : normal_density(at, sqrt(pairs));
    }
}

mixt_status mixt_stats_look_levels(const double *spent, const int64_t *pairs, int looks, double *levels)
{
    open_sums sums[2];
    MIXT_TRY(mixt__need(spent));
    MIXT_TRY(mixt__need(pairs));
    MIXT_TRY(mixt__need(levels));
    if (looks < 1 || looks > MIXT_STATS_LOOKS_MAX)
        return mixt__fail(MIXT_ERROR_ARGUMENT, "%d looks: from 1 to %d", looks, MIXT_STATS_LOOKS_MAX);
    for (int k = 0; k < looks; k++) {
        double before = k ? spent[k - 1] : 0, spend = spent[k] - before;
        if (!(spend > 0) || !(spent[k] < 0.5) || pairs[k] <= (k ? pairs[k - 1] : 0))
            return mixt__fail(MIXT_ERROR_ARGUMENT,
                              "look %d: %g spent at %lld pairs after %g at %lld: both must rise, below 0.5 in all",
                              k + 1, spent[k], (long long)pairs[k], before, (long long)(k ? pairs[k - 1] : 0));
        double n = (double)pairs[k];
        const open_sums *open = k ? &sums[(k - 1) % 2] : NULL;
        double limit = limit_for(open, n, spend);
        levels[k] = mixt_stats_normal_below(-limit / sqrt(n));
        if (k + 1 < looks)
            carry(open, n, limit, &sums[k % 2]);
    }
    return MIXT_OK;
}
