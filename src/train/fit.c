/* Two ways meet. More and more parts, until a plan fits as it is: that is one candidate, and more parts than that only
 * cost more. From there fewer and fewer, activations computed again to make up for it, until that is slower or does not
 * fit: what is needed grows with every part less, so nothing beyond is better. */
#include "train/fit.h"

#include "train/lengths.h"
#include "train/seconds.h"
#include "train/dist/sharded.h"
#include "train/trainer_inside.h"

#include <math.h>

enum { TRIES = 4 }; // copies of nodes take memory too, elsewhere: a second or third try counts that in

static const double WORTH = 0.005; // of an update: less is not worth another search

mixt_status mixt__trainer_replan(mixt__trainer *t, int64_t batch, int64_t split, size_t recompute)
{
    mixt__trainer_settings settings = t->settings;
    mixt__batch_spec spec = t->spec;
    mixt__executable *eval = t->eval;
    t->settings.accumulate = settings.accumulate / settings.split * split;
    t->settings.split = split;
    t->settings.recompute_budget = recompute;
    t->settings.batch = batch / split;
    mixt__spec_resize(&t->spec, batch / split);
    mixt__lengths_resize(t, batch / split);
    mixt__gather reading = t->ranks.shards.gathers[MIXT_GATHER_EVAL];
    t->ranks.shards.gathers[MIXT_GATHER_EVAL] = (mixt__gather){0};
    t->eval = NULL; // which hangs on the policy and its own batch alone
    mixt_status status = mixt__trainer_recompile(t);
    t->eval = eval;
    t->ranks.shards.gathers[MIXT_GATHER_EVAL] = reading;
    t->ranks.shards.gathers[MIXT_GATHER_EVAL].params = t->params;
    if (status != MIXT_OK) {
        t->settings = settings;
        t->spec = spec;
        mixt__lengths_resize(t, settings.batch);
    }
    return status;
}

/** What evaluates and predicts, from one to the other. */
static void move_evaluation(mixt__trainer *from, mixt__trainer *to)
{
    to->eval = from->eval;
    to->eval_input = from->eval_input;
    to->eval_target = from->eval_target;
    to->eval_window = from->eval_window;
    to->eval_gathered = from->eval_gathered;
    to->ranks.shards.gathers[MIXT_GATHER_EVAL] = from->ranks.shards.gathers[MIXT_GATHER_EVAL];
    from->eval_window = from->eval_gathered = NULL;
    from->ranks.shards.gathers[MIXT_GATHER_EVAL] = (mixt__gather){0};
    to->predict = from->predict;
    to->predict_input = from->predict_input;
    to->predict_output = from->predict_output;
    to->predict_device = from->predict_device;
    from->eval = from->predict = NULL;
    from->eval_input = from->eval_target = NULL;
    from->predict_input = from->predict_output = from->predict_device = NULL;
    for (int i = 0; i < 2; i++) {
        to->eval_device[i] = from->eval_device[i];
        from->eval_device[i] = NULL;
    }
}

/** Points evaluation and prediction at the working copies where they lie now. */
static void bind_evaluation(mixt__trainer *t)
{
    if (t->eval_input)
        mixt__sharded_bind(t, t->eval, MIXT_GATHER_EVAL, t->eval_window, NULL);
    if (t->predict_input)
        mixt__executable_bind(t->predict, t->params, NULL);
}

static void set_plan(mixt__trainer *t, int64_t split, size_t recompute, mixt_dtype keep)
{
    mixt__trainer_settings *s = &t->settings;
    int64_t batch = s->batch * s->split, passes = s->accumulate / s->split;
    s->batch = batch / split;
    mixt__spec_resize(&t->spec, batch / split);
    mixt__lengths_resize(t, batch / split);
    s->accumulate = passes * split;
    s->recompute_budget = recompute;
    t->next_batch = t->next_batch / s->split * split; // counted in passes
    t->batches_per_epoch = t->batches_per_epoch / s->split * split;
    s->split = split;
    if (s->policy.keep != keep)
        s->policy.keep_origin = keep == MIXT_DTYPE_NONE ? NULL : "train.activations";
    s->policy.keep = keep;
}

mixt_status mixt__trainer_refit(mixt__trainer *t, int64_t split, size_t recompute, mixt_dtype keep)
{
    mixt__trainer before = *t, aside = {0};
    set_plan(t, split, recompute, keep);
    move_evaluation(t, &aside); // its memory may not be there to be taken again
    mixt_status status = mixt__trainer_recompile(t);
    move_evaluation(&aside, t);
    if (status == MIXT_OK)
        bind_evaluation(t);
    if (status != MIXT_OK && !t->broken) {
        t->settings = before.settings;
        t->spec = before.spec;
        mixt__lengths_resize(t, before.settings.batch);
        t->next_batch = before.next_batch;
        t->batches_per_epoch = before.batches_per_epoch;
        return status;
    }
    if (split != before.settings.split)
        t->first_step = t->attempts; // results of before have other passes
    return status;
}

/** A search under way. */
typedef struct search {
    mixt__trainer *t;
    const mixt__fit_request *request;
    mixt__fit_choice *choice;
    int64_t batch;   // the whole one
    int64_t least;   // parts at least
    size_t as_given; // limit of activations, before anything is computed again to fit
    mixt_dtype keep; // that is tried now
} search;

static double seconds(const mixt__fit_plan *plan)
{
    return plan->update + plan->beside;
}

/** Keeps the better of two: one that fits, the faster of those, else the smaller. */
static void keep_better(const search *s, const mixt__fit_plan *plan)
{
    mixt__fit_choice *c = s->choice;
    bool fits = plan->bytes <= s->request->budget;
    bool better = fits == c->fits ? (fits ? seconds(plan) < seconds(&c->chosen) : plan->bytes < c->chosen.bytes) : fits;
    if (better || !c->chosen.split)
        c->chosen = *plan;
    c->fits = c->fits || fits;
}

static mixt_status compile(const search *s, int64_t split, size_t recompute)
{
    mixt__trainer_settings *now = &s->t->settings;
    mixt__policy before = now->policy;
    if (split == now->split && recompute == now->recompute_budget && s->keep == before.keep)
        return MIXT_OK;
    if (s->keep != before.keep) {
        now->policy.keep = s->keep;
        now->policy.keep_origin = s->keep != MIXT_DTYPE_NONE ? "train.memory" : NULL;
    }
    mixt_status status = mixt__trainer_replan(s->t, s->batch, split, recompute);
    if (status != MIXT_OK)
        now->policy = before;
    return status;
}

/** Counts what is compiled. */
static mixt_status count(const search *s, mixt__fit_plan *plan)
{
    const mixt__trainer_settings *now = &s->t->settings;
    *plan = (mixt__fit_plan){.split = now->split, .recompute = now->recompute_budget, .keep = now->policy.keep};
    plan->update = mixt__trainer_seconds(s->t);
    return s->request->measure(s->request->user, s->t, s->request->budget, &plan->bytes, &plan->beside);
}

/** With as little computed again as lets the rest fit.
 *  @param over bytes that the plan that is compiled has too many
 *  @param best the best plan that came of it, or, where none fits, the smallest */
static mixt_status recompute(const search *s, size_t over, mixt__fit_plan *best)
{
    int64_t split = s->t->settings.split;
    for (int i = 0; i < TRIES; i++) {
        size_t arena = s->t->train->plan.arena_bytes, target = arena > over ? arena - over : 1;
        mixt_status status = compile(s, split, target);
        if (status == MIXT_ERROR_MEMORY && s->t->recompute.least) { // the least there is: what the failure is told with
            MIXT_TRY(compile(s, split, s->t->recompute.least));
            i = TRIES;
        } else if (status != MIXT_OK)
            return status;
        MIXT_TRY(count(s, best));
        keep_better(s, best);
        if (best->bytes <= s->request->budget)
            return MIXT_OK;
        over = best->bytes - s->request->budget;
    }
    return MIXT_OK;
}

/** A number of parts with activations computed again: what lies beside the step as small as it can be, and whole.
 *  @param better it fits, and is the best so far */
static mixt_status try_recompute(const search *s, int64_t split, bool *better)
{
    const size_t budget = s->request->budget;
    mixt__fit_plan plain, small, whole;
    double before = s->choice->fits ? seconds(&s->choice->chosen) : INFINITY;
    MIXT_TRY(compile(s, split, s->as_given));
    MIXT_TRY(count(s, &plain));
    MIXT_TRY(s->request->measure(s->request->user, s->t, SIZE_MAX, &whole.bytes, &whole.beside));
    MIXT_TRY(recompute(s, plain.bytes > budget ? plain.bytes - budget : 0, &small));
    if (small.bytes <= budget && plain.beside - whole.beside > WORTH * plain.update) {
        MIXT_TRY(compile(s, split, s->as_given));
        MIXT_TRY(recompute(s, whole.bytes - budget, &whole));
    }
    *better = s->choice->fits && seconds(&s->choice->chosen) < before;
    return MIXT_OK;
}

/** The next divisor of `batch` above `split`; 0: there is none. */
static int64_t next_split(int64_t batch, int64_t split)
{
    for (int64_t k = split + 1; k <= batch; k++)
        if (batch % k == 0)
            return k;
    return 0;
}

/** The divisor of `batch` before `split`, at least `least`; 0: there is none. */
static int64_t previous_split(int64_t batch, int64_t split, int64_t least)
{
    for (int64_t k = split - 1; k >= least; k--)
        if (batch % k == 0)
            return k;
    return 0;
}

/** More parts until a plan fits as it is. @param last the number that did, or the largest there is */
static mixt_status try_splits(const search *s, int64_t *last)
{
    int64_t passes = s->t->settings.accumulate / s->t->settings.split;
    mixt__fit_plan plan;
    for (int64_t split = s->least; split && split * passes <= MIXT_PASSES_MAX && !s->choice->fits;) {
        MIXT_TRY(compile(s, split, s->as_given));
        MIXT_TRY(count(s, &plan));
        keep_better(s, &plan);
        *last = split;
        split = s->request->may_split ? next_split(s->batch, split) : 0;
    }
    return MIXT_OK;
}

/** The best plan with activations that wait in one format. */
static mixt_status try_format(const search *s)
{
    int64_t split = s->least;
    *s->choice = (mixt__fit_choice){0};
    MIXT_TRY(try_splits(s, &split));
    if (s->choice->fits)
        split = previous_split(s->batch, split, s->least);
    for (bool better = s->request->may_recompute; split && better; split = previous_split(s->batch, split, s->least))
        MIXT_TRY(try_recompute(s, split, &better));
    return MIXT_OK;
}

/** Formats that activations may wait in: as they are, then with half and a quarter of FP32's bytes. */
static int formats_of(const mixt__trainer *t, bool may_keep, mixt_dtype formats[3])
{
    const mixt__policy *p = &t->settings.policy;
    int count = 0;
    formats[count++] = p->keep;
    if (!may_keep || p->keep != MIXT_DTYPE_NONE)
        return count;
    for (size_t bytes = mixt_dtype_size(p->forward) / 2; bytes; bytes /= 2)
        formats[count++] = mixt__format_keep(bytes);
    return count;
}

mixt_status mixt__trainer_fit(mixt__trainer *t, const mixt__fit_request *request, mixt__fit_choice *choice)
{
    mixt__fit_choice tried;
    search s = {.t = t, .request = request, .choice = &tried, .as_given = t->settings.recompute_budget};
    mixt_dtype formats[3];
    mixt__fit_plan plan;
    s.least = t->settings.split;
    s.batch = t->settings.batch * t->settings.split;
    *choice = (mixt__fit_choice){0};
    int count_of = formats_of(t, request->may_keep, formats);
    for (int i = 0; i < count_of; i++) {
        search all = s;
        s.keep = formats[i];
        MIXT_TRY(try_format(&s));
        all.choice = choice;
        keep_better(&all, &tried.chosen);
    }
    s.keep = choice->chosen.keep;
    MIXT_TRY(compile(&s, choice->chosen.split, choice->chosen.recompute));
    return count(&s, &plan);
}
