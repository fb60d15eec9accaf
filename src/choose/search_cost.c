/* What a policy costs: bytes and milliseconds of a whole training step.
 *
 * Bytes are those of the compiled plan; nothing is run for them. Milliseconds are measured in rounds: some steps of
 * FP32, some of the policy, in one trainer that is compiled for both in turn. The figure is FP32's own time times the
 * median ratio of the rounds: what the machine does meanwhile, faster or slower, both sides of a round see. The weights
 * stay as they are (a learning rate of 0), and steps that the loss scaler skips are not timed.
 */
#include "choose/search.h"

#include "base/statistics.h"
#include "base/status.h"
#include "base/threads.h"
#include "train/engine.h"

#include <math.h>

enum { ROUNDS_MIN = 5, ROUNDS_MAX = 9, WARM = 2, SETTLE_MAX = 30, STEPS_MAX = 50 };

static const double block_seconds = 0.03; // of steps timed at once: short against drift, long against the clock

double mixt__search_cost(const mixt__search *s, const mixt__search_try *tried)
{
    if (s->options.goal == MIXT_SEARCH_TIME)
        return tried->ms;
    return tried->memory ? (double)tried->memory : (double)NAN;
}

/* ---- time ---- */

/** A trainer, and the batches that it steps on as its step reads them. */
typedef struct stopwatch {
    mixt__search *s;
    mixt_trainer *trainer;
    mixt__resident batches;
    mixt_policy *sides[2]; // FP32, the policy
} stopwatch;

static mixt_status steps(stopwatch *c, int64_t count, double *seconds)
{
    mixt__trainer *t = c->trainer->inner;
    double started = mixt__time_now();
    mixt__engine engine = {.trainer = t, .resident = &c->batches};
    MIXT_TRY(mixt__engine_make(&engine, count));
    MIXT_TRY(mixt__device_synchronize(mixt__trainer_device(t)));
    *seconds = (mixt__time_now() - started) / (double)count;
    return MIXT_OK;
}

/** Updates until the loss scale has settled. */
typedef struct settling {
    mixt__search *s;
    mixt__engine engine;
    int good; // in a row
    double seconds;
} settling;

static mixt_status settle(void *user, const mixt__made *made)
{
    settling *now = user;
    now->seconds = made->seconds;
    now->good = made->step.skipped ? 0 : now->good + 1;
    now->engine.stop = now->good == WARM || mixt__search_halted(now->s);
    return MIXT_OK;
}

/** Compiles for one side and makes steps until none is skipped. @param seconds of the last of them */
static mixt_status change_side(stopwatch *c, int side, double *seconds)
{
    MIXT_TRY(mixt_trainer_set_policy(c->trainer, c->sides[side]));
    mixt__resident_close(&c->batches);
    MIXT_TRY(mixt__resident_open(&c->batches, c->trainer->inner, c->s->e.train, 1));
    settling now = {.s = c->s, .engine = {.trainer = c->trainer->inner, .resident = &c->batches, .at_once = true}};
    now.engine.made = settle;
    now.engine.user = &now;
    now.engine.stop = mixt__search_halted(c->s);
    MIXT_TRY(mixt__engine_make(&now.engine, SETTLE_MAX));
    *seconds = now.seconds > 0 ? now.seconds : *seconds;
    return MIXT_OK;
}

/** One side of a round. */
static mixt_status time_side(stopwatch *c, int side, double *seconds)
{
    double last = 1;
    MIXT_TRY(change_side(c, side, &last));
    int64_t count = (int64_t)(block_seconds / last) + 1;
    MIXT_TRY(steps(c, count < STEPS_MAX ? count : STEPS_MAX, seconds));
    mixt__search_tell(c->s, MIXT_PROGRESS_STEP, "");
    return MIXT_OK;
}

/** Rounds until they are enough, or a fortieth of the budget is spent on them. */
static mixt_status time_rounds(stopwatch *c, bool both, double *fp32, double *ratio)
{
    double started = mixt__time_now(), share = c->s->options.budget / 40;
    double bases[ROUNDS_MAX], ratios[ROUNDS_MAX];
    int rounds = 0;
    while (rounds < ROUNDS_MAX && (rounds < ROUNDS_MIN || mixt__time_now() - started < share)) {
        double seconds;
        MIXT_TRY(time_side(c, 0, &bases[rounds]));
        ratios[rounds] = 1;
        if (both) {
            MIXT_TRY(time_side(c, 1, &seconds));
            ratios[rounds] = seconds / bases[rounds];
        }
        if (mixt__search_halted(c->s))
            break;
        rounds++;
    }
    *fp32 = mixt__median(bases, rounds);
    *ratio = mixt__median(ratios, rounds);
    return MIXT_OK;
}

static mixt_status open_stopwatch(stopwatch *c, const mixt__search_try *tried)
{
    MIXT_TRY(mixt__search_policy(&c->s->groups, c->s->fp32->levels, &c->sides[0]));
    MIXT_TRY(mixt__search_policy(&c->s->groups, tried->levels, &c->sides[1]));
    return mixt__search_trainer(c->s, c->sides[0], 0, true, &c->trainer);
}

static mixt_status measure_time(mixt__search *s, mixt__search_try *tried)
{
    stopwatch c = {.s = s};
    double fp32 = NAN, ratio = NAN;
    mixt_status status = open_stopwatch(&c, tried);
    if (status == MIXT_OK)
        status = time_rounds(&c, tried != s->fp32, &fp32, &ratio);
    mixt__resident_close(&c.batches);
    mixt__trainer_close(c.trainer);
    for (int i = 0; i < 2; i++)
        mixt_policy_free(c.sides[i]);
    if (status == MIXT_OK && !mixt__search_halted(s))
        tried->ms = tried == s->fp32 ? 1e3 * fp32 : s->fp32->ms * ratio;
    return status;
}

/* ---- both ---- */

static mixt_status plan_memory(mixt__search *s, mixt__search_try *tried)
{
    mixt_policy *policy;
    mixt_memory memory;
    MIXT_TRY(mixt__search_policy(&s->groups, tried->levels, &policy));
    mixt_status status = mixt_trainer_set_policy(s->e.trainer, policy);
    mixt_policy_free(policy);
    if (status == MIXT_OK)
        status = mixt_trainer_memory(s->e.trainer, &memory);
    if (status == MIXT_OK)
        tried->memory = (int64_t)memory.total;
    return status;
}

mixt_status mixt__search_measure_cost(mixt__search *s, mixt__search_try *tried)
{
    bool timed = s->options.goal != MIXT_SEARCH_TIME || !isnan(tried->ms);
    if (tried->memory && timed)
        return MIXT_OK;
    if (!tried->memory)
        MIXT_TRY(plan_memory(s, tried));
    if (!timed)
        MIXT_TRY(measure_time(s, tried));
    return mixt__search_halted(s) ? MIXT_OK : mixt__search_save(s, tried);
}
