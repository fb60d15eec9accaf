/* The frequencies of rotary positions: for the backends. */
#ifndef MIXT_OPS_ROTARY_ATTRS_H
#define MIXT_OPS_ROTARY_ATTRS_H

#include "ops/attrs.h"

#include <math.h>

/** From the beginning of a head to that of the next. */
static inline int64_t mixt__rotary_width(const mixt__rotary_attrs *at)
{
    return at->width ? at->width : at->dim;
}

/** Frequency i of dim / 2, in radians a token, rounded to FP32 as the models' first programs have it. */
static inline float mixt__rotary_frequency(const mixt__rotary_table_attrs *at, int64_t i)
{
    double frequency = pow(at->theta, -2.0 * (double)i / (double)at->dim);
    if (at->own)
        return (float)(frequency / (double)at->divisors[i]);
    if (at->factor <= 0)
        return (float)frequency;
    if (at->high <= 0)
        return (float)(frequency / at->factor);
    double turns = at->original * frequency / (2 * 3.14159265358979323846); // within the first training's text
    double smooth = (turns - at->low) / (at->high - at->low);
    smooth = smooth < 0 ? 0 : smooth > 1 ? 1 : smooth;
    return (float)((1 - smooth) * frequency / at->factor + smooth * frequency);
}

#endif
