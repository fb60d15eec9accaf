/* Learning curves of both sides, mean and range over the pairs, as a picture; all runs as a page. */
#include "prove/compare.h"

#include "base/alloc.h"
#include "base/status.h"
#include "mixt/metrics.h"
#include "mixt/plot.h"
#include "page/lead.h"
#include "page/report.h"
#include "prove/prove.h"
#include "store/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { POINTS = 80 };

/** A side's learning curve. */
typedef struct band {
    double x[POINTS], y[POINTS], low[POINTS], high[POINTS];
    int64_t runs[POINTS];
} band;

/** Adds the losses of a run, averaged over windows of updates. */
static void add_run(band *b, const mixt_metrics *m, double steps)
{
    const double *step = mixt_metrics_column(m, "step"), *loss = mixt_metrics_column(m, "loss");
    int64_t rows = mixt_metrics_describe(m).rows, row = 0;
    for (int64_t p = 0; step && loss && p < POINTS; p++) {
        double end = steps * (double)(p + 1) / POINTS, sum = 0;
        int64_t count = 0;
        for (; row < rows && step[row] <= end; row++)
            if (isfinite(loss[row])) {
                sum += loss[row];
                count++;
            }
        if (!count)
            continue;
        double mean = sum / (double)count;
        b->x[p] = end;
        b->low[p] = b->runs[p] ? fmin(b->low[p], mean) : mean;
        b->high[p] = b->runs[p] ? fmax(b->high[p], mean) : mean;
        b->y[p] += (mean - b->y[p]) / (double)++b->runs[p];
    }
}

/** Only points that some run has. */
static int64_t squeeze(band *b)
{
    int64_t count = 0;
    for (int64_t p = 0; p < POINTS; p++)
        if (b->runs[p]) {
            b->x[count] = b->x[p];
            b->y[count] = b->y[p];
            b->low[count] = b->low[p];
            b->high[count++] = b->high[p];
        }
    return count;
}

static double longest(const mixt_comparison *c)
{
    double steps = 0;
    for (int64_t i = 0; i < c->count; i++)
        for (int side = 0; side < MIXT_COMPARE_SIDES; side++)
            steps = c->pairs[i].done[side] ? fmax(steps, (double)c->pairs[i].runs[side].steps) : steps;
    return steps;
}

static mixt_status draw_curves(const mixt_comparison *c, band bands[MIXT_COMPARE_SIDES])
{
    char path[MIXT_COMPARE_PATH + 100], names[MIXT_COMPARE_SIDES][80], title[200];
    char precision[60];
    mixt_curve curves[MIXT_COMPARE_SIDES];
    double steps = longest(c);
    for (int side = 0; side < MIXT_COMPARE_SIDES; side++) {
        band *b = &bands[side];
        for (int64_t i = 0; i < c->count; i++) {
            mixt_metrics *m;
            mixt__compare_run_folder(c, i, (mixt_compare_side)side, path);
            if (!c->pairs[i].done[side] || mixt_metrics_read(path, &m) != MIXT_OK)
                continue; // someone has removed the run: its figures are kept, its curve is gone
            add_run(b, m, steps);
            mixt_metrics_free(m);
        }
        mixt__prove_precision(mixt__config_string(c->configs[side], MIXT_KEY_PRECISION), precision, sizeof precision);
        snprintf(names[side], sizeof names[side], "%s: %s", side ? "B" : "A", precision);
        curves[side] = (mixt_curve){.name = names[side], .x = b->x, .y = b->y, .low = b->low, .high = b->high};
        curves[side].count = squeeze(b);
    }
    snprintf(title, sizeof title, "Training loss of %.60s, %lld pairs: mean and range",
             mixt__config_string(c->configs[0], MIXT_KEY_MODEL), (long long)c->info.pairs);
    snprintf(path, sizeof path, "%s/curves.svg", c->folder);
    mixt_plot plot = {.title = title, .x_label = "update", .y_label = "loss", .curves = curves, .log_y = true};
    plot.curve_count = MIXT_COMPARE_SIDES;
    mixt_status status = mixt_plot_write(&plot, path, true);
    return status == MIXT_ERROR_DATA ? MIXT_OK : status; // a side whose every run diverged at once has no curve
}

/* ---- the report ---- */

/** How many times as much; "–" where there is no ratio. */
static json_t *ratio_cell(double value)
{
    char text[40] = "–";
    if (isfinite(value))
        snprintf(text, sizeof text, "%.3f", value);
    return mixt__lead_word(text, "number");
}

json_t *mixt__compare_part(const mixt_comparison *c, const char *title, const char *a, const char *b)
{
    char ratio[100];
    json_t *rows = json_array();
    snprintf(ratio, sizeof ratio, "%.40s / %.40s", b, a);
    for (int i = 0; i < MIXT_COMPARE_FIGURES; i++) {
        const mixt_compare_figure *f = &c->figures[i];
        if (isfinite(f->a) || isfinite(f->b))
            mixt__json_add(rows, json_pack("[s, o, o, o, o, o]", f->what, mixt__lead_number(f->a, f->unit),
                                           mixt__lead_number(f->b, f->unit), ratio_cell(f->ratio), ratio_cell(f->low),
                                           ratio_cell(f->high)));
    }
    return json_pack("{s:s, s:[s, s, s, s, s, s], s:o}", "title", title, "head", "mean over pairs", a, b, ratio,
                     "95% from", "to", "rows", rows);
}

static json_t *lines_of(const mixt_comparison *c)
{
    const mixt_stats_judgement *j = &c->info.judgement;
    char text[600];
    json_t *lines = json_array();
    mixt__json_add(lines, mixt__json_string(c->reason));
    snprintf(text, sizeof text, "Advice: %s.", c->advice);
    mixt__json_add(lines, mixt__json_string(text));
    snprintf(text, sizeof text,
             "%lld pairs, look %lld: p %.3g, %.3g by permutation; effect size %.2f; the pilot asks for %lld pairs",
             (long long)c->info.used, (long long)c->info.looks, j->p, c->info.p_flip, j->effect,
             (long long)c->info.needed);
    mixt__json_add(lines, mixt__json_string(text));
    for (int64_t i = 0; i < c->change_count; i++) {
        const mixt_compare_change *change = &c->changes[i];
        snprintf(text, sizeof text, "%s%s is %.200s in A and %.200s in B",
                 change->policy ? "" : "more than the policy: ", change->key, change->a, change->b);
        mixt__json_add(lines, mixt__json_string(text)); // left out where a value is not UTF-8
    }
    return lines;
}

static json_t *lead_of(const mixt_comparison *c)
{
    static const char *const moods[] = {
        [MIXT_STATS_UNDECIDED] = "open", [MIXT_STATS_NON_INFERIOR] = "good", [MIXT_STATS_INFERIOR] = "bad"};
    char title[MIXT_COMPARE_PATH + 20], path[MIXT_COMPARE_PATH + 100];
    const char *slash = strrchr(c->folder, '/');
    snprintf(title, sizeof title, "%s", slash ? slash + 1 : c->folder);
    snprintf(path, sizeof path, "%s/curves.svg", c->folder);
    return json_pack("{s:s, s:s, s:b, s:s, s:o, s:[o, {s:s, s:o}]}", "verdict",
                     mixt_compare_verdict_name(c->info.verdict), "mood", moods[c->info.verdict], "sides", 1, "title",
                     title, "lines", lines_of(c), "parts", mixt__compare_part(c, "A and B", "A", "B"), "title",
                     "Learning curves", "picture", mixt__lead_picture(path));
}

/** All runs that are done, as one page. */
static mixt_status write_page(const mixt_comparison *c)
{
    char(*paths)[MIXT_COMPARE_PATH + 100] = mixt__alloc((size_t)(2 * c->count + 1) * sizeof *paths);
    const char **list = mixt__alloc((size_t)(2 * c->count + 1) * sizeof *list);
    char page[MIXT_COMPARE_PATH + 100];
    int64_t count = 0;
    json_t *lead = lead_of(c);
    for (int64_t i = 0; paths && list && i < 2 * c->count && count < MIXT_PAGE_RUNS_MAX; i++)
        if (c->pairs[i / 2].done[i % 2]) {
            list[count] = mixt__compare_run_folder(c, i / 2, (mixt_compare_side)(i % 2), paths[count]);
            count += !access(list[count], F_OK); // one that someone has removed is left out
        }
    snprintf(page, sizeof page, "%s/report.html", c->folder);
    mixt_status status = !paths || !list ? mixt__fail(MIXT_ERROR_MEMORY, "no memory for the page of a comparison")
                         : count         ? mixt__page_write_led(list, count, lead, page, true)
                                         : MIXT_OK;
    json_decref(lead);
    mixt__free(paths);
    mixt__free(list);
    return status;
}

mixt_status mixt__compare_draw(mixt_comparison *c)
{
    band *bands = mixt__alloc(MIXT_COMPARE_SIDES * sizeof *bands);
    if (!bands)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the curves of a comparison");
    mixt_status status = c->info.pairs ? draw_curves(c, bands) : MIXT_OK;
    mixt__free(bands);
    MIXT_TRY(status);
    return c->info.pairs ? write_page(c) : MIXT_OK;
}
