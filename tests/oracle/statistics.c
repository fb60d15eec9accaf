/* Statistics and differences: sums of n terms in FP64, whose order a kernel chooses, are off by at most n·u·sum|x|.
 * Counts and extremes are exact.
 */
#include "oracle/oracle.h"

#include <math.h>

#define U64 (1.0 / 9007199254740992.0)

/** Numbers of many sizes: a uniform one times 2^-range … 2^range. What the format cannot hold is infinite or 0. */
static void spread(test_case *c, test_tensor *t)
{
    double range = problem_real(c, "range", 0);
    c->inexact |= range > 0; // then small integers are no longer small
    for (int64_t i = 0; i < t->count && range > 0; i++)
        t->value[i] = number_round(t->value[i] * exp2(rint(case_uniform(c, -range, range))), t->dtype);
    if (problem_int(c, "zeros", 0))
        for (int64_t i = 0; i < t->count; i += 3)
            t->value[i] = 0;
}

static void make_stats(test_case *c)
{
    static const mixt_dtype all[] = {MIXT_DTYPE_FP16, MIXT_DTYPE_BF16, MIXT_DTYPE_TF32};
    for (int i = 0; i < MIXT_STATS_TARGETS && i < problem_int(c, "targets", MIXT_STATS_TARGETS); i++)
        c->attrs.tensor_stats.targets[i] = all[i];
    spread(c, case_input(c, c->dtype, problem_shape(c, "src")));
}

static void count_targets(const test_case *c, double x)
{
    double *counts = c->out[1].value;
    for (int t = 0; t < MIXT_STATS_TARGETS; t++) {
        mixt_dtype target = c->attrs.tensor_stats.targets[t];
        if (target == MIXT_DTYPE_NONE)
            continue;
        counts[MIXT_STATS_BEYOND + t] += isinf(number_round(x, target)) != 0;
        counts[MIXT_STATS_FLUSHED + t] += x != 0 && number_round(x, target) == 0;
    }
}

/** The exponent field that FP32 has for a number. */
static int bin(double x)
{
    int e;
    if (!isfinite(x))
        return 255;
    frexp(x, &e);
    return x == 0 || e < -125 ? 0 : e + 126;
}

static void expect_stats(test_case *c)
{
    const test_tensor *x = &c->in[0];
    double *n = c->out[0].value, *counts = c->out[1].value, sizes = 0;
    n[MIXT_STATS_MIN] = INFINITY;
    n[MIXT_STATS_MAX] = -INFINITY;
    counts[MIXT_STATS_COUNT] = (double)x->count;
    for (int64_t i = 0; i < x->count; i++) {
        double v = x->value[i];
        counts[MIXT_STATS_EXPONENTS + bin(v)]++;
        counts[MIXT_STATS_NAN] += isnan(v) != 0;
        counts[MIXT_STATS_INF] += isinf(v) != 0;
        counts[MIXT_STATS_ZEROS] += v == 0;
        if (!isfinite(v))
            continue;
        count_targets(c, v);
        n[MIXT_STATS_SUM] += v;
        sizes += fabs(v);
        n[MIXT_STATS_SQUARES] += v * v;
        n[MIXT_STATS_MIN] = fmin(n[MIXT_STATS_MIN], v);
        n[MIXT_STATS_MAX] = fmax(n[MIXT_STATS_MAX], v);
        n[MIXT_STATS_AMAX] = fmax(n[MIXT_STATS_AMAX], fabs(v));
    }
    c->out[0].slack[MIXT_STATS_SUM] = 2 * (double)x->count * U64 * sizes;
    c->out[0].slack[MIXT_STATS_SQUARES] = 2 * (double)x->count * U64 * n[MIXT_STATS_SQUARES];
}

const oracle oracle_tensor_stats = {
    .op = "tensor_stats", .make = make_stats, .expect = expect_stats, .exact_integers = true};

static void make_error(test_case *c)
{
    c->attrs.tensor_error.weight = problem_int(c, "weight", 0) != 0;
    mixt__shape shape = problem_shape(c, "src");
    spread(c, case_input(c, problem_int(c, "wide", 1) ? MIXT_DTYPE_FP32 : c->dtype, shape));
    test_tensor *other = case_input(c, c->dtype, shape);
    for (int64_t i = 0; i < other->count; i += 2) // half of them are the reference, rounded
        other->value[i] = number_round(c->in[0].value[i], c->dtype);
    if (c->attrs.tensor_error.weight)
        case_input(c, MIXT_DTYPE_FP32, shape);
}

static void expect_error(test_case *c)
{
    double *n = c->out[0].value, *slack = c->out[0].slack, *counts = c->out[1].value, sizes[MIXT_DIFF_NUMBERS] = {0};
    int64_t count = c->in[0].count;
    counts[MIXT_DIFF_COUNT] = (double)count;
    for (int64_t i = 0; i < count; i++) {
        double a = c->in[0].value[i], b = c->in[1].value[i], w = c->in_count > 2 ? c->in[2].value[i] : 0, e = b - a;
        if (!isfinite(a) || !isfinite(w) || !isfinite(b)) {
            counts[isfinite(a) && isfinite(w) ? MIXT_DIFF_BROKEN : MIXT_DIFF_SKIPPED]++;
            continue;
        }
        const double terms[MIXT_DIFF_NUMBERS] = {e * e, a * a, b * b, a * b, 0, w * e, w * e * w * e};
        for (int k = 0; k < MIXT_DIFF_NUMBERS; k++) {
            n[k] += terms[k];
            sizes[k] += fabs(terms[k]);
        }
        n[MIXT_DIFF_LARGEST] = fmax(n[MIXT_DIFF_LARGEST], fabs(e));
        counts[MIXT_DIFF_FLUSHED] += a != 0 && b == 0;
    }
    for (int k = 0; k < MIXT_DIFF_NUMBERS; k++)
        slack[k] = (4 + (double)count) * 2 * U64 * sizes[k]; // a term itself is rounded up to four times
    slack[MIXT_DIFF_LARGEST] = 2 * U64 * n[MIXT_DIFF_LARGEST];
}

const oracle oracle_tensor_error = {
    .op = "tensor_error", .make = make_error, .expect = expect_error, .exact_integers = true};
