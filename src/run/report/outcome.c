/* Whether a run learned, overfits or has diverged, from its rows of losses.
 *
 * Losses scatter from batch to batch, so means of many are compared: the first tenth of the rows with the last. They
 * differ where they are further apart than twice the standard error of their difference.
 */
#include "run/report/outcome.h"

#include "base/c_locale.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LEAST_ROWS = 20, LEAST_VALIDATIONS = 4 };
static const double rise = 0.02; // of the lowest validation loss: less is scatter

typedef struct span {
    double mean, error; // of the mean
    int64_t count;      // of finite numbers
} span;

static span measure(const double *values, int64_t from, int64_t to)
{
    span s = {0};
    double sum = 0, squares = 0;
    for (int64_t i = from; i < to; i++)
        if (isfinite(values[i])) {
            sum += values[i];
            s.count++;
        }
    s.mean = s.count ? sum / (double)s.count : NAN;
    for (int64_t i = from; i < to; i++)
        if (isfinite(values[i]))
            squares += (values[i] - s.mean) * (values[i] - s.mean);
    s.error = s.count > 1 ? sqrt(squares / (double)(s.count - 1) / (double)s.count) : NAN;
    return s;
}

/** Whether `a` is above `b` by more than scatter: 1, -1, or 0 where they are not told apart. */
static int above(span a, span b)
{
    double apart = 2 * sqrt(a.error * a.error + b.error * b.error);
    return a.mean - b.mean > apart ? 1 : b.mean - a.mean > apart ? -1 : 0;
}

/** Accuracy of the last validation, in percent; NaN: none. */
static double last_accuracy(const mixt_metrics *metrics, int64_t row)
{
    const double *accuracy = mixt_metrics_column(metrics, "val_accuracy");
    return accuracy && row >= 0 ? 100 * accuracy[row] : NAN;
}

typedef struct validations {
    int64_t best, last, count, after; // rows; validations behind the best
    bool all_above;                   // those behind the best are all above it by more than scatter
} validations;

static validations look(const double *values, int64_t rows)
{
    validations v = {.best = -1, .last = -1, .all_above = true};
    for (int64_t i = 0; values && i < rows; i++) {
        if (!isfinite(values[i]))
            continue;
        v.count++;
        v.last = i;
        if (v.best < 0 || values[i] < values[v.best]) {
            v.best = i;
            v.after = 0;
            v.all_above = true;
            continue;
        }
        v.after++;
        v.all_above = v.all_above && values[i] > values[v.best] + rise * fabs(values[v.best]);
    }
    return v;
}

/** The validation loss has risen at least twice in a row, and far enough, while the training loss went on falling. */
static bool overfits(const double *losses, const validations *v, int64_t rows, int64_t tenth)
{
    if (v->count < LEAST_VALIDATIONS || v->after < 2 || !v->all_above)
        return false;
    int64_t from = v->best > tenth ? v->best - tenth : 0;
    return above(measure(losses, from, v->best + 1), measure(losses, rows - tenth, rows)) > 0;
}

mixt_metrics_outcome mixt__outcome_of(const mixt_metrics *metrics)
{
    int64_t rows = mixt_metrics_describe(metrics).rows, tenth = rows / 10 > 3 ? rows / 10 : 3;
    const double *losses = mixt_metrics_column(metrics, "loss"), *steps = mixt_metrics_column(metrics, "step");
    const double *held = mixt_metrics_column(metrics, "val_loss");
    mixt_metrics_outcome o = {
        .first = NAN, .last = NAN, .best_validation = NAN, .last_validation = NAN, .last_accuracy = NAN, .text = ""};
    if (!rows || !losses || !steps)
        return o;
    validations v = look(held, rows);
    span first = measure(losses, 0, tenth < rows ? tenth : rows);
    span last = measure(losses, rows > tenth ? rows - tenth : 0, rows);
    o.step = (int64_t)steps[rows - 1];
    o.first = first.mean;
    o.last = last.mean;
    if (v.count) {
        o.best_validation = held[v.best];
        o.last_validation = held[v.last];
        o.last_accuracy = last_accuracy(metrics, v.last);
    }
    if (rows < LEAST_ROWS)
        return o;
    if (2 * last.count < tenth || above(last, first) > 0) {
        o.outcome = MIXT_OUTCOME_DIVERGED;
    } else if (overfits(losses, &v, rows, tenth)) {
        o.outcome = MIXT_OUTCOME_OVERFITTING;
        o.step = (int64_t)steps[v.best];
    } else if (above(first, last) > 0) {
        o.outcome = MIXT_OUTCOME_LEARNED;
    }
    return o;
}

void mixt__outcome_text(const mixt_metrics_outcome *o, char *text, size_t size)
{
    static const char *const formats[] = {
        [MIXT_OUTCOME_UNDECIDED] =
            "undecided: the training loss was %.4g first and is %.4g now, which is too few rows or "
            "too much scatter to tell%s",
        [MIXT_OUTCOME_LEARNED] = "the training loss fell from %.4g to %.4g%s",
        [MIXT_OUTCOME_DIVERGED] = "diverged: the training loss rose from %.4g to %.4g%s"};
    char held[96] = "";
    if (!isnan(o->best_validation))
        mixt__print_number(held, sizeof held, "; validation loss %.4g", o->last_validation);
    if (!isnan(o->last_accuracy))
        mixt__print_number(held + strlen(held), sizeof held - strlen(held), ", accuracy %.4g%%", o->last_accuracy);
    if (isnan(o->last) && o->outcome == MIXT_OUTCOME_UNDECIDED)
        snprintf(text, size, "no losses yet");
    else if (isnan(o->last))
        snprintf(text, size, "diverged: the last losses are not finite numbers");
    else if (o->outcome == MIXT_OUTCOME_OVERFITTING)
        mixt__print_number(text, size,
                           "overfitting since step %lld: the validation loss rose from %.4g to %.4g while the training "
                           "loss fell to %.4g",
                           (long long)o->step, o->best_validation, o->last_validation, o->last);
    else
        mixt__print_number(text, size, formats[o->outcome], o->first, o->last, held);
}
