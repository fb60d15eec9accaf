/* Recordings at another rate: a windowed sinc, any two rates.
 *
 * From one neighbour to the next the angles of sinc and window grow by the same step, so that their sines and cosines
 * come from the last ones by a rotation: no table as large as two awkward rates would need, no sine for each product.
 */
#include "data/audio/mel.h"

#include <math.h>

enum { ZEROS = 6 }; // of the sinc to each side

static const double PI = 3.14159265358979323846, WIDTH = 0.99; // of the lower rate's band

int64_t mixt__resampled(int64_t count, int64_t from, int64_t to)
{
    return (count * to + from - 1) / from;
}

/** A point on the unit circle, and its next one. */
typedef struct turn {
    double sine, cosine, step_sine, step_cosine;
} turn;

static turn turn_at(double angle, double step)
{
    return (turn){sin(angle), cos(angle), sin(step), cos(step)};
}

static inline void turn_on(turn *t)
{
    double sine = t->sine * t->step_cosine + t->cosine * t->step_sine;
    t->cosine = t->cosine * t->step_cosine - t->sine * t->step_sine;
    t->sine = sine;
}

/** The value at `position`, in samples. `band` zeros of the sinc go to a sample. */
static double value_at(const float *samples, int64_t count, int64_t whole, double part, double band)
{
    double reach = ZEROS / band;
    int64_t begin = whole + (int64_t)ceil(part - reach), end = whole + (int64_t)floor(part + reach);
    begin = begin > 0 ? begin : 0;
    end = end < count - 1 ? end : count - 1;
    double first = ((double)(begin - whole) - part) * band, sum = 0;
    turn sinc = turn_at(PI * first, PI * band);
    turn window = turn_at(PI * first / (2 * ZEROS), PI * band / (2 * ZEROS));
    for (int64_t i = begin; i <= end; i++) {
        double at = ((double)(i - whole) - part) * band;
        double height = fabs(at) < 1e-9 ? 1 : sinc.sine / (PI * at);
        sum += (double)samples[i] * height * window.cosine * window.cosine;
        turn_on(&sinc);
        turn_on(&window);
    }
    return sum * band;
}

void mixt__rate_change(const float *samples, int64_t count, int64_t from, int64_t to, float *made)
{
    double band = WIDTH * (from < to ? 1 : (double)to / (double)from);
    int64_t length = mixt__resampled(count, from, to);
    for (int64_t n = 0; n < length; n++) {
        int64_t whole = n * from / to;
        double part = (double)(n * from % to) / (double)to;
        made[n] = (float)value_at(samples, count, whole, part, band);
    }
}
