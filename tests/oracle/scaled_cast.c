/* Scaled casts: the scale and every rounded number are exact. `largest` is the magnitude of the largest input, `spread`
 * how many powers of two lie between it and the smallest. */
#include "oracle/oracle.h"

#include <math.h>
#include <string.h>

static void make(test_case *c)
{
    double largest = problem_real(c, "largest", 1), spread = problem_real(c, "spread", 0);
    const char *to = problem_text(c, "to", "fp8_e4m3");
    c->attrs.scaled_cast.dtype = mixt_dtype_parse(to);
    c->attrs.scaled_cast.flush = problem_int(c, "flush", 0) != 0;
    test_tensor *x = case_input_between(c, c->dtype, problem_shape(c, "src"), -largest, largest);
    for (int64_t i = 0; spread > 0 && i < x->count; i++)
        x->value[i] = number_round(ldexp(x->value[i], -(int)case_uniform(c, 0, spread)), c->dtype);
    if (problem_int(c, "peak", 0) && x->count)
        x->value[x->count / 2] = number_round(largest, c->dtype);
}

/** The largest number of the format in which values are stored. */
static double most(mixt_dtype dtype)
{
    return dtype == MIXT_DTYPE_FP16 ? 65504 : dtype == MIXT_DTYPE_FP8_E5M2 ? 57344 : 448;
}

static double rounded(double x, double scale, mixt_dtype dtype, bool flush)
{
    double y = number_round(x / scale, dtype);
    if (isinf(x))
        return dtype == MIXT_DTYPE_FP8_E4M3 ? NAN : x;
    return x != 0 && y == 0 && !flush ? copysign(number_smallest(dtype), x) : y;
}

static void expect(test_case *c)
{
    const test_tensor *x = &c->in[0];
    mixt_dtype dtype = c->attrs.scaled_cast.dtype;
    double largest = 0, scale = 1;
    for (int64_t i = 0; i < x->count; i++)
        largest = isfinite(x->value[i]) ? fmax(largest, fabs(x->value[i])) : largest;
    while (largest / scale > most(dtype))
        scale *= 2;
    while (largest != 0 && largest / (scale / 2) <= most(dtype) && scale > 0x1p-126)
        scale /= 2;
    for (int64_t i = 0; i < x->count; i++)
        c->out[0].value[i] = rounded(x->value[i], scale, dtype, c->attrs.scaled_cast.flush);
    c->out[1].value[0] = scale;
}

const oracle oracle_scaled_cast = {.op = "scaled_cast", .make = make, .expect = expect};
