/* Times of a step's ops, by a profile or by the model, and what only a second plan or the run's own record can say:
 * whether it waits for batches, and whether a larger batch would be faster. */
#include "choose/look.h"

#include "choose/remedies.h"
#include "choose/trial.h"
#include "mixt/metrics.h"
#include "mixt/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PROFILE_RUNS = 10, RESIDENT_STEPS = 9 };
/** Steps that a profile and the batches that lie ready take at least. */
enum { STEPS_MIN = 6 };
/** Waiting below this share is within what two measurements differ by. */
static const double least_wait = 0.05;

typedef struct look {
    mixt_advice *advice;
    mixt_run *run;
    const mixt__contender *contender;
    const char *folder;
    double limit;
    mixt_trainer *trainer;
    double *node_seconds;
    mixt__step_facts facts;
} look;

/* ---- times of ops ---- */

static void model_ops(look *l)
{
    const mixt__trainer *t = l->trainer->inner;
    for (int64_t i = 0; i < mixt__trainer_compiled(t)->graph->node_count; i++)
        l->node_seconds[i] = mixt__cost_op(l->advice->machine, mixt__trainer_compiled(t), i).seconds;
    l->facts.update_seconds = mixt__cost_step(l->advice->machine, t).work[MIXT_WORK_OPTIMIZER];
}

/** Rows of a profile are the nodes that run, in order, then the passes that end the step. */
static void take_rows(look *l, const mixt_profile *profile)
{
    const mixt__graph *graph = mixt__trainer_compiled(l->trainer->inner)->graph;
    const mixt_profile_row *row;
    int64_t next = 0;
    for (int64_t i = 0; i < graph->node_count; i++)
        if (!graph->nodes[i].alias)
            l->node_seconds[i] = mixt_profile_at(profile, next++)->seconds;
    while ((row = mixt_profile_at(profile, next++)))
        l->facts.update_seconds += row->seconds;
}

static mixt_status measure_ops(look *l, int64_t runs)
{
    mixt_profile *profile;
    MIXT_TRY(mixt_profile_new(l->trainer, l->run->experiment.train, runs, &profile));
    take_rows(l, profile);
    mixt_profile_free(profile);
    l->facts.measured = true;
    return MIXT_OK;
}

/* ---- waiting ---- */

static int by_value(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return a < b ? -1 : a > b;
}

/** Seconds of an update as the run's own rows have it, the median; NaN: they do not say. */
static double recorded_seconds(const look *l)
{
    mixt_metrics *metrics;
    double seconds = NAN;
    if (mixt_metrics_read(l->folder, &metrics) != MIXT_OK)
        return NAN;
    int64_t rows = mixt_metrics_describe(metrics).rows, count = 0;
    const double *rates = mixt_metrics_column(metrics, "samples_s");
    double *sorted = rates ? mixt__alloc((size_t)(rows + 1) * sizeof *sorted) : NULL;
    for (int64_t i = 0; sorted && i < rows; i++)
        if (rates[i] > 0)
            sorted[count++] = rates[i];
    if (count) {
        const mixt__trainer_settings *s = mixt__trainer_settings_of(l->trainer->inner);
        qsort(sorted, (size_t)count, sizeof *sorted, by_value);
        seconds = (double)(s->batch * s->accumulate) / sorted[count / 2];
    }
    mixt__free(sorted);
    mixt_metrics_free(metrics);
    return seconds;
}

/** An update from the data against one whose batches lie ready. */
static mixt_status measure_waiting(look *l, int64_t steps)
{
    double ready, whole = l->folder ? recorded_seconds(l) : l->contender->out.seconds;
    MIXT_TRY(mixt__trial_resident(l->trainer->inner, l->run->experiment.train, steps, &ready));
    double wait = isnan(whole) ? 0 : 1 - ready / whole;
    l->facts.wait = wait > least_wait ? wait : 0;
    return MIXT_OK;
}

/* ---- a larger batch ---- */

/** Share of a sample's time that twice the batch would save, by the model; 0 where it does not fit or does not compile.
 */
static double larger_batch(const look *l)
{
    const mixt__trainer *t = l->trainer->inner;
    mixt_trainer *larger;
    mixt_status opened = MIXT_ERROR_MEMORY;
    int64_t split = mixt__trainer_settings_of(t)->split;
    if (mixt_data_batches(l->run->experiment.train, 2 * mixt__trainer_settings_of(t)->batch * split) <
        mixt__trainer_settings_of(t)->accumulate / split)
        return 0;
    for (int i = 0; i < 2 && opened == MIXT_ERROR_MEMORY; i++) // once: the process may have been short for a moment
        opened = mixt__trial_open(l->run, l->contender, 2, &larger);
    if (opened != MIXT_OK)
        return 0;
    double one = mixt__cost_step(l->advice->machine, t).seconds;
    double two = mixt__cost_step(l->advice->machine, larger->inner).seconds;
    size_t more = mixt__trainer_memory(larger->inner).total - mixt__trainer_memory(t).total;
    mixt__trainer_close(larger);
    return l->contender->out.memory + more <= l->advice->limit ? fmax(0, 1 - two / (2 * one)) : 0;
}

/* ---- looking ---- */

static mixt_status find_facts(look *l)
{
    double step = l->contender->out.seconds;
    l->node_seconds = mixt__alloc((size_t)(mixt__trainer_compiled(l->trainer->inner)->graph->node_count + 1) *
                                  sizeof *l->node_seconds);
    if (!l->node_seconds)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory to inspect a step");
    l->facts.trainer = l->trainer->inner;
    l->facts.node_seconds = l->node_seconds;
    l->facts.larger_batch = larger_batch(l);
    if (l->advice->assumed || !l->contender->fits || !(STEPS_MIN * step < l->limit)) {
        model_ops(l);
        return MIXT_OK;
    }
    double room = l->limit / step / 3;
    MIXT_TRY(measure_ops(l, room < 1 ? 1 : room > PROFILE_RUNS ? PROFILE_RUNS : (int64_t)room));
    return measure_waiting(l, room > RESIDENT_STEPS ? RESIDENT_STEPS : (int64_t)room);
}

mixt_status mixt__look(mixt_advice *advice, mixt_run *run, const mixt__contender *contender, const char *folder,
                       double limit)
{
    look l = {.advice = advice, .run = run, .contender = contender, .folder = folder, .limit = limit};
    MIXT_TRY(mixt__trial_open(run, contender, 1, &l.trainer));
    mixt_status status = find_facts(&l);
    if (status == MIXT_OK)
        mixt__remedies(advice, &l.facts);
    mixt__free(l.node_seconds);
    mixt__trainer_close(l.trainer);
    return status;
}
