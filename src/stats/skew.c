/* Intervals and p values of a mean that hold where the numbers are skewed, and how many numbers they take.
 *
 * Student's t is wrong most often where rare large values pull the true mean away from what a few numbers show: the
 * mean and the deviation of a sample without them are too small together. So a limit of t is raised by what the sample
 * shows of skewness towards that side, and by what so few numbers cannot show. Calibrated by simulation
 * (tests/unit/test_stats_calibration.c): for normal, t, exponential and lognormal numbers (skewness up to 6.2, either
 * side) a 95% interval misses the true mean on one side in at most 5% of samples. It is no answer to what comes in one
 * of n numbers and was not seen among n (mixt_stats_unseen).
 */
#include "mixt/compare.h"

#include <float.h>
#include <math.h>

double mixt_stats_skew_allowance(int64_t count, double skewness, double level)
{
    double n = (double)count, z = -mixt_stats_normal_at(level) / 1.96; // 1: the 95% interval
    if (count < 2 || isnan(skewness) || !(level > 0 && level < 1))
        return NAN;
    // the fewer the numbers, the more skewness may be there that they do not show; of many, below 1 is left to t
    double weight = fmin(fmin(n / 4, 3), 180 / n), unknown = 22 / n - 1;
    return weight * fmax(0, skewness + unknown) * pow(fmax(0, z), 3);
}

/** How far a bound lies from the mean, in standard errors. */
static double limit_of(int64_t count, double skewness, double level)
{
    return mixt_stats_t_quantile(1 - level, (double)(count - 1)) + mixt_stats_skew_allowance(count, skewness, level);
}

mixt_stats_interval mixt_stats_skew_interval(const mixt_stats_summary *s, double confidence)
{
    double level = (1 - confidence) / 2;
    if (!s || s->count < 2 || !(confidence > 0 && confidence < 1))
        return (mixt_stats_interval){NAN, NAN};
    return (mixt_stats_interval){s->mean - limit_of(s->count, -s->skewness, level) * s->error,
                                 s->mean + limit_of(s->count, s->skewness, level) * s->error};
}

/** The level at which a bound is so far away: Student's limit of that level is looked for, by halving. */
static double level_at(int64_t count, double skewness, double t)
{
    enum { HALVINGS = 50 };
    double freedom = (double)(count - 1), low = 0, high = t;
    if (!(t > 0)) // nothing is allowed for
        return mixt_stats_t_cdf(-t, freedom);
    for (int i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2, level = fmax(mixt_stats_t_cdf(-middle, freedom), DBL_MIN);
        *(middle + mixt_stats_skew_allowance(count, skewness, level) > t ? &high : &low) = middle;
    }
    return mixt_stats_t_cdf(-low, freedom);
}

double mixt_stats_skew_p(const mixt_stats_summary *s, double value, mixt_stats_side side)
{
    if (!s || s->count < 2 || isnan(s->mean) || isnan(value) || s->error == 0)
        return mixt_stats_t_p(s, value, side);
    double t = (value - s->mean) / s->error;
    if (side == MIXT_STATS_BOTH) // the smaller one
        return 2 * level_at(s->count, t > 0 ? s->skewness : -s->skewness, fabs(t));
    return side == MIXT_STATS_BELOW ? level_at(s->count, s->skewness, t) : level_at(s->count, -s->skewness, -t);
}

/* ---- how many it takes ---- */

/** The skewness of `count` normal numbers, at least 6, at z normal deviations: Johnson's S_U curve through its moments
 *  (D'Agostino), which begins at 8 numbers; of fewer it is about normal, but for its bounds. It says nothing about
 *  their mean and deviation: so the power is an average over it. */
static double normal_skewness(int64_t count, double z)
{
    double n = (double)count, deviation = sqrt(6 * (n - 2) / ((n + 1) * (n + 3)));
    double kurtosis = 3 * (n * n + 27 * n - 70) * (n + 1) * (n + 3) / ((n - 2) * (n + 5) * (n + 7) * (n + 9));
    double w2 = sqrt(2 * (kurtosis - 1)) - 1, bound = (n - 2) / sqrt(n - 1);
    if (count < 8)
        return fmin(fmax(z * deviation, -bound), bound);
    return deviation * sqrt(2 / (w2 - 1)) * sinh(z * sqrt(log(w2) / 2));
}

/** The power at one skewness. @param freedom of the pilot that the deviation is of; INFINITY: it is known. With
 *  k = sqrt(pairs) distance / deviation and W² the pilot's chi² / freedom, the test finds Z + k W above its limit,
 *  which is a noncentral t variable above -k. */
static double power_at(int64_t pairs, double k, double freedom, double level, double skewness)
{
    double limit = limit_of(pairs, skewness, level);
    return isinf(freedom) ? mixt_stats_noncentral_t_cdf(-limit, (double)(pairs - 1), -k)
                          : mixt_stats_noncentral_t_cdf(k, freedom, limit);
}

/** Of more normal numbers than these chance does not make skewness that is allowed for. */
enum { CHANCE_MAX = 100 };

static double power_of(int64_t pairs, double deviation, double freedom, double distance, double level, double skewness)
{
    static const double node[] = {-2.856970013872806, -1.355626179974266, 0, 1.355626179974266, 2.856970013872806};
    static const double weight[] = {0.01125741132772069, 0.2220759220056126, 0.5333333333333333, 0.2220759220056126,
                                    0.01125741132772069}; // Gauss and Hermite's
    if (deviation == 0)
        return distance > 0 ? 1 : 0;
    double k = sqrt((double)pairs) * distance / deviation, sum = 0;
    if (!isnan(skewness) || pairs > CHANCE_MAX)
        return power_at(pairs, k, freedom, level, isnan(skewness) ? 0 : skewness);
    for (int i = 0; i < 5; i++)
        sum += weight[i] * power_at(pairs, k, freedom, level, normal_skewness(pairs, node[i]));
    return sum;
}

double mixt_stats_skew_power(int64_t pairs, double deviation, double distance, double level)
{
    if (pairs < MIXT_STATS_PAIRS_MIN || !(deviation >= 0) || isnan(distance) || !(level > 0 && level < 1))
        return NAN;
    return power_of(pairs, deviation, INFINITY, distance, level, NAN);
}

int64_t mixt_stats_skew_pairs(double deviation, double freedom, double distance, double level, double power,
                              double skewness)
{
    if (!(deviation >= 0) || isinf(deviation) || !(freedom > 0) || !(distance > 0) || !(level > 0 && level < 0.5) ||
        !(power > 0 && power < 1))
        return 0;
    double guess = (mixt_stats_normal_at(power) - mixt_stats_normal_at(level)) * deviation / distance;
    int64_t low = MIXT_STATS_PAIRS_MIN - 1,
            high = (int64_t)fmin(fmax(guess * guess, MIXT_STATS_PAIRS_MIN), MIXT_STATS_PAIRS_MAX);
    while (high <= MIXT_STATS_PAIRS_MAX && power_of(high, deviation, freedom, distance, level, skewness) < power) {
        low = high;
        high += high / 2;
    }
    if (high > MIXT_STATS_PAIRS_MAX)
        high = MIXT_STATS_PAIRS_MAX + 1;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (power_of(middle, deviation, freedom, distance, level, skewness) < power)
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* ---- what was not seen ---- */

double mixt_stats_unseen(int64_t count)
{
    return count > 0 ? -expm1(log(MIXT_STATS_ALPHA) / (double)count) : 1;
}

int64_t mixt_stats_pairs_to_see(double rate)
{
    if (!(rate > 0 && rate < 1))
        return 0;
    double pairs = ceil(log(MIXT_STATS_ALPHA) / log1p(-rate) - 1e-9);
    return pairs > (double)MIXT_STATS_PAIRS_MAX ? MIXT_STATS_PAIRS_MAX + 1 : (int64_t)pairs;
}
