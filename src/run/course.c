/* The first loss and the last ones. */
#include "run/course.h"

#include "base/statistics.h"
#include "store/json.h"

#include <math.h>

#define SMALLEST 1e-30 // stands for 0 where a logarithm is taken

static const double deviations = 5;    // of the logarithms of the last losses
static const double least_rise = 0.02; // of the logarithm
static const double widest = 0.5;      // where losses scatter more than that, a low first one may be chance
static const double drift = 1.1;       // rise of the logarithm that may be what samples are of: three times

void mixt__course_take(mixt__course *c, double loss)
{
    if (!isfinite(loss))
        return;
    if (!c->seen)
        c->first = loss;
    c->last[c->seen++ % MIXT_COURSE_LAST] = loss;
}

/** The larger of two estimates of the standard deviation: by the median of distances and by their mean. Sorts. */
static double deviation_of(double *values, int64_t count, double *middle)
{
    *middle = mixt__median(values, count);
    for (int64_t i = 0; i < count; i++)
        values[i] = fabs(values[i] - *middle);
    return fmax(1.2533 * mixt__mean(values, count), 1.4826 * mixt__median(values, count));
}

bool mixt__course_worse(const mixt__course *c, bool drifts, double guess, double *ended)
{
    double last[MIXT_COURSE_LAST], middle, lowest = INFINITY;
    *ended = NAN;
    for (int64_t i = 0; i < MIXT_COURSE_LAST; i++) {
        last[i] = log(fmax(c->last[i], SMALLEST));
        lowest = fmin(lowest, c->last[i]);
    }
    if (c->seen < 2 * MIXT_COURSE_LAST ||
        !(c->first > SMALLEST)) // a loss of one's own may be below 0: nobody knows its scale
        return false;
    double deviation = deviation_of(last, MIXT_COURSE_LAST, &middle), rise = middle - log(c->first);
    *ended = exp(middle);
    if (guess > 0 && lowest > 2 * guess && lowest > c->first)
        return true;
    return deviation < widest && rise > fmax(least_rise, deviations * deviation) && (!drifts || rise > drift);
}

json_t *mixt__course_pack(const mixt__course *c)
{
    int64_t count = c->seen < MIXT_COURSE_LAST ? c->seen : MIXT_COURSE_LAST;
    json_t *last = json_array();
    for (int64_t i = 0; i < count; i++)
        mixt__json_add(last, json_real(c->last[i]));
    return json_pack("{s:f, s:I, s:o}", "first", c->first, "seen", (json_int_t)c->seen, "last", last);
}

void mixt__course_unpack(mixt__course *c, const json_t *object)
{
    const json_t *last = json_object_get(object, "last");
    size_t count = json_array_size(last);
    json_int_t seen = json_integer_value(json_object_get(object, "seen"));
    *c = (mixt__course){0};
    if (seen < (json_int_t)count || count > MIXT_COURSE_LAST || (count < MIXT_COURSE_LAST && (json_int_t)count != seen))
        return;
    c->first = json_number_value(json_object_get(object, "first"));
    c->seen = seen;
    for (size_t i = 0; i < count; i++)
        c->last[i] = json_number_value(json_array_get(last, i));
}
