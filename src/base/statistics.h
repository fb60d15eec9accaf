/* Few numbers, honestly summed up: means, medians, Student's t. */
#ifndef MIXT_BASE_STATISTICS_H
#define MIXT_BASE_STATISTICS_H

#include <stdint.h>

double mixt__mean(const double *values, int64_t count);
/** Sorts the values. The mean of the two in the middle where the count is even; NaN for none. */
double mixt__median(double *values, int64_t count);

/** The regularised incomplete beta function I_x(a, b): a beta variable's probability of being at most x. */
double mixt__beta_below(double a, double b, double x);
/** Probability that Student's t with `freedom` degrees of freedom is at most t. */
double mixt__student_below(double t, double freedom);
/** The t that is reached or exceeded in size with probability 1 - confidence. */
double mixt__student_limit(double confidence, double freedom);

#endif
