/* Each remedy is a finder over the ops of a step: how much time is lost to one cause, where, and what would be won. */
#include "choose/remedies.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Less than this share of the step is not worth a line. */
static const double least_share = 0.02;
/** An op is small when it takes less than this many launches. */
static const double small_launches = 3;
/** The optimizer is much from here on; usually it is a few percent. */
static const double much_update = 0.15;

/** Where one cause was seen. */
typedef struct found {
    double seconds; // of the ops concerned, in all passes of an update
    double gain;    // of those, what the remedy wins
    int64_t ops;
    char where[96]; // layers, the first few
} found;

typedef struct step {
    mixt_advice *advice;
    const mixt__step_facts *facts;
    const mixt__executable *plan;
    double passes, seconds; // of an update, without waiting
} step;

static void note(const step *s, found *f, int64_t node, double gain)
{
    const char *layer = s->plan->graph->nodes[node].layer;
    size_t used = strlen(f->where), length = strlen(layer);
    f->seconds += s->passes * s->facts->node_seconds[node];
    f->gain += s->passes * gain;
    f->ops++;
    if (!length || strstr(f->where, layer) || (used > 3 && !strcmp(f->where + used - 3, "...")))
        return;
    bool room = used + length + 8 < sizeof f->where;
    snprintf(f->where + used, sizeof f->where - used, "%s%s", used ? ", " : "", room ? layer : "...");
}

static void add(const step *s, const char *what, const found *f, const char *text)
{
    mixt_advice *a = s->advice;
    double share = f->seconds / s->seconds;
    if (share < least_share || a->remedy_count == MIXT_REMEDIES_MAX)
        return;
    mixt_remedy *r = &a->remedies[a->remedy_count++];
    *r = (mixt_remedy){.what = what, .share = share, .gain = fmax(0, f->gain / s->seconds), .text = text};
    r->where = mixt__advice_text(a, "%s", f->where);
}

static bool runs(const step *s, int64_t node)
{
    return !s->plan->graph->nodes[node].alias;
}

static bool gpu(const step *s)
{
    return s->advice->machine->info.capability > 0;
}

/** The fastest low format that this machine multiplies in; NONE: it has none. */
static mixt_dtype low_format(const step *s)
{
    const mixt_machine *m = s->advice->machine;
    mixt_dtype dtype;
    for (int i = 0; mixt__format_low(dtype = mixt__format_lower(i)); i++)
        if (mixt__machine_has(m, dtype))
            return dtype;
    return MIXT_DTYPE_NONE;
}

/* ---- products ---- */

/** Products whose rows begin at odd places in 16 bits: slower on Tensor Cores, and before Ampere not there at all. */
static void find_unaligned(const step *s)
{
    found f = {0};
    int64_t dimension = 0;
    bool any_shape = s->advice->machine->info.capability >= 80, low = low_format(s) != MIXT_DTYPE_NONE;
    for (int64_t i = 0; gpu(s) && low && i < s->plan->graph->node_count; i++) {
        const mixt__node *n = &s->plan->graph->nodes[i];
        const mixt__call *call = &s->plan->calls[i];
        bool concerned = mixt_dtype_size(n->arithmetic) == 2 || !any_shape;
        if (!runs(s, i) || !n->op->matrix_work || !concerned || !mixt__cost_odd_dimension(call))
            continue;
        dimension = dimension ? dimension : mixt__cost_odd_dimension(call);
        note(s, &f, i, s->facts->node_seconds[i] * (call->tensor_cores ? 0.5 : 0.8));
    }
    if (dimension)
        add(s, "unaligned products", &f,
            mixt__advice_text(s->advice, "a dimension of %lld is not a multiple of 8, so that %s: make it %lld",
                              (long long)dimension,
                              any_shape ? "Tensor Cores are used in part" : "fp16 cannot use the Tensor Cores",
                              (long long)((dimension + 7) / 8 * 8)));
}

/** Matrix work that a rule or the policy keeps in FP32 where lower units are there. */
static void find_full_products(const step *s)
{
    found rules = {0}, all = {0};
    const mixt_machine_info *m = &s->advice->machine->info;
    mixt_dtype low = low_format(s);
    for (int64_t i = 0; low != MIXT_DTYPE_NONE && i < s->plan->graph->node_count; i++) {
        const mixt__node *n = &s->plan->graph->nodes[i];
        if (!runs(s, i) || !n->op->matrix_work || n->arithmetic != MIXT_DTYPE_FP32)
            continue;
        mixt__op_cost cost = mixt__cost_op(s->advice->machine, s->plan, i);
        double ratio = m->flops[MIXT_DTYPE_FP32] / m->flops[low];
        note(s, n->rule >= 0 ? &rules : &all, i,
             cost.bound == MIXT_BOUND_FLOPS ? s->facts->node_seconds[i] * (1 - fmax(ratio, 0.2)) : 0);
    }
    add(s, "layers kept in fp32", &rules,
        mixt__advice_text(
            s->advice,
            "rules of the policy keep their products off the %s units: 'mixt sensitivity' shows which rules are needed",
            mixt_dtype_name(low)));
    add(s, "products in fp32", &all,
        mixt__advice_text(s->advice, "this machine multiplies %s faster: see the candidates above",
                          mixt_dtype_name(low)));
}

/* ---- the rest ---- */

static void find_casts(const step *s)
{
    found f = {0};
    for (int64_t i = 0; i < s->plan->graph->node_count; i++)
        if (runs(s, i) && mixt__cost_is_cast(&s->plan->graph->nodes[i]))
            note(s, &f, i, s->facts->node_seconds[i]);
    add(s, "casts", &f,
        mixt__advice_text(
            s->advice, "%lld of %lld ops only cast: let rules cover whole blocks, so that neighbours have one format",
            (long long)f.ops, (long long)s->plan->graph->node_count));
}

static void find_launches(const step *s)
{
    found f = {0};
    double launch = s->advice->machine->info.launch;
    for (int64_t i = 0; i < s->plan->graph->node_count; i++)
        if (runs(s, i) && s->facts->node_seconds[i] < small_launches * launch)
            note(s, &f, i, s->facts->node_seconds[i] / 2);
    f.where[0] = '\0'; // it is about all of them
    add(s, "launches of small ops", &f,
        mixt__advice_text(
            s->advice, "%lld ops of less than %.0f us each: a larger train.batch or wider layers cost little more time",
            (long long)f.ops, 1e6 * small_launches * launch));
}

/** Ops that only move bytes, in FP32, where half the bytes would do. */
static void find_wide_memory(const step *s)
{
    found wide = {0}, low = {0};
    double launch = s->advice->machine->info.launch;
    for (int64_t i = 0; i < s->plan->graph->node_count; i++) {
        const mixt__node *n = &s->plan->graph->nodes[i];
        bool moves = n->op->work == MIXT_WORK_NORMS || n->op->work == MIXT_WORK_POINTWISE;
        if (!runs(s, i) || !moves || mixt__cost_is_cast(n) || s->facts->node_seconds[i] < small_launches * launch)
            continue;
        bool full = n->in_count && s->plan->graph->values[n->in[0]].dtype == MIXT_DTYPE_FP32;
        note(s, full ? &wide : &low, i, full ? s->facts->node_seconds[i] / 2 : 0);
    }
    wide.where[0] = low.where[0] = '\0';
    add(s, "norms and pointwise ops in fp32", &wide,
        mixt__advice_text(s->advice, "memory-bound: activations in 16 bits are half the bytes"));
    add(s, "norms and pointwise ops", &low,
        mixt__advice_text(s->advice, "memory-bound, and in 16 bits already: no format helps"));
}

static void find_update(const step *s)
{
    found f = {.seconds = s->facts->update_seconds, .ops = 1};
    double share = f.seconds / s->seconds;
    if (share < much_update)
        return;
    f.gain = f.seconds / 2;
    add(s, "the optimizer", &f,
        mixt__advice_text(s->advice,
                          "it runs once per update: a larger batch or train.accumulate means fewer updates"));
}

static void find_small_batch(const step *s)
{
    const mixt__trainer_settings *settings = mixt__trainer_settings_of(s->facts->trainer);
    long long batch = (long long)(settings->batch * settings->split);
    found f = {.seconds = s->facts->larger_batch * s->seconds, .ops = 1};
    f.gain = f.seconds;
    add(s, "a small batch", &f,
        mixt__advice_text(s->advice,
                          "train.batch=%lld instead of %lld would take %.0f%% less time per sample (modelled); the "
                          "learning rate may need tuning",
                          2 * batch, batch, 100 * s->facts->larger_batch));
}

static void find_waiting(const step *s)
{
    found f = {.seconds = s->facts->wait * s->seconds, .ops = 1};
    f.gain = f.seconds;
    add(s, "waiting for data", &f,
        mixt__advice_text(
            s->advice,
            "the step ends before the next batch is ready: raise data.threads, or store the data in a faster format"));
}

static int by_gain(const void *x, const void *y)
{
    const mixt_remedy *a = x, *b = y;
    return a->gain > b->gain ? -1 : a->gain < b->gain ? 1 : a->share > b->share ? -1 : a->share < b->share;
}

void mixt__remedies(mixt_advice *advice, const mixt__step_facts *facts)
{
    step s = {.advice = advice, .facts = facts, .plan = mixt__trainer_compiled(facts->trainer)};
    s.passes = (double)mixt__trainer_settings_of(facts->trainer)->accumulate;
    s.seconds = facts->update_seconds;
    for (int64_t i = 0; i < s.plan->graph->node_count; i++)
        s.seconds += runs(&s, i) ? s.passes * facts->node_seconds[i] : 0;
    s.seconds /= 1 - fmin(facts->wait, 0.99);
    find_waiting(&s);
    find_unaligned(&s);
    find_full_products(&s);
    find_casts(&s);
    find_launches(&s);
    find_wide_memory(&s);
    find_update(&s);
    find_small_batch(&s);
    qsort(advice->remedies, (size_t)advice->remedy_count, sizeof advice->remedies[0], by_gain);
}
