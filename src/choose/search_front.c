/* The Pareto front of what was tried: which policies nothing cheaper equals. As a list, and as a picture. */
#include "choose/search.h"

#include "base/status.h"
#include "mixt/plot.h"
#include "store/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double change_of(const mixt__search *s, const mixt__search_try *t)
{
    return mixt__search_judge_part(s, t, MIXT_SEARCH_SEEN).value;
}

/** Known well enough to be on the front: not a single trial that only ranks layers. */
static bool is_known(const mixt__search *s, const mixt__search_try *t)
{
    return !isnan(mixt__search_cost(s, t)) && mixt__search_screen(s, t) != MIXT_VERDICT_UNDECIDED &&
           isfinite(change_of(s, t));
}

static bool beats(const mixt__search *s, const mixt__search_try *a, const mixt__search_try *b)
{
    double cost_a = mixt__search_cost(s, a), cost_b = mixt__search_cost(s, b);
    double change_a = change_of(s, a), change_b = change_of(s, b);
    return cost_a <= cost_b && change_a <= change_b && (cost_a < cost_b || change_a < change_b);
}

mixt_status mixt__search_front(const mixt__search *s, mixt__search_try ***front, int64_t *count)
{
    *count = 0;
    *front = mixt__alloc((size_t)(s->state.count + 1) * sizeof(mixt__search_try *));
    if (!*front)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for the front of a search");
    for (int64_t i = 0; i < s->state.count; i++) {
        mixt__search_try *t = s->state.tries[i];
        bool beaten = !is_known(s, t) && t != s->best;
        for (int64_t k = 0; k < s->state.count && !beaten && t != s->best; k++)
            beaten = is_known(s, s->state.tries[k]) && beats(s, s->state.tries[k], t);
        int64_t at = *count;
        for (; !beaten && at > 0 && mixt__search_cost(s, (*front)[at - 1]) > mixt__search_cost(s, t); at--)
            (*front)[at] = (*front)[at - 1];
        if (!beaten) {
            (*front)[at] = t;
            ++*count;
        }
    }
    return MIXT_OK;
}

static mixt_status write_list(const mixt__search *s, mixt__search_try **front, int64_t count)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < count; i++) {
        const mixt__search_try *t = front[i];
        mixt_judgement safe = mixt__search_judge(s, t);
        json_t *o = json_pack("{s:s, s:I}", "policy", t->line, "memory", (json_int_t)t->memory);
        mixt__json_set(o, "ms", isnan(t->ms) ? json_null() : json_real(t->ms));
        mixt__json_set(o, "judgement", mixt__judgement_object(&safe));
        mixt__json_set(o, "chosen", json_boolean(t == s->best));
        mixt__json_add(list, o);
    }
    char *text = mixt__json_dumps(list, JSON_INDENT(1) | JSON_REAL_PRECISION(9) | JSON_PRESERVE_ORDER);
    json_decref(list);
    mixt_status status = text ? mixt__search_state_write(&s->state, "front.json", text)
                              : mixt__fail(MIXT_ERROR_MEMORY, "no memory for the front of a search");
    free(text);
    return status;
}

/* ---- the picture ---- */

enum { TRIED, FRONT, CHOSEN, FULL, TOLERANCE, CURVES };

/** Points of one kind. */
typedef struct cloud {
    double *x, *y;
    int64_t count;
} cloud;

/** Changes far above the tolerance would flatten all that matters: such a policy is drawn at the upper edge. */
static double drawn_change(const mixt__search *s, double change)
{
    return 100 * fmin(change, 4 * s->options.lose);
}

static void add_point(const mixt__search *s, cloud *c, const mixt__search_try *t)
{
    double cost = mixt__search_cost(s, t);
    c->x[c->count] = s->options.goal == MIXT_SEARCH_TIME ? cost : cost / 1048576;
    c->y[c->count++] = drawn_change(s, change_of(s, t));
}

/** All points that have a cost, those that diverged too. */
static void add_points(const mixt__search *s, mixt__search_try **front, int64_t count, cloud clouds[CURVES])
{
    for (int64_t i = 0; i < s->state.count; i++) {
        const mixt__search_try *t = s->state.tries[i];
        bool diverged = isinf(change_of(s, t)) && !isnan(mixt__search_cost(s, t));
        if (t != s->best && t != s->fp32 && (is_known(s, t) || diverged))
            add_point(s, &clouds[TRIED], t);
    }
    for (int64_t i = 0; i < count; i++)
        add_point(s, &clouds[FRONT], front[i]);
    if (s->best != s->fp32)
        add_point(s, &clouds[CHOSEN], s->best);
    add_point(s, &clouds[FULL], s->fp32);
}

/** The tolerance as a line over all costs; false: there is one cost only, and no front to draw yet. */
static bool add_tolerance(const mixt__search *s, cloud clouds[CURVES])
{
    double low = clouds[FULL].x[0], high = low;
    for (int k = TRIED; k <= CHOSEN; k++)
        for (int64_t i = 0; i < clouds[k].count; i++) {
            low = fmin(low, clouds[k].x[i]);
            high = fmax(high, clouds[k].x[i]);
        }
    clouds[TOLERANCE].x[0] = low;
    clouds[TOLERANCE].x[1] = high;
    clouds[TOLERANCE].y[0] = clouds[TOLERANCE].y[1] = 100 * s->options.lose;
    clouds[TOLERANCE].count = 2;
    return low < high;
}

static mixt_status draw(const mixt__search *s, mixt__search_try **front, int64_t count, cloud clouds[CURVES])
{
    char path[4400], beyond[64], tolerance[64], title[160];
    mixt_curve curves[CURVES];
    add_points(s, front, count, clouds);
    if (!add_tolerance(s, clouds))
        return MIXT_OK;
    snprintf(beyond, sizeof beyond, "tried (top: %.3g%% or more)", 400 * s->options.lose);
    snprintf(tolerance, sizeof tolerance, "tolerance %.3g%%", 100 * s->options.lose);
    const char *const names[CURVES] = {beyond, "front", "chosen", s->best == s->fp32 ? "fp32, chosen" : "fp32",
                                       tolerance};
    for (int i = 0; i < CURVES; i++)
        curves[i] = (mixt_curve){.name = names[i],
                                 .x = clouds[i].x,
                                 .y = clouds[i].y,
                                 .count = clouds[i].count,
                                 .dots = i != FRONT && i != TOLERANCE};
    snprintf(title, sizeof title, "Policies of %.60s: cost and loss compared with fp32",
             mixt__config_string(s->config, MIXT_KEY_MODEL));
    mixt_plot plot = {.title = title, .curves = curves, .curve_count = CURVES};
    plot.x_label = s->options.goal == MIXT_SEARCH_TIME ? "milliseconds per step" : "MiB per step";
    plot.y_label = "change of the loss, %";
    return mixt_plot_write(&plot, mixt__search_state_file(&s->state, "front.svg", path, sizeof path), true);
}

mixt_status mixt__search_write_front(const mixt__search *s)
{
    mixt__search_try **front;
    int64_t count;
    cloud clouds[CURVES] = {0};
    MIXT_TRY(mixt__search_front(s, &front, &count));
    mixt_status status = write_list(s, front, count);
    bool room = true;
    for (int i = 0; i < CURVES; i++) {
        clouds[i].x = mixt__alloc((size_t)(s->state.count + 2) * sizeof(double));
        clouds[i].y = mixt__alloc((size_t)(s->state.count + 2) * sizeof(double));
        room = room && clouds[i].x && clouds[i].y;
    }
    if (status == MIXT_OK)
        status =
            room ? draw(s, front, count, clouds) : mixt__fail(MIXT_ERROR_MEMORY, "no memory for the front of a search");
    for (int i = 0; i < CURVES; i++) {
        mixt__free(clouds[i].x);
        mixt__free(clouds[i].y);
    }
    mixt__free((void *)front);
    return status;
}
