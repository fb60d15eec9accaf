/* Rotary positions: the table of angles, and heads turned by it.
 *
 * The op says that a frequency and its product with the place are rounded to FP32. A frequency may come out one unit
 * off where powers are rounded otherwise; the place multiplies that. */
#include "oracle/oracle.h"

#include <math.h>

static void make_table(test_case *c)
{
    mixt__rotary_table_attrs *at = &c->attrs.rotary_table;
    mixt__shape ids = problem_shape(c, "ids");
    at->dim = problem_int(c, "dim", 2);
    at->theta = problem_real(c, "theta", 10000);
    at->factor = problem_real(c, "factor", 0);
    at->low = problem_real(c, "low", 0);
    at->high = problem_real(c, "high", 0);
    at->original = problem_real(c, "original", 0);
    at->magnitude = (float)problem_real(c, "magnitude", 1);
    at->own = problem_int(c, "own", 0) != 0;
    for (int64_t i = 0; i < at->dim / 2; i++)
        at->divisors[i] = (float)(1 + 0.37 * (double)i);
    int64_t first = problem_int(c, "at", -1);
    at->places = first >= 0;
    test_tensor *x = case_indices(c, ids, 0, 50000);
    for (int64_t t = 0; at->places && t < x->count; t++)
        x->value[t] = (double)(first + t);
}

/** What the wavelength of a frequency makes of it. */
static double frequency_of(const mixt__rotary_table_attrs *at, int64_t i)
{
    double f = exp(-2 * (double)i / (double)at->dim * log(at->theta)), wave = 2 * acos(-1) / f;
    if (at->own)
        return f / (double)at->divisors[i];
    if (at->factor == 0)
        return f;
    if (at->high == 0 || wave > at->original / at->low)
        return f / at->factor;
    if (wave < at->original / at->high)
        return f;
    double share = (at->original / wave - at->low) / (at->high - at->low);
    return (1 - share) * f / at->factor + share * f;
}

static void expect_table(test_case *c)
{
    const mixt__rotary_table_attrs *at = &c->attrs.rotary_table;
    int64_t half = at->dim / 2;
    for (int64_t n = 0; n < c->out[0].count; n++) {
        int64_t t = n / at->dim, i = n % half;
        double place = at->places ? c->in[0].value[t] : (double)t;
        double frequency = number_round(frequency_of(at, i), MIXT_DTYPE_FP32);
        double angle = number_round(place * frequency, MIXT_DTYPE_FP32);
        double size = (double)at->magnitude;
        c->out[0].value[n] = size * (n % at->dim < half ? cos(angle) : sin(angle));
        c->out[0].slack[n] = size * (4 * U32 * angle + 4 * U32) + (size != 1 ? 2 * U32 * size : 0);
    }
}

static void make(test_case *c)
{
    mixt__rotary_attrs *at = &c->attrs.rotary;
    mixt__shape x = problem_shape(c, "src");
    at->heads = problem_int(c, "heads", 1);
    at->dim = problem_int(c, "dim", 2);
    at->width = problem_int(c, "width", 0);
    at->inverse = problem_int(c, "inverse", 0) != 0;
    c->inexact = true;
    case_input(c, c->dtype, x);
    mixt__shape angles = {2, {x.dims[1], at->dim}};
    if (problem_int(c, "packed", 0))
        angles = (mixt__shape){3, {x.dims[0], x.dims[1], at->dim}};
    test_tensor *table = case_input(c, MIXT_DTYPE_FP32, angles);
    for (int64_t n = 0; n < table->count; n++) {
        double angle = 0.37 * (double)(n / at->dim) + 0.11 * (double)(n % (at->dim / 2));
        table->value[n] = number_round(n % at->dim < at->dim / 2 ? cos(angle) : sin(angle), MIXT_DTYPE_FP32);
    }
}

static void expect(test_case *c)
{
    const mixt__rotary_attrs *at = &c->attrs.rotary;
    const test_tensor *x = &c->in[0], *y = &c->out[0];
    int64_t tokens = x->shape.dims[1], cols = x->shape.dims[2], half = at->dim / 2;
    for (int64_t n = 0; n < x->count; n++) {
        int64_t row = n / cols % (c->in[1].shape.rank == 3 ? x->shape.dims[0] * tokens : tokens), column = n % cols;
        int64_t width = at->width ? at->width : at->dim, place = column % width, i = place % half;
        if (column >= at->heads * width || place >= at->dim) {
            y->value[n] = x->value[n];
            continue;
        }
        bool upper = place >= half;
        double cosine = c->in[1].value[row * at->dim + i], sine = c->in[1].value[row * at->dim + half + i];
        double other = x->value[upper ? n - half : n + half] * (at->inverse ? -sine : sine);
        double own = x->value[n] * cosine;
        y->value[n] = upper ? own + other : own - other;
        y->slack[n] = 3 * U32 * (fabs(own) + fabs(other));
    }
}

const oracle oracle_rotary_table = {.op = "rotary_table", .make = make_table, .expect = expect_table};
const oracle oracle_rotary = {.op = "rotary", .make = make, .expect = expect};
