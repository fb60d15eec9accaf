/* What it takes to get somewhere: updates, time and price until a loss or an accuracy of training is reached, as the
 * mean over a twentieth of the run, in which single batches no longer count.
 */
#include "verify/verify.h"

#include <math.h>

/** Share of the updates that a mean is taken over; as mixt compare. */
static const double smooth_share = 0.05;

/** Mean of the last `window` of the first `end` numbers. */
static double mean_before(const double *values, int64_t end, int64_t window)
{
    double sum = 0;
    for (int64_t i = end - window; i < end; i++)
        sum += values[i];
    return sum / (double)window;
}

/** The first update after which the mean is there; NaN: none. */
static double reaches(const double *values, int64_t count, int64_t window, double target, bool rising)
{
    for (int64_t end = window; end <= count; end++) {
        double mean = mean_before(values, end, window);
        if (rising ? mean >= target : mean <= target)
            return (double)end;
    }
    return NAN;
}

static void find_steps(const mixt_verification *v, mixt_verify_run runs[MIXT_VERIFY_SIDES])
{
    const mixt_verify_run *a = &runs[MIXT_VERIFY_FP32], *b = &runs[MIXT_VERIFY_MIXED];
    int64_t all = a->steps < b->steps ? a->steps : b->steps, window = (int64_t)(smooth_share * (double)all);
    window = window < 1 ? 1 : window;
    double target = v->target_loss;
    if (isnan(target) && a->steps >= window && b->steps >= window) {
        target = fmax(mean_before(a->losses, a->steps, window), mean_before(b->losses, b->steps, window));
        target += 1e-12 * fabs(target); // sums that were added in another order
    }
    bool accuracy = !isnan(v->target_accuracy);
    for (int side = 0; side < MIXT_VERIFY_SIDES; side++) {
        mixt_verify_run *r = &runs[side];
        r->target_steps = reaches(accuracy ? r->accuracies : r->losses, r->steps, window,
                                  accuracy ? v->target_accuracy : target, accuracy);
    }
}

/* ---- figures ---- */

static double steps_of(const mixt_verification *v, const mixt_verify_run *r)
{
    (void)v;
    return r->target_steps;
}

static double seconds_to_target(const mixt_verification *v, const mixt_verify_run *r)
{
    (void)v;
    return r->target_steps * r->step_seconds;
}

static double reached(const mixt_verification *v, const mixt_verify_run *r)
{
    (void)v;
    return isnan(r->target_steps) ? 0 : 1;
}

static double seconds_of(const mixt_verification *v, const mixt_verify_run *r)
{
    (void)v;
    return (double)r->steps * r->step_seconds;
}

static double cost_of(const mixt_verification *v, const mixt_verify_run *r)
{
    return !isnan(v->price) ? seconds_of(v, r) / 3600 * v->price : (double)NAN;
}

/** Means and the ratio over the seeds in which both sides have a number. */
static void fill(const mixt_verification *v, double (*value)(const mixt_verification *, const mixt_verify_run *),
                 mixt_verify_figure *f)
{
    double logs[MIXT_VERIFY_SEEDS_MAX], fp32 = 0, mixed = 0;
    int64_t count = 0, ratios = 0;
    for (int64_t i = 0; i < v->seeds; i++) {
        double a = value(v, &v->runs[i][MIXT_VERIFY_FP32]), b = value(v, &v->runs[i][MIXT_VERIFY_MIXED]);
        if (isnan(a) || isnan(b))
            continue;
        count++;
        fp32 += a;
        mixed += b;
        if (a > 0 && b > 0)
            logs[ratios++] = log(b / a);
    }
    f->fp32 = count ? fp32 / (double)count : (double)NAN;
    f->mixed = count ? mixed / (double)count : (double)NAN;
    f->ratio = f->low = f->high = NAN;
    if (!count || ratios < count)
        return;
    mixt_stats_summary s = mixt_stats_summarise(logs, ratios);
    mixt_stats_interval interval = mixt_stats_t_interval(&s, 0.95);
    f->ratio = exp(s.mean);
    f->low = exp(interval.low);
    f->high = exp(interval.high);
}

void mixt__verify_find_targets(mixt_verification *v)
{
    static const struct {
        const char *name, *what, *unit;
        double (*value)(const mixt_verification *v, const mixt_verify_run *r);
    } all[MIXT_VERIFY_FIGURES] = {
        {"seconds_to_target", "time to target", "s", seconds_to_target},
        {"steps_to_target", "updates to target", "", steps_of},
        {"reached", "share of seeds that reached it", "", reached},
        {"seconds", "time of a run", "s", seconds_of},
        {"cost", "cost of a run", "", cost_of},
    };
    for (int64_t i = 0; i < v->seeds; i++)
        find_steps(v, v->runs[i]);
    for (int i = 0; i < MIXT_VERIFY_FIGURES; i++) {
        mixt_verify_figure *f = &v->figures[i];
        *f = (mixt_verify_figure){.name = all[i].name, .what = all[i].what, .unit = all[i].unit};
        fill(v, all[i].value, f);
    }
}
