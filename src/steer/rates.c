/* Is the learning rate too high? The same updates from a good state, on the same batches, with lower ones.
 *
 * With a rate of 0 they say what the batches cost from the weights of that state. Losses are held against those, batch
 * by batch, so that neither hard batches nor the level of the loss tell anything: a rate is too high where learning
 * makes it worse than not to learn. The highest rate that is calm is found by halving, in powers of two.
 */
#include "steer/inquiry.h"

#include "base/statistics.h"
#include "steer/consensus.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    JUDGED = 16,   // updates at the end of a trial that it is judged by: from the first sign on, at least
    BEHIND = 32,   // behind the first sign, at most
    HALVINGS = 12, // at most
};
static const double worse = 0.1;        // of logarithms: losses that learning has made so much worse, ...
static const double worse_fresh = 0.03; // ... where nothing was learned yet
static const double noticed = 0.05;     // of the first loss: a net that overfits makes less of a tiny one
static const double sure = 3;           // standard errors
static const double calm_rise = 0.02, calm_peak = 0.3; // at the end of a trial, and on the way
static const double limit = 10;                        // stands for what is not finite

typedef struct trial {
    double rise, error; // median of the differences at its end, and its standard error
    double lost;        // median of the differences of losses themselves
    double peak;        // the largest difference on the way
    bool dead;          // a layer is, at its end
} trial;

typedef struct trials {
    mixt__inquiry *q;
    int64_t from, end; // updates (from, end]
    double *base;      // (end - from) logarithms of losses without learning
    bool dead;         // after the newest trial a layer is
} trials;

static double logarithm(double loss)
{
    return isfinite(loss) ? log(fmax(loss, 1e-30)) : INFINITY;
}

/** The updates with `factor` times the rate. @param losses (end - from) their logarithms */
static mixt_status make(trials *t, double factor, double *losses)
{
    mixt__inquiry *q = t->q;
    const mixt__segment *segments = mixt__trainer_params(q->trainer)->segments;
    mixt__trainer_try_rate(q->trainer, factor);
    mixt_status status = mixt__replay_from(&q->replay, t->from);
    for (int64_t i = 0; i < t->end - t->from && status == MIXT_OK; i++) {
        status = mixt__replay_step(&q->replay);
        losses[i] = status == MIXT_OK ? logarithm(q->replay.row.loss) : 0;
    }
    mixt__trainer_try_rate(q->trainer, 1);
    t->dead = status == MIXT_OK && q->signs & MIXT_SIGN_DEAD && !q->replay.row.skipped &&
              mixt__trace_dead(&q->ring->trace, q->begin, q->replay.stats, segments) >= 0;
    return status;
}

static trial judge(const trials *t, const double *losses)
{
    int64_t count = t->end - t->from, last = count < JUDGED ? count : JUDGED;
    double ends[JUDGED], lost[JUDGED];
    trial found = {.peak = -limit, .dead = t->dead};
    for (int64_t i = 0; i < count; i++) {
        double rise = isfinite(losses[i]) ? fmax(-limit, fmin(limit, losses[i] - t->base[i])) : limit;
        found.peak = fmax(found.peak, rise);
        if (i < count - last)
            continue;
        ends[i - (count - last)] = rise;
        lost[i - (count - last)] = isfinite(losses[i]) ? exp(losses[i]) - exp(t->base[i]) : INFINITY;
    }
    found.lost = mixt__median(lost, last);
    found.rise = mixt__median(ends, last);
    for (int64_t i = 0; i < last; i++)
        ends[i] = fabs(ends[i] - found.rise);
    found.error = 1.2533 * 1.4826 * mixt__median(ends, last) / sqrt((double)last);
    return found;
}

static bool is_calm(const trial *now, const trial *before)
{
    double allowed = before->dead ? calm_rise : fmin(calm_rise, before->rise / 4);
    return !now->dead && now->rise <= allowed && now->peak <= fmax(calm_peak, before->peak / 16);
}

/** The highest rate that is calm. @param factor 0: none */
static mixt_status find_calm(trials *t, const trial *before, double *losses, double *factor)
{
    int high = HALVINGS + 1;
    *factor = 0;
    for (int low = 0; high - low > 1;) {
        int middle = (low + high) / 2;
        MIXT_TRY(make(t, ldexp(1, -middle), losses));
        trial now = judge(t, losses);
        bool calm = is_calm(&now, before);
        high = calm ? middle : high;
        low = calm ? low : middle;
    }
    *factor = high <= HALVINGS ? ldexp(1, -high) : 0;
    return MIXT_OK;
}

/** From one good state. @param factor 0: the rate is not to blame */
static mixt_status try_from(trials *t, double *losses, double *factor)
{
    *factor = 0;
    MIXT_TRY(make(t, 0, t->base));
    if (t->dead) // without learning too
        return MIXT_OK;
    MIXT_TRY(make(t, 1, losses));
    trial before = judge(t, losses);
    bool is_worse = before.rise >= (t->from ? worse : worse_fresh) && before.rise >= sure * before.error;
    bool tiny = t->q->began > 0 && before.lost < noticed * t->q->began;
    if ((!is_worse || (t->from && tiny)) && !before.dead)
        return MIXT_OK;
    return find_calm(t, &before, losses, factor);
}

static mixt_status try_state(mixt__inquiry *q, int64_t from, double *factor)
{
    int64_t end = q->last < q->begin + BEHIND ? q->last : q->begin + BEHIND;
    trials t = {.q = q, .from = from, .end = end < q->begin + JUDGED ? q->begin + JUDGED : end};
    size_t bytes = (size_t)(t.end - t.from) * sizeof(double);
    double *losses = mixt__alloc(bytes);
    t.base = mixt__alloc(bytes);
    mixt_status status = mixt__consensus_agree(
        q->trainer, losses && t.base ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory to try learning rates"));
    if (status == MIXT_OK)
        status = try_from(&t, losses, factor);
    mixt__free(t.base);
    mixt__free(losses);
    return status;
}

mixt_status mixt__inquire_rate(mixt__inquiry *q, bool *found)
{
    mixt_diagnosis *d = q->d;
    double factor = 0, lr = (double)mixt__trainer_settings_of(q->trainer)->schedule.lr;
    *found = false;
    if (!(lr > 0))
        return MIXT_OK;
    for (int64_t from = d->good; from >= 0 && !*found; from = mixt__snapshots_before(q->ring, from)) {
        MIXT_TRY(try_state(q, from, &factor));
        *found = factor > 0;
        if (!*found)
            continue;
        d->good = from;
        d->lr = lr;
        d->calm_lr = lr * factor;
    }
    return MIXT_OK;
}
