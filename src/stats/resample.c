/* Tests and intervals that ask for no distribution: flipping signs, drawing again from what was seen. */
#include "mixt/compare.h"

#include "base/alloc.h"
#include "base/options.h"
#include "base/rng.h"
#include "base/status.h"

#include <math.h>
#include <stdlib.h>

enum { DRAWS_MAX = 10000000, STREAM_FLIPS = 1, STREAM_BOOTSTRAP = 2 };

/* ---- flipping signs ---- */

/** Whether a sum is as far out as the one seen; sums that differ by rounding alone are the same. */
static bool as_far(double sum, double seen, double slack, mixt_stats_side side)
{
    if (side == MIXT_STATS_BOTH)
        return fabs(sum) >= fabs(seen) - slack;
    return side == MIXT_STATS_BELOW ? sum <= seen + slack : sum >= seen - slack;
}

/** The sums of all combinations of signs of up to ten numbers. */
static void all_sums(const double *x, int64_t count, double value, double *sums)
{
    for (int64_t signs = 0; signs < (int64_t)1 << count; signs++) {
        sums[signs] = 0;
        for (int64_t i = 0; i < count; i++)
            sums[signs] += signs >> i & 1 ? value - x[i] : x[i] - value;
    }
}

/** Both halves by themselves, then each with each: no sum carries the rounding of a million before it. */
static double flip_all(const double *x, int64_t count, double value, double seen, double slack, mixt_stats_side side)
{
    enum { HALF = MIXT_STATS_FLIPS_EXACT / 2 };
    double first[1 << HALF], second[1 << HALF];
    int64_t split = count / 2, far = 0;
    all_sums(x, split, value, first);
    all_sums(x + split, count - split, value, second);
    for (int64_t i = 0; i < (int64_t)1 << split; i++)
        for (int64_t j = 0; j < (int64_t)1 << (count - split); j++)
            far += as_far(first[i] + second[j], seen, slack, side);
    return (double)far / (double)((int64_t)1 << count);
}

static double flip_some(const double *x, int64_t count, double value, double seen, double slack, mixt_stats_side side,
                        uint64_t seed)
{
    mixt__rng rng = mixt__rng_start(mixt__rng_key(seed, STREAM_FLIPS, 0));
    int64_t far = 1; // the one seen is one of them
    for (int64_t draw = 0; draw < MIXT_STATS_FLIPS_DRAWN; draw++) {
        double sum = 0;
        uint32_t bits = 0;
        for (int64_t i = 0; i < count; i++, bits >>= 1) {
            if (i % 32 == 0)
                bits = mixt__rng_u32(&rng);
            sum += bits & 1 ? value - x[i] : x[i] - value;
        }
        far += as_far(sum, seen, slack, side);
    }
    return (double)far / (double)(MIXT_STATS_FLIPS_DRAWN + 1);
}

double mixt_stats_flip_p(const double *values, int64_t count, double value, mixt_stats_side side, uint64_t seed)
{
    double seen = 0, size = 0;
    for (int64_t i = 0; values && i < count; i++) {
        seen += values[i] - value;
        size += fabs(values[i] - value);
    }
    if (!values || count < 1 || !isfinite(size))
        return NAN;
    double slack = 1e-12 * size;
    return count <= MIXT_STATS_FLIPS_EXACT ? flip_all(values, count, value, seen, slack, side)
                                           : flip_some(values, count, value, seen, slack, side, seed);
}

/* ---- drawing again ---- */

static int by_size(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/** Means of resamples, sorted. */
static void draw_means(const double *x, int64_t count, int64_t draws, uint64_t seed, double *means)
{
    mixt__rng rng = mixt__rng_start(mixt__rng_key(seed, STREAM_BOOTSTRAP, 0));
    for (int64_t d = 0; d < draws; d++) {
        double sum = 0;
        for (int64_t i = 0; i < count; i++)
            sum += x[mixt__rng_below(&rng, (uint64_t)count)];
        means[d] = sum / (double)count;
    }
    qsort(means, (size_t)draws, sizeof *means, by_size);
}

/** The number that a share of the sorted ones lies below, between two of them where it must. */
static double quantile(const double *sorted, int64_t count, double share)
{
    double at = share * (double)(count - 1);
    int64_t below = (int64_t)at;
    if (below >= count - 1)
        return sorted[count - 1];
    return sorted[below] + (at - (double)below) * (sorted[below + 1] - sorted[below]);
}

/** Acceleration of the mean by the jackknife: leaving one number out moves it against that number. */
static double acceleration(const double *x, int64_t count, double mean)
{
    double squares = 0, cubes = 0;
    for (int64_t i = 0; i < count; i++) {
        double off = x[i] - mean;
        squares += off * off;
        cubes += off * off * off;
    }
    return cubes / (6 * pow(squares, 1.5));
}

/** Share of the draws where a plain percentile interval would end, corrected for bias and acceleration. */
static double corrected(double bias, double accelerated, double share)
{
    double z = bias + mixt_stats_normal_at(share);
    return mixt_stats_normal_below(bias + z / (1 - accelerated * z));
}

/** How far the draws lie off the mean seen, in normal units; ties count half. */
static double bias_of(const double *sorted, int64_t draws, double mean)
{
    double below = 0, slack = 1e-12 * fabs(mean);
    for (int64_t i = 0; i < draws; i++)
        below += sorted[i] < mean - slack ? 1 : sorted[i] <= mean + slack ? 0.5 : 0;
    double share = fmin(fmax(below / (double)draws, 0.5 / (double)draws), 1 - 0.5 / (double)draws);
    return mixt_stats_normal_at(share);
}

mixt_status mixt_stats_bootstrap(const double *values, int64_t count, const mixt_stats_bootstrap_options *options,
                                 mixt_stats_interval *interval)
{
    mixt_stats_bootstrap_options o = MIXT_OPTIONS(mixt_stats_bootstrap_options);
    MIXT_TRY(mixt__options(mixt_stats_bootstrap_options, &o, options));
    MIXT_TRY(mixt__need(values));
    MIXT_TRY(mixt__need(interval));
    mixt_stats_summary s = mixt_stats_summarise(values, count);
    *interval = (mixt_stats_interval){NAN, NAN};
    if (count < 2 || isnan(s.deviation) || !(o.confidence > 0 && o.confidence < 1) || o.draws < 2 ||
        o.draws > DRAWS_MAX)
        return mixt__fail(MIXT_ERROR_ARGUMENT,
                          "a bootstrap of %lld numbers, %lld draws, confidence %g: at least 2 "
                          "finite numbers, 2 to %d draws and a confidence between 0 and 1",
                          (long long)count, (long long)o.draws, o.confidence, DRAWS_MAX);
    double *means = mixt__alloc((size_t)o.draws * sizeof *means);
    if (!means)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a bootstrap of %lld draws", (long long)o.draws);
    draw_means(values, count, o.draws, o.seed, means);
    double low = (1 - o.confidence) / 2, high = 1 - low;
    if (!o.percentile && s.deviation > 0) {
        double bias = bias_of(means, o.draws, s.mean), a = acceleration(values, count, s.mean);
        low = corrected(bias, a, low);
        high = corrected(bias, a, high);
    }
    *interval = (mixt_stats_interval){quantile(means, o.draws, low), quantile(means, o.draws, high)};
    mixt__free(means);
    return MIXT_OK;
}
