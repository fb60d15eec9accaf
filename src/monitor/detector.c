/* Values in the order in which they came, and the same sorted. */
#include "monitor/detector.h"

#include <math.h>
#include <string.h>

void mixt__detector_start(mixt__detector *d, int64_t window)
{
    d->window = window < MIXT_DETECTOR_MAX ? window : MIXT_DETECTOR_MAX;
    d->seen = 0;
}

int64_t mixt__detector_count(const mixt__detector *d)
{
    return d->seen < d->window ? d->seen : d->window;
}

double mixt__detector_at(const mixt__detector *d, int64_t index)
{
    return d->ring[(d->seen - mixt__detector_count(d) + index) % d->window];
}

/** The first place among `count` sorted values that is not below `value`. */
static int64_t place_of(const mixt__detector *d, int64_t count, double value)
{
    int64_t low = 0, high = count;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (d->sorted[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void mixt__detector_take(mixt__detector *d, double value)
{
    int64_t count = mixt__detector_count(d), slot = d->seen % d->window;
    if (count == d->window) {
        int64_t old = place_of(d, count, d->ring[slot]);
        memmove(d->sorted + old, d->sorted + old + 1, (size_t)(count - old - 1) * sizeof *d->sorted);
        count--;
    }
    int64_t at = place_of(d, count, value);
    memmove(d->sorted + at + 1, d->sorted + at, (size_t)(count - at) * sizeof *d->sorted);
    d->sorted[at] = value;
    d->ring[slot] = value;
    d->seen++;
}

void mixt__detector_usual(const mixt__detector *d, double *median, double *deviation)
{
    int64_t count = mixt__detector_count(d), middle = count / 2;
    *median = *deviation = 0;
    if (!count)
        return;
    *median = count % 2 ? d->sorted[middle] : 0.5 * (d->sorted[middle - 1] + d->sorted[middle]);
    // distances grow to both sides of the median: the middle one is found by going outwards
    int64_t below = middle - 1, above = middle;
    double distance = 0;
    for (int64_t i = 0; i <= count / 2; i++) {
        double down = below >= 0 ? *median - d->sorted[below] : INFINITY;
        double up = above < count ? d->sorted[above] - *median : INFINITY;
        distance = down < up ? down : up;
        if (down < up)
            below--;
        else
            above++;
    }
    *deviation = 1.4826 * distance;
}
