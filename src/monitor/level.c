/* Medians of the newest losses against the first one and the lowest of them. */
#include "monitor/level.h"

#include "base/statistics.h"
#include "store/json.h"

#include <math.h>

enum {
    EARLY = 40,  // updates in which a loss may explode from the start
    DOZENS = 48, // after which it should be below the first one
    MOST = 29,   // of the last 32 losses
};
static const double all_above = 0.14, exploded = 0.26; // logarithms: 1.15 and 1.3 times the first loss
static const double above = 0.03;                      // of the median, after dozens
static const double risen = 0.22;                      // 1.25 times the best
static const double deviations = 5;

/** The newest `count` losses, the newest last. */
static void newest(const mixt__level *l, double *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        values[i] = l->last[(l->seen - count + i) % MIXT_LEVEL_LAST];
}

static double median_of_newest(const mixt__level *l, int64_t count)
{
    double values[MIXT_LEVEL_LAST];
    newest(l, values, count);
    return mixt__median(values, count);
}

/** By the median of distances. */
static double deviation_of_newest(const mixt__level *l, double middle)
{
    double values[MIXT_LEVEL_NEW];
    newest(l, values, MIXT_LEVEL_NEW);
    for (int i = 0; i < MIXT_LEVEL_NEW; i++)
        values[i] = fabs(values[i] - middle);
    return 1.4826 * mixt__median(values, MIXT_LEVEL_NEW);
}

static int64_t count_above(const mixt__level *l, int64_t count, double limit)
{
    double values[MIXT_LEVEL_LAST];
    int64_t above_it = 0;
    newest(l, values, count);
    for (int64_t i = 0; i < count; i++)
        above_it += values[i] > limit;
    return above_it;
}

void mixt__level_take(mixt__level *l, double value)
{
    if (!l->seen)
        l->first = l->best = value;
    l->last[l->seen++ % MIXT_LEVEL_LAST] = value;
    if (l->seen >= MIXT_LEVEL_LAST)
        l->best = fmin(l->best, median_of_newest(l, MIXT_LEVEL_LAST));
}

mixt__level_sign mixt__level_sign_of(const mixt__level *l, double *now)
{
    *now = NAN;
    if (l->seen <= MIXT_LEVEL_NEW)
        return MIXT_LEVEL_FINE;
    *now = median_of_newest(l, MIXT_LEVEL_NEW);
    bool all = count_above(l, MIXT_LEVEL_NEW, l->first + all_above) == MIXT_LEVEL_NEW;
    if (l->seen <= EARLY && all && *now > l->first + exploded)
        return MIXT_LEVEL_EXPLODED;
    if (l->seen >= DOZENS && median_of_newest(l, MIXT_LEVEL_LAST) > l->first + above &&
        count_above(l, MIXT_LEVEL_LAST, l->first) >= MOST)
        return MIXT_LEVEL_ABOVE;
    return *now - l->best > fmax(risen, deviations * deviation_of_newest(l, *now)) ? MIXT_LEVEL_RISEN : MIXT_LEVEL_FINE;
}

double mixt__level_healthy(const mixt__level *l)
{
    return l->seen ? l->best : NAN;
}

void mixt__level_accept(mixt__level *l)
{
    if (!l->seen)
        return;
    int64_t count = l->seen < MIXT_LEVEL_LAST ? l->seen : MIXT_LEVEL_LAST;
    double now = median_of_newest(l, count);
    l->best = fmax(l->best, now);
}

json_t *mixt__level_pack(const mixt__level *l)
{
    int64_t count = l->seen < MIXT_LEVEL_LAST ? l->seen : MIXT_LEVEL_LAST;
    json_t *last = json_array();
    for (int64_t i = 0; i < count; i++)
        mixt__json_add_real(last, l->last[i]);
    return json_pack("{s:I, s:f, s:f, s:o}", "seen", (json_int_t)l->seen, "first", l->first, "best", l->best, "last",
                     last);
}

void mixt__level_unpack(mixt__level *l, const json_t *object)
{
    const json_t *last = json_object_get(object, "last");
    size_t count = json_array_size(last);
    json_int_t seen = json_integer_value(json_object_get(object, "seen"));
    *l = (mixt__level){0};
    if (count > MIXT_LEVEL_LAST || seen < (json_int_t)count || (count < MIXT_LEVEL_LAST && seen != (json_int_t)count))
        return;
    l->seen = seen;
    l->first = json_number_value(json_object_get(object, "first"));
    l->best = json_number_value(json_object_get(object, "best"));
    for (size_t i = 0; i < count; i++)
        l->last[i] = json_number_value(json_array_get(last, i));
}
