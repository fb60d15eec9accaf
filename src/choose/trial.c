/* Rounds of visits: in each round every candidate makes the same small number of updates. Where the memory holds all
 * trainers they live side by side; else each is made for its visit and given up after it. */
#include "choose/trial.h"

#include "base/threads.h"
#include "train/engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS_MIN = 5, ROUNDS_MAX = 60, ROUNDS_APART = 2, GROUP_APART = 4, GROUP_MAX = 1000, RESIDENT_MAX = 20 };
/** Updates of a visit on a device at least: the first one's batch comes while the device is idle, those of the others
 *  while it works, as they do in training. */
enum { GROUP_DEVICE = 10 };
/** How often the number of updates of a visit is chosen, and by which factor it grows at least. */
enum { GROUPINGS = 3, GROWTH = 2 };
/** A visit lasts at least this long, so that the clock and cold caches cost nothing. */
static const double visit_seconds = 0.05;
/** Rounds end when the medians are known this well; and what to think of a few rounds, which do not say. */
static const double enough = 0.002, noise_few = 0.05;
/** Share of the free memory that trainers side by side may take. */
static const double share_together = 0.7;

typedef struct entry {
    mixt__contender *c;
    mixt_trainer *trainer;      // NULL: not open
    double seconds[ROUNDS_MAX]; // of an update, by round
    double loss[ROUNDS_MAX];    // mean of the updates, by round
    int rounds;
    double first; // seconds of the single update of the first round; 0: not made
} entry;

struct mixt__trial {
    mixt_advice *advice;
    mixt_run *run;
    mixt__teller teller;
    entry entries[MIXT_CANDIDATES_MAX];
    int count;
    bool together;
    int64_t group; // updates of a visit
    double begun, limit;
};

static mixt__device *device_of(const mixt__trial *t)
{
    return t->run->experiment.context->device;
}

static double elapsed(const mixt__trial *t)
{
    return mixt__time_now() - t->begun;
}

static int by_value(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return a < b ? -1 : a > b;
}

static double median(const double *values, int count)
{
    double sorted[ROUNDS_MAX];
    memcpy(sorted, values, (size_t)count * sizeof *values);
    qsort(sorted, (size_t)count, sizeof sorted[0], by_value);
    return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

/* ---- trainers ---- */

mixt_status mixt__trial_open(mixt_run *run, const mixt__contender *contender, int larger, mixt_trainer **trainer)
{
    const mixt__experiment *e = &run->experiment;
    mixt_trainer_options options = e->trainer->options;
    options.precision = NULL;
    options.policy = contender->policy;
    options.batch *= larger;
    options.split = contender->split;
    options.recompute_budget = contender->activations;
    MIXT_TRY(mixt__trainer_open(e->context, mixt__trainer_model(e->trainer->inner), &options, trainer));
    mixt_status status = mixt_trainer_compile(*trainer, e->train);
    if (status != MIXT_OK) {
        mixt__trainer_close(*trainer);
        *trainer = NULL;
    }
    return status;
}

static void give_up(entry *e)
{
    mixt__trainer_close(e->trainer);
    e->trainer = NULL;
}

static mixt_status add_loss(void *user, const mixt__made *made)
{
    *(double *)user += made->step.loss;
    return MIXT_OK;
}

/** Some updates, begun and ended with an idle device; the mean loss of those whose result is there. */
static mixt_status make_updates(const mixt__trial *t, entry *e, int64_t count, double *loss)
{
    bool host = device_of(t)->backend->host_memory;
    mixt_step last;
    double sum = 0;
    mixt__engine engine = {.trainer = e->trainer->inner, .data = t->run->experiment.train, .user = &sum};
    engine.made = host ? add_loss : NULL; // a device is not to wait for anybody
    MIXT_TRY(mixt__engine_make(&engine, count));
    MIXT_TRY(mixt__device_synchronize(device_of(t)));
    MIXT_TRY(mixt__trainer_result(engine.trainer, mixt__trainer_steps(engine.trainer), &last));
    *loss = host ? sum / (double)count : last.loss;
    return MIXT_OK;
}

/** What is done the first time only: compiling, taking memory, recording. */
static mixt_status warm_up(const mixt__trial *t, entry *e)
{
    double loss;
    if (e->trainer)
        return MIXT_OK;
    MIXT_TRY(mixt__trial_open(t->run, e->c, 1, &e->trainer));
    mixt_status status = make_updates(t, e, device_of(t)->backend->host_memory ? 1 : 4, &loss);
    if (status != MIXT_OK)
        give_up(e);
    return status;
}

/* ---- visits ---- */

/** Memory that was there when it was planned may be gone: that candidate is left out, the others go on. */
static mixt_status visit(mixt__trial *t, entry *e)
{
    double loss;
    mixt_progress p = mixt__progress(MIXT_PROGRESS_STEP, "trying");
    p.what = e->c->out.name;
    p.seconds = elapsed(t);
    p.budget = t->limit;
    MIXT_TRY(mixt__tell(t->teller, &p));
    mixt_status status = warm_up(t, e);
    if (status == MIXT_ERROR_MEMORY) {
        e->c->fits = false;
        return MIXT_OK;
    }
    MIXT_TRY(status);
    if (t->group > 1) // the caches are another's
        MIXT_TRY(make_updates(t, e, 1, &loss));
    double start = mixt__time_now();
    MIXT_TRY(make_updates(t, e, t->group, &e->loss[e->rounds]));
    e->seconds[e->rounds++] = (mixt__time_now() - start) / (double)t->group;
    if (!t->together)
        give_up(e);
    return MIXT_OK;
}

/** Seconds that the rest of a round will take at most, by what is known: the last visit, or the model. */
static double visit_cost(const mixt__trial *t, const entry *e, double scale)
{
    double step = e->rounds ? e->seconds[e->rounds - 1] : scale * e->c->cost.seconds;
    return step * (double)(t->group + (e->trainer ? 1 : 3));
}

/** How much longer than modelled the candidates take that were visited. */
static double scale_of(const mixt__trial *t)
{
    double ratios[MIXT_CANDIDATES_MAX];
    int count = 0;
    for (int i = 0; i < t->count; i++)
        if (t->entries[i].rounds)
            ratios[count++] = median(t->entries[i].seconds, t->entries[i].rounds) / t->entries[i].c->cost.seconds;
    return count ? median(ratios, count) : 1;
}

/** All candidates once; *done when the time is over. Every other round goes backwards: drift cancels. */
static mixt_status make_round(mixt__trial *t, int round, bool *done)
{
    for (int i = 0; i < t->count; i++) {
        entry *e = &t->entries[round % 2 ? t->count - 1 - i : i];
        if (!e->c->fits)
            continue;
        *done = elapsed(t) + visit_cost(t, e, scale_of(t)) > t->limit;
        if (*done)
            return MIXT_OK;
        MIXT_TRY(visit(t, e));
    }
    return MIXT_OK;
}

/** How well the median is known: its standard error as a share of it, by the spread of the rounds around it. */
static double noise_of(const entry *e)
{
    double off[ROUNDS_MAX], middle = median(e->seconds, e->rounds);
    for (int r = 0; r < e->rounds; r++)
        off[r] = fabs(e->seconds[r] - middle);
    return 1.86 * median(off, e->rounds) / sqrt((double)e->rounds) / middle;
}

/** Whether the medians are as exact as anyone needs. */
static bool known(const mixt__trial *t)
{
    for (int i = 0; i < t->count; i++) {
        const entry *e = &t->entries[i];
        if (e->c->fits && (e->rounds < ROUNDS_MIN || noise_of(e) > enough))
            return false;
    }
    return true;
}

/** So many updates that the fastest candidate's visit lasts long enough, and that there is time for some rounds; the
 *  same for all, so that losses compare. An update alone takes longer than one of many, above all where its work is
 *  small: what was chosen by the first round is chosen again by what came of it. Rounds of fewer updates are forgotten.
 */
static void choose_group(mixt__trial *t)
{
    double fastest = INFINITY, all = 0;
    for (int i = 0; i < t->count; i++) {
        entry *e = &t->entries[i];
        if (!e->rounds)
            continue;
        double last = e->seconds[e->rounds - 1];
        e->first = e->first > 0 ? e->first : last;
        fastest = fmin(fastest, last);
        all += last;
    }
    double group = fmax(ceil(visit_seconds / fastest), device_of(t)->backend->host_memory ? 1 : GROUP_DEVICE);
    double room = floor((t->limit - elapsed(t)) / (ROUNDS_MIN * all)) - 1; // one update comes before those of a visit
    double chosen = fmin(fmin(group, room), GROUP_MAX);
    if (chosen < GROWTH * (double)t->group)
        return;
    t->group = (int64_t)chosen;
    for (int i = 0; i < t->count; i++)
        t->entries[i].rounds = 0;
}

static mixt_status make_rounds(mixt__trial *t)
{
    bool done = false;
    MIXT_TRY(make_round(t, 0, &done));
    int most = t->together ? ROUNDS_MAX : ROUNDS_APART;
    for (int round = 1; !done && round < most; round++) {
        if (t->together && round <= GROUPINGS)
            choose_group(t);
        if (known(t))
            break;
        MIXT_TRY(make_round(t, round, &done));
    }
    return MIXT_OK;
}

/* ---- batches that lie ready ---- */

/** The first updates' seconds. */
typedef struct times {
    double seconds[RESIDENT_MAX + 1];
    int count;
} times;

static mixt_status take_time(void *user, const mixt__made *made)
{
    times *all = user;
    all->seconds[all->count++] = made->seconds;
    return MIXT_OK;
}

mixt_status mixt__trial_resident(mixt__trainer *t, const mixt_data *data, int64_t steps, double *seconds)
{
    mixt__resident batches;
    times all = {.count = 0};
    int64_t timed = steps < 1 ? 1 : steps < RESIDENT_MAX ? steps : RESIDENT_MAX;
    MIXT_TRY(mixt__resident_open(&batches, t, data, 1));
    mixt__engine engine = {.trainer = t, .resident = &batches, .at_once = true, .made = take_time, .user = &all};
    mixt_status status = mixt__engine_make(&engine, timed + 1); // the first one warms up
    if (status == MIXT_OK)
        *seconds = median(all.seconds + 1, all.count - 1);
    mixt__resident_close(&batches);
    return status;
}

/* ---- what came of it ---- */

/** Share of the loss that training began with, lost next to FP32 over the later half of the rounds that both have made.
 *  (A share of the loss at the time says nothing once that is near 0.) What the spread of the rounds explains is
 *  nothing. */
static double lost_of(const entry *e, const entry *fp32)
{
    int rounds = e->rounds < fp32->rounds ? e->rounds : fp32->rounds, first = rounds / 2;
    double sum = 0, squares = 0, count = rounds - first;
    for (int r = first; r < rounds; r++) {
        double lost = (e->loss[r] - fp32->loss[r]) / fmax(fabs(fp32->loss[0]), 1e-30);
        if (!isfinite(lost))
            return isfinite(fp32->loss[r]) ? INFINITY : 0;
        sum += lost;
        squares += lost * lost;
    }
    double mean = sum / count, spread = sqrt(fmax(0, squares / count - mean * mean) / fmax(1, count - 1));
    return mean > 3 * spread ? mean : 0;
}

/** Candidates are compared by the same rounds: those that all have made, or else by the first update of each. Where not
 *  even that is there, nothing was measured. */
static void level(mixt__trial *t)
{
    int rounds = ROUNDS_MAX;
    bool first = true;
    for (int i = 0; i < t->count; i++)
        if (t->entries[i].c->fits) {
            rounds = t->entries[i].rounds < rounds ? t->entries[i].rounds : rounds;
            first = first && t->entries[i].first > 0;
        }
    for (int i = 0; i < t->count; i++) {
        entry *e = &t->entries[i];
        if (!rounds && first)
            e->seconds[0] = e->first;
        e->rounds = !e->c->fits ? 0 : rounds ? rounds : first;
    }
}

static void take_results(mixt__trial *t)
{
    const entry *fp32 = NULL;
    level(t);
    double scale = scale_of(t);
    for (int i = 0; i < t->count; i++)
        if (t->entries[i].c->rank == MIXT_RANK_FP32 && t->entries[i].rounds)
            fp32 = &t->entries[i];
    for (int i = 0; i < t->count; i++) {
        entry *e = &t->entries[i];
        if (!e->rounds)
            continue;
        mixt__advice_time(t->advice, e->c, median(e->seconds, e->rounds), "measured");
        e->c->noise = e->rounds < ROUNDS_MIN ? noise_few : noise_of(e);
        e->c->paired = fp32 && t->together && e->rounds >= ROUNDS_MIN;
        if (e->c->paired)
            e->c->out.lost = lost_of(e, fp32);
    }
    for (int i = 0; i < t->advice->count; i++) {
        mixt__contender *c = &t->advice->candidates[i];
        if (c->compiled && strcmp(c->out.source, "measured"))
            mixt__advice_time(t->advice, c, scale * c->cost.seconds, "modelled");
    }
}

/** Those that can be chosen at all, FP32 first. */
static void gather(mixt__trial *t, int first)
{
    double bytes = 0;
    for (int i = 0; i < t->advice->count; i++) {
        mixt__contender *c = &t->advice->candidates[i];
        bool idle = t->advice->lose == 0 && c->rank != MIXT_RANK_FP32; // nothing may be lost: it cannot be chosen
        if (!c->compiled || !c->fits || !(c->units || c->storage) || idle || (i < first && c->rank != MIXT_RANK_FP32))
            continue;
        t->entries[t->count++].c = c;
        bytes += (double)c->step_memory;
    }
    t->together = bytes < share_together * (double)mixt__device_available(device_of(t));
}

mixt_status mixt__trial_run(mixt_advice *advice, mixt_run *run, int first, double limit, mixt__teller teller)
{
    mixt__trial *t = mixt__alloc(sizeof *t);
    if (!t)
        return mixt__fail(MIXT_ERROR_MEMORY, "no memory for a trial");
    *t = (mixt__trial){.advice = advice, .run = run, .teller = teller, .limit = limit};
    t->begun = mixt__time_now();
    gather(t, first);
    t->group = t->together ? 1 : GROUP_APART;
    mixt_status status = make_rounds(t);
    if (status == MIXT_OK)
        take_results(t);
    for (int i = 0; i < t->count; i++)
        give_up(&t->entries[i]);
    mixt__free(t);
    return status;
}
