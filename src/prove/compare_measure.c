/* Figures of a run, read from what its directory holds: the same for a run of an experiment and for any other. */
#include "prove/compare.h"

#include "base/alloc.h"
#include "base/files.h"
#include "base/statistics.h"
#include "base/status.h"
#include "mixt/metrics.h"
#include "store/json_rows.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/** Share of the updates over which a loss is averaged where one loss is held against another. */
static const double smooth_share = 0.05;

/** A run of which nothing is known. */
static const mixt_compare_run nothing = {
    .start_loss = NAN,
    .train_loss = NAN,
    .loss = NAN,
    .best_loss = NAN,
    .accuracy = NAN,
    .step_seconds = NAN,
    .samples_s = NAN,
    .seconds = NAN,
    .memory = NAN,
    .energy = NAN,
    .grad_norm = NAN,
    .grad_norm_max = NAN,
    .equal_steps = NAN,
    .equal_seconds = NAN,
};

/** The rows of a run. Columns that it has not are NULL. */
typedef struct rows {
    mixt_metrics *metrics;
    int64_t count;
    const double *step, *loss;
} rows;

static mixt_status open_rows(const char *folder, rows *r)
{
    *r = (rows){0};
    MIXT_TRY(mixt_metrics_read(folder, &r->metrics));
    r->count = mixt_metrics_describe(r->metrics).rows;
    r->step = mixt_metrics_column(r->metrics, "step");
    r->loss = mixt_metrics_column(r->metrics, "loss");
    if (r->step && r->loss)
        return MIXT_OK;
    mixt_metrics_free(r->metrics);
    return mixt__fail(MIXT_ERROR_DATA, "%s: its metrics have no losses", folder);
}

/** Updates that a row stands for. */
static double updates_of(const rows *r, int64_t row)
{
    return r->step[row] - (row ? r->step[row - 1] : 0);
}

/** Mean loss of the updates in (from, to], by whole rows; NaN where there are none. */
static double mean_loss(const rows *r, double from, double to)
{
    double sum = 0, updates = 0;
    for (int64_t i = 0; i < r->count; i++)
        if (r->step[i] > from && r->step[i] <= to) {
            sum += r->loss[i] * updates_of(r, i);
            updates += updates_of(r, i);
        }
    return updates > 0 ? sum / updates : (double)NAN;
}

/** The last number of a column that is one; NaN: none. */
static double last_of(const rows *r, const char *name)
{
    const double *column = mixt_metrics_column(r->metrics, name);
    for (int64_t i = r->count - 1; column && i >= 0; i--)
        if (!isnan(column[i]))
            return column[i];
    return NAN;
}

static double lowest_of(const rows *r, const char *name)
{
    const double *column = mixt_metrics_column(r->metrics, name);
    double lowest = NAN;
    for (int64_t i = 0; column && i < r->count; i++)
        lowest = isnan(column[i]) || column[i] >= lowest ? lowest : column[i];
    return lowest;
}

/** Median of a column's finite numbers in rows after `first`, and the largest of them; NaN where it has none. */
static mixt_status median_of(const rows *r, const char *name, int64_t first, double *median, double *largest)
{
    const double *column = mixt_metrics_column(r->metrics, name);
    *median = *largest = NAN;
    if (!column)
        return MIXT_OK;
    double *values = mixt__alloc((size_t)r->count * sizeof *values);
    int64_t count = 0;
    if (!values)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the median of %s", name);
    for (int64_t i = first; i < r->count; i++)
        if (isfinite(column[i]))
            values[count++] = column[i];
    *median = mixt__median(values, count);
    *largest = count ? values[count - 1] : (double)NAN;
    mixt__free(values);
    return MIXT_OK;
}

static mixt_status count_alert(void *user, json_t *row)
{
    mixt_compare_run *run = user;
    const char *cause = json_string_value(json_object_get(row, "cause"));
    run->spikes += cause && !strcmp(cause, "loss_anomaly");
    run->alerts += cause && !strcmp(cause, "gradient_anomaly");
    return MIXT_OK;
}

/** Counts alerts of a run's monitor; a run without one has none. */
static mixt_status count_alerts(const char *folder, mixt_compare_run *run)
{
    char path[MIXT_COMPARE_PATH + 200];
    snprintf(path, sizeof path, "%s/events.jsonl", folder);
    FILE *file = mixt__file_open_stream(path);
    if (!file && errno == ENOENT)
        return MIXT_OK;
    if (!file)
        return mixt__fail(MIXT_ERROR_FILE, "%s: cannot be read: %s", path, mixt__file_problem(errno));
    mixt_status status = mixt__json_rows_read(file, path, count_alert, run);
    fclose(file);
    return status;
}

static mixt_status measure_pace(const rows *r, int64_t samples, mixt_compare_run *run)
{
    double largest, pace;
    MIXT_TRY(median_of(r, "samples_s", r->count > 2 ? r->count / 10 + 1 : 0, &pace, &largest));
    run->samples_s = pace;
    run->step_seconds = pace > 0 ? (double)samples / pace : (double)NAN;
    run->seconds = run->step_seconds * (double)run->steps;
    run->memory = last_of(r, "memory");
    run->energy = last_of(r, "energy");
    MIXT_TRY(median_of(r, "grad_norm", 0, &run->grad_norm, &largest));
    run->grad_norm_max = largest / run->grad_norm;
    return MIXT_OK;
}

mixt_status mixt__compare_measure(const char *folder, int64_t samples, mixt_compare_run *run)
{
    rows r;
    bool diverged = run->diverged;
    *run = nothing;
    run->diverged = diverged;
    MIXT_TRY(open_rows(folder, &r));
    const double *skipped = mixt_metrics_column(r.metrics, "skipped");
    double all = r.step[r.count - 1], tenth = floor(all / 10) < 1 ? 1 : floor(all / 10);
    run->steps = (int64_t)all;
    for (int64_t i = 0; skipped && i < r.count; i++)
        run->skipped += skipped[i] > 0 ? (int64_t)skipped[i] : 0;
    run->start_loss = mean_loss(&r, 0, fmax(r.step[0], fmin(tenth, 10)));
    run->train_loss = mean_loss(&r, all - tenth, all);
    run->loss = last_of(&r, "val_loss");
    if (isnan(run->loss))
        run->loss = run->train_loss;
    run->best_loss = lowest_of(&r, "val_loss");
    run->accuracy = last_of(&r, "val_accuracy");
    mixt_status status = measure_pace(&r, samples, run);
    if (status == MIXT_OK)
        status = count_alerts(folder, run);
    mixt_metrics_free(r.metrics);
    return status;
}

/* ---- time to equal loss ---- */

/** The first update after which the mean loss of those just before it is down at the target. */
static double reaches(const rows *r, double window, double target)
{
    double sum = 0, updates = 0;
    int64_t first = 0;
    for (int64_t i = 0; i < r->count; i++) {
        sum += r->loss[i] * updates_of(r, i);
        updates += updates_of(r, i);
        while (first < i && r->step[first] <= r->step[i] - window) {
            sum -= r->loss[first] * updates_of(r, first);
            updates -= updates_of(r, first++);
        }
        if (r->step[i] >= window && sum / updates <= target)
            return r->step[i];
    }
    return NAN;
}

static double end_loss(const rows *r, double window)
{
    double all = r->step[r->count - 1];
    return mean_loss(r, all - window, all);
}

mixt_status mixt__compare_equal(const char *a, const char *b, mixt_compare_run runs[MIXT_COMPARE_SIDES])
{
    rows r[MIXT_COMPARE_SIDES];
    MIXT_TRY(open_rows(a, &r[0]));
    mixt_status status = open_rows(b, &r[1]);
    if (status == MIXT_OK) {
        double all = fmin(r[0].step[r[0].count - 1], r[1].step[r[1].count - 1]);
        double window = fmax(1, floor(smooth_share * all));
        double target = fmax(end_loss(&r[0], window), end_loss(&r[1], window));
        target += 1e-12 * fabs(target); // sums that were added in another order
        for (int side = 0; side < MIXT_COMPARE_SIDES; side++) {
            runs[side].equal_steps = reaches(&r[side], window, target);
            runs[side].equal_seconds = runs[side].equal_steps * runs[side].step_seconds;
        }
        mixt_metrics_free(r[1].metrics);
    }
    mixt_metrics_free(r[0].metrics);
    return status;
}
