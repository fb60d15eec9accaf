/* Student's distribution by the continued fraction of the incomplete beta function, its limits by bisection. */
#include "base/statistics.h"

#include <math.h>
#include <stdlib.h>

double mixt__mean(const double *values, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += values[i];
    return sum / (double)count;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double mixt__median(double *values, int64_t count)
{
    if (count < 1)
        return (double)NAN;
    qsort(values, (size_t)count, sizeof *values, compare);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/** The continued fraction of I_x(a, b) (modified Lentz); converges fast for x below (a + 1) / (a + b + 2). */
static double beta_fraction(double a, double b, double x)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double result = d;
    for (int m = 1; m < 500; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        const double terms[2] = {even, odd};
        double factor = 1;
        for (int i = 0; i < 2; i++) {
            d = 1 + terms[i] * d;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = 1 + terms[i] / c;
            c = fabs(c) < tiny ? tiny : c;
            factor = c * d;
            result *= factor;
        }
        if (fabs(factor - 1) < 1e-15)
            break;
    }
    return result;
}

double mixt__beta_below(double a, double b, double x)
{
    if (x <= 0 || x >= 1)
        return x <= 0 ? 0 : 1;
    double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2))
        return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double mixt__student_below(double t, double freedom)
{
    double outside = mixt__beta_below(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2;
    return t > 0 ? 1 - outside : outside;
}

double mixt__student_limit(double confidence, double freedom)
{
    double low = 0, high = 1, wanted = 0.5 + confidence / 2;
    while (mixt__student_below(high, freedom) < wanted && high < 1e12)
        high *= 2;
    for (int i = 0; i < 200 && low < high; i++) {
        double middle = (low + high) / 2;
        if (middle <= low || middle >= high)
            break;
        if (mixt__student_below(middle, freedom) < wanted)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}
