/* From pairs to conclusions. A verdict is given only where there is nothing against giving one: reasons() looks for
 * what there may be, and what it finds is told instead.
 */
#include "prove/compare.h"

#include "base/alloc.h"
#include "base/statistics.h"
#include "base/status.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

/* ---- differences ---- */

static double value_at(const mixt_compare_run *run, size_t offset)
{
    return *(const double *)(const void *)((const char *)run + offset);
}

/** Both are there, and neither diverged. */
static bool whole(const mixt__compare_pair *p)
{
    return p->done[0] && p->done[1] && !p->runs[0].diverged && !p->runs[1].diverged;
}

double mixt__compare_worse(const mixt_comparison *c, const mixt__compare_pair *p)
{
    double a = value_at(&p->runs[MIXT_COMPARE_A], c->metric->offset),
           b = value_at(&p->runs[MIXT_COMPARE_B], c->metric->offset);
    double worse = c->metric->higher ? a - b : b - a;
    if (!whole(p))
        return NAN;
    return c->options.absolute ? worse : a > 0 ? worse / a : (double)NAN;
}

int64_t mixt__compare_differences(const mixt_comparison *c, double *worse)
{
    int64_t count = 0;
    for (int64_t i = 0; i < c->count; i++) {
        double w = mixt__compare_worse(c, &c->pairs[i]);
        if (isfinite(w))
            worse[count++] = w;
    }
    return count;
}

/* ---- figures ---- */

static const struct {
    const char *name, *what, *unit;
    size_t offset;
    bool count; // an integer
} shown[MIXT_COMPARE_FIGURES] = {
#define SHOWN(name, what, unit, count)                                                                                 \
    {                                                                                                                  \
#name, what, unit, offsetof(mixt_compare_run, name), count                                                     \
    }
    SHOWN(equal_seconds, "time to equal loss", "s", false),
    SHOWN(equal_steps, "updates to equal loss", "", false),
    SHOWN(loss, "loss at the end", "", false),
    SHOWN(accuracy, "accuracy at the end", "", false),
    SHOWN(train_loss, "training loss at the end", "", false),
    SHOWN(best_loss, "best loss", "", false),
    SHOWN(samples_s, "speed", "samples/s", false),
    SHOWN(step_seconds, "time per update", "s", false),
    SHOWN(memory, "memory of the step", "bytes", false),
    SHOWN(energy, "energy", "J", false),
    SHOWN(seconds, "time of all updates", "s", false),
    SHOWN(skipped, "updates skipped", "", true),
    SHOWN(spikes, "spikes of the loss", "", true),
    SHOWN(alerts, "alerts about gradients", "", true),
    SHOWN(grad_norm, "gradient norm", "", false),
    SHOWN(grad_norm_max, "largest gradient norm, in medians", "", false),
#undef SHOWN
};

static double shown_value(const mixt_compare_run *run, int figure)
{
    const char *at = (const char *)run + shown[figure].offset;
    return shown[figure].count ? (double)*(const int64_t *)(const void *)at : *(const double *)(const void *)at;
}

/** Means of both sides, and the ratio in each pair with what chance leaves of it. */
static void fill_figure(const mixt_comparison *c, int figure, double *logs, mixt_compare_figure *f)
{
    int64_t count = 0, ratios = 0;
    *f = (mixt_compare_figure){shown[figure].name, shown[figure].what, shown[figure].unit, 0, 0, NAN, NAN, NAN};
    for (int64_t i = 0; i < c->count; i++) {
        const mixt__compare_pair *p = &c->pairs[i];
        double a = shown_value(&p->runs[0], figure), b = shown_value(&p->runs[1], figure);
        if (!whole(p) || isnan(a) || isnan(b))
            continue;
        count++;
        f->a += a;
        f->b += b;
        if (a > 0 && b > 0)
            logs[ratios++] = log(b / a);
    }
    f->a = count ? f->a / (double)count : (double)NAN;
    f->b = count ? f->b / (double)count : (double)NAN;
    if (!count || ratios < count)
        return;
    mixt_stats_summary s = mixt_stats_summarise(logs, ratios);
    mixt_stats_interval i = mixt_stats_t_interval(&s, 0.95);
    f->ratio = exp(s.mean);
    f->low = exp(i.low);
    f->high = exp(i.high);
}

/* ---- reasons not to conclude ---- */

/** Share of the loss that A's training gained, the mean over pairs. Being within a margin of a run that gained less
 *  than that proves nothing. */
static double gain_of(const mixt_comparison *c)
{
    double sum = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < c->count; i++)
        if (whole(&c->pairs[i])) {
            const mixt_compare_run *a = &c->pairs[i].runs[MIXT_COMPARE_A];
            sum += (a->start_loss - a->train_loss) / fabs(a->start_loss);
            count++;
        }
    return count ? sum / (double)count : (double)NAN;
}

/** The least gain that a comparison can be made after: more than the margin, and more than what noise looks like. */
static double least_gain(const mixt_comparison *c)
{
    return fmax(0.01, c->options.absolute ? 0 : 2 * c->info.margin);
}

#define BECAUSE(...) snprintf(c->reason, sizeof c->reason, __VA_ARGS__)

/** Where one side diverges more often than chance explains, that is the verdict; any other divergence leaves none. */
static bool judge_diverged(mixt_comparison *c)
{
    int64_t only[MIXT_COMPARE_SIDES] = {0}, pairs = c->info.pairs;
    for (int64_t i = 0; i < c->count; i++)
        for (int side = 0; c->pairs[i].done[0] && c->pairs[i].done[1] && side < MIXT_COMPARE_SIDES; side++) {
            const mixt_compare_run *runs = c->pairs[i].runs;
            c->info.diverged[side] += runs[side].diverged;
            only[side] += runs[side].diverged && !runs[!side].diverged;
        }
    long long a = c->info.diverged[MIXT_COMPARE_A], b = c->info.diverged[MIXT_COMPARE_B];
    if (!a && !b)
        return false;
    double level = (1 - c->info.judgement.confidence) / 2;
    double p = mixt_stats_sign_p(only[MIXT_COMPARE_B], only[MIXT_COMPARE_A]);
    c->info.verdict = MIXT_STATS_UNDECIDED;
    if (!c->info.stopped && p <= level) {
        c->info.verdict = MIXT_STATS_INFERIOR;
        BECAUSE("B diverged in %lld of %lld pairs, A in %lld: by chance with a probability of %.2g", b,
                (long long)pairs, a, p);
    } else if (a) {
        BECAUSE("A diverged in %lld of %lld pairs, B in %lld: no conclusion is possible where A does not train; lower "
                "train.lr, or compare with another A",
                a, (long long)pairs, b);
    } else {
        BECAUSE(
            "B diverged in %lld of %lld pairs, A in none: B is not shown to be non-inferior, but so few may be chance",
            b, (long long)pairs);
    }
    return true;
}

/** What stands against a verdict; false: nothing. */
static bool refused(mixt_comparison *c)
{
    double gain = gain_of(c);
    if (c->info.pairs < MIXT_STATS_PAIRS_MIN) {
        BECAUSE("%lld pair%s: too few, at least %d are needed", (long long)c->info.pairs, c->info.pairs == 1 ? "" : "s",
                MIXT_STATS_PAIRS_MIN);
    } else if (!(gain > least_gain(c)) && c->info.used) {
        BECAUSE("A has hardly trained: its loss fell by %.2g%%, and at least %.2g%% is needed to compare; train longer",
                100 * gain, 100 * least_gain(c));
    } else if (c->info.used < c->info.pairs) {
        BECAUSE("the metric of %lld pairs is NaN or Inf", (long long)(c->info.pairs - c->info.used));
    } else if (c->info.stopped) {
        BECAUSE("%lld of %lld pairs are made: the verdict comes after the last", (long long)c->info.pairs,
                (long long)c->info.wanted);
    } else if (c->info.pilot) {
        BECAUSE("%lld pairs are needed by the pilot, more than the %d that are made without being asked for",
                (long long)c->info.needed, MIXT_COMPARE_PAIRS_PLANNED);
    } else {
        return false;
    }
    return true;
}

/* ---- the verdict ---- */

/** "0.31% worse", "0.2 points better", "less than 0.001% worse". */
static const char *amount(const mixt_comparison *c, double worse, char text[48])
{
    bool plain = c->options.absolute && c->metric->share; // in the metric's own unit
    const char *unit = plain ? "" : c->metric->share ? "%" : " points", *way = worse > 0 ? "worse" : "better";
    double size = fabs(plain ? worse : 100 * worse);
    if (!plain && size > 0 && size < 0.001)
        snprintf(text, 48, "less than 0.001%s %s", unit, way);
    else
        snprintf(text, 48, "%.3g%s %s", size, unit, way);
    return text;
}

/** What a reader must know beside the difference: pairs that were asked for and not made, and what no verdict of so few
 *  pairs is about. */
static const char *scope(const mixt_comparison *c, char text[200])
{
    int used = 0;
    text[0] = '\0';
    if (c->info.used < c->info.needed && c->info.verdict != MIXT_STATS_UNDECIDED)
        used = snprintf(text, 200, "; %lld of the %lld pairs that the pilot asked for", (long long)c->info.used,
                        (long long)c->info.needed);
    if (c->info.verdict == MIXT_STATS_NON_INFERIOR)
        snprintf(text + used, (size_t)(200 - used), "; failures in fewer than %.2g%% of runs are not ruled out",
                 100 * c->info.judgement.unseen);
    return text;
}

static void explain(mixt_comparison *c)
{
    const mixt_stats_judgement *j = &c->info.judgement;
    char difference[300], mean[48], low[48], high[48], margin[48], more[200];
    snprintf(difference, sizeof difference, "B's %s is %s than A's (%.3g%% interval: %s to %s), and may be %s",
             c->metric->name, amount(c, j->summary.mean, mean), 100 * j->confidence, amount(c, j->interval.low, low),
             amount(c, j->interval.high, high), amount(c, c->info.margin, margin));
    if (j->summary.deviation == 0 && j->summary.mean == 0)
        BECAUSE("A and B are the same to the bit in all %lld pairs%s", (long long)c->info.used, scope(c, more));
    else if (c->info.verdict != MIXT_STATS_UNDECIDED)
        BECAUSE("%s%s", difference, scope(c, more));
    else if (j->more > MIXT_COMPARE_PAIRS_MAX)
        BECAUSE("%s: so close that no number of pairs up to %d would decide", difference, MIXT_COMPARE_PAIRS_MAX);
    else
        BECAUSE("%s: %lld more pairs would decide if the difference stays the same", difference, (long long)j->more);
}

static mixt_status judge(mixt_comparison *c, const double *worse, int64_t used)
{
    int looks = c->look_count;
    while (looks > 0 && c->looks[looks - 1] >= used) // this look itself
        looks--;
    MIXT_TRY(mixt_stats_judge(worse, used, c->info.margin, c->looks, looks, &c->info.judgement));
    c->info.looks = c->info.pilot ? 0 : looks + 1;
    if (c->info.pilot)
        c->info.judgement.more = c->info.needed - used;
    c->info.p_flip = mixt_stats_flip_p(worse, used, c->info.margin, MIXT_STATS_BELOW, 0);
    c->info.verdict = c->info.judgement.verdict;
    return MIXT_OK;
}

mixt_status mixt__compare_conclude(mixt_comparison *c)
{
    mixt_comparison_info *info = &c->info;
    double *worse = mixt__alloc((size_t)(c->count + 1) * sizeof *worse);
    if (!worse)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a comparison");
    for (int64_t i = 0; i < c->count; i++)
        info->pairs += c->pairs[i].done[0] && c->pairs[i].done[1];
    for (int i = 0; i < MIXT_COMPARE_FIGURES; i++)
        fill_figure(c, i, worse, &c->figures[i]);
    info->used = mixt__compare_differences(c, worse);
    info->judgement = (mixt_stats_judgement){.confidence = 0.95, .summary = {.mean = NAN, .deviation = NAN}};
    info->judgement.interval = info->judgement.student = (mixt_stats_interval){NAN, NAN};
    info->judgement.p = info->judgement.p_inferior = info->judgement.p_any = info->judgement.effect = info->p_flip =
        NAN;
    info->judgement.unseen = 1;
    mixt_status status = info->used ? judge(c, worse, info->used) : MIXT_OK;
    mixt__free(worse);
    MIXT_TRY(status);
    if (!judge_diverged(c)) {
        if (refused(c))
            info->verdict = MIXT_STATS_UNDECIDED;
        else
            explain(c);
    }
    return mixt__compare_judge(c);
}
