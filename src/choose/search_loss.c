/* What a policy loses: it and FP32 train the same updates from the same weights, then both are evaluated.
 *
 * Trial k begins with the weights and dropout masks of seed + k (of the file that `init` names: with its weights) and
 * takes batches that no other trial takes, as long as there are so many. Trials that the search goes by are evaluated
 * on every other block of the validation part, those of the final word on the blocks between: it has seen none of what
 * led to it.
 *
 * An update that a loss scaler skips is made again with its smaller scale: over a whole run the few skipped ones do not
 * count, over the few updates of a trial they would. Where it has to be made again too often, where no scaler watches,
 * or where the loss itself is not finite, the trial has diverged.
 */
#include "choose/search.h"

#include "base/status.h"
#include "base/threads.h"
#include "run/open/init.h"
#include "train/checkpoint.h"
#include "train/engine.h"

#include <math.h>

enum { AGAIN_MAX = 40 }; // from a scale of 2^24 down to 1, and some

/** Weights, moments and the place in the schedule of the checkpoint; its seed and policy are the trial's own. */
static mixt_status go_on(const mixt__search *s, mixt__trainer *t)
{
    static const char *const may_differ[] = {"precision", "seed",   "lr",          "min_lr",
                                             "schedule",  "warmup", "decay_steps", NULL};
    mixt__checkpoint *checkpoint;
    MIXT_TRY(mixt__checkpoint_open(s->from, &checkpoint));
    mixt_status status = mixt__trainer_restore(t, checkpoint, may_differ);
    mixt__checkpoint_close(checkpoint);
    return status;
}

mixt_status mixt__search_trainer(mixt__search *s, const mixt_policy *policy, int64_t seed_offset, bool still,
                                 mixt_trainer **trainer)
{
    const mixt_trainer *plan = s->e.trainer;
    mixt_trainer_options o = plan->options;
    o.precision = NULL;
    o.policy = policy;
    o.seed += (uint64_t)seed_offset;
    if (still) { // the weights stay as they are, whatever is trained
        o.lr = o.min_lr = 0;
        o.schedule = "constant";
        o.warmup = 0;
    }
    MIXT_TRY(mixt__trainer_open(s->e.context, mixt__trainer_model(plan->inner), &o, trainer));
    mixt_status status = mixt_trainer_compile(*trainer, s->e.facts);
    if (status == MIXT_OK) {
        mixt__experiment e = s->e;
        e.trainer = *trainer;
        status = mixt__experiment_init(&e, true, NULL, NULL);
    }
    if (status == MIXT_OK)
        status = mixt__trainer_allocate((*trainer)->inner);
    if (status == MIXT_OK && s->from)
        status = go_on(s, (*trainer)->inner);
    if (status == MIXT_OK)
        return MIXT_OK;
    mixt__trainer_close(*trainer);
    *trainer = NULL;
    return status;
}

/* ---- one trial ---- */

/** The validation samples of a part: every other block, at most as many as a trial trains on. */
static mixt__trainer_blocks blocks_of(const mixt__search *s, mixt__search_part part)
{
    const mixt__trainer_settings *settings = mixt__trainer_settings_of(s->e.trainer->inner);
    int64_t samples = mixt_data_describe(s->e.val)->samples, size = settings->eval_batch;
    size = size < samples / 2 ? size : samples / 2;
    int64_t blocks = samples / size,
            wanted = (s->steps[part] * settings->batch * settings->accumulate + size - 1) / size;
    int64_t all = blocks / 2, count = wanted < all ? wanted : all, apart = all / count * 2; // an even number of blocks
    return (mixt__trainer_blocks){.first = part * size, .size = size, .stride = apart * size, .count = count};
}

/** A trial under way. */
typedef struct trial {
    mixt__search *s;
    mixt__engine engine;
    bool diverged, halted;
} trial;

static mixt_status before(void *user, int64_t update)
{
    trial *t = user;
    (void)update;
    t->halted = t->engine.stop = mixt__search_halted(t->s);
    return MIXT_OK;
}

/** One that is skipped now was made again as often as it may be, or nobody watches the scale. */
static mixt_status take(void *user, const mixt__made *made)
{
    trial *t = user;
    t->diverged = t->engine.stop = !isfinite(made->step.loss) || made->step.skipped;
    mixt__search_tell(t->s, MIXT_PROGRESS_STEP, "");
    return MIXT_OK;
}

/** All updates of a trial, then its validation loss; INFINITY: it diverged; NaN: the search was halted.
 *  @param seconds of an update, on average */
static mixt_status train(mixt__search *s, mixt_trainer *t, mixt__search_part part, double *loss, double *seconds)
{
    mixt_evaluation found;
    trial made = {.s = s, .engine = {.trainer = t->inner, .data = s->e.train, .again_most = AGAIN_MAX}};
    made.engine.before = before;
    made.engine.made = take;
    made.engine.user = &made;
    double started = mixt__time_now();
    *loss = NAN;
    MIXT_TRY(mixt__engine_make(&made.engine, s->steps[part]));
    if (made.halted)
        return MIXT_OK;
    *seconds = (mixt__time_now() - started) / (double)s->steps[part];
    *loss = INFINITY;
    if (made.diverged)
        return MIXT_OK;
    mixt__trainer_stop_batches(t->inner);
    mixt__trainer_blocks blocks = blocks_of(s, part);
    MIXT_TRY(mixt__trainer_evaluate_blocks(t->inner, s->e.val, &blocks, &found));
    *loss = isfinite(found.loss) ? found.loss : (double)INFINITY;
    return MIXT_OK;
}

/** One trial of a policy. @param number it has seeds and batches of its own. *loss: NaN where the search was halted */
static mixt_status run_trial(mixt__search *s, mixt__search_try *tried, mixt__search_part part, int64_t number,
                             double *loss)
{
    double seconds = NAN;
    mixt_policy *policy;
    mixt_trainer *t = NULL;
    *loss = NAN;
    MIXT_TRY(mixt__search_policy(&s->groups, tried->levels, &policy));
    mixt_status status = mixt__search_trainer(s, policy, number, false, &t);
    mixt_policy_free(policy);
    if (status == MIXT_OK) {
        int64_t update = s->from_step + number * s->steps[part];
        mixt__trainer_seek(t->inner, update * mixt__trainer_settings_of(t->inner)->accumulate);
        status = train(s, t, part, loss, &seconds);
    }
    mixt__trainer_close(t);
    if (status == MIXT_OK && part == MIXT_SEARCH_SEEN && s->options.goal != MIXT_SEARCH_TIME && isfinite(*loss))
        tried->ms = fmin(1e3 * seconds, tried->ms); // a by-product, where nothing is decided by it
    if (status == MIXT_OK && tried == s->fp32 && !isnan(*loss) && !(isfinite(*loss) && *loss > 0))
        return mixt__fail(MIXT_ERROR_STATE,
                          "after %lld updates in fp32 the validation loss is %g: it cannot measure anything",
                          (long long)s->steps[part], *loss);
    return status;
}

static void add(mixt__search_losses *losses, double loss)
{
    losses->at[losses->count++] = loss;
}

/* ---- pairs ---- */

/** One more trial to screen by: of FP32 where the policy has as many already. */
static mixt_status run_next(mixt__search *s, mixt__search_try *tried)
{
    const mixt__search_losses *fp32 = &s->fp32->losses[MIXT_SEARCH_SEEN], *low = &tried->losses[MIXT_SEARCH_SEEN];
    mixt__search_try *next = fp32->count > low->count ? tried : s->fp32;
    mixt__search_losses *losses = &next->losses[MIXT_SEARCH_SEEN];
    double started = mixt__time_now(), loss;
    MIXT_TRY(run_trial(s, next, MIXT_SEARCH_SEEN, losses->count, &loss));
    if (isnan(loss))
        return MIXT_OK;
    s->trial_seconds = fmax(s->trial_seconds, mixt__time_now() - started);
    add(losses, loss);
    return mixt__search_save(s, next);
}

mixt_status mixt__search_measure_loss(mixt__search *s, mixt__search_try *tried)
{
    while (mixt__search_screen(s, tried) == MIXT_VERDICT_UNDECIDED && !mixt__search_halted(s))
        MIXT_TRY(run_next(s, tried));
    return MIXT_OK;
}

mixt_status mixt__search_measure_pair(mixt__search *s, mixt__search_try *tried)
{
    mixt__search_losses *low = &tried->losses[MIXT_SEARCH_FRESH];
    int64_t number = MIXT_SEARCH_MORE * s->trials + (tried->finalist - 1) * MIXT_SEARCH_TRIALS_ALL + low->count;
    double started = mixt__time_now(), loss;
    bool whole = tried->fp32.count == low->count; // else FP32's run is there already
    if (whole) {
        MIXT_TRY(run_trial(s, s->fp32, MIXT_SEARCH_FRESH, number, &loss));
        if (isnan(loss))
            return MIXT_OK;
        add(&tried->fp32, loss);
        MIXT_TRY(mixt__search_save(s, tried));
    }
    MIXT_TRY(run_trial(s, tried, MIXT_SEARCH_FRESH, number, &loss));
    if (isnan(loss))
        return MIXT_OK;
    s->pair_seconds = fmax(s->pair_seconds, (whole ? 1 : 2) * (mixt__time_now() - started));
    add(low, loss);
    return mixt__search_save(s, tried);
}
