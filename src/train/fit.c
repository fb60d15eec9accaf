/* Plans in the order of their parts: the fewest first, since more parts only cost more. */
#include "train/fit.h"

#include "train/seconds.h"

mixt_status mixt__trainer_replan(mixt__trainer *t, int64_t batch, int64_t split)
{
    mixt__trainer_settings settings = t->settings;
    mixt__batch_spec spec = t->spec;
    mixt__executable *eval = t->eval;
    t->settings.accumulate = settings.accumulate / settings.split * split;
    t->settings.split = split;
    t->settings.batch = t->spec.input.dims[0] = t->spec.target.dims[0] = batch / split;
    t->eval = NULL; // which hangs on the policy and its own batch alone
    mixt_status status = mixt__trainer_recompile(t);
    t->eval = eval;
    if (status != MIXT_OK) {
        t->settings = settings;
        t->spec = spec;
    }
    return status;
}

/** Compiles a plan and counts it. */
static mixt_status try_plan(mixt__trainer *t, const mixt__fit_request *r, int64_t split, mixt__fit_plan *plan)
{
    *plan = (mixt__fit_plan){.split = split};
    if (split != t->settings.split)
        MIXT_TRY(mixt__trainer_replan(t, t->settings.batch * t->settings.split, split));
    plan->update = mixt__trainer_seconds(t);
    return r->measure(r->user, t, &plan->bytes, &plan->beside);
}

/** The next divisor of `batch` above `split`; 0: there is none. */
static int64_t next_split(int64_t batch, int64_t split)
{
    for (int64_t k = split + 1; k <= batch; k++)
        if (batch % k == 0)
            return k;
    return 0;
}

static double seconds(const mixt__fit_plan *plan)
{
    return plan->update + plan->beside;
}

/** Keeps the better of two: one that fits, the faster of those, else the smaller. */
static void keep_better(mixt__fit_choice *c, const mixt__fit_plan *plan, size_t budget)
{
    bool fits = plan->bytes <= budget;
    bool better = fits == c->fits ? (fits ? seconds(plan) < seconds(&c->chosen) : plan->bytes < c->chosen.bytes) : fits;
    if (better || !c->chosen.split)
        c->chosen = *plan;
    c->fits = c->fits || fits;
}

mixt_status mixt__trainer_fit(mixt__trainer *t, const mixt__fit_request *request, mixt__fit_choice *choice)
{
    int64_t batch = t->settings.batch * t->settings.split, passes = t->settings.accumulate / t->settings.split;
    mixt__fit_plan plan;
    *choice = (mixt__fit_choice){0};
    for (int64_t split = t->settings.split; split && split * passes <= MIXT_PASSES_MAX;) {
        MIXT_TRY(try_plan(t, request, split, &plan));
        if (choice->fits && plan.update >= seconds(&choice->chosen))
            break; // and more parts take longer still
        keep_better(choice, &plan, request->budget);
        split = request->may_split ? next_split(batch, split) : 0;
    }
    return try_plan(t, request, choice->chosen.split, &plan);
}
