/* Which layers: the update at which it began, with statistics of every value (train/watch.h).
 *
 * The update before it is looked at as well, where it is made by the same plan: what was 0 everywhere while all was
 * well is not to blame now.
 */
#include "steer/inquiry.h"

#include "train/faults.h"
#include "train/watch.h"

#include <stdio.h>
#include <string.h>

static const double many_tiny = 0.25; // share of an FP16 value's numbers below its normal range
static const double broken = 2;       // the badness of values that are no numbers, or all 0

typedef struct looking {
    mixt__inquiry *q;
    mixt__watched_value *value; // that is read
    int64_t count;              // of values
    bool *zero;                 // by value: it was 0 everywhere before; NULL: not known
} looking;

static bool is_zero(const mixt__watched_value *v)
{
    return v->counts[MIXT_STATS_COUNT] > 1 && v->counts[MIXT_STATS_ZEROS] == v->counts[MIXT_STATS_COUNT];
}

static bool is_finite(const mixt__watched_value *v)
{
    return !v->counts[MIXT_STATS_NAN] && !v->counts[MIXT_STATS_INF];
}

/** How bad value number `index` is. What was made first is worse than what followed from it. */
static double badness(const looking *l, int64_t index)
{
    const mixt__watched_value *v = l->value;
    double count = (double)v->counts[MIXT_STATS_COUNT];
    if (!is_finite(v) || (is_zero(v) && !(l->zero && l->zero[index])))
        return broken;
    int64_t below = v->counts[MIXT_STATS_EXPONENTS] - v->counts[MIXT_STATS_ZEROS]; // subnormals of FP32
    for (int e = 1; e - 127 < -14; e++)
        below += v->counts[MIXT_STATS_EXPONENTS + e];
    double tiny = count > 0 ? (double)below / count : 0;
    return v->dtype == MIXT_DTYPE_FP16 && tiny > many_tiny ? tiny : 0;
}

static bool is_named(const mixt_diagnosis *d, const char *layer)
{
    for (int i = 0; i < MIXT_DIAGNOSIS_LAYERS; i++)
        if (!strcmp(d->layers[i], layer))
            return true;
    return false;
}

/** Adds the layer of the worst value that is of none of those named. @param worst 0: there is none */
static mixt_status name_worst(const looking *l, int slot, double *worst)
{
    mixt_diagnosis *d = l->q->d;
    const mixt__watched_value *v = l->value;
    char layer[128] = "";
    *worst = 0;
    for (int64_t i = 0; i < l->count; i++) {
        MIXT_TRY(mixt__trainer_watched_read(l->q->trainer, i, l->value));
        double bad = badness(l, i);
        if (v->gradient || !*v->layer || bad <= *worst || is_named(d, v->layer))
            continue;
        *worst = bad;
        snprintf(layer, sizeof layer, "%s", v->layer);
        if (slot > 0)
            continue;
        snprintf(d->op, sizeof d->op, "%s", v->op);
        d->symptom = is_finite(v) ? MIXT_CAUSE_UNDERFLOW : MIXT_CAUSE_OVERFLOW;
    }
    memcpy(d->layers[slot], layer, sizeof layer);
    return MIXT_OK;
}

/** Where a value is broken, those that follow may be so because of it: only its layer is to blame. */
static mixt_status name_layers(const looking *l)
{
    double worst = 1;
    for (int i = 0; i < MIXT_DIAGNOSIS_LAYERS && worst > 0 && worst < broken; i++)
        MIXT_TRY(name_worst(l, i, &worst));
    return MIXT_OK;
}

static mixt_status note_zeros(looking *l)
{
    l->zero = mixt__alloc((size_t)l->count + 1);
    if (!l->zero)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to look at values");
    for (int64_t i = 0; i < l->count; i++) {
        MIXT_TRY(mixt__trainer_watched_read(l->q->trainer, i, l->value));
        l->zero[i] = is_zero(l->value);
    }
    return MIXT_OK;
}

/** The next update, as a watched one. */
static mixt_status step(looking *l)
{
    MIXT_TRY(mixt__trainer_watch_next(l->q->trainer));
    return mixt__replay_step(&l->q->replay);
}

/** Faults that tests plant compile the step anew where they begin or end: that is to be over. */
static mixt_status settle(const looking *l)
{
    return l->q->trainer->faults ? mixt__faults_prepare(l->q->trainer, l->q->replay.data) : MIXT_OK;
}

static mixt_status watch(looking *l)
{
    const mixt__watch all = {.targets = {MIXT_DTYPE_FP16}};
    MIXT_TRY(settle(l));
    MIXT_TRY(mixt__trainer_watch(l->q->trainer, &all));
    l->count = mixt__trainer_watched_count(l->q->trainer);
    return MIXT_OK;
}

static mixt_status look(looking *l)
{
    mixt__trainer *t = l->q->trainer;
    MIXT_TRY(watch(l));
    if (t->attempts == l->q->begin - 2) {
        MIXT_TRY(step(l));
        MIXT_TRY(note_zeros(l));
    }
    MIXT_TRY(settle(l));
    if (!t->watched) { // another plan: its values are others, too
        mixt__free(l->zero);
        l->zero = NULL;
        MIXT_TRY(watch(l));
    }
    MIXT_TRY(step(l));
    return name_layers(l);
}

mixt_status mixt__inquire_layers(mixt__inquiry *q)
{
    looking l = {.q = q};
    MIXT_TRY(mixt__replay_to(&q->replay, q->begin - 2)); // or it is behind that already
    l.value = mixt__alloc(sizeof *l.value);
    mixt_status status = l.value ? look(&l) : mixt__fail(MIXT_ERROR_MEMORY, "no memory to look at values");
    mixt__trainer_unwatch(q->trainer);
    mixt__free(l.zero);
    mixt__free(l.value);
    return status;
}
