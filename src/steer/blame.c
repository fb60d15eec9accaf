/* Which layers: the update at which it began, with statistics of every value (train/watch.h). */
#include "steer/inquiry.h"

#include "train/faults.h"
#include "train/watch.h"

#include <stdio.h>
#include <string.h>

static const double many_tiny = 0.25; // share of an FP16 value's numbers below its normal range

/** How bad a value is: not finite, 0 everywhere, close to 0. What was made first is worse than what followed. */
static double badness(const mixt__watched_value *v, bool blind)
{
    double count = (double)v->counts[MIXT_STATS_COUNT];
    if (v->counts[MIXT_STATS_NAN] + v->counts[MIXT_STATS_INF])
        return 3;
    if (count > 1 && v->counts[MIXT_STATS_ZEROS] == v->counts[MIXT_STATS_COUNT])
        return 2;
    int64_t below = v->counts[MIXT_STATS_EXPONENTS] - v->counts[MIXT_STATS_ZEROS]; // subnormals of FP32
    for (int e = 1; e - 127 < -14; e++)
        below += v->counts[MIXT_STATS_EXPONENTS + e];
    double tiny = count > 0 ? (double)below / count : 0;
    return !blind && v->dtype == MIXT_DTYPE_FP16 && tiny > many_tiny ? tiny : 0;
}

static bool is_named(const mixt_diagnosis *d, const char *layer)
{
    for (int i = 0; i < MIXT_DIAGNOSIS_LAYERS; i++)
        if (!strcmp(d->layers[i], layer))
            return true;
    return false;
}

/** Adds the layer of the worst value that is of none of those named; false: there is none. */
static mixt_status name_worst(mixt__inquiry *q, int slot, mixt__watched_value *v, double *worst)
{
    char layer[128] = "", op[sizeof q->d->op] = "";
    int64_t count = mixt__trainer_watched_count(q->trainer);
    *worst = 0;
    for (int64_t i = 0; i < count; i++) {
        MIXT_TRY(mixt__trainer_watched_read(q->trainer, i, v));
        double bad = badness(v, q->replay.fp32);
        if (v->gradient || !*v->layer || bad <= *worst || is_named(q->d, v->layer))
            continue;
        *worst = bad;
        snprintf(layer, sizeof layer, "%s", v->layer);
        snprintf(op, sizeof op, "%s", v->op);
    }
    memcpy(q->d->layers[slot], layer, sizeof layer);
    if (slot == 0)
        memcpy(q->d->op, op, sizeof op);
    return MIXT_OK;
}

/** Values that are not finite have made all that follow so: only the first layer is to blame. */
static mixt_status name_layers(mixt__inquiry *q)
{
    mixt__watched_value *v = mixt__alloc(sizeof *v);
    mixt_status status = v ? MIXT_OK : mixt__fail(MIXT_ERROR_MEMORY, "no memory to look at values");
    double worst = 0;
    for (int i = 0; i < MIXT_DIAGNOSIS_LAYERS && status == MIXT_OK && worst < 2; i++) {
        status = name_worst(q, i, v, &worst);
        if (!*q->d->layers[i])
            break;
        if (i == 0)
            q->d->symptom = worst >= 3 ? MIXT_CAUSE_OVERFLOW : MIXT_CAUSE_UNDERFLOW;
    }
    mixt__free(v);
    return status;
}

mixt_status mixt__inquire_layers(mixt__inquiry *q)
{
    const mixt__watch watch = {.targets = {MIXT_DTYPE_FP16}};
    mixt__trainer *t = q->trainer;
    MIXT_TRY(mixt__replay_to(&q->replay, q->begin - 1));
    if (t->faults) // it compiles anew where that changes: before the step that is watched is compiled
        MIXT_TRY(mixt__faults_prepare(t, q->replay.data));
    MIXT_TRY(mixt__trainer_watch(t, &watch));
    mixt_status status = mixt__trainer_watch_next(t);
    if (status == MIXT_OK)
        status = mixt__replay_step(&q->replay);
    if (status == MIXT_OK)
        status = name_layers(q);
    mixt__trainer_unwatch(t);
    return status;
}
