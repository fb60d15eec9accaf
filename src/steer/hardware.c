/* The same updates again: other bits mean that a machine computed something wrong, then or now. */
#include "steer/inquiry.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double no_number = 1e6; // stands for how far apart a number and none are
static const double outlier = 50;    // times the next largest difference of its parameter: a single number that flipped

void mixt__layer_of(const char *parameter, char layer[128])
{
    snprintf(layer, 128, "%s", parameter);
    char *dot = strrchr(layer, '.');
    if (dot)
        *dot = '\0';
}

static const char *name_of(const mixt__inquiry *q, int64_t segment)
{
    const mixt__params *p = q->trainer->params;
    return p->table[p->segments[segment].param].name;
}

/** What the first replay had at the update that differs. */
typedef struct kept {
    mixt__trace_row row;
    mixt__segment_stats *stats; // (segments)
} kept;

/** Whether the trainer has the very weights of the state that was kept of this update, where there is one: a weight
 * that flipped shows in the numbers of the next update only, and the state is as bad as that. */
static mixt_status compare_state(const mixt__inquiry *q, bool *same)
{
    const mixt__snapshot *state = mixt__snapshots_state(q->ring, q->trainer->attempts);
    const mixt__params *p = q->trainer->params;
    for (int64_t s = 0; state && *same && s < p->segment_count; s++) {
        const mixt__segment *at = &p->segments[s];
        size_t bytes = (size_t)at->count * sizeof(float);
        float *now = mixt__alloc_uninit(bytes);
        mixt_status status = now ? mixt__params_get(p, at->param, now)
                                 : mixt__fail(MIXT_ERROR_MEMORY, "no memory to compare %s", name_of(q, s));
        *same = status != MIXT_OK || !memcmp(now, state->blocks[0] + at->offset, bytes);
        mixt__free(now);
        MIXT_TRY(status);
    }
    return MIXT_OK;
}

/** From the oldest state to the newest update, or to `stop`. @param differs the first that has other bits; 0: none */
static mixt_status compare(mixt__inquiry *q, int64_t stop, int64_t *differs, kept *first)
{
    size_t bytes = (size_t)q->ring->trace.segments * sizeof *first->stats;
    *differs = 0;
    MIXT_TRY(mixt__replay_from(&q->replay, q->oldest));
    while (q->trainer->attempts < stop) {
        MIXT_TRY(mixt__replay_step(&q->replay));
        bool same = *differs || mixt__replay_same(&q->replay);
        if (same && !*differs)
            MIXT_TRY(compare_state(q, &same));
        if (same)
            continue;
        *differs = q->replay.row.step;
        first->row = q->replay.row;
        memcpy(first->stats, q->replay.stats, bytes);
    }
    return MIXT_OK;
}

/* ---- which parameter ---- */

/** The largest difference between two copies of a parameter, and the next. */
typedef struct difference {
    double largest, next;
} difference;

static double distance(float a, float b)
{
    double d = fabs((double)a - (double)b);
    return isnan(d) ? (isnan(a) && isnan(b) ? 0 : (double)INFINITY) : d;
}

static difference compare_values(const float *a, const float *b, int64_t count)
{
    difference found = {0};
    for (int64_t i = 0; i < count; i++) {
        double d = distance(a[i], b[i]);
        if (d > found.largest) {
            found.next = found.largest;
            found.largest = d;
        } else if (d > found.next) {
            found.next = d;
        }
    }
    return found;
}

/** The parameter with a single weight far from what the replay gives at the same update; -1: there is none. */
static mixt_status find_weight(const mixt__inquiry *q, int64_t *segment)
{
    const mixt__params *p = q->trainer->params;
    const float *bad = q->ring->states[MIXT_SNAPSHOTS].blocks[0]; // the masters as they were
    double worst = 0;
    *segment = -1;
    for (int64_t s = 0; s < p->segment_count; s++) {
        const mixt__segment *at = &p->segments[s];
        float *good = mixt__alloc_uninit((size_t)at->count * sizeof *good);
        mixt_status status = good ? mixt__params_get(p, at->param, good)
                                  : mixt__fail(MIXT_ERROR_MEMORY, "no memory to compare %s", name_of(q, s));
        difference d = status == MIXT_OK ? compare_values(bad + at->offset, good, at->count) : (difference){0};
        mixt__free(good);
        MIXT_TRY(status);
        if (d.largest > outlier * d.next && d.largest > worst) {
            worst = d.largest;
            *segment = s;
        }
    }
    return MIXT_OK;
}

/** How far apart the gradients of a parameter are: decades of their squares. */
static double gap(const mixt__segment_stats *a, const mixt__segment_stats *b)
{
    if ((a->nonfinite > 0) != (b->nonfinite > 0))
        return no_number;
    double gap = fabs(log(fmax(a->sum_squares, 1e-300)) - log(fmax(b->sum_squares, 1e-300)));
    return isfinite(gap) ? gap : 0;
}

/** The parameter whose gradient was furthest off at that update; -1: several are no numbers at all. */
static int64_t find_gradient(const mixt__inquiry *q, const kept *first)
{
    const mixt__segment_stats *then = mixt__trace_stats_of(&q->ring->trace, first->row.step);
    int64_t found = -1, broken = 0;
    double widest = 0;
    for (int64_t s = 0; s < q->ring->trace.segments; s++) {
        double now = gap(&then[s], &first->stats[s]);
        broken += now == no_number;
        found = now > widest ? s : found;
        widest = now > widest ? now : widest;
    }
    return broken > 1 ? -1 : found;
}

static mixt_status name_parameter(mixt__inquiry *q, const kept *first)
{
    mixt_diagnosis *d = q->d;
    int64_t segment;
    MIXT_TRY(find_weight(q, &segment));
    bool weight = segment >= 0;
    segment = weight ? segment : find_gradient(q, first);
    if (segment >= 0) {
        snprintf(d->parameter, sizeof d->parameter, "%s", name_of(q, segment));
        mixt__layer_of(d->parameter, d->layers[0]);
    }
    snprintf(d->text, sizeof d->text,
             "hardware: update %lld gave other bits when it was computed again from update %lld%s%s",
             (long long)d->step, (long long)mixt__snapshots_before(q->ring, d->step),
             segment < 0 ? ""
             : weight    ? "; a single weight is far off in "
                         : "; furthest off is the gradient of ",
             d->parameter);
    return MIXT_OK;
}

/* ---- whether it stays ---- */

static mixt_status replay_again(mixt__inquiry *q, const kept *first)
{
    mixt_diagnosis *d = q->d;
    MIXT_TRY(mixt__replay_from(&q->replay, q->oldest));
    while (q->trainer->attempts < d->step && !d->persists) {
        MIXT_TRY(mixt__replay_step(&q->replay));
        d->persists = q->trainer->attempts < d->step ? !mixt__replay_same(&q->replay)
                                                     : !mixt__trace_same(&first->row, first->stats, &q->replay.row,
                                                                         q->replay.stats, q->ring->trace.segments);
    }
    size_t length = strlen(d->text);
    snprintf(d->text + length, sizeof d->text - length, "; %s",
             d->persists ? "a second replay gave other bits again: the machine is not to be trusted"
                         : "a second replay gave the bits of the first: it happened once");
    return MIXT_OK;
}

static mixt_status inquire(mixt__inquiry *q, bool *differs, kept *first)
{
    mixt_diagnosis *d = q->d;
    int64_t step;
    MIXT_TRY(compare(q, q->last, &step, first));
    *differs = step > 0;
    if (!*differs)
        return MIXT_OK;
    const mixt__trace_row *row = mixt__trace_row_of(&q->ring->trace, step);
    d->kind = MIXT_DIAGNOSIS_HARDWARE;
    d->cause = MIXT_CAUSE_HARDWARE;
    d->step = step;
    d->value = row->loss;
    d->usual = first->row.loss;
    MIXT_TRY(name_parameter(q, first));
    return replay_again(q, first);
}

mixt_status mixt__inquire_hardware(mixt__inquiry *q, bool *differs)
{
    kept first = {.stats = mixt__alloc((size_t)q->ring->trace.segments * sizeof *first.stats)};
    mixt_status status =
        first.stats ? inquire(q, differs, &first) : mixt__fail(MIXT_ERROR_MEMORY, "no memory for a replay");
    mixt__free(first.stats);
    return status;
}
