/* Distributions, and what the mean of a few numbers says: t intervals, p values, effect sizes, power. */
#include "mixt/compare.h"

#include "base/statistics.h"

#include <math.h>

/* ---- distributions ---- */

double mixt_stats_normal_below(double x)
{
    return erfc(-x / sqrt(2)) / 2;
}

/** Acklam's rational approximation, good to nine digits; the caller refines it. */
static double normal_guess(double p)
{
    static const double a[] = {-39.69683028665376, 220.9460984245205,  -275.9285104469687,
                               138.3577518672690,  -30.66479806614716, 2.506628277459239};
    static const double b[] = {-54.47609879822406, 161.5858368580409, -155.6989798598866, 66.80131188771972,
                               -13.28068155288572};
    static const double c[] = {-0.007784894002430293, -0.3223964580411365, -2.400758277161838,
                               -2.549732539343734,    4.374664141464968,   2.938163982698783};
    static const double d[] = {0.007784695709041462, 0.3224671290700398, 2.445134137142996, 3.754408661907416};
    double tail = p < 0.5 ? p : 1 - p;
    if (tail >= 0.02425) {
        double q = p - 0.5, r = q * q;
        return (((((a[0] * r + a[1]) * r + a[2]) * r + a[3]) * r + a[4]) * r + a[5]) * q /
               (((((b[0] * r + b[1]) * r + b[2]) * r + b[3]) * r + b[4]) * r + 1);
    }
    double q = sqrt(-2 * log(tail));
    double x = (((((c[0] * q + c[1]) * q + c[2]) * q + c[3]) * q + c[4]) * q + c[5]) /
               ((((d[0] * q + d[1]) * q + d[2]) * q + d[3]) * q + 1);
    return p < 0.5 ? x : -x;
}

double mixt_stats_normal_at(double p)
{
    if (!(p > 0 && p < 1))
        return NAN;
    double x = normal_guess(p), off = (mixt_stats_normal_below(x) - p) * sqrt(2 * M_PI) * exp(x * x / 2);
    return x - off / (1 + x * off / 2); // one step of Halley
}

double mixt_stats_t_cdf(double t, double freedom)
{
    return freedom > 0 && !isnan(t) ? mixt__student_below(t, freedom) : (double)NAN;
}

/** Density of Student's t. */
static double t_density(double t, double freedom)
{
    double h = freedom / 2;
    return exp(lgamma(h + 0.5) - lgamma(h) - (h + 0.5) * log1p(t * t / freedom)) / sqrt(M_PI * freedom);
}

/** Newton's way from the normal limit, above 0; halving the range, which always ends, where that does not. */
static double t_limit(double p, double freedom)
{
    double z = mixt_stats_normal_at(p), t = z + z * (z * z + 1) / (4 * freedom);
    for (int i = 0; i < 20; i++) {
        double step = (mixt__student_below(t, freedom) - p) / t_density(t, freedom);
        t -= step;
        if (!(t > 0))
            break;
        if (fabs(step) <= 1e-14 * t)
            return t;
    }
    return mixt__student_limit(2 * p - 1, freedom);
}

double mixt_stats_t_quantile(double p, double freedom)
{
    if (!(p > 0 && p < 1) || !(freedom > 0))
        return NAN;
    if (p == 0.5)
        return 0;
    return p < 0.5 ? -t_limit(1 - p, freedom) : t_limit(p, freedom);
}

/** Logarithm of the density of s = sqrt(chi² / freedom), around 1, but for the part that is the same for all s. */
static double log_spread(double s, double freedom)
{
    return s > 0 ? (freedom - 1) * log(s) - freedom / 2 * s * s : freedom > 1 ? (double)-INFINITY : 0;
}

/** The mean of P(Z <= t s - shift) over s, by Gauss-Legendre on panels over all of s that matters. */
double mixt_stats_noncentral_t_cdf(double t, double freedom, double shift)
{
    static const double node[] = {0.0950125098376374, 0.2816035507792589, 0.4580167776572274, 0.6178762444026438,
                                  0.7554044083550030, 0.8656312023878318, 0.9445750230732326, 0.9894009349916499};
    static const double weight[] = {0.1894506104550685, 0.1826034150449236, 0.1691565193950025, 0.1495959888165767,
                                    0.1246289712555339, 0.0951585116824928, 0.0622535239386479, 0.0271524594117541};
    enum { PANELS_MIN = 10, PANELS_MAX = 1000, NODES = 8 };
    if (!(freedom > 0) || isnan(t) || isnan(shift))
        return NAN;
    if (isinf(freedom))
        return mixt_stats_normal_below(t - shift);
    double low = fmax(0, 1 - 9 / sqrt(freedom)), high = 1 + 9 / sqrt(freedom);
    int panels = (int)fmin(PANELS_MIN + fabs(t) * (high - low), PANELS_MAX); // the larger t, the steeper is P(Z <= …)
    double half = (high - low) / (2 * panels), sum = 0, h = freedom / 2, scale = log(2) + h * log(h) - lgamma(h);
    for (int panel = 0; panel < panels; panel++) {
        double middle = low + (2 * panel + 1) * half;
        for (int i = 0; i < 2 * NODES; i++) {
            double s = middle + (i % 2 ? half : -half) * node[i / 2];
            sum += half * weight[i / 2] * exp(scale + log_spread(s, freedom)) * mixt_stats_normal_below(t * s - shift);
        }
    }
    return fmin(fmax(sum, 0), 1);
}

/* ---- what some numbers say ---- */

mixt_stats_summary mixt_stats_summarise(const double *values, int64_t count)
{
    mixt_stats_summary s = {.count = count < 0 || !values ? 0 : count};
    double squares = 0, cubes = 0, n = (double)s.count;
    for (int64_t i = 0; i < s.count; i++)
        s.mean += values[i] / n;
    if (!s.count || !isfinite(s.mean)) {
        s.mean = s.deviation = s.error = s.skewness = NAN;
        return s;
    }
    for (int64_t i = 0; i < s.count; i++) {
        double off = values[i] - s.mean;
        squares += off * off;
        cubes += off * off * off;
    }
    s.deviation = s.count > 1 ? sqrt(squares / (n - 1)) : (double)NAN;
    s.error = s.deviation / sqrt(n);
    s.skewness = squares > 0 ? cubes / n / pow(squares / n, 1.5) : 0;
    return s;
}

mixt_stats_interval mixt_stats_t_interval(const mixt_stats_summary *s, double confidence)
{
    if (!s || s->count < 2 || !(confidence > 0 && confidence < 1))
        return (mixt_stats_interval){NAN, NAN};
    double half = mixt_stats_t_quantile(0.5 + confidence / 2, (double)(s->count - 1)) * s->error;
    return (mixt_stats_interval){s->mean - half, s->mean + half};
}

double mixt_stats_t_p(const mixt_stats_summary *s, double value, mixt_stats_side side)
{
    if (!s || s->count < 2 || isnan(s->mean) || isnan(value))
        return NAN;
    double off = s->mean - value, freedom = (double)(s->count - 1);
    if (s->error == 0) {
        bool out = side == MIXT_STATS_BELOW ? off < 0 : side == MIXT_STATS_ABOVE ? off > 0 : off != 0;
        return out ? 0 : 1;
    }
    double t = off / s->error;
    if (side == MIXT_STATS_BOTH)
        return 2 * mixt__student_below(-fabs(t), freedom);
    return mixt__student_below(side == MIXT_STATS_BELOW ? t : -t, freedom);
}

double mixt_stats_effect(const mixt_stats_summary *s)
{
    if (!s || s->count < 2 || isnan(s->mean))
        return NAN;
    if (s->deviation == 0)
        return s->mean == 0 ? 0 : (double)NAN;
    double h = (double)(s->count - 1) / 2; // Hedges: E[1 / deviation] is too large by this factor
    double correction = exp(lgamma(h) - lgamma(h - 0.5)) / sqrt(h);
    return s->mean / s->deviation * (s->count > 2 ? correction : 1);
}

double mixt_stats_sign_p(int64_t one, int64_t other)
{
    if (one < 0 || other < 0)
        return NAN;
    return one ? mixt__beta_below((double)one, (double)other + 1, 0.5) : 1;
}

/* ---- how many it takes ---- */

double mixt_stats_power(int64_t pairs, double deviation, double distance, double level)
{
    if (pairs < 2 || !(deviation >= 0) || isnan(distance) || !(level > 0 && level < 1))
        return NAN;
    if (deviation == 0)
        return distance > 0 ? 1 : 0;
    double freedom = (double)(pairs - 1), limit = mixt_stats_t_quantile(1 - level, freedom);
    return mixt_stats_noncentral_t_cdf(-limit, freedom, -distance / deviation * sqrt((double)pairs));
}

/** The power of so many pairs, where the deviation itself is an estimate: the mean over what it may truly be. With
 *  k = sqrt(pairs) distance / deviation and W² the pilot's chi² / freedom, the test finds Z + k W above its limit,
 *  which is a noncentral t variable above -k. */
static double power_after_pilot(int64_t pairs, double deviation, double freedom, double distance, double level)
{
    if (isinf(freedom) || deviation == 0)
        return mixt_stats_power(pairs, deviation, distance, level);
    double limit = mixt_stats_t_quantile(1 - level, (double)(pairs - 1));
    return mixt_stats_noncentral_t_cdf(sqrt((double)pairs) * distance / deviation, freedom, limit);
}

int64_t mixt_stats_pairs(double deviation, double freedom, double distance, double level, double power)
{
    if (!(deviation >= 0) || isinf(deviation) || !(freedom > 0) || !(distance > 0) || !(level > 0 && level < 0.5) ||
        !(power > 0 && power < 1))
        return 0;
    int64_t low = 1, high = 2;
    while (high <= MIXT_STATS_PAIRS_MAX && power_after_pilot(high, deviation, freedom, distance, level) < power) {
        low = high;
        high *= 2;
    }
    if (high > MIXT_STATS_PAIRS_MAX)
        high = MIXT_STATS_PAIRS_MAX + 1;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (power_after_pilot(middle, deviation, freedom, distance, level) < power)
            low = middle;
        else
            high = middle;
    }
    return high;
}
